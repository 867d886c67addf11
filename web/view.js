// The live view: particles by speed or as water, solids, the box of the domain. Raw WebGL 2.
import { Camera, vector } from "./camera.js";
import { Between } from "./between.js";
import { Program, Target } from "./gl.js";
import * as shaders from "./shaders.js";

const still = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]);

export class View {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = (this.gl = canvas.getContext("webgl2", { antialias: true, stencil: true, alpha: false }));
    if (!gl) throw new Error("This browser has no WebGL 2.");
    this.hasFloats = !!gl.getExtension("EXT_color_buffer_float");
    this.camera = new Camera();
    this.style = "water";
    this.scene = null;
    this.frame = null;
    this.solids = [];
    this.solidsNumber = 0;
    this.between = new Between();
    this.programs = Object.fromEntries(Object.entries(shaders).map(([name, source]) => [name, new Program(gl, source)]));
    this.particles = gl.createVertexArray();
    this.positionBuffer = gl.createBuffer();
    this.speedBuffer = gl.createBuffer();
    this.materialBuffer = gl.createBuffer();
    this.velocityBuffer = gl.createBuffer();
    this.nothing = gl.createVertexArray();
    if (this.hasFloats) this.makeTargets();
  }

  makeTargets() {
    const gl = this.gl;
    this.sums = new Target(gl, [gl.RGBA16F], { filter: gl.LINEAR });
    this.behind = new Target(gl, [gl.RGBA8, gl.R32F], { depth: true, filter: gl.LINEAR });
    this.depths = [0, 1].map((i) => new Target(gl, [gl.RG32F], { depth: i === 0 }));
    this.thick = new Target(gl, [gl.R16F], { filter: gl.LINEAR });
  }

  // --- What is shown ---

  setScene(scene) {
    const isNew = !this.scene || this.scene.name !== scene.name || this.scene.dimension !== scene.dimension;
    this.scene = scene;
    this.frame = null;
    this.resize();
    if (isNew) this.camera.setScene(scene);
    this.box = this.makeLines(boxEdges(scene));
  }

  setSolids(solids) {
    for (const solid of this.solids) this.forget(solid);
    this.solidsNumber = solids.number;
    this.solids = solids.items.map((item) => ({
      isBody: item.isBody,
      points: item.points,
      middle: middleOf(item.points),
      ...(solids.dimension === 2 ? this.makeOutline(item.points) : this.makeMesh(item.points)),
    }));
  }

  setFrame(frame) {
    const gl = this.gl;
    this.between.take(this.frame, frame);
    this.frame = frame;
    gl.bindVertexArray(this.particles);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.positionBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, frame.positions, gl.STREAM_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, frame.dimension, gl.UNSIGNED_SHORT, true, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.speedBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, frame.speeds, gl.STREAM_DRAW);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 1, gl.UNSIGNED_BYTE, true, 0, 0);
    this.setMaterials(frame.materials);
    this.setVelocities(frame);
    gl.bindVertexArray(null);
  }

  setMaterials(materials) {
    const gl = this.gl;
    if (!materials) {
      gl.disableVertexAttribArray(2);
      gl.vertexAttrib1f(2, 0);
      return;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, this.materialBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, materials, gl.STREAM_DRAW);
    gl.enableVertexAttribArray(2);
    gl.vertexAttribPointer(2, 1, gl.UNSIGNED_BYTE, false, 0, 0);
  }

  setVelocities({ velocities, dimension }) {
    const gl = this.gl;
    if (!velocities) {
      gl.disableVertexAttribArray(3);
      gl.vertexAttrib3f(3, 0, 0, 0);
      return;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, this.velocityBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, velocities, gl.STREAM_DRAW);
    gl.enableVertexAttribArray(3);
    gl.vertexAttribPointer(3, dimension, gl.BYTE, true, 0, 0);
  }

  // --- Geometry ---

  upload(data, attributes) {
    const gl = this.gl;
    const array = gl.createVertexArray(), buffer = gl.createBuffer();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    for (let i = 0; i < attributes; i++) {
      gl.enableVertexAttribArray(i);
      gl.vertexAttribPointer(i, 3, gl.FLOAT, false, 12 * attributes, 12 * i);
    }
    gl.bindVertexArray(null);
    return { array, buffer };
  }

  forget(item) {
    for (const part of [item.mesh, item.lines]) {
      if (!part) continue;
      this.gl.deleteVertexArray(part.array);
      this.gl.deleteBuffer(part.buffer);
    }
  }

  makeLines(points) {
    return { ...this.upload(points, 1), count: points.length / 3 };
  }

  /** Triangles from one point over all segments: where they cover a place an odd number of times, it is inside. */
  makeOutline(points) {
    const fan = new Float32Array(points.length * 1.5);
    for (let i = 0, at = 0; i < points.length; i += 6, at += 9) {
      fan.set(points.subarray(0, 3), at);
      fan.set(points.subarray(i, i + 6), at + 3);
    }
    return { mesh: { ...this.upload(fan, 1), count: fan.length / 3 }, lines: this.makeLines(points) };
  }

  makeMesh(points) {
    const data = new Float32Array(points.length * 2);
    for (let i = 0; i < points.length; i += 9) {
      const [a, b, c] = [0, 3, 6].map((o) => [points[i + o], points[i + o + 1], points[i + o + 2]]);
      const normal = vector.unit(vector.cross(vector.add(b, a, -1), vector.add(c, a, -1)));
      [a, b, c].forEach((p, k) => {
        data.set(p, 2 * i + 6 * k);
        data.set(normal, 2 * i + 6 * k + 3);
      });
    }
    return { mesh: { ...this.upload(data, 2), count: points.length / 3 } };
  }

  poseOf(index) {
    const frame = this.frame;
    if (!frame || frame.solids !== this.solidsNumber || frame.poses.length < 12 * (index + 1)) return still;
    return this.between.pose(frame.poses.subarray(12 * index, 12 * index + 12), index);
  }

  /** Where the middle of a solid is now. */
  centerOf(index) {
    const m = this.poseOf(index), [x, y, z] = this.solids[index].middle;
    return [0, 4, 8].map((r) => m[r] * x + m[r + 1] * y + m[r + 2] * z + m[r + 3]);
  }

  // --- Drawing ---

  resize() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * scale)), height = Math.max(1, Math.round(this.canvas.clientHeight * scale));
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    this.camera.aspect = width / height;
    return { width, height };
  }

  tone(name) {
    const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const value = parseInt(text.slice(1), 16);
    return [((value >> 16) & 255) / 255, ((value >> 8) & 255) / 255, (value & 255) / 255];
  }

  draw() {
    const gl = this.gl, { width, height } = this.resize();
    const ground = this.tone("--canvas");
    const shared = this.shared = { view: this.camera.viewMatrix(), projection: this.camera.projectionMatrix(), pixels: height };
    shared.upward = this.upInView(shared.view);
    gl.disable(gl.BLEND);
    if (this.scene?.dimension === 3 && this.style === "water" && this.hasFloats && this.frame?.count) {
      this.drawDeepWater(width, height, ground);
      return;
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, width, height);
    gl.clearColor(...ground, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    if (!this.scene) return;
    if (this.scene.dimension === 2) this.drawFlat(width, height);
    else this.drawDeepPoints();
  }

  upInView(m) {
    const u = this.camera.up;
    return [0, 1, 2].map((r) => m[r] * u[0] + m[4 + r] * u[1] + m[8 + r] * u[2]);
  }

  /** Colours have the same speed in every frame. */
  speedScale() {
    return this.frame.speedScale / (this.scene.natural_speed || this.frame.speedScale || 1);
  }

  drawParticles(program, radius) {
    const gl = this.gl;
    program.use({ ...this.shared, size: this.frame.size, radius, speedScale: this.speedScale(), dimension: this.scene.dimension,
      byMaterial: Number(this.style === "material"), back: this.between.back() * this.frame.speedScale });
    gl.bindVertexArray(this.particles);
    gl.drawArrays(gl.POINTS, 0, this.frame.count);
  }

  drawScreen(program, values) {
    const gl = this.gl;
    program.use(values);
    gl.bindVertexArray(this.nothing);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  drawFlat(width, height) {
    const gl = this.gl;
    gl.disable(gl.DEPTH_TEST);
    if (this.frame?.count && this.style === "water" && this.hasFloats) {
      const radius = 2.5 * this.scene.spacing;
      this.sums.resize(width, height).bind();
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE);
      this.drawParticles(this.programs.bumps, radius);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
      gl.viewport(0, 0, width, height);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      // The sum inside liquid at rest: the volume under a bump, pi / 4 r^2, a particle's area.
      const full = (0.25 * Math.PI * radius * radius) / (this.scene.spacing * this.scene.spacing);
      this.clipToDomain(width, height);
      this.drawScreen(this.programs.flatWater, { sums: this.sums.textures[0], texel: [1 / width, 1 / height], full });
      gl.disable(gl.SCISSOR_TEST);
    } else if (this.frame?.count) {
      this.drawParticles(this.programs.points, (this.style === "material" ? 0.8 : 0.62) * this.scene.spacing);
    }
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.solids.forEach((solid, i) => this.drawOutline(solid, this.poseOf(i)));
    this.drawLines(this.box, still, [...this.tone("--soft"), 1]);
    gl.disable(gl.BLEND);
  }

  /** The bumps of particles at a wall reach beyond it; the water does not. */
  clipToDomain(width, height) {
    const gl = this.gl, { target, height: shown } = this.camera, scale = height / shown;
    const left = Math.round(width / 2 - target[0] * scale), bottom = Math.round(height / 2 - target[1] * scale);
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(left, bottom, Math.max(0, Math.round(this.scene.size[0] * scale)), Math.max(0, Math.round(this.scene.size[1] * scale)));
  }

  drawOutline(solid, pose) {
    const gl = this.gl;
    const fill = solid.tone ?? (solid.isBody ? [0.86, 0.55, 0.25] : this.tone("--soft"));
    this.programs.solids.use({ ...this.shared, pose, tone: [...fill, 0.92] });
    gl.bindVertexArray(solid.mesh.array);
    gl.enable(gl.STENCIL_TEST);
    gl.colorMask(false, false, false, false);
    gl.stencilFunc(gl.ALWAYS, 0, 1);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INVERT);
    gl.drawArrays(gl.TRIANGLES, 0, solid.mesh.count);
    gl.colorMask(true, true, true, true);
    gl.stencilFunc(gl.EQUAL, 1, 1);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.ZERO);
    gl.drawArrays(gl.TRIANGLES, 0, solid.mesh.count);
    gl.disable(gl.STENCIL_TEST);
    this.drawLines(solid.lines, pose, [...this.tone("--text"), 1]);
  }

  drawLines(lines, pose, tone) {
    const gl = this.gl;
    if (!lines) return;
    this.programs.solids.use({ ...this.shared, pose, tone });
    gl.bindVertexArray(lines.array);
    gl.vertexAttrib3f(1, 0, 0, 0);
    gl.drawArrays(gl.LINES, 0, lines.count);
  }

  drawDeepSolids() {
    const gl = this.gl;
    gl.enable(gl.DEPTH_TEST);
    this.solids.forEach((solid, i) => {
      const fill = solid.tone ?? (solid.isBody ? [0.86, 0.55, 0.25] : [0.62, 0.64, 0.66]);
      this.programs.solids.use({ ...this.shared, pose: this.poseOf(i), tone: [...fill, 1] });
      gl.bindVertexArray(solid.mesh.array);
      gl.drawArrays(gl.TRIANGLES, 0, solid.mesh.count);
    });
    this.drawLines(this.box, still, [...this.tone("--soft"), 1]);
  }

  drawDeepPoints() {
    const gl = this.gl;
    this.drawDeepSolids();
    if (this.frame?.count) this.drawParticles(this.programs.points, 0.6 * this.scene.spacing);
    gl.disable(gl.DEPTH_TEST);
  }

  drawDeepWater(width, height, ground) {
    const gl = this.gl, radius = 0.9 * this.scene.spacing;
    // What is behind the water.
    this.behind.resize(width, height).bind();
    gl.clearBufferfv(gl.COLOR, 0, [...ground, 1]);
    gl.clearBufferfv(gl.COLOR, 1, [1e9, 0, 0, 0]);
    gl.clearBufferfv(gl.DEPTH, 0, [1]);
    this.drawDeepSolids();
    // The nearest surface of the spheres, then how much water lies along the ray.
    this.depths[0].resize(width, height).bind();
    gl.clearBufferfv(gl.COLOR, 0, [0, 0, 0, 0]);
    gl.clearBufferfv(gl.DEPTH, 0, [1]);
    this.drawParticles(this.programs.spheres, radius);
    gl.disable(gl.DEPTH_TEST);
    this.thick.resize(Math.ceil(width / 2), Math.ceil(height / 2)).bind();
    gl.clearBufferfv(gl.COLOR, 0, [0, 0, 0, 0]);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE);
    this.shared.pixels = height / 2;
    this.drawParticles(this.programs.thickness, radius);
    this.shared.pixels = height;
    gl.disable(gl.BLEND);
    // Smooth twice along each axis.
    const blur = 1.6 * radius * 0.5 * height * this.shared.projection[5];
    this.depths[1].resize(width, height);
    for (let pass = 0; pass < 4; pass++) {
      const from = this.depths[pass % 2], to = this.depths[1 - (pass % 2)];
      to.bind();
      this.drawScreen(this.programs.smooth_, { depths: from.textures[0], reach: 3 * radius, blur,
        direction: pass % 2 ? [0, 1 / height] : [1 / width, 0] });
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, width, height);
    const p = this.shared.projection;
    this.drawScreen(this.programs.deepWater, { depths: this.depths[0].textures[0], thick: this.thick.textures[0],
      behind: this.behind.textures[0], behindDepth: this.behind.textures[1], texel: [1 / width, 1 / height],
      lens: [1 / p[0], 1 / p[5]], upward: this.shared.upward, absorb: 4 / Math.max(...this.scene.size) });
  }
}

/** The mean of the corners. */
function middleOf(points) {
  const sum = [0, 0, 0];
  for (let i = 0; i < points.length; i++) sum[i % 3] += points[i];
  return sum.map((x) => x / (points.length / 3 || 1));
}

/** The edges of the domain, pairs of points. */
function boxEdges({ size, dimension }) {
  const [x, y, z] = size, points = [];
  const corner = (i) => [i & 1 ? x : 0, i & 2 ? y : 0, i & 4 ? z : 0];
  for (let i = 0; i < (dimension === 2 ? 4 : 8); i++)
    for (let a = 0; a < dimension; a++) if (!(i & (1 << a))) points.push(...corner(i), ...corner(i | (1 << a)));
  return new Float32Array(points);
}
