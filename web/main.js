// The page: wires the connection, the view and the panels together.
import { Connection, takeToken } from "./connection.js";
import { WorkerConnection } from "./worker_connection.js";
import { hasServer } from "./config.js";
import { View } from "./view.js";
import { Pointer } from "./pointer.js";
import { Plots } from "./plots.js";
import { Editor } from "./editor.js";
import { Form } from "./form.js";
import { Overlay } from "./overlay.js";
import { Modes } from "./modes.js";
import { Game } from "./game.js";
import { Film } from "./film.js";
import { Gallery } from "./gallery.js";
import { Probes } from "./probes.js";

const $ = (id) => document.getElementById(id);
const token = hasServer ? takeToken() : "";
const view = openView();
const connection = hasServer ? new Connection(token) : new WorkerConnection();
const page = { connection, view, scene: null, state: {}, isController: false, say };
const pointer = new Pointer(page, $("view"), $("tools"));
const plots = new Plots(page, $("curves"), $("plots"));
const editor = new Editor(page, { text: $("text"), gutter: $("gutter"), problem: $("problem"), apply: $("apply"), revert: $("revert") });
let form = null;
page.overlay = new Overlay($("overlay"), view);
Object.assign(page, { pointer, editor });
const modes = (page.modes = new Modes(page, { clear: $("mode-clear"), keep: $("mode-keep"), name: $("mode-name"), list: $("modes"), showFlow: $("show-flow") }));
const game = (page.game = new Game(page, { hud: $("hud"), pad: $("pad"), start: $("game") }));
const probes = (page.probes = new Probes(page, $("show-probes")));
const gallery = (page.gallery = new Gallery(page, { dialog: $("gallery"), list: $("gallery-list"), search: $("gallery-search"), button: $("all-scenes"),
  open: (name) => connection.send("open", { scene: name }) }));
const film = new Film(page, { film: $("film"), frames: $("frames"), download });
let unseen = null, frameTimes = [], isDirty = true, noticeTimer = 0;

/** Without WebGL 2 the page says so, and ends. */
function openView() {
  try {
    return new View($("view"));
  } catch (error) {
    Object.assign($("notice"), { textContent: `${error.message} The studio cannot draw here.`, hidden: false });
    throw error;
  }
}

/** A line for the user that goes away by itself. */
export function say(text, seconds = 6) {
  const notice = $("notice");
  notice.textContent = text;
  notice.hidden = !text;
  clearTimeout(noticeTimer);
  if (text && seconds) noticeTimer = setTimeout(() => (notice.hidden = true), 1000 * seconds);
}

// --- Messages ---

connection.addEventListener("open", () => say(""));
connection.addEventListener("closed", () => say("No connection to the studio. Is it still running?", 0));
connection.addEventListener("role", ({ detail }) => {
  page.isController = detail.controller;
  for (const id of ["run", "step", "reset", "speed", "scenes", "all-scenes", "game"]) $(id).disabled = !detail.controller;
  $("control").hidden = detail.controller;
  isDirty = true;
});
connection.addEventListener("scene", ({ detail }) => {
  page.scene = detail;
  view.setScene(detail);
  $("scenes").value = detail.name;
  document.title = `${detail.title || detail.name} – Selkie studio`;
  plots.setScene(detail);
  editor.set(detail.text);
  form?.draw();
  $("tilt-depth-label").hidden = detail.dimension === 2;
  for (const [id, value] of [["tilt", 0], ["tilt-depth", 0], ["gravity", 1]]) $(id).value = value;
  showScene(detail);
  isDirty = true;
});

/** Parts of the page that depend on the kind of scene. */
function showScene(scene) {
  const isReduced = scene.discretization === "reduced";
  $("style").value = view.style = isReduced ? (scene.materials.length > 1 ? "material" : "speed") : "water";
  $("flow-label").hidden = scene.dimension !== 2;
  $("tabs").querySelector("[data-panel=modes]").hidden = !isReduced;
  if (!isReduced && !$("panel-modes").hidden) choosePanel("tools");
  $("probes-label").hidden = !scene.probes?.length;
  probes.setScene(scene);
  pointer.setScene(scene);
  modes.setScene(scene);
  game.setScene(scene);
  if (page.runNext) connection.send("run");
  page.runNext = false;
}
connection.addEventListener("solids", ({ detail }) => {
  view.setSolids(detail);
  isDirty = true;
});
connection.addEventListener("frame", ({ detail }) => {
  unseen = detail;
});
connection.addEventListener("state", ({ detail }) => {
  const before = page.state;
  page.state = detail;
  $("run").textContent = detail.running ? "Pause" : "Run";
  $("speed").value = String(detail.speed);
  if (detail.message && detail.message !== before.message) say(detail.message);
  if (!detail.run_frames) plots.add(detail);
  showRun(detail);
  showStatus();
  if ($("show-probes").checked && page.scene?.probes?.length) isDirty = true;
});
connection.addEventListener("check", ({ detail }) => {
  editor.answer(detail);
  $("form-message").textContent = detail.good ? "" : detail.message;
});
connection.addEventListener("problem", ({ detail }) => detail.for !== "sketch" && say(detail.message));
connection.addEventListener("record", ({ detail }) => download(new Blob([detail.text], { type: "application/json" }), `${detail.name}_run.json`));

