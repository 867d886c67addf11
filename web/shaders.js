// Shaders of the view. Positions come as fractions of the domain, speeds as fractions of the fastest.

const head = `#version 300 es
precision highp float;
precision highp int;
`;

// From deep blue over cyan and yellow to red.
const ramp = `
vec3 ramp(float s) {
  s = clamp(s, 0.0, 1.0);
  vec3 a = mix(vec3(0.04, 0.22, 0.58), vec3(0.10, 0.55, 0.90), smoothstep(0.0, 0.25, s));
  a = mix(a, vec3(0.45, 0.90, 0.95), smoothstep(0.25, 0.5, s));
  a = mix(a, vec3(0.98, 0.85, 0.35), smoothstep(0.5, 0.75, s));
  return mix(a, vec3(0.90, 0.25, 0.15), smoothstep(0.75, 1.0, s));
}`;

const particleVertex = head + `
layout(location = 0) in vec3 position;
layout(location = 1) in float speed;
layout(location = 2) in float material;
layout(location = 3) in vec3 velocity;
uniform vec3 size;
uniform float back; /* m of the fastest: how far before its end the step is shown */
uniform mat4 view, projection;
uniform float radius, pixels, speedScale;
out float shade;
out vec3 center;
flat out int kind;
void main() {
  kind = int(material);
  vec4 eye = view * vec4(clamp(position * size - velocity * back, vec3(0.0), size), 1.0);
  gl_Position = projection * eye;
  gl_PointSize = max(1.0, radius * pixels * projection[1][1] / gl_Position.w);
  shade = speed * speedScale;
  center = eye.xyz;
}`;

export const points = {
  vertex: particleVertex,
  fragment: head + ramp + `
in float shade;
in vec3 center;
flat in int kind;
uniform int byMaterial;
const vec3 palette[8] = vec3[8](vec3(0.16, 0.47, 0.80), vec3(0.95, 0.66, 0.22), vec3(0.30, 0.69, 0.42), vec3(0.84, 0.32, 0.30),
  vec3(0.55, 0.42, 0.76), vec3(0.36, 0.74, 0.78), vec3(0.87, 0.53, 0.68), vec3(0.60, 0.60, 0.58));
uniform mat4 projection;
uniform float radius;
uniform int dimension;
out vec4 color;
void main() {
  vec2 q = 2.0 * gl_PointCoord - 1.0;
  float r2 = dot(q, q);
  if (r2 > 1.0) discard;
  vec3 base = byMaterial == 1 ? palette[kind % 8] : ramp(shade);
  if (dimension == 2) {
    color = vec4(base, 1.0);
    return;
  }
  float z = sqrt(1.0 - r2);
  vec3 normal = vec3(q.x, -q.y, z);
  color = vec4(base * (0.45 + 0.6 * max(0.0, dot(normal, normalize(vec3(-0.4, 0.8, 0.5))))), 1.0);
}`,
};

// 2D water: a sum of smooth bumps, cut at a level.
export const bumps = {
  vertex: particleVertex,
  fragment: head + `
in float shade;
out vec4 color;
void main() {
  vec2 q = 2.0 * gl_PointCoord - 1.0;
  float w = max(0.0, 1.0 - dot(q, q));
  w = w * w * w;
  color = vec4(w, w * shade, 0.0, w);
}`,
};

const screenVertex = head + `
out vec2 at;
void main() {
  vec2 p = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
  at = 0.5 * p + 0.5;
  gl_Position = vec4(p, 0.0, 1.0);
}`;

export const flatWater = {
  vertex: screenVertex,
  fragment: head + `
in vec2 at;
uniform sampler2D sums;
uniform vec2 texel;
uniform float full;
out vec4 color;
float height(vec2 p) { return texture(sums, p).r / full; }
void main() {
  vec2 sum = texture(sums, at).rg;
  float h = sum.r / full;
  float cover = smoothstep(0.28, 0.40, h);
  if (cover <= 0.0) discard;
  float speed = sum.g / max(sum.r, 1e-4);
  vec2 slope = vec2(height(at + vec2(3.0 * texel.x, 0.0)) - height(at - vec2(3.0 * texel.x, 0.0)),
                    height(at + vec2(0.0, 3.0 * texel.y)) - height(at - vec2(0.0, 3.0 * texel.y)));
  float rim = 1.0 - smoothstep(0.35, 0.75, h);
  vec3 deep = vec3(0.05, 0.33, 0.62), bright = vec3(0.25, 0.66, 0.92);
  vec3 base = mix(deep, bright, clamp(0.75 * speed + 0.35 * rim, 0.0, 1.0));
  float light = clamp(dot(normalize(slope + vec2(1e-5)), vec2(0.3, -0.95)), 0.0, 1.0) * rim;
  base += 0.35 * light + 0.25 * smoothstep(0.7, 1.3, speed);
  color = vec4(base * cover, cover);
}`,
};

// 3D water: the nearest surface of spheres, smoothed on the screen (van der Laan et al. 2009).
export const spheres = {
  vertex: particleVertex,
  fragment: head + `
in float shade;
in vec3 center;
uniform mat4 projection;
uniform float radius;
layout(location = 0) out vec4 depth;
void main() {
  vec2 q = 2.0 * gl_PointCoord - 1.0;
  float r2 = dot(q, q);
  if (r2 > 1.0) discard;
  float z = center.z + radius * sqrt(1.0 - r2);
  vec4 clip = projection * vec4(center.xy, z, 1.0);
  gl_FragDepth = 0.5 * clip.z / clip.w + 0.5;
  depth = vec4(-z, shade, 0.0, 1.0);
}`,
};

