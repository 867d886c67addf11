// JSON with comments and trailing commas, as scene files have it: a tree with positions, and edits that keep the rest.

/** Nodes: {start, end, value} and, for objects and arrays, `items` (key or index to node). Throws where it is no JSON. */
export function parse(text) {
  let at = 0;
  const skip = () => {
    for (;;) {
      while (/\s/.test(text[at] ?? "")) at++;
      if (text.startsWith("//", at)) at = (text.indexOf("\n", at) + 1 || text.length + 1) - 1;
      else if (text.startsWith("/*", at)) at = text.indexOf("*/", at) + 2 || text.length;
      else return;
      if (at >= text.length) return;
    }
  };
  const list = (close, read) => {
    at++;
    for (skip(); text[at] !== close; skip()) {
      if (at >= text.length) throw new Error("unexpected end");
      read();
      skip();
      if (text[at] === ",") at++;
      else if (text[at] !== close) throw new Error(`"," expected at ${at}`);
    }
    at++;
  };
  const node = () => {
    skip();
    const start = at, items = new Map();
    let value;
    if (text[at] === "{") {
      value = {};
      list("}", () => {
        const key = node().value;
        skip();
        if (text[at++] !== ":") throw new Error(`":" expected at ${at}`);
        const item = node();
        items.set(key, item);
        value[key] = item.value;
      });
    } else if (text[at] === "[") {
      value = [];
      list("]", () => {
        const item = node();
        items.set(value.length, item);
        value.push(item.value);
      });
    } else {
      const word = /^(?:"(?:[^"\\]|\\.)*"|[-+.\w]+)/.exec(text.slice(at))?.[0];
      if (!word) throw new Error(`a value expected at ${at}`);
      at += word.length;
      return { start, end: at, value: JSON.parse(word) };
    }
    return { start, end: at, value, items };
  };
  const root = node();
  skip();
  if (at < text.length) throw new Error(`the end expected at ${at}`);
  return root;
}

/** Text with the value at a path set; missing objects and arrays on the way are made. undefined removes it. */
export function put(text, path, value) {
  let current = parse(text), depth = 0;
  while (depth < path.length && current.items?.has(path[depth])) current = current.items.get(path[depth++]);
  if (depth === path.length) {
    if (value !== undefined) return text.slice(0, current.start) + write(value) + text.slice(current.end);
    return remove(text, path);
  }
  if (value === undefined || !current.items) return text;
  // What is missing, from the inside out.
  for (let d = path.length - 1; d > depth; d--) value = typeof path[d] === "number" ? [value] : { [path[d]]: value };
  const item = Array.isArray(current.value) ? write(value) : `${JSON.stringify(path[depth])}: ${write(value)}`;
  const last = [...current.items.values()].at(-1), line = text.slice(0, current.start).match(/^[ \t]*/gm).at(-1);
  if (!last) return `${text.slice(0, current.start + 1)}${item}${text.slice(current.end - 1)}`;
  return `${text.slice(0, last.end)},${Array.isArray(current.value) ? " " : `\n${line}    `}${item}${text.slice(last.end)}`;
}

function remove(text, path) {
  let parent = parse(text);
  for (const key of path.slice(0, -1)) parent = parent.items.get(key);
  const keys = [...parent.items.keys()], index = keys.indexOf(path.at(-1)), nodes = [...parent.items.values()];
  const from = index ? nodes[index - 1].end : parent.start + 1;
  let to = nodes[index].end;
  const comma = /^\s*,/.exec(text.slice(to));
  if (!index && comma) to += comma[0].length;
  return text.slice(0, from) + text.slice(to);
}

const write = (value) => JSON.stringify(value, null, 1).replace(/\n\s*/g, " ").replace(/([[{]) | ([\]}])/g, "$1$2");
