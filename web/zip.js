// A ZIP file of files as they are: pictures are compressed already.

const table = Uint32Array.from({ length: 256 }, (unused, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

export function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

/** files: [{name, bytes}], names in ASCII. */
export function zip(files) {
  const length = files.reduce((sum, { name, bytes }) => sum + 30 + 46 + 2 * name.length + bytes.length, 22);
  const out = new Uint8Array(length), view = new DataView(out.buffer), entries = [];
  let at = 0;
  const common = (sum, size, name) => { // version, flags, method, time, date, checksum, sizes, length of the name
    view.setUint16(at, 20, true);
    view.setUint16(at + 8, 0x21, true); // 1 January 1980
    view.setUint32(at + 10, sum, true);
    view.setUint32(at + 14, size, true);
    view.setUint32(at + 18, size, true);
    view.setUint16(at + 22, name.length, true);
  };
  const put = (text) => {
    out.set(new TextEncoder().encode(text), at);
    at += text.length;
  };
  for (const { name, bytes } of files) {
    const entry = { name, start: at, sum: checksum(bytes), size: bytes.length };
    entries.push(entry);
    view.setUint32(at, 0x04034b50, true);
    at += 4;
    common(entry.sum, entry.size, name);
    at += 26;
    put(name);
    out.set(bytes, at);
    at += bytes.length;
  }
  const directory = at;
  for (const { name, start, sum, size } of entries) {
    view.setUint32(at, 0x02014b50, true);
    view.setUint16(at + 4, 20, true);
    at += 6;
    common(sum, size, name);
    view.setUint32(at + 36, start, true);
    at += 40;
    put(name);
  }
  view.setUint32(at, 0x06054b50, true);
  view.setUint16(at + 8, entries.length, true);
  view.setUint16(at + 10, entries.length, true);
  view.setUint32(at + 12, at - directory, true);
  view.setUint32(at + 16, directory, true);
  return out;
}
