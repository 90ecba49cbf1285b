/**
 * The table's time in this browser: what the table says it is, carried on by the browser's own clock.
 *
 * The table owns the time. Each message says what time it is there; it is heard late by an unknown moment,
 * never early, so of the last few the one that puts the table furthest ahead is the best. A message that
 * disagrees by more than two seconds means that one of the clocks was stopped (the machine slept, or the
 * table was started anew): what was heard before is then worth nothing.
 */

const KEPT = 12;
const STOPPED_S = 2;

export class TableClock {
  /** @param {() => number} read the browser's clock in milliseconds, from any origin; never goes back */
  constructor(read = () => performance.now()) {
    this.read = read;
    this.offsets = [];
    this.offset = null;
  }

  /** Is anything known of the table's time? */
  get known() {
    return this.offset !== null;
  }

  /** The table says that it is `now` seconds there. */
  hear(now) {
    const offset = now - this.read() / 1000;
    if (this.offset !== null && Math.abs(offset - this.offset) > STOPPED_S) this.offsets = [];
    this.offsets.push(offset);
    if (this.offsets.length > KEPT) this.offsets.shift();
    this.offset = Math.max(...this.offsets);
  }

  /** Forget what was heard: another table may be speaking now. */
  forget() {
    this.offsets = [];
  }

  /** Seconds on the table's clock; 0 before anything was heard. */
  now() {
    return this.offset === null ? 0 : this.offset + this.read() / 1000;
  }

  /** Milliseconds from now until the table's time is `at` seconds; 0 if that is past. */
  until_ms(at) {
    return Math.max(0, (at - this.now()) * 1000);
  }
}
