// The text of the scene, with the checker's message at its line.
export class Editor {
  constructor(page, { text, gutter, problem, apply, revert }) {
    Object.assign(this, { page, text, gutter, problem, apply, badLine: 0, timer: 0 });
    text.addEventListener("input", () => this.changed());
    text.addEventListener("scroll", () => (gutter.scrollTop = text.scrollTop));
    text.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter") this.load();
    });
    apply.onclick = () => this.load();
    revert.onclick = () => this.set(page.scene?.text ?? "");
    problem.onclick = () => this.goTo(this.badLine);
  }

  set(value) {
    this.text.value = value;
    this.answer({ good: true });
  }

  changed() {
    this.number();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.page.connection.send("check", { text: this.text.value }), 400);
  }

  load() {
    clearTimeout(this.timer);
    this.page.connection.send("load", { text: this.text.value });
  }

  answer({ good, line, column, message }) {
    this.badLine = good ? 0 : line;
    this.problem.hidden = good;
    this.problem.textContent = good ? "" : `${line ? `Line ${line}, column ${column}: ` : ""}${message}`;
    this.text.setAttribute("aria-invalid", String(!good));
    this.apply.disabled = false;
    this.number();
  }

  number() {
    const count = this.text.value.split("\n").length;
    this.gutter.replaceChildren(...Array.from({ length: count }, (unused, i) => {
      const line = document.createElement("div");
      line.textContent = i + 1;
      if (i + 1 === this.badLine) line.className = "bad";
      return line;
    }));
    this.gutter.scrollTop = this.text.scrollTop;
  }

  goTo(line) {
    if (!line) return;
    const lines = this.text.value.split("\n"), start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.text.focus();
    this.text.setSelectionRange(start, start + lines[line - 1].length);
    this.text.scrollTop = Math.max(0, (line - 5) * 19.5);
  }
}
