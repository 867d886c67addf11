// The scenes with their pictures, in a dialog. A picture is asked for when its card comes into view, one at a time.
export class Gallery {
  constructor(page, { dialog, list, search, button, open }) {
    Object.assign(this, { page, dialog, list, search, open, cards: new Map(), waiting: [], asked: null });
    button.onclick = () => this.show();
    dialog.querySelector("[data-close]").onclick = () => dialog.close();
    search.oninput = () => this.filter();
    this.watcher = new IntersectionObserver((entries) => this.see(entries), { root: list, rootMargin: "120px" });
    page.connection.addEventListener("sketch", ({ detail }) => this.take(detail));
    page.connection.addEventListener("problem", ({ detail }) => detail.for === "sketch" && this.next());
  }

  set(scenes) {
    this.list.replaceChildren(...scenes.map((scene) => this.card(scene)));
  }

  card({ name, title, dimension }) {
    const card = document.createElement("button"), picture = document.createElement("canvas");
    const label = document.createElement("span"), small = document.createElement("small");
    label.textContent = title || name;
    small.textContent = `${name} · ${dimension}D`;
    card.append(picture, label, small);
    card.dataset.scene = name;
    card.onclick = () => {
      this.dialog.close();
      this.open(name);
    };
    this.cards.set(name, { card, picture, text: `${title} ${name} ${dimension}d`.toLowerCase() });
    return card;
  }

  show() {
    this.dialog.showModal();
    for (const { card, isDrawn } of this.cards.values()) if (!isDrawn) this.watcher.observe(card);
    this.search.focus();
  }

  filter() {
    const words = this.search.value.toLowerCase().split(/\s+/);
    for (const { card, text } of this.cards.values()) card.hidden = !words.every((word) => text.includes(word));
  }

  see(entries) {
    for (const { target, isIntersecting } of entries) {
      const name = target.dataset.scene;
      if (isIntersecting && !this.cards.get(name).isDrawn && !this.waiting.includes(name)) this.waiting.push(name);
    }
    if (!this.asked) this.next();
  }

  next() {
    this.asked = this.page.isController ? this.waiting.shift() ?? null : null;
    if (this.asked) this.page.connection.send("sketch", { scene: this.asked });
  }

  take({ name, width, height, pixels }) {
    const entry = this.cards.get(name);
    if (entry) {
      Object.assign(entry.picture, { width, height });
      entry.picture.getContext("2d").putImageData(new ImageData(pixels, width, height), 0, 0);
      entry.isDrawn = true;
      this.watcher.unobserve(entry.card);
    }
    this.next();
  }
}
