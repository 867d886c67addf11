// Probes in the view: where they measure, and what they read now.
const units = { height: "m", pressure: "Pa", velocity: "m/s", front: "m", temperature: "K" };

export class Probes {
  constructor(page, isShown) {
    Object.assign(this, { page, isShown });
    page.overlay.addFlat((pen, scale) => this.draw(pen, scale));
  }

  setScene(scene) {
    this.items = (scene.probes ?? []).filter(({ kind }) => kind in units).map((probe) => ({
      ...probe,
      columns: scene.columns.map(({ name }, i) => [name, i]).filter(([name]) => name === probe.name || name.startsWith(`${probe.name}_`)).map(([, i]) => i),
    }));
  }

  /** "level_1 0.52 m"; of a velocity its length. */
  label({ name, kind, columns }) {
    const values = columns.map((i) => this.page.state.values?.[i]).filter((value) => Number.isFinite(value));
    if (!values.length) return name;
    const value = kind === "velocity" ? Math.hypot(...values) : values[0];
    return `${name} ${Number(value.toPrecision(3))} ${units[kind]}`;
  }

  /** Where it measures: of a height the top of the liquid, of a front its place along the axis. */
  place({ kind, at, axis, columns }) {
    const { scene, state } = this.page, value = state.values?.[columns[0]];
    if (kind === "height" && Number.isFinite(value)) {
      const base = scene.up.reduce((sum, u, d) => sum + u * at[d], 0);
      const floor = scene.up.reduce((sum, u, d) => sum + Math.min(0, u * scene.size[d]), 0);
      return at.map((x, d) => x + scene.up[d] * (value + floor - base));
    }
    if (kind === "front") return scene.size.map((s, d) => (d === axis ? (value ?? 0) - scene.origin[d] : 0.02 * s));
    return at;
  }

  draw(pen, scale) {
    if (!this.isShown.checked || !this.items?.length || !this.page.scene) return;
    const style = getComputedStyle(document.documentElement);
    pen.font = `${12 * scale}px system-ui, sans-serif`;
    pen.lineWidth = 1.5 * scale;
    for (const probe of this.items) {
      const [x, y] = this.page.overlay.project(this.place(probe)), r = 4 * scale;
      if (!Number.isFinite(x)) continue;
      if (probe.kind === "height") {
        const [fx, fy] = this.page.overlay.project(probe.at);
        pen.strokeStyle = "rgba(255, 255, 255, 0.45)";
        line(pen, fx, fy, x, y);
      }
      pen.strokeStyle = "#ffffff";
      pen.fillStyle = "#c2185b";
      pen.beginPath();
      pen.arc(x, y, r, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
      const text = this.label(probe), width = pen.measureText(text).width, up = y - 20 * scale;
      pen.fillStyle = style.getPropertyValue("--card");
      pen.globalAlpha = 0.85;
      pen.fillRect(x - width / 2 - 3 * scale, up - 3 * scale, width + 6 * scale, 16 * scale);
      pen.globalAlpha = 1;
      pen.fillStyle = style.getPropertyValue("--text");
      pen.fillText(text, x - width / 2, up + 9 * scale);
    }
  }
}

function line(pen, ax, ay, bx, by) {
  pen.beginPath();
  pen.moveTo(ax, ay);
  pen.lineTo(bx, by);
  pen.stroke();
}
