// A form of every key, made from the schema of scene files. It edits the text and keeps its comments.
import { parse, put } from "./json.js";

export class Form {
  constructor(page, schema, room, editor) {
    Object.assign(this, { page, schema, room, editor, open: new Set() });
  }

  /** Draws the form of the text; sections that were open stay open. */
  draw() {
    let root;
    try {
      root = parse(this.editor.text.value);
    } catch {
      this.room.textContent = "The text is no JSON; mend it first.";
      return;
    }
    this.room.replaceChildren(...this.members(this.schema, root.value, []));
  }

  resolve(schema) {
    return schema?.$ref ? { ...this.schema.$defs[schema.$ref.split("/").at(-1)], description: schema.description } : schema;
  }

  /** The variant that the value has. */
  variant(schema, value) {
    if (!schema.oneOf) return schema;
    return schema.oneOf.find((one) => one.properties?.type?.const === value?.type) ?? schema.oneOf[0];
  }

  set(path, value) {
    const editor = this.editor;
    editor.text.value = put(editor.text.value, path, value);
    editor.changed();
    this.draw();
  }

  members(schema, value, path) {
    const whole = this.resolve(schema), own = this.variant(whole, value), rows = [];
    if (whole.oneOf) rows.push(this.choice("type", { enum: whole.oneOf.map((one) => one.properties.type.const), description: whole.description }, value?.type, [...path, "type"]));
    for (const [key, member] of Object.entries(own.properties ?? {})) {
      if (key === "$schema" || member.deprecated || (whole.oneOf && key === "type")) continue;
      rows.push(this.field(key, this.resolve(member), value?.[key], [...path, key]));
    }
    return rows;
  }

  field(key, schema, value, path) {
    if (schema.properties || schema.oneOf?.some((one) => one.properties)) return this.section(key, schema, value, path);
    const items = this.resolve(schema.items);
    if (schema.type === "array" && (items?.properties || items?.oneOf)) return this.list(key, schema, items, value, path);
    if (schema.enum) return this.choice(key, schema, value, path);
    if (schema.type === "boolean") return this.choice(key, { ...schema, enum: [true, false] }, value, path);
    return this.input(key, schema, value, path);
  }

  section(key, schema, value, path, extra = []) {
    const details = document.createElement("details"), summary = document.createElement("summary"), body = document.createElement("div");
    const id = path.join(".");
    summary.append(key, " ", small(schema.description));
    details.append(summary, body);
    const fill = () => body.childNodes.length || body.append(...extra, ...this.members(schema, value, path));
    details.ontoggle = () => {
      if (details.open) fill();
      this.open[details.open ? "add" : "delete"](id);
    };
    if (this.open.has(id)) {
      fill();
      details.open = true;
    }
    return details;
  }

  list(key, schema, items, value, path) {
    const details = document.createElement("details"), summary = document.createElement("summary"), body = document.createElement("div");
    const id = path.join("."), elements = Array.isArray(value) ? value : [];
    summary.append(`${key} (${elements.length}) `, small(schema.description));
    elements.forEach((element, i) => {
      const remove = button("Remove", () => this.set([...path, i], undefined));
      body.append(this.section(element?.name || element?.type || `${i}`, items, element, [...path, i], [remove]));
    });
    body.append(button("Add", () => this.set([...path, elements.length], this.sample(items))));
    details.append(summary, body);
    details.open = this.open.has(id);
    details.ontoggle = () => this.open[details.open ? "add" : "delete"](id);
    return details;
  }

  /** The least that an element must have. */
  sample(schema) {
    const own = this.variant(this.resolve(schema), undefined), value = {};
    for (const key of own.required ?? []) {
      const member = this.resolve(own.properties[key]);
      if (member.const !== undefined) value[key] = member.const;
      else if (member.properties || member.oneOf) value[key] = this.sample(member);
      else if (member.enum) value[key] = member.default ?? member.enum[0];
      else if (member.type === "array") value[key] = new Array(member.minItems ?? 2).fill(key === "max" ? 0.2 : 0.1);
      else value[key] = member.default ?? (member.type === "string" ? "" : 0.1);
    }
    return value;
  }

  label(key, schema, value, control) {
    const label = document.createElement("label"), name = document.createElement("span");
    name.textContent = key;
    label.className = value === undefined ? "" : "given";
    label.append(name, control, small(schema.description));
    return label;
  }

  choice(key, schema, value, path) {
    const select = document.createElement("select");
    select.append(new Option(schema.default === undefined ? "" : `${schema.default} (default)`, ""));
    for (const one of schema.enum) select.append(new Option(String(one), JSON.stringify(one)));
    select.value = value === undefined ? "" : JSON.stringify(value);
    select.dataset.path = path.join(".");
    select.onchange = () => this.set(path, select.value === "" ? undefined : JSON.parse(select.value));
    return this.label(key, schema, value, select);
  }

  input(key, schema, value, path) {
    const input = document.createElement("input");
    const isText = schema.type === "string", show = (v) => (v === undefined ? "" : Array.isArray(v) ? v.join(", ") : String(v));
    input.value = show(value);
    input.placeholder = show(schema.default);
    input.dataset.path = path.join(".");
    if (!isText) input.inputMode = "decimal";
    input.onchange = () => {
      const parts = input.value.split(",").map((part) => part.trim());
      const number = (part) => (part !== "" && Number.isFinite(Number(part)) ? Number(part) : part);
      if (input.value === "") this.set(path, undefined);
      else if (isText) this.set(path, input.value);
      else this.set(path, parts.length > 1 || schema.type === "array" ? parts.map(number) : number(parts[0]));
    };
    return this.label(key, schema, value, input);
  }
}

function small(text) {
  return Object.assign(document.createElement("small"), { textContent: text ?? "" });
}

function button(text, action) {
  return Object.assign(document.createElement("button"), { textContent: text, onclick: action });
}
