// The simulation of the page without a server: WebAssembly in a worker, with the messages of the studio's WebSocket.
// A page that is isolated (docs/manual/studio.md) has shared memory, and with it threads.
const mostThreads = 8, pages = { initial: 1024, maximum: 32768 }; // of 64 KiB, as in web/wasm/CMakeLists.txt
let module = null, memory = null, threads = 1, timer = 0;
const known = new Set(), waiting = [];

function call(name, type, types = [], values = []) {
  return module.ccall(name, type, types, values);
}

/** The memory of the program. Another thread may have made it larger, and the module's own view of it is old then. */
function bytesOfModule() {
  return memory ? new Uint8Array(memory.buffer) : module.HEAPU8;
}

/** Passes on what is new, as text or bytes. */
function passOn() {
  for (let at = call("studio_wasm_next", "number"); at; at = call("studio_wasm_next", "number")) {
    const length = call("studio_wasm_length", "number"), bytes = bytesOfModule().slice(at, at + length);
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
  bytesOfModule().set(bytes, at);
  bytesOfModule()[at + bytes.length] = 0;
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
  if (message.do === "program") {
    const checksum = call("studio_wasm_checksum", "number") >>> 0;
    postMessage(JSON.stringify({ is: "program", threads, used: call("studio_wasm_threads", "number"), checksum }));
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

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The program with threads, once they have started. Throws where they do not in 20 s. */
async function loadThreads(count) {
  const wasmMemory = new WebAssembly.Memory({ ...pages, shared: true });
  const answer = await fetch("selkie_threads.wasm"), wasmBinary = await answer.arrayBuffer();
  const late = pause(20000).then(() => Promise.reject(new Error("threads do not start")));
  const start = async () => {
    const made = await (await import("./selkie_threads.js")).default({ wasmMemory, wasmBinary, threads: count });
    made.ccall("studio_wasm_start", null, ["number"], [count]);
    while (made.ccall("studio_wasm_started", "number") < count) await pause(5);
    return made;
  };
  const made = await Promise.race([start(), late]);
  memory = wasmMemory;
  threads = count;
  return made;
}

/** The program with threads where there is shared memory, else the one without. */
async function load() {
  const count = self.crossOriginIsolated ? Math.min(navigator.hardwareConcurrency || 1, mostThreads) : 1;
  if (count > 1)
    try {
      return await loadThreads(count);
    } catch (error) {
      console.warn(`one thread: ${error.message}`);
    }
  return (await import("./selkie.js")).default();
}

module = await load();
if (call("studio_wasm_open", "number", ["number"], [threads])) throw new Error("no memory");
postMessage(JSON.stringify({ is: "role", controller: true, connections: 1 }));
passOn();
for (const data of waiting) queue = queue.then(() => handle(data));
