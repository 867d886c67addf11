// A little of WebGL 2: programs, textures, framebuffers.

export class Program {
  constructor(gl, { vertex, fragment }) {
    this.gl = gl;
    this.program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(this.program, shader);
    }
    gl.linkProgram(this.program);
    if (!gl.getProgramParameter(this.program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(this.program));
    this.places = new Map();
    const count = gl.getProgramParameter(this.program, gl.ACTIVE_UNIFORMS);
    for (let i = 0; i < count; i++) {
      const info = gl.getActiveUniform(this.program, i);
      this.places.set(info.name.replace("[0]", ""), { at: gl.getUniformLocation(this.program, info.name), type: info.type });
    }
  }

  use(values = {}) {
    const gl = this.gl;
    gl.useProgram(this.program);
    let unit = 0;
    for (const [name, value] of Object.entries(values)) {
      const place = this.places.get(name);
      if (!place) continue;
      switch (place.type) {
        case gl.FLOAT: gl.uniform1f(place.at, value); break;
        case gl.INT: gl.uniform1i(place.at, value); break;
        case gl.FLOAT_VEC2: gl.uniform2fv(place.at, value); break;
        case gl.FLOAT_VEC3: gl.uniform3fv(place.at, value); break;
        case gl.FLOAT_VEC4: gl.uniform4fv(place.at, value); break;
        case gl.FLOAT_MAT4: gl.uniformMatrix4fv(place.at, false, value); break;
        case gl.SAMPLER_2D:
          gl.activeTexture(gl.TEXTURE0 + unit);
          gl.bindTexture(gl.TEXTURE_2D, value);
          gl.uniform1i(place.at, unit++);
          break;
      }
    }
    return this;
  }
}

/** Textures to draw into, made anew where the size of the view changes. */
export class Target {
  constructor(gl, formats, { depth = false, filter = gl.NEAREST } = {}) {
    Object.assign(this, { gl, formats, depth, filter, width: 0, height: 0, textures: [] });
    this.buffer = gl.createFramebuffer();
  }

  resize(width, height) {
    const gl = this.gl;
    if (width === this.width && height === this.height) return this;
    Object.assign(this, { width, height });
    this.textures.forEach((texture) => gl.deleteTexture(texture));
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.buffer);
    this.textures = this.formats.map((format, i) => {
      const texture = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.texStorage2D(gl.TEXTURE_2D, 1, format, width, height);
      const filter = format === gl.R32F || format === gl.RG32F ? gl.NEAREST : this.filter;
      for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, filter);
      for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + i, gl.TEXTURE_2D, texture, 0);
      return texture;
    });
    gl.drawBuffers(this.formats.map((unused, i) => gl.COLOR_ATTACHMENT0 + i));
    if (this.depth) {
      gl.deleteRenderbuffer(this.depthBuffer ?? null);
      this.depthBuffer = gl.createRenderbuffer();
      gl.bindRenderbuffer(gl.RENDERBUFFER, this.depthBuffer);
      gl.renderbufferStorage(gl.RENDERBUFFER, gl.DEPTH_COMPONENT24, width, height);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.RENDERBUFFER, this.depthBuffer);
    }
    return this;
  }

  bind() {
    this.gl.bindFramebuffer(this.gl.FRAMEBUFFER, this.buffer);
    this.gl.viewport(0, 0, this.width, this.height);
  }
}
