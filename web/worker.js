// The simulation of the page without a server: WebAssembly in a worker, with the messages of the studio's WebSocket.
import makeModule from "./selkie.js";

let module = null, timer = 0;
const known = new Set(), waiting = [];

function call(name, type, types = [], values = []) {
  return module.ccall(name, type, types, values);
}

/** Passes on what is new, as text or bytes. */
function passOn() {
  for (let at = call("studio_wasm_next", "number"); at; at = call("studio_wasm_next", "number")) {
    const bytes = module.HEAPU8.slice(at, at + call("studio_wasm_length", "number"));
    if (call("studio_wasm_is_binary", "number")) postMessage(bytes.buffer, [bytes.buffer]);
    else postMessage(new TextDecoder().decode(bytes));
  }
}

function turn() {
  timer = 0;
  const begin = performance.now();
  let wait = 0;
  // Several short steps, so that messages do not cost more than steps.
  do wait = call("studio_wasm_turn", "number");
  while (wait === 0 && performance.now() - begin < 8);
  passOn();
  if (wait >= 0) timer = setTimeout(turn, 1000 * wait);
}

function take(text) {
  const bytes = new TextEncoder().encode(text), at = call("malloc", "number", ["number"], [bytes.length + 1]);
  module.HEAPU8.set(bytes, at);
  module.HEAPU8[at + bytes.length] = 0;
  call("studio_wasm_message", null, ["number", "number"], [at, bytes.length]);
  call("free", null, ["number"], [at]);
}

/** A scene that is opened for the first time comes from the folder beside the page. */
async function fetchScene(name) {
  if (known.has(name)) return;
  const answer = await fetch(`scenes/${name.split("/").map(encodeURIComponent).join("/")}.json`);
  if (!answer.ok) return;
  const path = `/${name.replaceAll("/", "_")}.json`;
  module.FS.writeFile(path, await answer.text());
  call("studio_wasm_add_scene", "number", ["string", "string"], [name, path]);
  known.add(name);
}

async function handle(text) {
  const message = JSON.parse(text);
  if (message.do === "schema") {
    const at = call("studio_wasm_schema", "number"), schema = module.UTF8ToString(at);
    call("free", null, ["number"], [at]);
    postMessage(JSON.stringify({ is: "schema", schema: JSON.parse(schema) }));
    return;
  }
  if (message.do === "open" || message.do === "sketch") await fetchScene(String(message.scene));
  take(text);
  if (message.do !== "seen" || !timer) {
    clearTimeout(timer);
    turn();
  }
}

/** In order: a message waits for the scene that the one before it fetches. */
let queue = Promise.resolve();
onmessage = ({ data }) => {
  if (!module) waiting.push(data);
  else queue = queue.then(() => handle(data)).catch((error) => postMessage(JSON.stringify({ is: "problem", message: error.message })));
};

module = await makeModule();
if (call("studio_wasm_open", "number")) throw new Error("no memory");
postMessage(JSON.stringify({ is: "role", controller: true, connections: 1 }));
passOn();
for (const data of waiting) queue = queue.then(() => handle(data));
