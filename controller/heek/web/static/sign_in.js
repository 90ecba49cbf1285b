/**
 * Signing in by a click, in the demo: a new KI number or one that this browser has used before.
 *
 * A number that was clicked on proves nothing, so the page says `unverified` wherever it shows the name.
 */

import { ask, Refused } from "./ask.js";

const KEPT = 6;
const STORE = "heek.numbers";

function used() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => /^\d{8}$/.test(each?.player)).slice(0, KEPT) : [];
  } catch {
    return [];
  }
}

function keep(player, name) {
  const kept = [{ player, name }, ...used().filter((each) => each.player !== player)].slice(0, KEPT);
  try {
    localStorage.setItem(STORE, JSON.stringify(kept));
  } catch {
    // A browser that keeps nothing: the number stands on the KI's board all the same.
  }
}

export class SignIn {
  /** @param {HTMLDialogElement} dialog */
  constructor(dialog) {
    this.dialog = dialog;
    this.seat = null;
    const part = (id) => dialog.querySelector(`#${id}`);
    this.title = part("sign-in-title");
    this.numbers = part("numbers");
    this.refused = part("sign-in-refused");
    this.fresh = part("new-number");
    this.forget = part("forget-numbers");
    this.fresh.addEventListener("click", () => this.claim(null));
    this.forget.addEventListener("click", () => {
      localStorage.removeItem(STORE);
      this.list();
    });
    part("stay-guest").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }

  /** Ask who sits at `seat`. */
  open(seat) {
    this.seat = seat;
    this.title.textContent = `Sign in at seat ${seat}`;
    this.say(null);
    this.list();
    this.dialog.showModal();
  }

  /** The moment for it is over: a match has begun, or the seat is empty. */
  close() {
    if (this.dialog.open) this.dialog.close();
  }

  list() {
    const kept = used();
    this.numbers.replaceChildren(
      ...kept.map(({ player, name }) => {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "deed number-used";
        const who = document.createElement("span");
        who.textContent = String(name ?? "");
        const number = document.createElement("small");
        number.textContent = player;
        button.append(who, " ", number);
        button.addEventListener("click", () => this.claim(player));
        return button;
      }),
    );
    this.forget.hidden = kept.length === 0;
  }

  async claim(player) {
    this.dialog.toggleAttribute("data-busy", true);
    try {
      const signed = await ask(`/seats/${this.seat}/sign-in`, { player }, { patience_ms: 10000 });
      keep(signed.player, signed.name);
      this.dialog.close();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.say(error.message);
    } finally {
      this.dialog.toggleAttribute("data-busy", false);
    }
  }

  say(words) {
    this.refused.hidden = words === null;
    this.refused.textContent = words ?? "";
  }
}
