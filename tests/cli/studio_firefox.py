"""The studio in Firefox on a display of its own (Xvfb: a headless Firefox has no WebGL), by WebDriver BiDi over a socket:
the page opens, runs and draws; the page without a server, where SITE has it, has threads.
Usage: studio_firefox.py SELKIE FIREFOX SCENE [SITE [PICTURE]]"""
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from studio_client import Socket, Studio

selkie, firefox, scene = sys.argv[1:4]
site, picture = (sys.argv[4:] + [None, None])[:2]
failures = 0


def check(what, holds, shown=""):
    global failures
    failures += not holds
    print(f"{'ok   ' if holds else 'FAIL '} {what}{'' if holds else f': {shown}'}", flush=True)


class Browser:
    """A Firefox with a profile of its own."""

    def __init__(self, folder):
        with open(os.path.join(folder, "user.js"), "w") as file:
            for key, value in {"webgl.force-enabled": True, "datareporting.policy.dataSubmissionEnabled": False,
                               "browser.shell.checkDefaultBrowser": False, "app.update.enabled": False}.items():
                file.write(f'user_pref("{key}", {json.dumps(value)});\n')
        read, write = os.pipe()
        self.display = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24"], pass_fds=[write],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        number = os.read(read, 16).decode().strip()
        self.process = subprocess.Popen([firefox, "--no-remote", "--profile", folder, "--remote-debugging-port", "0"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "DISPLAY": f":{number}"})
        link = None
        for line in self.process.stderr:
            if link := re.search(r"BiDi listening on ws://127\.0\.0\.1:(\d+)", line):
                break
        if not link:
            self.close()
            raise RuntimeError("Firefox does not listen")
        self.socket, self.number = Socket(int(link.group(1)), "/session"), 0
        self.socket.socket.settimeout(120)
        self.call("session.new", capabilities={})
        self.tab = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(id=self.number, method=method, params=parameters)
        while (answer := self.socket.receive()) is not None:
            if answer.get("id") == self.number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]
        raise RuntimeError("Firefox has gone")

    def value(self, expression):
        """What an expression of the page gives, as JSON."""
        answer = self.call("script.evaluate", expression=f"JSON.stringify(({expression}) ?? null)", target={"context": self.tab},
                           awaitPromise=True)
        return json.loads(answer["result"]["value"]) if answer["type"] == "success" else None

    def until(self, expression, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.value(expression):
                return value
            time.sleep(0.2)
        raise TimeoutError(f"{expression}; {self.value('document.getElementById(`notice`)?.textContent')}")

    def close(self):
        for process in (self.process, self.display):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def check_threads(browser):
    """The page of `make web`, isolated."""
    serve = os.path.join(os.path.dirname(__file__), "../../web/wasm/serve.py")
    with subprocess.Popen([sys.executable, serve, site, "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            link = server.stdout.readline().strip()
            browser.call("browsingContext.navigate", context=browser.tab, url=f"{link}?scene=examples/double_dam_2d", wait="none")
            browser.until("window.studio?.view?.frame && window.studio.scene?.name === 'examples/double_dam_2d'")
            browser.value("(() => { for (let i = 0; i < 5; i++) window.studio.connection.send('step'); return 1; })()")
            browser.until("window.studio.state.step === 5")
            browser.value("""(() => { window.studio.connection.addEventListener("program", ({ detail }) => (window.program = detail));
                window.studio.connection.send("program"); return 1; })()""")
            program = browser.until("window.program")
            check(f"the page without a server has {program['used']} threads", program["used"] > 1, program)
        finally:
            server.terminate()


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Studio(selkie, scene, "--run", "-j", "1") as studio:
    browser = Browser(folder)
    try:
        browser.call("browsingContext.setViewport", context=browser.tab, viewport={"width": 640, "height": 440})
        browser.call("browsingContext.navigate", context=browser.tab, url=studio.link, wait="none")
        check("the page opens and runs", browser.until("window.studio?.view?.frame?.time > 0.05"))
        blue = browser.value("""(() => { const { view } = window.studio; view.draw();
            const [w, h] = [view.canvas.width, view.canvas.height], data = new Uint8Array(4 * w * h);
            view.gl.readPixels(0, 0, w, h, view.gl.RGBA, view.gl.UNSIGNED_BYTE, data);
            let blue = 0; for (let i = 0; i < data.length; i += 4) blue += data[i + 2] > data[i] + 40; return blue / (w * h); })()""")
        check("there is water on the screen", blue > 0.03, blue)
        browser.value("document.getElementById('run').click()")
        check("it pauses", browser.until("window.studio.state.running === false"))
        if picture:
            with open(picture, "wb") as file:
                file.write(base64.b64decode(browser.call("browsingContext.captureScreenshot", context=browser.tab)["data"]))
        if site:
            check_threads(browser)
    except (RuntimeError, TimeoutError) as error:
        check("the studio in Firefox", False, error)
    browser.close()
sys.exit(failures > 0)
