/** The grain of the stone, drawn here so that no picture has to be loaded: a tile of quiet, seamless noise. */

const SIZE = 192;

/** A data URL of a tile of light and dark specks, mostly clear; the same for the same seed. */
export function grain(seed = 25) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIZE;
  const context = canvas.getContext("2d");
  const image = context.createImageData(SIZE, SIZE);
  let state = seed;
  const draw = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const height = (cells) => {
    const corners = Array.from({ length: cells * cells }, draw);
    const ease = (part) => part * part * (3 - 2 * part);
    return (x, y) => {
      const [u, v] = [(x / SIZE) * cells, (y / SIZE) * cells];
      const [left, top] = [Math.floor(u), Math.floor(v)];
      const [across, down] = [ease(u - left), ease(v - top)];
      const at = (column, row) => corners[(row % cells) * cells + (column % cells)];
      const upper = at(left, top) * (1 - across) + at(left + 1, top) * across;
      const lower = at(left, top + 1) * (1 - across) + at(left + 1, top + 1) * across;
      return upper * (1 - down) + lower * down - 0.5;
    };
  };
  const [clouds, blots, sand] = [height(5), height(16), height(64)];
  for (let y = 0; y < SIZE; y += 1) {
    for (let x = 0; x < SIZE; x += 1) {
      const rough = clouds(x, y) * 0.5 + blots(x, y) * 0.4 + sand(x, y) * 0.5 + (draw() - 0.5) * 0.5;
      const tone = rough > 0 ? [255, 232, 205] : [0, 0, 0];
      image.data.set([...tone, Math.min(Math.abs(rough) * (rough > 0 ? 52 : 110), 90)], (y * SIZE + x) * 4);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL("image/png");
}