export const thickness = {
  vertex: particleVertex,
  fragment: head + `
in float shade;
uniform float radius;
out vec4 color;
void main() {
  vec2 q = 2.0 * gl_PointCoord - 1.0;
  float r2 = dot(q, q);
  if (r2 > 1.0) discard;
  color = vec4(2.0 * radius * sqrt(1.0 - r2) * 0.5, 0.0, 0.0, 1.0);
}`,
};

// One direction of a smoothing that keeps silhouettes: depths far from the middle's have no weight.
export const smooth_ = {
  vertex: screenVertex,
  fragment: head + `
in vec2 at;
uniform sampler2D depths;
uniform vec2 direction;
uniform float reach, blur;
out vec4 color;
void main() {
  vec4 middle = texture(depths, at);
  if (middle.r <= 0.0) { color = vec4(0.0); return; }
  float sum = 0.0, weights = 0.0, shade = 0.0;
  float spread = clamp(blur / middle.r, 1.0, 14.0);
  for (int i = -14; i <= 14; i++) {
    if (abs(float(i)) > 2.0 * spread) continue;
    vec4 other = texture(depths, at + float(i) * direction);
    float d = (other.r - middle.r) / reach, s = float(i) / spread;
    float w = other.r > 0.0 ? exp(-0.5 * s * s - 0.5 * d * d) : 0.0;
    sum += w * other.r;
    shade += w * other.g;
    weights += w;
  }
  color = vec4(sum / weights, shade / weights, 0.0, 1.0);
}`,
};

export const deepWater = {
  vertex: screenVertex,
  fragment: head + `
in vec2 at;
uniform sampler2D depths, thick, behind, behindDepth;
uniform vec2 texel;
uniform vec2 lens; /* of the projection: x and y of a unit depth at the edge */
uniform vec3 upward;
uniform float absorb;
out vec4 color;
vec3 place(vec2 p, float d) { return vec3((2.0 * p - 1.0) * lens * d, -d); }
vec3 sky(vec3 direction) {
  float h = dot(direction, upward);
  vec3 low = vec3(0.78, 0.84, 0.88), high = vec3(0.42, 0.62, 0.82);
  return mix(low, high, smoothstep(-0.1, 0.8, h)) + vec3(0.6) * smoothstep(0.90, 0.99, dot(direction, normalize(upward + vec3(-0.6, 0.2, 0.4))));
}
void main() {
  vec4 background = texture(behind, at);
  vec2 water = texture(depths, at).rg;
  float d = water.r;
  if (d <= 0.0 || d > texture(behindDepth, at).r) { color = background; return; }
  vec3 p = place(at, d);
  vec2 dx = vec2(texel.x, 0.0), dy = vec2(0.0, texel.y);
  float r = texture(depths, at + dx).r, l = texture(depths, at - dx).r;
  float u = texture(depths, at + dy).r, b = texture(depths, at - dy).r;
  vec3 px = r > 0.0 && (l <= 0.0 || abs(r - d) < abs(l - d)) ? place(at + dx, r) - p : p - place(at - dx, l > 0.0 ? l : d);
  vec3 py = u > 0.0 && (b <= 0.0 || abs(u - d) < abs(b - d)) ? place(at + dy, u) - p : p - place(at - dy, b > 0.0 ? b : d);
  vec3 normal = normalize(cross(px, py) + vec3(0.0, 0.0, 1e-12));
  vec3 eye = normalize(-p);
  if (dot(normal, eye) < 0.0) normal = -normal;
  float t = texture(thick, at).r;
  vec3 through = texture(behind, at + 0.03 * normal.xy * min(1.0, t / (0.2 * d))).rgb;
  vec3 tint = exp(-absorb * t * vec3(2.6, 0.85, 0.42));
  vec3 body = through * tint + (1.0 - tint) * vec3(0.03, 0.26, 0.42);
  float fresnel = 0.02 + 0.98 * pow(1.0 - max(0.0, dot(normal, eye)), 5.0);
  vec3 result = mix(body, sky(reflect(-eye, normal)), clamp(fresnel, 0.0, 1.0));
  result += 0.30 * smoothstep(0.75, 1.5, water.g) * vec3(1.0);
  float cover = smoothstep(0.0, 0.12, absorb * t);
  color = vec4(mix(background.rgb, result, cover), 1.0);
}`,
};

// Solids, the box and the floor.
export const solids = {
  vertex: head + `
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
uniform mat4 view, projection;
uniform vec4 pose[3];
out vec3 eye, facing;
void main() {
  vec4 p = vec4(position, 1.0);
  vec3 world = vec3(dot(pose[0], p), dot(pose[1], p), dot(pose[2], p));
  vec3 turned = vec3(dot(pose[0].xyz, normal), dot(pose[1].xyz, normal), dot(pose[2].xyz, normal));
  vec4 e = view * vec4(world, 1.0);
  eye = e.xyz;
  facing = mat3(view) * turned;
  gl_Position = projection * e;
}`,
  fragment: head + `
in vec3 eye, facing;
uniform vec4 tone;
uniform vec3 upward;
layout(location = 0) out vec4 color;
layout(location = 1) out vec4 depth;
void main() {
  float light = 1.0;
  if (dot(facing, facing) > 0.0) {
    vec3 n = normalize(facing);
    if (dot(n, eye) > 0.0) n = -n;
    light = 0.55 + 0.25 * dot(n, upward) + 0.25 * max(0.0, dot(n, normalize(vec3(-0.5, 0.4, 0.7))));
  }
  color = vec4(tone.rgb * light * tone.a, tone.a);
  depth = vec4(-eye.z, 0.0, 0.0, 1.0);
}`,
};
