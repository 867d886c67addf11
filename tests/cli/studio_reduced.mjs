// Reduced fluids in the studio: draw strokes, see their flow, keep it as a mode, drive it by a key, place a body, and ten
// seconds of the game by script. Usage: node studio_reduced.mjs SELKIE BROWSER SCENE PICTURES
import { check, look, withStudio } from "./studio_page.mjs";

const [selkie, browser, scene, pictures] = process.argv.slice(2);
await withStudio({ selkie, browser, scene }, async ({ page, wait }) => {
  /** Where a point of the scene is on the screen. */
  const at = (x, y) => page.evaluate(([px, py]) => {
    const { camera, canvas } = window.studio.view, { left, top, width, height } = canvas.getBoundingClientRect();
    return [left + width / 2 + ((px - camera.target[0]) * height) / camera.height, top + height / 2 - ((py - camera.target[1]) * height) / camera.height];
  }, [x, y]);

  // Draw: the flow of the strokes has no divergence.
  await page.click("[data-panel=modes]");
  await page.click("[data-tool=stroke]");
  await page.mouse.move(...(await at(0.25, 0.3)));
  await page.mouse.down();
  for (let i = 1; i <= 10; i++) await page.mouse.move(...(await at(0.25 + 0.05 * i, 0.3 + 0.03 * i)));
  await page.mouse.up();
  await wait(() => window.studio.modes.field);
  const flow = await page.evaluate(() => {
    const { columns, rows, values } = window.studio.modes.field, [w, h] = window.studio.scene.size;
    const u = (i, j, d) => values[2 * (i + columns * j) + d];
    let divergence = 0, slope = 0, fastest = 0;
    for (let j = 1; j < rows - 1; j++)
      for (let i = 1; i < columns - 1; i++) {
        const ux = ((u(i + 1, j, 0) - u(i - 1, j, 0)) * columns) / (2 * w), vy = ((u(i, j + 1, 1) - u(i, j - 1, 1)) * rows) / (2 * h);
        divergence = Math.max(divergence, Math.abs(ux + vy));
        slope = Math.max(slope, Math.abs(ux));
        fastest = Math.max(fastest, Math.hypot(u(i, j, 0), u(i, j, 1)));
      }
    return { divergence: divergence / slope, fastest };
  });
  // Differences over two cells of the lattice see the flow to about a tenth of its slope; the strokes alone give 1.
  check("the drawing's flow has no divergence", flow.divergence < 0.25 && flow.fastest > 0.5 && flow.fastest < 1.01, JSON.stringify(flow));
  await look(page, `${pictures}/drawing.png`);

  // Keep it, and drive it by its key.
  await page.fill("#mode-name", "slope");
  await page.click("#mode-keep");
  await wait(() => window.studio.scene.modes.includes("slope"));
  check("the scene's text has the mode", (await page.inputValue("#text")).includes('"slope"'));
  await page.evaluate(() => document.getElementById("show-flow").click());
  await page.click("#run");
  await wait(() => window.studio.view.frame?.step > 5);
  const before = await page.evaluate(() => window.studio.state.values[window.studio.scene.columns.findIndex((c) => c.name === "kinetic_energy")]);
  await page.focus("#view");
  const key = await page.evaluate(() => String(window.studio.scene.modes.indexOf("slope") + 1));
  await page.keyboard.down(key);
  const step = await page.evaluate(() => window.studio.state.step);
  await wait((from) => window.studio.state.changes >= 1 && window.studio.state.step > from + 20, step);
  await page.keyboard.up(key);
  await wait(() => window.studio.state.changes >= 2);
  const after = await page.evaluate(() => window.studio.state.values[window.studio.scene.columns.findIndex((c) => c.name === "kinetic_energy")]);
  check("a key drives the mode", after > 1.5 * before + 1e-6, `${before} ${after}`);
  await look(page, `${pictures}/mode.png`);

  // A body.
  await page.click("[data-tool=body]");
  await page.mouse.click(...(await at(0.5, 0.8)));
  await wait(() => window.studio.view.solids.some((solid) => solid.isBody));
  check("a body can be placed", true);
  await page.click("[data-panel=tools]");
  await page.click("#remove-added");
  await wait(() => !window.studio.view.solids.length);
  check("and removed", true);

  // The game: ten seconds by script. Drive towards the ring whatever body is nearest to it.
  await page.click("#game");
  await wait(() => window.studio.game.isOn && window.studio.view.frame?.step > 0);
  await look(page, `${pictures}/game.png`);
  const places = () => page.evaluate(() => window.studio.view.solids.map((solid, i) => window.studio.view.centerOf(i)));
  const start = await places();
  const play = async () => {
    const wish = await page.evaluate(() => {
      const { game, view } = window.studio, ring = game.ring();
      const free = view.solids.map((solid, i) => i).filter((i) => view.solids[i].isBody && !game.caught.has(i));
      const near = free.map((i) => view.centerOf(i)).sort((a, b) => Math.hypot(a[0] - ring.x, a[1] - ring.y) - Math.hypot(b[0] - ring.x, b[1] - ring.y))[0];
      if (!near) return [];
      const [x, y] = [ring.x - near[0], ring.y - near[1]];
      return Math.abs(x) > Math.abs(y) ? [x > 0 ? "ArrowRight" : "ArrowLeft"] : [y > 0 ? "ArrowUp" : "ArrowDown"];
    });
    for (const name of wish) await page.keyboard.down(name);
    await page.waitForTimeout(150);
    for (const name of wish) await page.keyboard.up(name);
  };
  while (await page.evaluate(() => window.studio.game.time < 10 && !window.studio.game.isOver)) await play();
  const score = await page.evaluate(() => window.studio.game.score);
  // How many are caught depends on how many keys a busy machine lets through; that the currents carry bodies does not.
  const end = await places(), way = Math.max(...end.map((p, i) => Math.hypot(p[0] - start[i][0], p[1] - start[i][1])));
  console.log(`ok    ${score} caught, the farthest went ${way.toFixed(3)} m`);
  check("ten seconds of the game, by keys", score >= 1 || way > 0.05, `score ${score}, way ${way}`);
  await look(page, `${pictures}/played.png`);

  // By touch, on a phone; then the end.
  await page.setViewportSize({ width: 390, height: 760 });
  const changes = await page.evaluate(() => window.studio.state.changes);
  await page.locator("#pad button").first().dispatchEvent("pointerdown", { pointerType: "touch", button: 0 });
  await page.locator("#pad button").first().dispatchEvent("pointerup", { pointerType: "touch", button: 0 });
  await wait((count) => window.studio.state.changes >= count + 2, changes);
  check("the pad works by touch", true);
  await look(page, `${pictures}/game_phone.png`);
  await page.evaluate(() => window.studio.game.takeFrame({ ...window.studio.view.frame, time: 61 }));
  await wait(() => window.studio.game.isOver && !window.studio.state.running);
  check("the game has an end and a score", /^The end\. \d+ of 15/.test(await page.textContent("#hud span")), await page.textContent("#hud"));
  await page.click("#hud button");
  await wait(() => !window.studio.game.isOver && window.studio.state.running);
  check("and a new game", true);
});
