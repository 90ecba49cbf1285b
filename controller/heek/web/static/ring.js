/**
 * The countdown's ring: full when it starts, empty at the deadline, the one thing that moves while it runs.
 *
 * It is drawn from "deadline minus now" on the table's clock each time, never by counting, so a page that was
 * away shows the right rest at once. For those who want no motion it falls by whole seconds.
 */

export class Ring {
  /**
   * @param {HTMLElement} table where the rings are: a circle in the stone, and where that has no room the OLED's edge
   * @param {import("./table_clock.js").TableClock} clock
   */
  constructor(table, clock) {
    this.table = table;
    this.rings = [...table.querySelectorAll(".left")];
    this.clock = clock;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.span = null;
    this.frame = null;
    this.timer = null;
    this.shown = null;
  }

  /** Run from `since` to `until`, seconds on the table's clock. */
  run(since, until) {
    this.span = [since, until];
    this.table.toggleAttribute("data-counting", true);
    this.turn();
  }

  stop() {
    if (this.span === null) return;
    this.span = null;
    this.halt();
    this.table.toggleAttribute("data-counting", false);
  }

  halt() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
  }

  turn() {
    this.halt();
    if (this.span === null || document.hidden) return;
    const [since, until] = this.span;
    const length = Math.max(until - since, 0.001);
    let rest = Math.min(Math.max(until - this.clock.now(), 0), length);
    if (this.still.matches) rest = Math.min(Math.ceil(rest - 1e-6), length);
    const share = Math.round((1000 * rest) / length);
    if (share !== this.shown) {
      this.shown = share;
      for (const ring of this.rings) {
        ring.style.strokeDasharray = `${share} 1000`;
        ring.style.strokeOpacity = share > 0 ? "1" : "0";
      }
    }
    if (rest <= 0) return;
    if (this.still.matches) {
      const to_next = until - this.clock.now() - (Math.ceil(until - this.clock.now() - 1e-6) - 1);
      this.timer = setTimeout(() => this.turn(), Math.max(to_next * 1000, 20));
    } else {
      this.frame = requestAnimationFrame(() => this.turn());
    }
  }
}
