// The studio in a worker of the page itself: the messages of connection.js without a server.
import { takeBytes } from "./connection.js";

export class WorkerConnection extends EventTarget {
  constructor() {
    super();
    this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.onerror = (event) => this.tell("problem", { message: event.message || "The simulation cannot start." });
  }

  tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  take(data) {
    if (typeof data !== "string") {
      takeBytes(this, data);
      return;
    }
    const message = JSON.parse(data);
    this.tell(message.is, message);
  }

  send(verb, rest = {}) {
    this.worker.postMessage(JSON.stringify({ do: verb, ...rest }));
  }

  change(change) {
    this.send("change", { change });
  }

  /** The table of scenes lies beside the page; the schema comes from the program. */
  async table(path) {
    if (path === "/api/scenes") return (await fetch("scenes.json")).json();
    return new Promise((done) => {
      this.addEventListener("schema", ({ detail }) => done(detail.schema), { once: true });
      this.send("schema");
    });
  }
}
