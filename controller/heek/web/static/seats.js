/**
 * The five seats: three buttons, an LED, what was won, and who sits there.
 *
 * Each seat is drawn twice. The *seat* is the station in the table: its buttons, with a light for each that was
 * won round the button's rim, and the LED. The *place* is who sits there and how it stands with them; where the
 * room is small the places are the ring above, each with its own LED and a small tally, and only one seat's
 * station is shown, large. The nodes are made once; a state only changes their words and marks.
 */

import { keyOf } from "./keys.js";
import { KINDS, seatWord, troubleWord, troubleWords } from "./words.js";

const SEATS = [1, 2, 3, 4, 5];
const BLINK_MS = 80;

/** Change a text only if it is another. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Change an attribute only if it is another; null takes it away. */
export function mark(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value === true ? "" : value)) {
    node.setAttribute(name, value === true ? "" : value);
  }
}

function glyph(svg, kind) {
  const use = svg.firstElementChild;
  const href = `/kinds.svg#${kind}`;
  if (use.getAttribute("href") !== href) use.setAttribute("href", href);
}

export class Seats {
  /**
   * @param {HTMLElement} root
   * @param {{contacts: import("./contacts.js").Contacts, pick: (seat: number) => void, claim: (seat: number) => void}} deeds
   */
  constructor(root, deeds) {
    this.root = root;
    this.deeds = deeds;
    this.labels = new Map();
    this.target = 0;
    this.built = "";
    this.seats = new Map();
    this.places = new Map();
    for (const number of SEATS) this.seats.set(number, this.seat(number));
    for (const number of SEATS) this.places.set(number, this.place(number));
  }

  seat(number) {
    const node = document.getElementById("seat-template").content.firstElementChild.cloneNode(true);
    node.dataset.seat = number;
    node.setAttribute("aria-label", `Seat ${number}`);
    this.root.append(node);
    return { node, led: node.querySelector(".led"), glow: node.querySelector(".glow"), contacts: new Map() };
  }

  place(number) {
    const node = document.getElementById("place-template").content.firstElementChild.cloneNode(true);
    node.dataset.seat = number;
    const part = (name) => node.querySelector(`.${name}`);
    write(part("number"), String(number));
    const pick = part("pick");
    pick.addEventListener("click", () => this.deeds.pick(number));
    const claim = part("claim");
    claim.setAttribute("aria-label", `Sign in at seat ${number}`);
    claim.addEventListener("click", () => this.deeds.claim(number));
    const tallies = new Map();
    for (const kind of KINDS) {
      const column = document.createElement("span");
      column.className = "tally-kind";
      column.dataset.kind = kind;
      const svg = document.getElementById("contact-template").content.firstElementChild.cloneNode(true);
      glyph(svg, kind);
      const count = document.createElement("span");
      count.className = "count";
      column.append(svg, count);
      part("tally").append(column);
      tallies.set(kind, { column, count });
    }
    this.root.append(node);
    return {
      node, pick, claim, tallies,
      led: part("led"), name: part("name"), tag: part("tag"), state: part("state"), thrown: part("thrown"),
    };
  }

  /** Make the buttons anew if other seats may be pressed now, with real buttons only where one may press. */
  build(allowed) {
    const built = SEATS.map((number) => (allowed(number) ? "1" : "0")).join("");
    if (built === this.built) return;
    this.built = built;
    this.deeds.contacts.releaseAll();
    for (const [number, seat] of this.seats) {
      for (const contact of seat.contacts.values()) contact.node.remove();
      seat.contacts.clear();
      mark(seat.node, "data-flat", !allowed(number));
      for (const kind of KINDS) seat.contacts.set(kind, this.contact(seat.node, number, kind, allowed(number)));
    }
    this.target = 0;
    this.name();
  }

  contact(parent, number, kind, real) {
    const node = document.createElement(real ? "button" : "div");
    node.className = "contact";
    node.dataset.kind = kind;
    if (real) node.type = "button";
    else node.setAttribute("role", "img");
    node.append(document.getElementById("contact-template").content.cloneNode(true));
    glyph(node.querySelector(".glyph"), kind);
    const pips = document.createElement("span");
    pips.className = "pips";
    pips.setAttribute("aria-hidden", "true");
    node.append(pips);
    parent.append(node);
    if (real) this.listen(node, number, kind);
    return { node, pips, key: node.querySelector(".key"), lights: [] };
  }

