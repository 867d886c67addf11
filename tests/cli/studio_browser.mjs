// The studio in a headless Chromium: open, run, drag, pause, change a key, see the error of a bad one, record a film and
// frames, look at the pictures of the scenes, drag solids in 3D.
// Usage: node studio_browser.mjs SELKIE CHROMIUM SCENE PICTURES (playwright-core is looked for in the current folder)
import { readFile } from "node:fs/promises";
import { check, look, withStudio } from "./studio_page.mjs";

const [selkie, browser, scene, pictures] = process.argv.slice(2);
const deep = `{"title": "Deep", "domain": {"size": [1, 1, 1], "resolution": 12}, "time": {"end": 3000, "fps": 25},
  "liquids": [{"shape": {"type": "box", "min": [0, 0, 0], "max": [1, 0.3, 1]}}],
  "obstacles": [{"name": "ball", "shape": {"type": "sphere", "center": [0.3, 0.6, 0.5], "radius": 0.15}}],
  "bodies": [{"name": "cork", "density": 400, "shape": {"type": "sphere", "center": [0.75, 0.45, 0.5], "radius": 0.13}}],
  "probes": [{"name": "depth", "type": "height", "at": [0.5, 0, 0.2]}]}`;

/** The bytes of what a click downloads. */
async function downloaded(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download", { timeout: 60000 }), page.click(button)]);
  return readFile(await download.path());
}
await withStudio({ selkie, browser, scene }, async ({ page, wait }) => {
  check("the token leaves the address bar", !page.url().includes("token"), page.url());

  // Run, drag, pause.
  await page.click("#run");
  await wait(() => window.studio.view.frame?.time > 0.1);
  const box = await page.locator("#view").boundingBox();
  await page.click("[data-tool=push]");
  await page.mouse.move(box.x + 0.35 * box.width, box.y + 0.75 * box.height);
  await page.mouse.down();
  // A drag sends at most one change in 60 ms: move on until two have arrived.
  for (let i = 1; i <= 200 && (i < 8 || (await page.evaluate(() => window.studio.state.changes < 2))); i++) {
    await page.mouse.move(box.x + (0.35 + 0.03 * (i % 8)) * box.width, box.y + 0.75 * box.height);
    await page.waitForTimeout(70);
  }
  await page.mouse.up();
  await page.click("[data-tool=obstacle]");
  await page.mouse.click(box.x + 0.5 * box.width, box.y + 0.35 * box.height);
  await wait(() => window.studio.state.changes >= 3 && window.studio.view.solids.length === 2);
  check("a drag pushes, a click adds an obstacle", true);
  await page.evaluate(() => {
    document.getElementById("tilt").value = 20;
    document.getElementById("tilt").dispatchEvent(new Event("input"));
  });
  // A film and pictures of frames, as it runs.
  await page.click("#film");
  await page.click("#frames");
  await wait(() => /Download [2-9]/.test(document.getElementById("frames").textContent));
  const film = await downloaded(page, "#film"), zip = await downloaded(page, "#frames");
  check("a film", film.length > 1000 && film.readUInt32BE(0) === 0x1a45dfa3, film.length); // EBML, of WebM
  const names = zip.toString("latin1").match(/frame_\d{6}\.png/g) ?? [];
  check("pictures of frames in a ZIP file", zip.readUInt32BE(0) === 0x504b0304 && names.length >= 4 && zip.includes("IHDR"), names.length);
  await page.click("#run");
  await wait(() => !window.studio.state.running);
  await look(page, `${pictures}/run.png`);
  const pixels = await page.evaluate(() => {
    const { view } = window.studio;
    view.draw();
    const [w, h] = [view.canvas.width, view.canvas.height], data = new Uint8Array(4 * w * h);
    view.gl.readPixels(0, 0, w, h, view.gl.RGBA, view.gl.UNSIGNED_BYTE, data);
    let blue = 0;
    for (let i = 0; i < data.length; i += 4) blue += data[i + 2] > data[i] + 40;
    return blue / (w * h);
  });
  check("there is water on the screen", pixels > 0.03, pixels);

  // The scenes with their pictures.
  await page.click("#all-scenes");
  await wait(() => [...window.studio.gallery.cards.values()].filter((card) => card.isDrawn).length > 3);
  await look(page, `${pictures}/gallery.png`);
  const painted = await page.evaluate(() => [...window.studio.gallery.cards.values()].filter((card) => card.isDrawn).every(({ picture }) =>
    picture.getContext("2d").getImageData(0, 0, picture.width, picture.height).data.some((value, i) => i % 4 === 2 && value > 150)));
  check("scenes have pictures", painted);
  await page.keyboard.press("Escape");

  // Plots.
  await page.click("[data-panel=plots]");
  check("three curves", (await page.locator(".plot canvas").count()) === 3);
  await look(page, `${pictures}/plots.png`);

  // A key by the form, then a bad one in the text.
  await page.click("[data-panel=form]");
  await page.click("#form summary:has-text('domain')");
  await page.fill("[data-path='domain.resolution']", "16");
  await page.press("[data-path='domain.resolution']", "Tab");
  await look(page, `${pictures}/form.png`);
  await page.click("#form-apply");
  await wait(() => Math.abs(window.studio.scene.cell - 1 / 16) < 1e-9 && window.studio.state.time === 0);
  check("a key of the form takes effect", true);
  await page.click("[data-panel=editor]");
  const text = await page.inputValue("#text");
  check("comments survive the form", text.includes("// a basin"), text);
  await page.fill("#text", text.replace('"fps"', '"fqs"'));
  await page.waitForSelector("#problem:not([hidden])");
  const problem = await page.textContent("#problem");
  check("a wrong key is shown at its line", /^Line \d+, .*fps/.test(problem) && (await page.locator("#gutter .bad").count()) === 1, problem);
  await look(page, `${pictures}/editor.png`);

  // In 3D: an obstacle and a body under the pointer are dragged; a probe is drawn.
  await page.fill("#text", deep);
  await page.click("#apply");
  await wait(() => window.studio.scene.dimension === 3 && window.studio.view.frame?.count && window.studio.view.solids.length === 2);
  await page.click("#run");
  await page.click("[data-tool=push]");
  for (const [solid, what] of [[0, "an obstacle"], [1, "a body"]]) {
    const place = () => page.evaluate((i) => window.studio.view.centerOf(i), solid);
    const [x, y] = await page.evaluate((i) => {
      const { overlay, view } = window.studio, { left, top } = view.canvas.getBoundingClientRect(), [px, py] = overlay.project(view.centerOf(i));
      return [left + (px * view.canvas.clientWidth) / overlay.canvas.width, top + (py * view.canvas.clientHeight) / overlay.canvas.height];
    }, solid);
    const before = await place();
    await page.mouse.move(x, y);
    await page.mouse.down();
    let way = 0;
    for (let i = 1; i <= 40 && way < 0.03; i++) {
      await page.mouse.move(x - Math.min(60, 6 * i), y - Math.min(10, i));
      await page.waitForTimeout(100);
      way = Math.hypot(...(await place()).map((c, d) => c - before[d]));
    }
    check(`${what} is dragged in 3D`, way >= 0.03 && (await page.evaluate(() => window.studio.pointer.drag.solid)) === solid, way);
    await page.mouse.up();
  }
  const probe = await page.evaluate(() => {
    const { overlay } = window.studio, [x, y] = overlay.project(window.studio.probes.place(window.studio.probes.items[0])).map(Math.round);
    overlay.draw();
    return overlay.canvas.getContext("2d").getImageData(x, y, 1, 1).data[3];
  });
  check("a probe is drawn", probe === 255, probe);
  await look(page, `${pictures}/deep.png`);
  await page.fill("#text", text);
  await page.click("#apply");
  await wait(() => window.studio.scene.dimension === 2 && window.studio.view.frame);

  // The width of a phone, by keyboard.
  await page.setViewportSize({ width: 390, height: 760 });
  await page.emulateMedia({ colorScheme: "light" });
  await page.focus("#view");
  await page.keyboard.press(".");
  await wait(() => window.studio.state.step === 1);
  check("a key makes a step", true);
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, input, textarea, canvas[tabindex]")]
    .filter((e) => e.offsetParent && !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length || e.title))
    .map((e) => e.outerHTML.slice(0, 80)));
  check("every control has a name", nameless.length === 0, nameless.join(" "));
  await page.focus("#view");
  const reached = new Set();
  for (let i = 0; i < 60 && reached.size < 12; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.dataset.tool || document.activeElement.tagName));
  }
  check("the keyboard reaches the controls", reached.has("push") && reached.has("body"), [...reached].join(" "));
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check("nothing overflows a phone", overflow <= 0, overflow);
  await look(page, `${pictures}/phone.png`);
});
