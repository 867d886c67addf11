// The page without a server, in a headless browser: it opens, runs, drives a mode, and a small liquid runs as well. Where
// the page is isolated it has threads, and computes the same bits with them.
// Usage: node web.mjs SITE BROWSER PICTURES
import { createServer } from "node:http";
import { readFile, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { check, finish, launch, look, visit } from "./studio_page.mjs";

const [site, path, pictures] = process.argv.slice(2);
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json", ".wasm": "application/wasm" };
const isolation = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

/** A web server of the folder; `asked` has the names of its files that were asked for. */
async function serve(headers) {
  const asked = new Set(), server = createServer(async (request, response) => {
    const name = new URL(request.url, "http://localhost").pathname, file = name === "/" ? "/index.html" : name;
    asked.add(file.slice(1));
    try {
      const bytes = await readFile(join(site, file));
      response.writeHead(200, { "Content-Type": types[extname(file)] ?? "text/plain", ...headers }).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  }).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  return { asked, close: () => server.close(), link: (scene) => `http://127.0.0.1:${server.address().port}/?scene=${scene}` };
}

/** What the program says after some steps of a scene: its threads, and a checksum of the particles. */
async function afterSteps({ page, wait }, scene, count) {
  await page.evaluate((name) => window.studio.connection.send("open", { scene: name }), scene);
  await wait((name) => window.studio.scene?.name === name && window.studio.state.step === 0, scene);
  await page.evaluate((steps) => {
    for (let i = 0; i < steps; i++) window.studio.connection.send("step");
  }, count);
  await wait((steps) => window.studio.state.step === steps, count);
  return page.evaluate(() => new Promise((done) => {
    window.studio.connection.addEventListener("program", ({ detail }) => done(detail), { once: true });
    window.studio.connection.send("program");
  }));
}

const isolated = await serve(isolation), plain = await serve({}), steps = 10;
const browser = await launch(path);
try {
  const { page, wait, errors } = await visit(browser, isolated.link("reduced/jet_small"), { viewport: { width: 700, height: 460 } });
  await page.click("#run");
  await wait(() => window.studio.view.frame?.step > 5);
  await page.focus("#view");
  await page.keyboard.down("1");
  await wait(() => window.studio.state.changes >= 1);
  await page.keyboard.up("1");
  check("a reduced fluid runs and is driven", true);
  await look(page, `${pictures}/web_reduced.png`);
  await page.click("#all-scenes");
  await wait(() => [...window.studio.gallery.cards.values()].some((card) => card.isDrawn));
  check("scenes have pictures", true);
  await look(page, `${pictures}/web_gallery.png`);
  await page.click("[data-scene='examples/double_dam_2d']");
  await wait(() => window.studio.scene.name === "examples/double_dam_2d" && window.studio.view.frame);
  await page.click("#run");
  await wait(() => window.studio.view.frame?.time > 0.05);
  check("a liquid runs", true);
  await page.click("#run");
  await wait(() => !window.studio.state.running);
  await look(page, `${pictures}/web_liquid.png`);

  // Threads where the page is isolated, one where it is not; the same bits.
  const other = await visit(browser, plain.link("reduced/jet_small"), { viewport: { width: 700, height: 460 } });
  for (const scene of ["examples/double_dam_2d", "examples/channel_2d", "reduced/drafting_small"]) {
    const many = await afterSteps({ page, wait }, scene, steps), one = await afterSteps(other, scene, steps);
    check(`${scene}: ${many.used} threads where the page is isolated`, many.used > 1 && many.used === many.threads, JSON.stringify(many));
    check(`${scene}: one thread elsewhere`, one.used === 1 && one.threads === 1, JSON.stringify(one));
    check(`${scene}: the same bits`, many.checksum === one.checksum && one.checksum !== 0, `${many.checksum} ${one.checksum}`);
  }
  check("a page loads one program", [isolated, plain].every(({ asked }) => [...asked].filter((name) => name.endsWith(".wasm")).length === 1));
  errors.push(...other.errors);
  check("no errors in the console", errors.length === 0, errors.join("; "));
  await writeFile("loaded.txt", [isolated, plain].map(({ asked }) => [...asked].join(" ") + "\n").join(""));
} catch (error) {
  check("the page without a server", false, error.message);
}
await browser.close();
isolated.close();
plain.close();
finish();
