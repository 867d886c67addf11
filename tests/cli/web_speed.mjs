// How fast the WebAssembly program steps, in node: CPU milliseconds a step. Compare with `selkie run -j 1`. And a checksum
// of the particles at the end. Several threads take the other program.
// Usage: node web_speed.mjs BUILD-WEB SCENE-FILE [STEPS [THREADS]]
import { createRequire } from "node:module";
import { copyFileSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [build, scene, ...numbers] = process.argv.slice(2), [steps = 50, threads = 1] = numbers.map(Number);
const program = threads > 1 ? "selkie_threads" : "selkie", folder = mkdtempSync(join(tmpdir(), "selkie-"));
const copy = join(folder, `${program}.mjs`), options = { wasmBinary: readFileSync(join(build, `${program}.wasm`)) };
copyFileSync(join(build, `${program}.js`), copy);
if (threads > 1) {
  copyFileSync(join(build, `${program}.worker.js`), join(folder, `${program}.worker.js`));
  const memory = new WebAssembly.Memory({ initial: 1024, maximum: 32768, shared: true });
  Object.assign(options, { threads, wasmMemory: memory, mainScriptUrlOrBlob: pathToFileURL(copy).href });
}
// Emscripten's module is made for a worker: node has neither of these in a module.
Object.assign(globalThis, { require: createRequire(import.meta.url), __dirname: build, __filename: copy, fetch: undefined });
const module = await (await import(copy)).default(options);
const bytesOfModule = () => (options.wasmMemory ? new Uint8Array(options.wasmMemory.buffer) : module.HEAPU8);
const call = (name, type, types = [], values = []) => module.ccall(name, type, types, values);
const send = (message) => {
  const text = JSON.stringify(message);
  call("studio_wasm_message", null, ["string", "number"], [text, text.length]);
};
let state = {};
const drain = () => {
  for (let at = call("studio_wasm_next", "number"); at; at = call("studio_wasm_next", "number")) {
    if (call("studio_wasm_is_binary", "number")) continue;
    const message = JSON.parse(Buffer.from(bytesOfModule().slice(at, at + call("studio_wasm_length", "number"))).toString());
    if (message.is === "problem") throw new Error(message.message);
    if (message.is === "state") state = message;
  }
};

call("studio_wasm_start", null, ["number"], [threads]);
while (call("studio_wasm_started", "number") < threads) await new Promise((done) => setTimeout(done, 5));
call("studio_wasm_open", "number", ["number"], [threads]);
module.FS.writeFile("/scene.json", readFileSync(scene, "utf8"));
call("studio_wasm_add_scene", "number", ["string", "string"], ["scene", "/scene.json"]);
for (const message of [{ do: "open", scene: "scene" }, { do: "speed", value: 0 }, { do: "run" }]) {
  send(message);
  call("studio_wasm_turn", "number");
}
for (let i = 0; i < 5; i++) call("studio_wasm_turn", "number"); // the browser's compiler warms up
drain();
const before = state.step, begin = process.cpuUsage();
for (let i = 0; i < steps; i++) call("studio_wasm_turn", "number");
const { user, system } = process.cpuUsage(begin);
send({ do: "pause" });
call("studio_wasm_turn", "number");
drain();
console.log(`${state.particles} particles, ${((user + system) / 1000 / (state.step - before)).toFixed(2)} ms of CPU a step, ` +
  `${call("studio_wasm_threads", "number")} threads, checksum ${call("studio_wasm_checksum", "number") >>> 0}`);
process.exit(0); // threads would keep node alive
