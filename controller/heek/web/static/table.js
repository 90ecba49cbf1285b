/**
 * The page: joins the stream, the clock, the seats, the OLED and the input, and keeps no truth of its own.
 *
 * A state that comes is all there is to know; it is drawn at once. What moves by itself between two states (a
 * second that passes, the beats of a reveal) has one timer, set to the next of them.
 */

import { ask, Refused } from "./ask.js";
import { Contacts } from "./contacts.js";
import { keyLabels, listenToKeys } from "./keys.js";
import { Lamps } from "./lamps.js";
import { Oled } from "./oled.js";
import { Ring } from "./ring.js";
import { mark, maySignIn, Seats, write } from "./seats.js";
import { SignIn } from "./sign_in.js";
import { grain } from "./stone.js";
import { Stream } from "./stream.js";
import { TableClock } from "./table_clock.js";
import { announcement, faultWords, sentence, staleWords, title } from "./words.js";

const LINES = 12;
const REFUSED_MS = 6000;
const ANNOUNCE_MS = 250;
const WINNERS_AFTER_S = 0.7;
const THROWS_FIRST_S = 2.5;

const part = (id) => document.getElementById(id);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Give `parent` so many children, made by `make`; those that are there stay. */
function rows(parent, count, make) {
  while (parent.children.length > count) parent.lastElementChild.remove();
  while (parent.children.length < count) parent.append(make());
}

