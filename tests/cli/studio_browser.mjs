// The studio in a headless Chromium: open, run, drag, pause, change a key, see the error of a bad one.
// Usage: node studio_browser.mjs SELKIE CHROMIUM SCENE PICTURES (playwright-core is looked for in the current folder)
import { check, look, withStudio } from "./studio_page.mjs";

const [selkie, browser, scene, pictures] = process.argv.slice(2);
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

  // The width of a phone, by keyboard.
  await page.setViewportSize({ width: 390, height: 760 });
  await page.emulateMedia({ colorScheme: "light" });
  await page.focus("#view");
  await page.keyboard.press(".");
  await wait(() => window.studio.state.step === 1);
  check("a key makes a step", true);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check("nothing overflows a phone", overflow <= 0, overflow);
  await look(page, `${pictures}/phone.png`);
});
