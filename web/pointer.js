// The pointer on the view: looking around, and later steering.
export class Pointer {
  constructor(page, canvas, toolbar) {
    this.page = page;
    this.canvas = canvas;
    this.toolbar = toolbar;
    this.pressed = new Map();
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  isActive() {
    return this.pressed.size > 0;
  }

  /** Where an event is in the view, from -1 to 1. */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height];
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.focus();
    this.pressed.set(event.pointerId, { x: event.clientX, y: event.clientY, button: event.button });
  }

  move(event) {
    const press = this.pressed.get(event.pointerId);
    if (!press) return;
    const height = this.canvas.clientHeight, dx = (event.clientX - press.x) / height, dy = (event.clientY - press.y) / height;
    Object.assign(press, { x: event.clientX, y: event.clientY });
    const camera = this.page.view.camera;
    if (this.pressed.size === 2) this.pinch();
    else if (camera.dimension === 2 || press.button === 2 || event.shiftKey) camera.pan(dx, dy);
    else camera.orbit(3 * dx, 3 * dy);
    this.page.redraw();
  }

  up(event) {
    this.pressed.delete(event.pointerId);
    this.spread = 0;
  }

  pinch() {
    const [a, b] = [...this.pressed.values()];
    const spread = Math.hypot(a.x - b.x, a.y - b.y);
    if (this.spread) this.page.view.camera.zoom(this.spread / spread);
    this.spread = spread;
  }

  wheel(event) {
    event.preventDefault();
    this.page.view.camera.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), ...this.place(event));
    this.page.redraw();
  }

  key(event) {
    const camera = this.page.view.camera, flat = camera.dimension === 2 || event.shiftKey;
    const turn = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (turn) flat ? camera.pan(-0.05 * turn[0], -0.05 * turn[1]) : camera.orbit(0.1 * turn[0], 0.1 * turn[1]);
    else if (event.key === "+" || event.key === "=") camera.zoom(0.85);
    else if (event.key === "-") camera.zoom(1 / 0.85);
    else return;
    event.preventDefault();
    this.page.redraw();
  }
}
