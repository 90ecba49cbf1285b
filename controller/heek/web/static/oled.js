/**
 * The OLED: the table's own picture, dot for dot, in a glass that is a whole number of dots wide.
 *
 * The picture comes as 1,024 bytes, 128 x 64, row by row, the highest bit first. It is drawn unscaled; the
 * browser makes it larger without smoothing, by a whole number of the screen's own pixels, and the glass is
 * put on a whole pixel, or some dots would be wider than others.
 */

const WIDTH = 128;
const HEIGHT = 64;
const LIT = [255, 246, 226];
const DARK = [6, 5, 4];

export class Oled {
  /** @param {HTMLElement} room the space it may fill; @param {HTMLCanvasElement} canvas */
  constructor(room, canvas) {
    this.room = room;
    this.glass = canvas.parentElement;
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.pixels = this.context.createImageData(WIDTH, HEIGHT);
    this.drawn = null;
    this.moved = [0, 0];
    new ResizeObserver(() => this.fit()).observe(room);
    window.addEventListener("resize", () => this.fit());
    this.draw("");
    this.fit();
  }

  /** Draw a picture; base64 that is not one is shown as a dark glass. */
  draw(base64) {
    if (base64 === this.drawn) return;
    this.drawn = base64;
    let bytes = "";
    try {
      bytes = atob(base64);
    } catch {
      // A dark glass says it.
    }
    const whole = bytes.length === (WIDTH * HEIGHT) / 8;
    for (let dot = 0; dot < WIDTH * HEIGHT; dot += 1) {
      const lit = whole && (bytes.charCodeAt(dot >> 3) >> (7 - (dot & 7))) & 1;
      const [red, green, blue] = lit ? LIT : DARK;
      this.pixels.data.set([red, green, blue, 255], dot * 4);
    }
    this.context.putImageData(this.pixels, 0, 0);
  }

  /** The greatest whole scale that the room has, on whole pixels. */
  fit() {
    const ratio = window.devicePixelRatio || 1;
    const room = this.room.getBoundingClientRect();
    const bezel = this.glass.offsetWidth - this.canvas.offsetWidth;
    const most = Math.min((room.width - bezel) / WIDTH, (room.height - bezel) / HEIGHT);
    const scale = Math.max(1, Math.floor(most * ratio + 0.01)) / ratio;
    this.canvas.style.width = `${WIDTH * scale}px`;
    this.canvas.style.height = `${HEIGHT * scale}px`;
    this.settle();
  }

  /** Put the glass on a whole pixel again, wherever the page has moved it. */
  settle() {
    const ratio = window.devicePixelRatio || 1;
    const at = this.canvas.getBoundingClientRect();
    const off = (value, moved) => Math.round((value - moved) * ratio) / ratio - (value - moved);
    const moved = [off(at.left + scrollX, this.moved[0]), off(at.top + scrollY, this.moved[1])];
    if (Math.abs(moved[0] - this.moved[0]) < 0.02 && Math.abs(moved[1] - this.moved[1]) < 0.02) return;
    this.moved = moved;
    this.glass.style.translate = `${moved[0]}px ${moved[1]}px`;
  }
}
