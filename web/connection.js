// The WebSocket of the studio: messages of docs/manual/studio.md as events.

/** Keeps the token of the link, and takes it out of the address bar and the history. */
export function takeToken() {
  const address = new URL(location.href);
  const token = address.searchParams.get("token");
  if (token) {
    sessionStorage.setItem("token", token);
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  }
  return sessionStorage.getItem("token") || "";
}

async function fetchTable(token, path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

export class Connection extends EventTarget {
  constructor(token) {
    super();
    this.token = token;
    this.open();
  }

  open() {
    this.socket = new WebSocket(`ws://${location.host}/api/live?token=${this.token}`, "selkie-studio");
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = (event) => this.take(event.data);
    this.socket.onopen = () => this.tell("open");
    this.socket.onclose = () => {
      this.tell("closed");
      setTimeout(() => this.open(), 2000);
    };
  }

  tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  take(data) {
    if (typeof data === "string") {
      const message = JSON.parse(data);
      this.tell(message.is, message);
      return;
    }
    takeBytes(this, data);
  }

  table(path) {
    return fetchTable(this.token, path);
  }

  send(verb, rest = {}) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ do: verb, ...rest }));
  }

  change(change) {
    this.send("change", { change });
  }
}

/** Tells a binary message, by its first four bytes. */
export function takeBytes(connection, data) {
  const magic = new DataView(data).getUint32(0, false);
  if (magic === 0x534b4631) connection.tell("frame", readFrame(data));
  else if (magic === 0x534b4731) connection.tell("solids", readSolids(data));
  else if (magic === 0x534b5631) connection.tell("field", readField(data));
  else if (magic === 0x534b5031) connection.tell("sketch", readSketch(data));
}

/** "SKF1": header of 64 bytes, poses, positions, speeds, and where a scene has several materials those. */
export function readFrame(data) {
  const view = new DataView(data);
  const count = view.getUint32(4, true), dimension = view.getUint32(8, true), poses = view.getUint32(12, true);
  const positions = 64 + 48 * poses, speeds = positions + 2 * dimension * count;
  return {
    count, dimension,
    number: view.getUint32(16, true), solids: view.getUint32(20, true), scene: view.getUint32(56, true),
    time: view.getFloat64(24, true), step: view.getFloat64(32, true),
    size: [40, 44, 48].map((at) => view.getFloat32(at, true)), speedScale: view.getFloat32(52, true),
    poses: new Float32Array(data, 64, 12 * poses),
    positions: new Uint16Array(data, positions, dimension * count),
    speeds: new Uint8Array(data, speeds, count),
    materials: view.getUint32(60, true) & 1 ? new Uint8Array(data, speeds + count, count) : null,
  };
}

/** "SKG1": number, count and dimension; of each solid its kind, the number of floats and the floats. */
export function readSolids(data) {
  const view = new DataView(data);
  const count = view.getUint32(8, true);
  const solids = { number: view.getUint32(4, true), dimension: view.getUint32(12, true), items: [] };
  for (let i = 0, at = 16; i < count; i++) {
    const floats = view.getUint32(at + 4, true);
    solids.items.push({ isBody: view.getUint32(at, true) === 1, points: new Float32Array(data, at + 8, floats) });
    at += 8 + 4 * floats;
  }
  return solids;
}

/** "SKP1": width, height and length of the name; the name, to a whole number of words; RGBA. */
export function readSketch(data) {
  const view = new DataView(data), width = view.getUint32(4, true), height = view.getUint32(8, true), length = view.getUint32(12, true);
  return { width, height, name: new TextDecoder().decode(new Uint8Array(data, 16, length)),
    pixels: new Uint8ClampedArray(data, 16 + ((length + 3) & ~3), 4 * width * height) };
}

/** "SKV1": kind, columns and rows of a lattice, velocities with x fastest. */
export function readField(data) {
  const view = new DataView(data);
  return { isDrawing: view.getUint32(4, true) === 1, columns: view.getUint32(8, true), rows: view.getUint32(12, true),
    values: new Float32Array(data, 16) };
}
