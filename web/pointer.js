// The pointer on the view: looking around, pushing liquid and solids, adding liquid, obstacles and taps.
import { vector } from "./camera.js";

const tools = [
  ["look", "Look", "Turn and move the view"],
  ["push", "Push", "Drag liquid, obstacles and bodies"],
  ["liquid", "Liquid", "Add liquid where you press or draw"],
  ["obstacle", "Obstacle", "Add a round obstacle"],
  ["tap", "Tap", "Liquid runs while you press"],
  ["clear", "Remove", "Remove liquid where you press or draw"],
  ["body", "Body", "Place a body that floats or sinks"],
  ["stroke", "Draw", "Draw a flow that becomes a mode"],
];
const forReduced = ["look", "push", "body", "stroke"], notElsewhere = ["stroke"];
const pushName = "studio push", tapName = "studio tap";
const interval = 60; // ms between changes of one drag

export class Pointer {
  constructor(page, canvas, toolbar) {
    Object.assign(this, { page, canvas, tool: "look", pressed: new Map(), added: [], count: 0, spread: 0 });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.buttons = tools.map(([name, label, title]) => {
      const button = Object.assign(document.createElement("button"), { textContent: label, title });
      button.setAttribute("role", "radio");
      button.dataset.tool = name;
      button.onclick = () => this.choose(name);
      toolbar.append(button);
      return button;
    });
    this.choose("look");
  }

  /** Reduced fluids have tools of their own. */
  setScene(scene) {
    const isReduced = scene.discretization === "reduced";
    for (const button of this.buttons) {
      const name = button.dataset.tool;
      button.hidden = isReduced ? !forReduced.includes(name) : notElsewhere.includes(name);
      if (button.hidden && this.tool === name) this.choose("look");
    }
    this.added = [];
  }

  choose(name) {
    this.tool = name;
    for (const button of this.buttons) button.setAttribute("aria-checked", String(button.dataset.tool === name));
  }

  isActive() {
    return this.pressed.size > 0;
  }

