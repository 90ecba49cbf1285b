/**
 * The LEDs: each glows as the real one does, by the same steps at the table's own time.
 *
 * A pattern is a list of steps that runs from instant 0 of the table's clock, so that equal patterns blink
 * together here, at the table and on every other page; only `leaving` is counted back from the instant at
 * which the seat stands up. There is one timer for all five, set to the next step of any; a lamp that is
 * steady sets none.
 */

/** The level (0 to 1) of a cycle of `[milliseconds, level]` at `now_ms`, and when it changes (null: never). */
export function cycleLevel(cycle, now_ms) {
  if (cycle.length === 1) return [cycle[0][1], null];
  const length = cycle.reduce((sum, [span]) => sum + span, 0);
  let rest = ((now_ms % length) + length) % length;
  for (const [span, level] of cycle) {
    if (rest < span) return [level, now_ms + span - rest];
    rest -= span;
  }
  return [cycle[0][1], now_ms + 1];
}

/** The same for `leaving`, a list of `[milliseconds before the end, level from then on]`, furthest first. */
export function leavingLevel(steps, left_ms, now_ms) {
  let level = steps.length > 0 ? steps[0][1] : 1;
  for (const [before, next] of steps) {
    if (before < left_ms) return [level, now_ms + left_ms - before];
    level = next;
  }
  return [level, null];
}

export class Lamps {
  /**
   * @param {import("./table_clock.js").TableClock} clock
   * @param {(seat: number, level: number) => void} light shows a level, only called when it has changed
   */
  constructor(clock, light) {
    this.clock = clock;
    this.light = light;
    this.cycles = {};
    this.leaving = [];
    this.seats = [];
    this.levels = new Map();
    this.timer = null;
    this.dark = false;
  }

  /** The steps of every pattern, as `/about` gives them. */
  learn(cycles, leaving) {
    this.cycles = cycles;
    this.leaving = leaving;
    this.turn();
  }

  /** The seats of a new state. */
  show(seats) {
    this.seats = seats;
    this.dark = false;
    this.turn();
  }

  /** Nobody knows what they show. */
  out() {
    this.dark = true;
    this.turn();
  }

  turn() {
    clearTimeout(this.timer);
    this.timer = null;
    const now_ms = this.clock.now() * 1000;
    let next_ms = null;
    for (const seat of this.seats) {
      const [level, until] = this.dark ? [0, null] : this.level(seat, now_ms);
      if (this.levels.get(seat.seat) !== level) {
        this.levels.set(seat.seat, level);
        this.light(seat.seat, level);
      }
      if (until !== null && (next_ms === null || until < next_ms)) next_ms = until;
    }
    // A page that is not seen lights nothing; `turn` is called again when it is.
    if (next_ms !== null && !document.hidden) {
      this.timer = setTimeout(() => this.turn(), Math.min(Math.max(next_ms - now_ms, 5), 60000));
    }
  }

  level(seat, now_ms) {
    if (seat.lamp === "leaving" && seat.leaves_at !== null) {
      return leavingLevel(this.leaving, seat.leaves_at * 1000 - now_ms, now_ms);
    }
    const cycle = this.cycles[seat.lamp];
    return cycle ? cycleLevel(cycle, now_ms) : [0, null];
  }
}
