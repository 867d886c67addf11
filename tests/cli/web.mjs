// The page without a server, in a headless browser: it opens, runs, drives a mode, and a small liquid runs as well.
// Usage: node web.mjs SITE BROWSER PICTURES
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { check, finish, launch, look, visit } from "./studio_page.mjs";

const [site, path, pictures] = process.argv.slice(2);
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json", ".wasm": "application/wasm" };
const server = createServer(async (request, response) => {
  const name = new URL(request.url, "http://localhost").pathname, file = name === "/" ? "/index.html" : name;
  try {
    const bytes = await readFile(join(site, file));
    response.writeHead(200, { "Content-Type": types[extname(file)] ?? "text/plain" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const link = (scene) => `http://127.0.0.1:${server.address().port}/?scene=${scene}`;
const browser = await launch(path);
try {
  const { page, wait, errors } = await visit(browser, link("reduced/jet_small"), { viewport: { width: 700, height: 460 } });
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
  check("no errors in the console", errors.length === 0, errors.join("; "));
} catch (error) {
  check("the page without a server", false, error.message);
}
await browser.close();
server.close();
finish();