  /** Where an event is in the view, from -1 to 1. */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height];
  }

  // --- Presses ---

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.focus();
    this.pressed.set(event.pointerId, { x: event.clientX, y: event.clientY, button: event.button });
    const steers = this.tool !== "look" && event.button === 0 && this.pressed.size === 1 && this.page.scene && this.page.isController;
    this.drag = steers ? this.begin(event) : null;
  }

  move(event) {
    const press = this.pressed.get(event.pointerId);
    if (!press) return;
    const height = this.canvas.clientHeight, dx = (event.clientX - press.x) / height, dy = (event.clientY - press.y) / height;
    Object.assign(press, { x: event.clientX, y: event.clientY });
    const camera = this.page.view.camera;
    if (this.pressed.size === 2) this.pinch();
    else if (this.drag) this.goOn(event);
    else if (camera.dimension === 2 || press.button === 2 || event.shiftKey) camera.pan(dx, dy);
    else camera.orbit(3 * dx, 3 * dy);
    this.page.redraw();
  }

  up(event) {
    this.pressed.delete(event.pointerId);
    this.spread = 0;
    if (this.drag) this.end(event);
    this.drag = null;
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

  // --- Places in the scene ---

  brush() {
    return Number(document.getElementById("brush").value) * Math.max(...this.page.scene.size);
  }

  /** The point under an event: in 3D the nearest particle along the ray, else a plane through `through`. */
  point(event, through) {
    const { camera, frame } = this.page.view, ray = camera.ray(...this.place(event));
    if (camera.dimension === 2) return ray.from;
    const normal = camera.axes().back;
    let anchor = through ?? this.nearest(ray, frame) ?? camera.size.map((s) => s / 2);
    const distance = vector.dot(vector.add(anchor, ray.from, -1), normal) / vector.dot(ray.along, normal);
    const point = vector.add(ray.from, ray.along, distance);
    return point.map((x, d) => Math.min(camera.size[d], Math.max(0, x)));
  }

  nearest(ray, frame) {
    if (!frame) return null;
    const near = 2 * this.page.scene.spacing, [sx, sy, sz] = frame.size.map((s) => s / 65535);
    let best = Infinity, found = null;
    for (let i = 0; i < 3 * frame.count; i += 3) {
      const p = [frame.positions[i] * sx, frame.positions[i + 1] * sy, frame.positions[i + 2] * sz];
      const away = vector.add(p, ray.from, -1), along = vector.dot(away, ray.along);
      if (along < best && vector.length(vector.add(away, ray.along, -along)) < near) {
        best = along;
        found = p;
      }
    }
    return found;
  }

  /** The number of the solid under an event, -1 where there is none, and the point that is touched. */
  solidUnder(event) {
    const { camera, frame } = this.page.view, ray = camera.ray(...this.place(event));
    if (camera.dimension === 2) return { solid: this.solidAt(ray.from), point: ray.from };
    const hit = this.firstTriangle(ray), liquid = this.nearest(ray, frame);
    const isHidden = liquid && vector.dot(vector.add(liquid, ray.from, -1), ray.along) < hit.distance - 4 * this.page.scene.spacing;
    if (hit.solid < 0 || (isHidden && !this.page.view.solids[hit.solid].isBody)) return { solid: -1, point: this.point(event) };
    return { solid: hit.solid, point: vector.add(ray.from, ray.along, hit.distance) };
  }

  /** The nearest triangle of a solid along a ray (Moeller and Trumbore 1997), in the solid's own frame. */
  firstTriangle(ray) {
    const { view } = this.page, best = { solid: -1, distance: Infinity };
    view.solids.forEach(({ points }, solid) => {
      const m = view.poseOf(solid), shift = [m[3], m[7], m[11]];
      const turn = (v) => [0, 1, 2].map((c) => m[c] * v[0] + m[4 + c] * v[1] + m[8 + c] * v[2]); // by the inverse rotation
      const from = turn(vector.add(ray.from, shift, -1)), along = turn(ray.along);
      for (let i = 0; i < points.length; i += 9) {
        const a = [points[i], points[i + 1], points[i + 2]];
        const u = [points[i + 3] - a[0], points[i + 4] - a[1], points[i + 5] - a[2]], v = [points[i + 6] - a[0], points[i + 7] - a[1], points[i + 8] - a[2]];
        const p = vector.cross(along, v), determinant = vector.dot(u, p);
        if (Math.abs(determinant) < 1e-15) continue;
        const away = vector.add(from, a, -1), s = vector.dot(away, p) / determinant, q = vector.cross(away, u);
        const t = vector.dot(along, q) / determinant, distance = vector.dot(v, q) / determinant;
        if (s >= 0 && t >= 0 && s + t <= 1 && distance > 0 && distance < best.distance) Object.assign(best, { solid, distance });
      }
    });
    return best;
  }

  /** The solid at a point of a 2D scene: inside where a line to the left crosses the outline an odd number of times. */
  solidAt(point) {
    const view = this.page.view;
    return view.solids.findIndex(({ points }, index) => {
      const m = view.poseOf(index), at = (i) => [m[0] * points[i] + m[1] * points[i + 1] + m[3], m[4] * points[i] + m[5] * points[i + 1] + m[7]];
      let inside = false;
      for (let i = 0; i < points.length; i += 6) {
        const a = at(i), b = at(i + 3);
        if (a[1] > point[1] !== b[1] > point[1] && point[0] < a[0] + ((b[0] - a[0]) * (point[1] - a[1])) / (b[1] - a[1])) inside = !inside;
      }
      return inside;
    });
  }

  /** In coordinates of the scene. */
  absolute(point) {
    return point.map((x, d) => x + this.page.scene.origin[d]).slice(0, this.page.scene.dimension);
  }

  // --- Steering ---

  begin(event) {
    const { solid, point } = this.tool === "push" ? this.solidUnder(event) : { solid: -1, point: this.point(event) };
    const drag = { tool: this.tool, start: point, last: point, sent: 0, speed: [0, 0, 0], time: event.timeStamp, solid };
    if (this.tool === "stroke") {
      this.page.modes.begin(point);
      return drag;
    }
    if (solid >= 0) drag.pose = Array.from(this.page.view.poseOf(solid));
    if (this.tool !== "push") this.put(drag, point);
    return drag;
  }

  goOn(event) {
    const drag = this.drag, point = this.point(event, drag.last);
    if (drag.tool === "stroke") {
      this.page.modes.goOn(point);
      return;
    }
    if (event.timeStamp - drag.sent < interval) return;
    const seconds = Math.max(0.02, (event.timeStamp - drag.time) / 1000);
    const motion = vector.add(point, drag.last, -1);
    drag.speed = motion.map((x) => x / seconds);
    Object.assign(drag, { time: event.timeStamp, sent: event.timeStamp });
    if (drag.tool === "push" && drag.solid >= 0) this.dragSolid(drag, point);
    else if (drag.tool === "push") this.push(drag, point);
    else if (drag.tool === "tap" || vector.length(motion) > this.brush()) this.put(drag, point);
    else if (drag.tool !== "tap") return;
    drag.last = point;
  }

  end(event) {
    if (this.drag.tool === "stroke") this.page.modes.end(this.point(event));
    if (this.drag.tool === "push" && this.drag.pushed) this.page.connection.change({ type: "remove", list: "forces", name: pushName });
    if (this.drag.tool === "tap") this.page.connection.change({ type: "remove", list: "sources", name: tapName });
  }

  /** A jet through the pointer, along its motion, that brings liquid to its speed within a tenth of a second. */
  push(drag, point) {
    const radius = this.brush(), speed = vector.length(drag.speed);
    if (speed < 1e-6) return;
    const along = drag.speed.map((x) => (x / speed) * radius), strength = 10 * speed * Number(document.getElementById("strength").value);
    drag.pushed = true;
    this.page.connection.change({ type: "force", force: { name: pushName, type: "jet", from: this.absolute(vector.add(point, along, -1)),
      to: this.absolute(vector.add(point, along)), radius, strength: Math.min(strength, 1e5), falloff: "smooth" } });
  }

  dragSolid(drag, point) {
    const view = this.page.view, solid = view.solids[drag.solid];
    const obstacles = view.solids.filter((s) => !s.isBody).length, flat = this.page.scene.dimension;
    if (solid.isBody) {
      this.page.connection.change({ type: "push", name: String(drag.solid - obstacles),
        velocity: vector.add(point, drag.last, -1).map((x) => 8 * x).slice(0, flat) });
      return;
    }
    const shift = vector.add(point, drag.start, -1);
    const translate = [3, 7, 11].map((i, d) => drag.pose[i] + shift[d]).slice(0, flat);
    this.page.connection.change({ type: "move", name: String(drag.solid), translate, duration: 0.1 });
  }

  put(drag, point) {
    const { connection, scene } = this.page, radius = this.brush();
    const shape = { type: "sphere", center: this.absolute(point), radius };
    if (drag.tool === "liquid") connection.change({ type: "liquid", liquid: { shape } });
    else if (drag.tool === "clear") connection.change({ type: "clear", shape });
    else if (drag.tool === "tap") {
      const speed = Math.sqrt(2 * 9.81 * Math.max(...scene.size)) / 3;
      connection.change({ type: "source", source: { name: tapName, shape: { ...shape, radius: Math.max(0.5 * radius, 1.5 * scene.cell) },
        velocity: scene.up.map((x) => -x * speed).slice(0, scene.dimension) } });
    } else if (drag.tool === "obstacle") {
      const name = `studio obstacle ${++this.count}`;
      this.added.push(["obstacles", name]);
      connection.change({ type: "obstacle", obstacle: { name, shape } });
    } else if (drag.tool === "body" && drag.sent === 0) {
      const name = `studio body ${++this.count}`, density = Number(document.getElementById("density").value);
      this.added.push(["bodies", name]);
      connection.change({ type: "body", body: { name, density, shape: { ...shape, radius: 0.5 * radius } } });
    }
  }

  removeAdded() {
    for (const [list, name] of this.added) this.page.connection.change({ type: "remove", list, name });
    this.added = [];
  }
}
