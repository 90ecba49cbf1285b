/**
 * The keyboard: a row of keys for each seat, by where they lie and not by what they write, and what stands on them.
 */

import { KINDS } from "./words.js";

/** For each seat its three keys, from the player's left. */
export const ROWS = {
  1: ["Digit1", "Digit2", "Digit3"],
  2: ["KeyQ", "KeyW", "KeyE"],
  3: ["KeyA", "KeyS", "KeyD"],
  4: ["KeyZ", "KeyX", "KeyC"],
  5: ["Digit8", "Digit9", "Digit0"],
};

const CONTACTS = new Map(
  Object.entries(ROWS).flatMap(([seat, codes]) => codes.map((code, index) => [code, { seat: Number(seat), kind: KINDS[index] }])),
);

/** What stands on a key by default: “Q” for KeyQ. */
const plain = (code) => code.replace(/^(Key|Digit)/, "");

/** What stands on the keys of this keyboard, where the browser tells; else what stands on most. */
export async function keyLabels() {
  const labels = new Map([...CONTACTS.keys()].map((code) => [code, plain(code)]));
  try {
    const layout = await navigator.keyboard?.getLayoutMap();
    for (const code of labels.keys()) {
      const label = layout?.get(code);
      if (label) labels.set(code, label.toUpperCase());
    }
  } catch {
    // Not every browser tells; the labels of most keyboards will do.
  }
  return labels;
}

/** The code of a contact's key. */
export const keyOf = (seat, kind) => ROWS[seat][KINDS.indexOf(kind)];

/**
 * Let the keys press contacts.
 *
 * @param {import("./contacts.js").Contacts} contacts
 * @param {(seat: number) => boolean} allowed may this browser press there?
 */
export function listenToKeys(contacts, allowed) {
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const contact = CONTACTS.get(event.code);
    if (!contact || !allowed(contact.seat)) return;
    event.preventDefault();
    if (!event.repeat) contacts.press(contact.seat, contact.kind, `key ${event.code}`);
  });
  // Whatever else is held by then: a key that comes up is up.
  window.addEventListener("keyup", (event) => contacts.release(`key ${event.code}`));
}