class Page {
  constructor() {
    this.clock = new TableClock();
    this.state = null;
    this.about = null;
    this.link = "connecting";
    this.age_s = null;
    this.large = 1;
    this.timer = null;
    this.announced = null;
    this.announcing = null;
    this.refusing = null;
    this.deck = matchMedia("(min-width: 43.75em) and (min-height: 35em)");
    this.contacts = new Contacts(this.clock, {
      pressed: (seat, kind, down) => this.seats.pressed(seat, kind, down),
      refused: (words) => this.refuse(words),
    });
    this.seats = new Seats(part("seats"), {
      contacts: this.contacts,
      pick: (seat) => this.pick(seat),
      claim: (seat) => this.signIn.open(seat),
    });
    this.lamps = new Lamps(this.clock, (seat, level) => this.seats.light(seat, level));
    this.oled = new Oled(part("oled-room"), part("screen"));
    this.ring = new Ring(part("table"), this.clock);
    this.signIn = new SignIn(part("sign-in"));
    this.told = Array.from({ length: LINES }, () => {
      const line = document.createElement("li");
      line.hidden = true;
      part("told").append(line);
      return line;
    });
    document.documentElement.style.setProperty("--grain", `url("${grain()}")`);
    listenToKeys(this.contacts, (seat) => this.allowed(seat));
    keyLabels().then((labels) => this.seats.learnKeys(labels));
    part("bots").addEventListener("click", () => this.ask("/bots", {}));
    part("ki-switch").addEventListener("click", () => this.ask("/ki", { running: this.state?.ki.state === "stopped" }));
    part("sign-own").addEventListener("click", () => this.signIn.open(this.large));
    // Where the KI has a low box of its own, what was just opened lies below its edge.
    part("ki-counted").addEventListener("toggle", ({ currentTarget: counted }) => {
      if (counted.open) counted.scrollIntoView({ block: "nearest" });
    });
    part("let-go").addEventListener("click", () => this.pick(null));
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.draw();
    });
    this.deck.addEventListener("change", () => this.draw());
    this.stream = new Stream({
      opened: () => this.clock.forget(),
      about: (about) => this.learn(about),
      state: (state) => {
        this.clock.hear(state.now);
        this.state = state;
        this.draw();
      },
      beat: (now) => {
        this.clock.hear(now);
        this.draw();
      },
      link: (link, age_s) => {
        [this.link, this.age_s] = [link, age_s];
        this.draw();
      },
    });
  }

  /** May this browser press at a seat? */
  allowed(seat) {
    const press = this.about?.press ?? "none";
    return press === "all" || (press !== "none" && press.includes(seat));
  }

  /** The seat that this browser plays: a phone's own. */
  get own() {
    const press = this.about?.press;
    return this.about?.phone && Array.isArray(press) ? (press[0] ?? null) : null;
  }

  learn(about) {
    this.about = about;
    this.seats.build((seat) => this.allowed(seat));
    this.lamps.learn(about.cycles, about.leaving);
    if (!about.seats.includes(this.large)) this.large = about.seats[0];
    this.draw();
  }

  /** Take a seat (a phone), or show a seat's buttons large; null lets go. */
  async pick(seat) {
    if (this.about?.phone) {
      const about = await this.ask("/seat", { seat });
      if (about) this.learn(about);
    } else if (seat !== null) {
      this.contacts.releaseAll();
      this.large = seat;
      this.draw();
    }
  }

  async ask(path, body) {
    try {
      return await ask(path, body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.refuse(error.message);
      return null;
    }
  }

  refuse(words) {
    write(part("refused"), words);
    mark(part("refused"), "hidden", false);
    clearTimeout(this.refusing);
    this.refusing = setTimeout(() => mark(part("refused"), "hidden", true), REFUSED_MS);
  }

  /** How far the reveal has come, and when the next beat is: null where nothing is revealed. */
  beat(now) {
    const { phase, since, until, seats } = this.state;
    if (phase !== "reveal" && phase !== "match_over") return [null, null];
    if (phase === "match_over" && seats.every((seat) => seat.throw === null)) return ["won", null];
    const half = until === null ? THROWS_FIRST_S : (until - since) / 2;
    const won = since + (phase === "reveal" ? half : Math.min(THROWS_FIRST_S, half));
    const winners = since + Math.min(WINNERS_AFTER_S, (won - since) / 2);
    if (now < winners) return ["throws", winners];
    return now < won ? ["winners", won] : ["won", null];
  }

  /** Bring the page up to the last state, at the table's time. */
  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    mark(document.body, "data-link", this.link);
    const stale = this.link === "stale";
    const { state, about } = this;
    if (document.title !== title(state, this.link)) document.title = title(state, this.link);
    mark(part("simulated"), "hidden", !(state?.simulated ?? about?.simulated));
    mark(part("stamps"), "hidden", !about?.stamps);
    write(part("stamps"), about?.stamps ? `Presses have ${about.stamps}.` : "");
    if (state === null) {
      const { sentence: words, hint } = stale ? staleWords(this.age_s) : { sentence: "Looking for the table…", hint: "" };
      this.say(words, hint, false);
      return;
    }
    const now = this.clock.now();
    const [beat, next_beat] = this.beat(now);
    mark(document.body, "data-phase", state.phase);
    mark(document.body, "data-beat", beat);
    mark(document.body, "data-phone", Boolean(about?.phone));
    mark(document.body, "data-choosing", Boolean(about?.phone) && this.own === null);
    mark(document.body, "data-sudden", state.sudden_death);
    write(part("table-name"), state.table);
    this.oled.draw(state.oled);
    mark(part("screen"), "aria-label", `The table's screen: ${state.screen.replaceAll("_", " ")}`);
    this.seats.show(state, about, now, beat, about?.phone ? this.own : this.deck.matches ? null : this.large);
    if (stale) this.lamps.out();
    else this.lamps.show(state.seats);
    if (state.phase === "countdown" && state.until !== null && !stale) this.ring.run(state.since, state.until);
    else this.ring.stop();
    this.drawWords(state, about, now, stale);
    this.drawChronicle(state, about);
    if (state.phase !== "lobby") this.signIn.close();
    this.oled.settle();
    if (!stale) this.announce(state, about, now);
    this.wake(state, now, next_beat);
  }

  drawWords(state, about, now, stale) {
    const words = stale ? { ...staleWords(this.age_s), yours: false } : sentence(state, about, now, this.own);
    this.say(words.sentence, words.hint, words.yours);
    const fault = stale ? null : faultWords(state);
    write(part("fault"), fault ?? "");
    mark(part("fault"), "hidden", fault === null);
    const people = state.seats.some((seat) => !["absent", "free"].includes(seat.state) && !seat.bot);
    const open = state.seats.some((seat) => seat.state === "free");
    mark(part("bots"), "hidden", !(about?.bots && state.bots_allowed && state.phase === "lobby" && people && open && !stale));
    mark(part("sign-own"), "hidden", this.deck.matches || stale || !maySignIn(state.seats[this.large - 1], state, about));
    write(part("sign-own"), `Sign in at seat ${this.large}`);
    mark(part("let-go"), "hidden", !(about?.phone && this.own !== null));
    write(part("let-go"), `Let go of seat ${this.own}`);
  }

  say(words, hint, yours) {
    // A seat and its number stay on one line, and so does a name.
    const names = (this.state?.seats ?? []).map((seat) => seat.name).filter((name) => name?.includes(" "));
    const whole = names.reduce((text, name) => text.replaceAll(name, name.replaceAll(" ", "\u00a0")), words);
    write(part("sentence"), whole.replace(/(seats?) (\d)/g, "$1\u00a0$2"));
    write(part("hint"), hint);
    mark(part("now"), "data-yours", yours);
  }

  drawChronicle(state, about) {
    const told = state.told.slice(-LINES);
    // The newest first: where the room is small, the oldest are the ones that are cut off.
    this.told.forEach((line, index) => {
      const last = told[told.length - 1 - index];
      write(line, last?.text ?? "");
      mark(line, "hidden", !last);
    });
    mark(part("photo-finish"), "hidden", !about?.photo_finish);
    const { ki } = state;
    mark(part("ki"), "hidden", ki.state === "off" && !about?.ki_url && !about?.switch_ki);
    write(part("ki-line"), ki.text);
    mark(part("ki-line"), "data-ki", ki.state);
    mark(part("ki-line"), "title", ki.last === null ? null : `The KI last answered at ${ki.last}`);
    write(part("ki-why"), capital(ki.why));
    mark(part("ki-why"), "hidden", ki.why === "");
    mark(part("ki-claim"), "hidden", ki.claim === null);
    write(part("ki-code"), ki.claim ?? "");
    write(part("ki-command"), `heek ki enrol ${(ki.claim ?? "").replace(" ", "")}`);
    write(part("ki-service"), ki.service === null ? "" : `Enrolled at ${ki.service}`);
    mark(part("ki-service"), "hidden", ki.service === null);
    rows(part("ki-trouble"), ki.trouble.length, () => document.createElement("li"));
    ki.trouble.forEach((sentence, index) => write(part("ki-trouble").children[index], capital(sentence)));
    mark(part("ki-trouble"), "hidden", ki.trouble.length === 0);
    const counted = Object.entries(ki.counters);
    mark(part("ki-counted"), "hidden", counted.length === 0);
    rows(part("ki-counters"), counted.length, () => {
      const row = document.createElement("div");
      row.append(document.createElement("dt"), document.createElement("dd"));
      return row;
    });
    counted.forEach(([name, value], index) => {
      const row = part("ki-counters").children[index];
      write(row.firstChild, name.replaceAll("_", " "));
      write(row.lastChild, value.toLocaleString("en", { maximumFractionDigits: 1 }));
    });
    mark(part("ki-url"), "hidden", !about?.ki_url);
    mark(part("ki-url"), "href", about?.ki_url ?? null);
    mark(part("ki-switch"), "hidden", !about?.switch_ki);
    write(part("ki-switch"), ki.state === "stopped" ? "Start the KI" : "Stop the KI");
  }

  /** Read aloud what matters: of what happens at once, the last. */
  announce(state, about, now) {
    const words = announcement(this.announced, state, about, now, this.own);
    this.announced = { phase: state.phase, round: state.round, seats: state.seats };
    if (words === null) return;
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => write(part("announced"), words), ANNOUNCE_MS);
  }

  /** Come back at the next instant at which this page changes by itself. */
  wake(state, now, next_beat) {
    const times = [];
    if (next_beat !== null) times.push(next_beat);
    const second = (end) => {
      if (end !== null && end > now) times.push(end - Math.ceil(end - now - 1e-6) + 1);
    };
    if (["lobby", "resume", "match_over"].includes(state.phase)) second(state.until);
    second(state.bots_at);
    for (const seat of state.seats) second(seat.leaves_at);
    if (times.length === 0 || document.hidden) return;
    this.timer = setTimeout(() => this.draw(), Math.max(this.clock.until_ms(Math.min(...times)), 15) + 2);
  }
}

new Page();
