// Cameras: a flat one for 2D and one that turns around a point for 3D. Lengths are metres from the domain's corner.

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const length = (a) => Math.hypot(...a);
const unit = (a) => a.map((x) => x / (length(a) || 1));

export class Camera {
  constructor() {
    this.dimension = 2;
    this.size = [1, 1, 0];
    this.up = [0, 1, 0];
    this.aspect = 1;
    this.fit();
  }

  /** The view of a whole scene. */
  setScene(scene) {
    this.dimension = scene.dimension;
    this.size = scene.size;
    this.up = unit(scene.up);
    this.fit();
  }

  fit() {
    this.target = this.size.map((s) => s / 2);
    this.turn = -0.5;
    this.tilt = 0.32;
    if (this.dimension === 2) {
      this.height = 1.12 * Math.max(this.size[1], this.size[0] / this.aspect);
      return;
    }
    // The axis nearest to up is vertical; the longer of the other two goes across.
    const vertical = this.up.map(Math.abs).indexOf(Math.max(...this.up.map(Math.abs)));
    const others = [0, 1, 2].filter((a) => a !== vertical);
    const across = this.size[others[0]] >= this.size[others[1]] ? others[0] : others[1];
    const axis = [0, 0, 0];
    axis[across] = 1;
    this.side = unit(add(axis, this.up, -dot(axis, this.up)));
    this.front = cross(this.side, this.up);
    this.distance = (0.62 * length(this.size)) / Math.tan(0.35) / Math.min(1, this.aspect);
  }

  /** Right, up and backward of the camera, and where it is. */
  axes() {
    if (this.dimension === 2) return { right: [1, 0, 0], up: [0, 1, 0], back: [0, 0, 1], eye: [...this.target.slice(0, 2), 1] };
    const ct = Math.cos(this.turn), st = Math.sin(this.turn), cp = Math.cos(this.tilt), sp = Math.sin(this.tilt);
    const level = add(this.front.map((x) => x * ct), this.side, st);
    const back = add(level.map((x) => x * cp), this.up, sp);
    const right = unit(cross(this.up, back));
    return { right, up: cross(back, right), back, eye: add(this.target, back, this.distance) };
  }

  viewMatrix() {
    const { right, up, back, eye } = this.axes();
    return new Float32Array([right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
      -dot(right, eye), -dot(up, eye), -dot(back, eye), 1]);
  }

  projectionMatrix() {
    if (this.dimension === 2) {
      const y = 2 / this.height, x = y / this.aspect;
      return new Float32Array([x, 0, 0, 0, 0, y, 0, 0, 0, 0, -0.1, 0, 0, 0, 0, 1]);
    }
    const y = 1 / Math.tan(0.35), far = this.distance + 4 * length(this.size), near = far / 2000;
    return new Float32Array([y / this.aspect, 0, 0, 0, 0, y, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0,
      (2 * far * near) / (near - far), 0]);
  }

  orbit(dx, dy) {
    this.turn -= dx;
    this.tilt = Math.min(1.55, Math.max(-1.55, this.tilt + dy));
  }

  /** By fractions of the height of the view. */
  pan(dx, dy) {
    const { right, up } = this.axes();
    const scale = this.dimension === 2 ? this.height : 2 * this.distance * Math.tan(0.35);
    this.target = add(add(this.target, right, -dx * scale), up, dy * scale);
  }

  /** At a point of the view, from -1 to 1. */
  zoom(factor, x = 0, y = 0) {
    if (this.dimension === 2) {
      const before = this.height;
      this.height = Math.min(50 * Math.max(...this.size), Math.max(1e-3 * Math.max(...this.size), before * factor));
      const change = (before - this.height) / 2;
      this.target = [this.target[0] + x * this.aspect * change, this.target[1] + y * change, 0];
    } else {
      this.distance = Math.min(20, Math.max(0.05, (this.distance * factor) / length(this.size))) * length(this.size);
    }
  }

  /** The ray through a point of the view, from -1 to 1. */
  ray(x, y) {
    const { right, up, back, eye } = this.axes();
    if (this.dimension === 2) {
      return { from: [this.target[0] + (x * this.aspect * this.height) / 2, this.target[1] + (y * this.height) / 2, 0], along: [0, 0, -1] };
    }
    const half = Math.tan(0.35);
    return { from: eye, along: unit(add(add(back.map((b) => -b), right, x * half * this.aspect), up, y * half)) };
  }
}

export const vector = { dot, add, cross, length, unit };
