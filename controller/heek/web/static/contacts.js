/**
 * The contacts that this browser closes: which fingers are on which, and telling the table so.
 *
 * A contact is closed here while anything holds it: a finger on the glass, a key, the mouse. What it does is
 * told in order, one request after the other for each contact, each with a number that rises, so that a
 * short press arrives as a press and nothing overtakes it. While it is held that is said again each second;
 * the table opens what it does not hear of. A press says when it was made, and one that could not be sent for
 * a second is dropped with its release: it was meant for a screen that is gone.
 */

import { ask, Refused } from "./ask.js";

const REFRESH_MS = 1000;
const STALE_MS = 1000;
const PATIENCE_MS = 2500;
const TAP_MS = 90;
const RELEASES = 3;

export class Contacts {
  /**
   * @param {import("./table_clock.js").TableClock} clock
   * @param {{pressed: (seat: number, kind: string, down: boolean) => void, refused: (words: string) => void}} told
   */
  constructor(clock, told) {
    this.clock = clock;
    this.told = told;
    this.contacts = new Map();
    this.sources = new Map();
    this.refresh = null;
    // Not randomUUID: over plain HTTP in a local network a browser does not offer it.
    this.hand = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    window.addEventListener("blur", () => this.releaseAll());
    window.addEventListener("pagehide", () => this.releaseAll());
    document.addEventListener("visibilitychange", () => document.hidden && this.releaseAll());
  }

  /** `source` (a finger, a key) comes down on a contact; one that is down already stays where it is. */
  press(seat, kind, source) {
    if (this.sources.has(source)) return;
    const contact = this.contact(seat, kind);
    this.sources.set(source, contact);
    contact.holds += 1;
    if (contact.holds === 1) {
      this.told.pressed(seat, kind, true);
      this.say(contact, true);
    }
    this.refresh ??= setInterval(() => this.sayAgain(), REFRESH_MS);
  }

  /** `source` is lifted. */
  release(source) {
    const contact = this.sources.get(source);
    if (!contact) return;
    this.sources.delete(source);
    contact.holds -= 1;
    if (contact.holds === 0) {
      this.told.pressed(contact.seat, contact.kind, false);
      this.say(contact, false);
    }
    if (this.sources.size === 0) {
      clearInterval(this.refresh);
      this.refresh = null;
    }
  }

  /** A short press, for those whose device knows no down and up. */
  tap(seat, kind, source) {
    this.press(seat, kind, source);
    setTimeout(() => this.release(source), TAP_MS);
  }

  /** Nothing can be down any more: the window is left, or its releases go elsewhere. */
  releaseAll() {
    for (const source of [...this.sources.keys()]) this.release(source);
  }

  contact(seat, kind) {
    const name = `${seat} ${kind}`;
    let contact = this.contacts.get(name);
    if (!contact) {
      contact = { seat, kind, holds: 0, n: 0, queue: [], busy: false, closed: false };
      this.contacts.set(name, contact);
    }
    return contact;
  }

  say(contact, closed) {
    contact.n += 1;
    contact.queue.push({ closed, n: contact.n, at: this.clock.known ? this.clock.now() : null, said: performance.now() });
    this.send(contact);
  }

  sayAgain() {
    for (const contact of this.contacts.values()) {
      if (contact.holds > 0 && contact.closed && !contact.busy && contact.queue.length === 0) {
        contact.queue.push({ closed: true, n: contact.n, at: null, said: performance.now() });
        this.send(contact);
      }
    }
  }

  async send(contact) {
    if (contact.busy) return;
    contact.busy = true;
    while (contact.queue.length > 0) {
      const { closed, n, at, said } = contact.queue.shift();
      if (closed && performance.now() - said > STALE_MS) continue;
      if (!closed && !contact.closed) continue;
      const body = { seat: contact.seat, button: contact.kind, closed, hand: this.hand, n };
      if (at !== null) body.at = at;
      // Before the answer: a press whose answer is lost may have arrived, so its release must be said.
      contact.closed = closed;
      // A release is said again if nobody answers: nothing may stay held because of one lost packet.
      for (let tries = closed ? 1 : RELEASES; tries > 0; tries -= 1) {
        try {
          await ask("/contacts", body, { patience_ms: PATIENCE_MS, keepalive: !closed });
          break;
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          if (closed) this.told.refused(error.message);
          if (error.answered) break;
        }
      }
    }
    contact.busy = false;
  }
}
