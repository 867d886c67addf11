// A page of the studio in a headless browser, and checks. playwright-core is looked for in the current folder.
import { createRequire } from "node:module";
import { spawn } from "node:child_process";

const playwright = createRequire(`${process.cwd()}/`)("playwright-core");
let failures = 0;

export function check(what, holds, shown = "") {
  failures += !holds;
  console.log(`${holds ? "ok   " : "FAIL "} ${what}${holds ? "" : `: ${shown}`}`);
}

export async function launch(path) {
  if (/firefox/.test(path)) return playwright.firefox.launch({ executablePath: path });
  return playwright.chromium.launch({
    executablePath: path,
    args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  });
}

/** A page at an address, once it is there. Errors of its console fail the test. The software renderer takes most of the
 * time, so the view is small and drawn at most five times a second. */
export async function visit(browser, link, options = {}) {
  const page = await browser.newPage({ viewport: { width: 760, height: 480 }, colorScheme: "dark", acceptDownloads: true, ...options });
  await page.addInitScript(() => {
    const draw = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (action) => setTimeout(() => draw(action), 200);
  });
  page.setDefaultTimeout(120000);
  const errors = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(link, { waitUntil: "commit" }); // a software renderer may take long to start
  const wait = (test, value) => page.waitForFunction(test, value, { timeout: 150000, polling: 200 });
  try {
    await wait(() => window.studio?.view.frame);
  } catch (error) {
    throw new Error(`${error.message} ${errors.join("; ")}`);
  }
  return { page, errors, wait };
}

/** Runs a test against `selkie studio`; ends the process with its result. */
export async function withStudio({ selkie, browser: path, scene, options }, test) {
  const studio = spawn(selkie, ["studio", scene, "--no-browser", "-j", "1"]);
  const link = await new Promise((done) => studio.stdout.once("data", (text) => done(String(text).trim())));
  const browser = await launch(path);
  try {
    const visited = await visit(browser, link, options);
    await test(visited);
    check("no errors in the console", visited.errors.length === 0, visited.errors.join("; "));
  } catch (error) {
    check("the studio in the browser", false, error.message);
  } finally {
    await browser.close();
    studio.kill("SIGINT");
  }
  finish();
}

export function finish() {
  process.exit(failures ? 1 : 0);
}

/** A picture to look at. On a busy machine it may take too long; then there is none, and the checks go on. */
export async function look(page, path) {
  try {
    await page.screenshot({ path, timeout: 15000 });
  } catch (error) {
    console.log(`ok    no ${path}: ${error.message.split("\n")[0]}`);
  }
}