  listen(node, number, kind) {
    const { contacts } = this.deeds;
    let held_at = -1000;
    node.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button !== 0) return;
      held_at = event.timeStamp;
      // The finger may slide off: until it is lifted it holds this button and no other.
      try {
        node.setPointerCapture(event.pointerId);
      } catch {
        // A pointer that is gone already sends no more; its lease ends by itself.
      }
      contacts.press(number, kind, `pointer ${event.pointerId}`);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      node.addEventListener(end, (event) => contacts.release(`pointer ${event.pointerId}`));
    }
    node.addEventListener("keydown", (event) => {
      if (event.code !== "Space" && event.code !== "Enter") return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      held_at = event.timeStamp;
      if (!event.repeat) contacts.press(number, kind, `focus ${number} ${kind}`);
    });
    node.addEventListener("keyup", (event) => {
      if (event.code === "Space" || event.code === "Enter") {
        event.preventDefault();
        contacts.release(`focus ${number} ${kind}`);
      }
    });
    node.addEventListener("blur", () => contacts.release(`focus ${number} ${kind}`));
    node.addEventListener("click", (event) => {
      // What a screen reader or a voice does: a click and nothing before it.
      if (event.detail === 0 && event.timeStamp - held_at > BLINK_MS) contacts.tap(number, kind, `click ${number} ${kind}`);
    });
    for (const gesture of ["contextmenu", "dragstart", "selectstart"]) {
      node.addEventListener(gesture, (event) => event.preventDefault());
    }
  }

  /** What stands on the keys. */
  learnKeys(labels) {
    this.labels = labels;
    this.name();
  }

  name() {
    for (const [number, seat] of this.seats) {
      for (const [kind, contact] of seat.contacts) {
        const key = this.labels.get(keyOf(number, kind)) ?? "";
        write(contact.key, key);
        contact.label = `Seat ${number}: ${kind}${key && contact.node.localName === "button" ? `, key ${key}` : ""}`;
        mark(contact.node, "aria-label", contact.label);
      }
    }
  }

  /** A button looks pressed at once; that says nothing of whether it counts. */
  pressed(number, kind, down) {
    const contact = this.seats.get(number).contacts.get(kind);
    if (contact) mark(contact.node, "data-pressed", down);
  }

  /** One LED, both where it is and in the ring. */
  light(number, level) {
    for (const { led } of [this.seats.get(number), this.places.get(number)]) {
      // An eye sees a dim light brighter than its share of the current.
      led.style.setProperty("--glow", String(Math.sqrt(level)));
      led.dataset.level = String(level);
    }
    this.seats.get(number).glow.style.opacity = String(level);
  }

  /** As many lights round each button as it takes to win. */
  lights(target) {
    if (target === this.target) return;
    this.target = target;
    const step = Math.min(30, 140 / Math.max(target - 1, 1));
    for (const seat of this.seats.values()) {
      for (const contact of seat.contacts.values()) {
        while (contact.lights.length > target) contact.lights.pop().remove();
        while (contact.lights.length < target) {
          const light = document.createElement("i");
          contact.pips.append(light);
          contact.lights.push(light);
        }
        contact.lights.forEach((light, index) => {
          light.style.setProperty("--angle", `${(index - (target - 1) / 2) * step}deg`);
        });
      }
    }
  }

  /**
   * Show a state. `beat` is how far a reveal has come (`throws`, `winners`, `won`; null without one), `own` the seat
   * that this browser plays or shows large, `yours` whether the buttons of a seat wait for this browser.
   */
  show(state, about, now, beat, own) {
    this.lights(state.target);
    for (const row of state.seats) {
      this.showSeat(row, state, about, beat, own);
      this.showPlace(row, state, about, now, beat, own);
    }
  }

  showSeat(row, state, about, beat, own) {
    const { node, contacts } = this.seats.get(row.seat);
    const shown = beat !== null;
    const fresh = shown && wins(row, state, beat) && row.won_round && !state.sudden_death ? row.throw : null;
    // What this round has won stands there only when its beat has come.
    const to_come = shown && beat !== "won" && row.won_round && !state.sudden_death ? row.throw : null;
    mark(node, "data-state", row.state);
    mark(node, "data-own", row.seat === own);
    mark(node, "data-thrown", row.thrown && !shown);
    mark(node, "data-turn", turn(row, state));
    mark(node, "data-out", plays(state) && !row.in_round);
    mark(node, "data-beat", shown ? beat : null);
    mark(node, "data-won", wins(row, state, beat));
    mark(node, "data-match", matchWon(row, state, beat));
    for (const [kind, contact] of contacts) {
      const trouble = troubleWord(row, kind);
      mark(contact.node, "data-threw", shown && row.throw === kind);
      mark(contact.node, "data-shut", shown && row.throw !== kind);
      mark(contact.node, "data-stuck", trouble !== "" && trouble !== "worn");
      mark(contact.node, "data-worn", trouble === "worn");
      const held = row.collection ? row.collection[kind] : 0;
      contact.lights.forEach((light, index) => {
        const is_fresh = kind === fresh && index === held - 1;
        mark(light, "data-lit", index < held && !(kind === to_come && index === held - 1));
        mark(light, "data-fresh", is_fresh && beat === "won");
      });
      const won = held > 0 ? `, ${held} won` : "";
      mark(contact.node, "aria-label", `${contact.label}${won}${trouble ? `, ${trouble}` : ""}`);
    }
    mark(node, "aria-label", `Seat ${row.seat}${row.bot ? ", bot" : row.name ? `, ${row.name}` : ""}`);
  }

  showPlace(row, state, about, now, beat, own) {
    const place = this.places.get(row.seat);
    const shown = beat !== null;
    mark(place.node, "data-state", row.state);
    mark(place.node, "data-own", row.seat === own);
    mark(place.node, "data-turn", turn(row, state));
    mark(place.node, "data-thrown", row.thrown && !shown);
    mark(place.node, "data-out", plays(state) && !row.in_round);
    mark(place.node, "data-won", wins(row, state, beat));
    mark(place.node, "data-match", matchWon(row, state, beat));
    const taken = row.state !== "absent" && row.state !== "free";
    write(place.name, row.bot ? (row.name ?? "") : (row.name ?? (taken ? "guest" : "")));
    const tag = row.bot ? "BOT" : row.name && about?.sign_in ? "unverified" : "";
    write(place.tag, tag);
    // Where a name has hardly room, a question mark says that nobody has checked it.
    mark(place.tag, "data-short", tag === "unverified" ? "?" : tag);
    mark(place.tag, "title", tag === "unverified" ? "unverified" : null);
    mark(place.tag, "hidden", tag === "");
    const elsewhere = Boolean(about?.phone) && row.seat !== own && about.held.includes(row.seat);
    const mine = Boolean(about?.phone) && row.seat === own;
    const word = row.state !== "free" || !(elsewhere || mine) ? seatWord(row, state, now, beat) : mine ? "yours" : "another phone’s";
    const trouble = troubleWords(row);
    write(place.state, [word, trouble].filter(Boolean).join("; "));
    mark(place.node, "data-fault", trouble !== "");
    mark(place.node, "data-showing", shown && beat !== "won" && row.throw !== null ? "throw" : row.collection ? "tally" : null);
    if (shown && row.throw !== null) {
      glyph(place.thrown, row.throw);
      mark(place.thrown, "data-kind", row.throw);
    }
    for (const [kind, { column, count }] of place.tallies) {
      const fresh = shown && beat !== "won" && row.won_round && !state.sudden_death && row.throw === kind;
      const held = Math.max(0, (row.collection?.[kind] ?? 0) - (fresh ? 1 : 0));
      write(count, held > 3 ? String(held) : "•".repeat(held));
      mark(column, "data-some", held > 0);
    }
    this.showPick(place, row, about, own);
    mark(place.claim, "hidden", !maySignIn(row, state, about));
  }

  showPick(place, row, about, own) {
    let words = null;
    if (about?.phone) {
      if (own === null && row.state !== "absent" && !row.bot && !about.held.includes(row.seat)) words = "Sit here";
    } else if (row.state !== "absent" && row.seat !== own) words = "Show this seat";
    mark(place.pick, "hidden", words === null);
    mark(place.pick, "data-deed", about?.phone ? "take" : "show");
    if (words !== null) {
      write(place.pick, words);
      mark(place.pick, "aria-label", about?.phone ? `Take seat ${row.seat}` : `Show the buttons of seat ${row.seat}`);
    }
  }
}

const plays = (state) => ["throw", "countdown", "settle", "reveal"].includes(state.phase);

const matchWon = (row, state, beat) => state.phase === "match_over" && beat === "won" && row.won_match;

/** Has this seat won what is shown now: the round, and at the end of a match that alone? */
function wins(row, state, beat) {
  if (beat === null || beat === "throws") return false;
  return state.phase === "match_over" && beat === "won" ? row.won_match : row.won_round;
}

/** May somebody sign in there now? */
export const maySignIn = (row, state, about) =>
  Boolean(about?.sign_in) && state.phase === "lobby" && ["taken", "ready", "unconfirmed"].includes(row.state) && !row.bot && !row.name;

/** Is something to be done at this seat? */
function turn(row, state) {
  if (row.state === "unconfirmed") return state.phase !== "match_over";
  return (state.phase === "throw" || state.phase === "countdown") && row.in_round && !row.thrown && !row.bot;
}
