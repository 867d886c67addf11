// Drawn modes of reduced fluids: draw strokes, see the flow that they are without divergence, keep it, drive it by a key.
import { parse, put } from "./json.js";
import { drawArrows } from "./overlay.js";

const strength = 3; // m/s2 of a mode that is driven

export class Modes {
  constructor(page, elements) {
    Object.assign(this, { page, ...elements, strokes: [], current: null, field: null, flow: null, held: new Map() });
    this.clear.onclick = () => this.forget();
    this.keep.onclick = () => this.keepDrawing();
    this.showFlow.onchange = () => this.askForFlow();
    page.overlay.add((pen, pixel) => this.draw(pen, pixel));
    page.connection.addEventListener("field", ({ detail }) => this.take(detail));
    document.addEventListener("keydown", (event) => this.key(event, true));
    document.addEventListener("keyup", (event) => this.key(event, false));
    addEventListener("blur", () => [...this.held.keys()].forEach((name) => this.drive(name, 0)));
  }

  setScene(scene) {
    this.names = scene.modes ?? [];
    this.flow = null;
    if (scene.discretization !== "reduced" || scene.name !== this.sceneName) this.forget();
    this.sceneName = scene.name;
    this.held.clear();
    this.list.replaceChildren(...this.names.map((name, i) => {
      const button = document.createElement("button");
      button.textContent = i < 9 ? `${i + 1}  ${name}` : name;
      button.title = `Drive the mode ${name} while pressed${i < 9 ? ` (key ${i + 1})` : ""}`;
      button.dataset.mode = name;
      button.onpointerdown = () => this.drive(name, strength);
      for (const end of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(end, () => this.drive(name, 0));
      button.onkeydown = (event) => (event.key === "Enter" || event.key === " ") && !event.repeat && this.drive(name, strength);
      button.onkeyup = () => this.drive(name, 0);
      return button;
    }));
    if (!this.names.length) this.list.textContent = "None yet: choose Draw, stroke the water, and keep the flow.";
    this.askForFlow();
  }

  // --- Drawing ---

  begin(point) {
    this.current = [point];
  }

  goOn(point) {
    const last = this.current.at(-1), length = Math.hypot(point[0] - last[0], point[1] - last[1]);
    if (length > 0.5 * this.page.pointer.brush()) this.current.push(point);
    this.page.redraw();
  }

  end(point) {
    const last = this.current?.at(-1);
    if (!last) return;
    if (point && Math.hypot(point[0] - last[0], point[1] - last[1]) > 2 * this.page.scene.cell) this.current.push(point);
    this.strokes.push(...this.pieces());
    this.current = null;
    this.ask();
  }

  /** The line under the pointer as strokes. */
  pieces() {
    const points = this.current ?? [], radius = this.page.pointer.brush(), at = (p) => this.page.pointer.absolute(p).map((x) => Number(x.toFixed(5)));
    return points.slice(1).map((to, i) => ({ from: at(points[i]), to: at(to), radius: Number(radius.toFixed(5)) }));
  }

  ask() {
    if (this.strokes.length) this.page.connection.send("draw", { drawn: { name: "drawing", strokes: this.strokes } });
  }

  take(field) {
    if (field.isDrawing) {
      if (this.strokes.length) this.field = field;
      this.keep.disabled = !this.strokes.length;
    } else {
      this.flow = this.showFlow.checked ? field : null;
    }
    this.page.redraw();
  }

  forget() {
    Object.assign(this, { strokes: [], current: null, field: null });
    this.keep.disabled = true;
    this.page.redraw?.();
  }

  /** The drawing becomes a part of the scene's text; the scene starts anew with it. */
  keepDrawing() {
    const text = this.page.editor.text.value, name = this.name.value.trim() || `mode ${this.names.length + 1}`;
    let count = 0;
    try {
      count = parse(text).value.reduced?.drawn?.length ?? 0;
    } catch {
      this.page.say("The text of the scene is no JSON; mend it first.");
      return;
    }
    this.page.connection.send("load", { text: put(text, ["reduced", "drawn", count], { name, strokes: this.strokes }) });
    this.page.runNext = this.page.state.running;
    this.name.value = "";
    this.forget();
  }

  // --- Driving ---

  key(event, isDown) {
    const index = Number(event.key) - 1, name = this.names?.[index];
    if (!name || event.repeat || event.ctrlKey || event.metaKey || /^(input|select|textarea)$/i.test(event.target.tagName)) return;
    this.drive(name, isDown ? strength : 0);
  }

  /** Drives a mode from now on; 0 ends it. */
  drive(name, value) {
    if ((this.held.get(name) ?? 0) === value || !this.page.isController) return;
    value ? this.held.set(name, value) : this.held.delete(name);
    this.page.connection.change({ type: "excite", excite: { mode: name, strength: value } });
  }

  // --- Showing ---

  askForFlow() {
    if (this.showFlow.checked && this.page.scene?.dimension === 2) this.page.connection.send("flow");
    else this.flow = null;
    this.page.redraw?.();
  }

  draw(pen, pixel) {
    const scene = this.page.scene, style = getComputedStyle(document.documentElement);
    if (!scene) return;
    if (this.field) drawArrows(pen, pixel, this.field, scene.size, "#ffffff");
    else if (this.flow) drawArrows(pen, pixel, this.flow, scene.size, "#ffffff");
    const lines = [...this.strokes, ...this.pieces()];
    if (!lines.length) return;
    pen.strokeStyle = style.getPropertyValue("--accent");
    pen.globalAlpha = 0.3;
    pen.lineCap = "round";
    pen.lineWidth = 2 * lines[0].radius;
    pen.beginPath();
    for (const { from, to } of lines) {
      pen.moveTo(from[0] - scene.origin[0], from[1] - scene.origin[1]);
      pen.lineTo(to[0] - scene.origin[0], to[1] - scene.origin[1]);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }
}
