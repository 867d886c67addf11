// Live curves of the columns of stats.csv and of probes.
const first = ["kinetic_energy", "volume_ratio", "max_speed"];
const most = 4000; // points of a curve

export class Plots {
  constructor(page, list, room) {
    Object.assign(this, { page, list, room, columns: [], times: [], rows: [], shown: [], scene: 0 });
    list.onchange = () => {
      if (list.value) this.show(Number(list.value));
      list.value = "";
    };
  }

  setScene(scene) {
    const names = this.columns.length ? this.shown.map((plot) => this.columns[plot.column].name) : first;
    this.columns = scene.columns;
    this.clear();
    this.list.replaceChildren(new Option("choose", ""), ...scene.columns.map((c, i) => new Option(c.unit ? `${c.name} (${c.unit})` : c.name, i)));
    this.room.replaceChildren();
    this.shown = [];
    for (const name of names) {
      const column = scene.columns.findIndex((c) => c.name === name);
      if (column >= 0) this.show(column);
    }
  }

  clear() {
    this.times = [];
    this.rows = [];
  }

  add(state) {
    if (!state.values || !state.step) return;
    if (this.times.length && state.time < this.times.at(-1)) this.clear();
    if (state.time === this.times.at(-1)) return;
    this.times.push(state.time);
    this.rows.push(state.values);
    if (this.times.length > most) { // every other one of the older half
      const keep = (unused, i) => i > most / 2 || i % 2 === 0;
      this.times = this.times.filter(keep);
      this.rows = this.rows.filter(keep);
    }
    if (this.room.offsetParent) this.draw();
  }

  show(column) {
    const { name, unit, meaning } = this.columns[column];
    const box = document.createElement("div"), head = document.createElement("header"), label = document.createElement("span");
    const close = Object.assign(document.createElement("button"), { textContent: "×", title: `Remove ${name}` });
    const canvas = document.createElement("canvas");
    box.className = "plot";
    label.title = meaning;
    head.append(label, close);
    box.append(head, canvas);
    this.room.append(box);
    const plot = { column, canvas, label, title: unit ? `${name} (${unit})` : name };
    close.onclick = () => {
      this.shown = this.shown.filter((other) => other !== plot);
      box.remove();
    };
    this.shown.push(plot);
    this.draw();
  }

  draw() {
    for (const plot of this.shown) this.drawOne(plot);
  }

  drawOne({ canvas, column, label, title }) {
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    Object.assign(canvas, { width: width * scale, height: height * scale });
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const values = this.rows.map((row) => row[column]), known = values.filter((v) => v !== null);
    const low = Math.min(...known), high = Math.max(...known), range = high - low || Math.abs(high) || 1;
    label.textContent = known.length ? `${title}: ${Number(known.at(-1).toPrecision(4))}` : title;
    if (known.length < 2) return;
    const [from, to] = [this.times[0], this.times.at(-1)], left = 4, right = width - 4, top = 14, bottom = height - 14;
    pen.scale(scale, scale);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = style.getPropertyValue("--soft");
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.strokeRect(left, top, right - left, bottom - top);
    pen.fillText(Number(high.toPrecision(4)), left, 10);
    pen.fillText(Number(low.toPrecision(4)), left, height - 2);
    pen.textAlign = "right";
    pen.fillText(`${to.toFixed(2)} s`, right, height - 2);
    pen.strokeStyle = style.getPropertyValue("--plot");
    pen.lineWidth = 1.5;
    pen.beginPath();
    values.forEach((value, i) => {
      if (value === null) return;
      pen.lineTo(left + ((right - left) * (this.times[i] - from)) / (to - from || 1), bottom - ((bottom - top) * (value - low)) / range);
    });
    pen.stroke();
  }
}