/** A run that was made before has a bar to move through its frames. */
function showRun({ run_frames: count = 0, run_frame: at = 0 }) {
  const bar = $("scrub"), input = bar.lastElementChild;
  bar.hidden = !count;
  if (!count) return;
  input.max = count - 1;
  if (document.activeElement !== input || page.state.running) input.value = at;
  bar.firstElementChild.textContent = `${at + 1} of ${count}`;
}
$("scrub").lastElementChild.oninput = () => connection.send("seek", { frame: Number($("scrub").lastElementChild.value) });

function showStatus() {
  const { scene, state } = page;
  if (!scene) {
    $("status").textContent = "Choose a scene.";
    return;
  }
  const rate = frameTimes.length > 1 ? (1000 * (frameTimes.length - 1)) / (frameTimes.at(-1) - frameTimes[0]) : 0;
  const parts = [`${(state.time ?? 0).toFixed(2)} s`, `step ${state.step ?? 0}`, `${(state.particles ?? 0).toLocaleString("en")} particles`];
  if (state.running) parts.push(`${(state.rate ?? 0).toFixed(2)} × real time`, `${rate.toFixed(0)} frames/s`);
  if (state.running && state.behind) parts.push("the machine falls behind");
  if (!page.isController) parts.push("watching");
  $("status").textContent = parts.join(" · ");
}

// --- Drawing: a frame counts as seen when it is on the screen ---

