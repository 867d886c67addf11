// The game: drive the currents so that they carry the bodies into the ring, all of them if you can, in a minute.
const sceneName = "reduced/play", seconds = 60, catches = 3; // the ring moves on after so many
const strength = 1.4; // m/s2
const rings = [[0.2, 0.5], [0.78, 0.62], [0.35, 0.22], [0.75, 0.2], [0.5, 0.82]], ringRadius = 0.13; // of the box
const keys = { ArrowLeft: ["across", -1], ArrowRight: ["across", 1], ArrowUp: ["along", 1], ArrowDown: ["along", -1], " ": ["whirl", 1],
  a: ["across", -1], d: ["across", 1], w: ["along", 1], s: ["along", -1] };

export class Game {
  constructor(page, { hud, pad, start }) {
    Object.assign(this, { page, hud, pad, isOn: false, isWaiting: false });
    start.onclick = () => (this.isOn ? this.leave() : this.open());
    this.button = start;
    page.overlay.add((pen, pixel) => this.draw(pen, pixel));
    document.addEventListener("keydown", (event) => this.key(event, true), true);
    document.addEventListener("keyup", (event) => this.key(event, false), true);
    for (const button of pad.querySelectorAll("button")) {
      const [mode, sign] = keys[button.dataset.key];
      button.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        this.drive(mode, sign);
      });
      for (const end of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(end, () => this.drive(mode, 0));
    }
  }

  open() {
    this.isWaiting = true;
    this.page.connection.send("open", { scene: sceneName });
  }

  /** A scene arrived: the one that the game waits for starts it, another one ends it. */
  setScene(scene) {
    if (this.isWaiting && scene.name === sceneName) this.begin();
    else if (this.isOn && scene.name === sceneName) this.begin();
    else this.leave();
  }

  begin() {
    Object.assign(this, { isOn: true, isWaiting: false, isOver: false, caught: new Set(), time: 0, score: 0, held: new Map() });
    this.hud.hidden = this.pad.hidden = false;
    this.button.textContent = "Leave the game";
    this.page.pointer.choose("push");
    this.page.connection.send("speed", { value: 1 });
    this.page.connection.send("run");
    this.page.view.canvas.focus();
    this.tell();
  }

  leave() {
    Object.assign(this, { isOn: false, isWaiting: false });
    this.hud.hidden = this.pad.hidden = true;
    this.button.textContent = "Play the game";
  }

  ring() {
    const [x, y] = rings[Math.floor(this.score / catches) % rings.length], [w, h] = this.page.scene.size;
    return { x: x * w, y: y * h, radius: ringRadius * Math.min(w, h) };
  }

  takeFrame(frame) {
    if (!this.isOn || this.isOver || frame.scene !== this.page.scene.number) return;
    this.time = frame.time;
    const { view } = this.page;
    view.solids.forEach((solid, i) => {
      if (!solid.isBody || this.caught.has(i)) return;
      const ring = this.ring(), [x, y] = view.centerOf(i);
      if (Math.hypot(x - ring.x, y - ring.y) > ring.radius) return;
      this.caught.add(i);
      solid.tone = [0.25, 0.72, 0.38];
      this.score++;
    });
    this.total = view.solids.filter((solid) => solid.isBody).length;
    if (this.time >= seconds || (this.total && this.score === this.total)) this.end();
    this.tell();
  }

  end() {
    this.isOver = true;
    for (const mode of [...this.held.keys()]) this.drive(mode, 0);
    this.page.connection.send("pause");
  }

  tell() {
    const left = Math.max(0, seconds - this.time), points = `${this.score} of ${this.total ?? 15}`;
    const bonus = this.score === this.total ? ` in ${this.time.toFixed(0)} s: all of them!` : "";
    this.hud.firstElementChild.textContent = this.isOver ? `The end. ${points}${bonus}` : `${points} · ${left.toFixed(0)} s`;
    this.hud.lastElementChild.hidden = !this.isOver;
    this.hud.lastElementChild.onclick = () => this.page.connection.send("reset");
  }

  key(event, isDown) {
    const [mode, sign] = keys[event.key] ?? [];
    if (!this.isOn || this.isOver || !mode || event.ctrlKey || event.metaKey || /^(input|select|textarea)$/i.test(event.target.tagName)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!event.repeat) this.drive(mode, isDown ? sign : 0);
  }

  drive(mode, sign) {
    if (!this.isOn || (this.held.get(mode) ?? 0) === sign) return;
    sign ? this.held.set(mode, sign) : this.held.delete(mode);
    this.page.connection.change({ type: "excite", excite: { mode, strength: sign * strength } });
  }

  draw(pen, pixel) {
    if (!this.isOn) return;
    const { x, y, radius } = this.ring();
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = "rgba(64, 184, 97, 0.25)";
    pen.strokeStyle = "rgb(64, 184, 97)";
    pen.lineWidth = 3 * pixel;
    pen.fill();
    pen.stroke();
  }
}
