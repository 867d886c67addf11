// What is drawn over the view: in 2D arrows of a flow, strokes, rings; probes. Lengths are metres from the domain's corner.
export class Overlay {
  constructor(canvas, view) {
    Object.assign(this, { canvas, view, layers: [], flat: [] });
  }

  /** Layers in pixels, over 3D scenes as well: they get a pen and the pixels of a pixel of the page. */
  addFlat(layer) {
    this.flat.push(layer);
  }

  /** Pixels of a point of the scene; NaN behind the camera. */
  project(point) {
    const { canvas, view } = this, mul = (m, [x, y, z, w]) => [0, 1, 2, 3].map((r) => m[r] * x + m[4 + r] * y + m[8 + r] * z + m[12 + r] * w);
    const [x, y, , w] = mul(view.camera.projectionMatrix(), mul(view.camera.viewMatrix(), [...point, 1]));
    return w > 0 ? [((x / w + 1) * canvas.width) / 2, ((1 - y / w) * canvas.height) / 2] : [NaN, NaN];
  }

  /** Layers are functions that get a pen in metres: called in the order they were added. */
  add(layer) {
    this.layers.push(layer);
  }

  draw() {
    const { canvas, view } = this, scale = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (view.scene?.dimension === 2) this.drawMetres(pen, width, height, scale);
    pen.setTransform(1, 0, 0, 1, 0, 0);
    if (view.scene) for (const layer of this.flat) layer(pen, scale);
  }

  drawMetres(pen, width, height, scale) {
    const { view } = this;
    const { target, height: shown } = view.camera, unit = height / shown;
    pen.setTransform(unit, 0, 0, -unit, width / 2 - target[0] * unit, height / 2 + target[1] * unit);
    this.pixel = scale / unit; // a pixel of the page in metres
    for (const layer of this.layers) layer(pen, this.pixel);
  }
}

/** Arrows of a velocity on a lattice; the fastest is as long as a cell of it. */
export function drawArrows(pen, pixel, { columns, rows, values }, size, tone) {
  const dx = size[0] / columns, dy = size[1] / rows, reach = 1.4 * Math.min(dx, dy);
  let fastest = 0;
  for (let i = 0; i < values.length; i += 2) fastest = Math.max(fastest, Math.hypot(values[i], values[i + 1]));
  if (!(fastest > 0)) return;
  pen.beginPath();
  for (let j = 0; j < rows; j++)
    for (let i = 0; i < columns; i++) {
      const k = 2 * (i + columns * j), speed = Math.hypot(values[k], values[k + 1]) / fastest;
      if (speed < 0.02) continue;
      // Slow parts stay visible: the length grows with the root of the speed.
      const length = (reach * Math.sqrt(speed)) / (speed * fastest), x = (i + 0.5) * dx, y = (j + 0.5) * dy;
      const [a, b] = [values[k] * length, values[k + 1] * length], head = 0.3;
      pen.moveTo(x - a / 2, y - b / 2);
      pen.lineTo(x + a / 2, y + b / 2);
      pen.lineTo(x + a / 2 - head * (a + 0.6 * b), y + b / 2 - head * (b - 0.6 * a));
      pen.moveTo(x + a / 2, y + b / 2);
      pen.lineTo(x + a / 2 - head * (a - 0.6 * b), y + b / 2 - head * (b + 0.6 * a));
    }
  // Bright lines with a dark rim are seen on any colour of the water.
  for (const [color, width] of [["rgba(0, 0, 0, 0.55)", 3.4], [tone, 1.4]]) {
    pen.strokeStyle = color;
    pen.lineWidth = width * pixel;
    pen.stroke();
  }
}