function draw(time) {
  requestAnimationFrame(draw);
  const frame = unseen;
  unseen = null;
  Object.assign(view.between, { isOff: !!film.pictures, isRunning: page.state.running }); // frames that are kept are those of their times
  if (frame) {
    view.setFrame(frame);
    game.takeFrame(frame);
    if ($("show-flow").checked) modes.askForFlow();
    frameTimes.push(time);
    frameTimes = frameTimes.filter((t) => t > time - 1500);
  }
  if (frame || isDirty || pointer.isActive() || view.between.isOn()) {
    view.draw();
    page.overlay.draw();
    film.take(frame);
  }
  isDirty = false;
  if (frame) connection.send("seen", { frame: frame.number });
}
requestAnimationFrame(draw);
page.redraw = () => (isDirty = true);
new ResizeObserver(page.redraw).observe($("view"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", page.redraw);

// --- Controls ---

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

$("run").onclick = () => connection.send(page.state.running ? "pause" : "run");
$("step").onclick = () => connection.send("step");
$("reset").onclick = () => connection.send("reset");
$("speed").onchange = () => connection.send("speed", { value: Number($("speed").value) });
$("scenes").onchange = () => {
  const [kind, name] = $("scenes").value.startsWith("run:") ? ["run", $("scenes").value.slice(4)] : ["scene", $("scenes").value];
  if (kind === "run") connection.send("open_run", { run: name });
  else connection.send("open", { scene: name });
};
$("control").onclick = () => connection.send("control");
$("record").onclick = () => connection.send("record");
$("picture").onclick = () => {
  view.draw();
  view.canvas.toBlob((blob) => download(blob, "selkie.png"));
};
$("share").onclick = async () => {
  const link = `${location.origin}/?token=${token}`;
  try {
    await navigator.clipboard.writeText(link);
    say("The link is on the clipboard.");
  } catch {
    say(link, 30);
  }
};
$("form-apply").onclick = () => editor.load();
$("remove-added").onclick = () => pointer.removeAdded();
$("style").onchange = () => {
  view.style = $("style").value;
  page.redraw();
};
$("show-probes").onchange = page.redraw;
$("frame-view").onclick = () => {
  view.camera.fit();
  page.redraw();
};
$("panels").onclick = () => {
  $("side").hidden = !$("side").hidden;
  $("panels").setAttribute("aria-expanded", String(!$("side").hidden));
};
document.addEventListener("keydown", (event) => {
  if (/^(input|select|textarea|button|summary)$/i.test(event.target.tagName) || event.ctrlKey || event.metaKey) return;
  const actions = { " ": "run", ".": "step", Home: "reset" };
  if (actions[event.key]) {
    event.preventDefault();
    $(actions[event.key]).click();
  }
});

// --- Gravity: turned about the axis towards the viewer, and in 3D about the one across ---

function tilt() {
  const { scene } = page;
  if (!scene) return;
  const strength = Number($("gravity").value), g = Math.hypot(...scene.gravity) || 9.81;
  const side = scene.dimension === 2 ? [1, 0, 0] : view.camera.side, front = scene.dimension === 2 ? [0, 0, 1] : view.camera.front;
  const a = (Number($("tilt").value) * Math.PI) / 180, b = (Number($("tilt-depth").value) * Math.PI) / 180;
  const gravity = scene.up.map((u, d) => g * strength * (-u * Math.cos(a) * Math.cos(b) + side[d] * Math.sin(a) + front[d] * Math.sin(b) * Math.cos(a)));
  connection.change({ type: "gravity", gravity: gravity.slice(0, scene.dimension).map((x) => Number(x.toFixed(4))) });
}
let tiltTimer = 0;
for (const id of ["tilt", "tilt-depth", "gravity"])
  $(id).addEventListener("input", () => {
    clearTimeout(tiltTimer);
    tiltTimer = setTimeout(tilt, 50);
  });
$("level").onclick = () => {
  for (const [id, value] of [["tilt", 0], ["tilt-depth", 0], ["gravity", 1]]) $(id).value = value;
  tilt();
};

// --- Panels ---

const panels = [["tools", "Steer"], ["modes", "Modes"], ["plots", "Plots"], ["form", "Keys"], ["editor", "Text"]];
function choosePanel(name) {
  for (const button of $("tabs").children) {
    const isChosen = button.dataset.panel === name;
    button.setAttribute("aria-selected", String(isChosen));
    button.tabIndex = isChosen ? 0 : -1;
    $(`panel-${button.dataset.panel}`).hidden = !isChosen;
  }
  if (name === "plots") plots.draw();
  if (name === "form") form?.draw();
  if (name === "editor") editor.number();
}
panels.forEach(([name, label], i) => {
  const button = Object.assign(document.createElement("button"), { textContent: label, onclick: () => choosePanel(name) });
  button.setAttribute("role", "tab");
  button.setAttribute("aria-controls", `panel-${name}`);
  button.dataset.panel = name;
  button.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = panels[(i + step + panels.length) % panels.length][0];
    choosePanel(next);
    $("tabs").querySelector(`[data-panel=${next}]`).focus();
  };
  $("tabs").append(button);
});
choosePanel("tools");

// --- The list of scenes ---

try {
  const scenes = await connection.table("/api/scenes");
  const groups = new Map();
  for (const scene of scenes) {
    const folder = scene.name.includes("/") ? scene.name.split("/")[0] : "file";
    if (!groups.has(folder)) groups.set(folder, []);
    groups.get(folder).push(scene);
  }
  gallery.set(scenes);
  $("scenes").append(new Option("Choose a scene", ""));
  for (const [folder, items] of groups) {
    const group = document.createElement("optgroup");
    group.label = folder.replaceAll("_", " ");
    for (const item of items) group.append(new Option(item.title || item.name, item.name));
    $("scenes").append(group);
  }
  const runs = hasServer ? await connection.table("/api/runs") : [];
  const group = Object.assign(document.createElement("optgroup"), { label: "runs made before" });
  for (const run of runs) group.append(new Option(`${run.name}: ${run.title}`, `run:${run.name}`));
  if (runs.length) $("scenes").append(group);
  if (page.scene) $("scenes").value = page.scene.name;
  form = new Form(page, await connection.table("/api/schema"), $("form"), editor);
  form.draw();
} catch (error) {
  say(`The list of scenes cannot be read (${error.message}). ${hasServer ? "Open the link that selkie studio printed." : ""}`, 0);
}
if (!hasServer) connection.send("open", { scene: new URL(location.href).searchParams.get("scene") ?? "reduced/play" });
window.studio = page; // for tests and the curious
