"""Checks of the studio without a browser. Usage: studio_checks.py SELKIE WORK_FOLDER"""
import json
import resource
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from studio_client import Studio

selkie, work = sys.argv[1], Path(sys.argv[2])
failures = 0


def check(what, holds, shown=""):
    global failures
    failures += not holds
    print(f"{'ok   ' if holds else 'FAIL '} {what}{f': {shown}' if not holds else ''}", flush=True)


scene = work / "basin.json"
scene.write_text("""{ // a basin
  "title": "basin", "domain": {"dimension": 2, "size": [1, 1], "resolution": 24}, "time": {"end": 0.5, "fps": 20},
  "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [0.5, 0.5]}}],
  "obstacles": [{"name": "post", "shape": {"type": "box", "min": [0.7, 0], "max": [0.8, 0.2]}}],
}""")


def check_http(studio):
    token = studio.token
    status, head, body = studio.http("/")
    check("the page", status == 200 and b"<title>" in body, status)
    check("its policy", "content-security-policy: default-src 'none'" in head and "nosniff" in head, head)
    check("no CORS", "access-control" not in head, head)
    check("a script", studio.http("/main.js")[0] == 200)
    for path in ("/api/scenes", "/api/schema"):
        check(f"{path} without a token", studio.http(path)[0] == 401)
        check(f"{path} with a wrong token", studio.http(f"{path}?token={'0' * 32}")[0] == 401)
        check(f"{path} with a part of the token", studio.http(f"{path}?token={token[:31]}")[0] == 401)
        status, _, body = studio.http(f"{path}?token={token}")
        check(f"{path} with the token", status == 200 and json.loads(body), status)
    check("the token as a header", studio.http("/api/scenes", headers=[f"Authorization: Bearer {token}"])[0] == 200)
    check("/api/unknown without a token", studio.http("/api/unknown")[0] == 401)
    check("/api/unknown with it", studio.http(f"/api/unknown?token={token}")[0] == 404)
    for host in ("evil.example", f"evil.example:{studio.port}", "127.0.0.1", f"127.0.0.1:{studio.port + 1}",
                 f"127.0.0.1:{studio.port}.evil.example"):
        check(f"Host {host.replace(str(studio.port), 'PORT')}", studio.http(f"/api/scenes?token={token}", host=host)[0] == 403)
    for origin in ("http://evil.example", f"https://127.0.0.1:{studio.port}", "null", f"http://127.0.0.1:{studio.port}0"):
        answer = studio.http(f"/api/scenes?token={token}", headers=[f"Origin: {origin}"])
        check(f"Origin {origin.replace(str(studio.port), 'PORT')}", answer[0] == 403, answer[0])
    check("its own Origin", studio.http("/", headers=[f"Origin: http://localhost:{studio.port}"])[0] == 200)
    for path in ("/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/%2e%2e/main.js%00"):
        status, _, body = studio.http(path)
        check(f"path {path}", status != 200 and b"root:" not in body, status)
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        check(f"method {method}", studio.http(f"/api/scenes?token={token}", method=method, headers=["Content-Length: 0"])[0] != 200)
    # 127.0.0.2 is this machine as well, as are all addresses of its network cards.
    with socket.socket() as other:
        other.settimeout(2)
        check("only 127.0.0.1 listens", other.connect_ex(("127.0.0.2", studio.port)) != 0)


def check_handshake(studio):
    own = f"http://127.0.0.1:{studio.port}"
    for what, options in (("a wrong token", {"token": "f" * 32}), ("no token", {"token": ""}),
                          ("a foreign Origin", {"origin": "http://evil.example"}), ("Origin null", {"origin": "null"}),
                          ("a foreign Host", {"host": f"evil.example:{studio.port}"}), ("another path", {"path": "/live"}),
                          ("no protocol", {"protocol": ""}), ("another protocol", {"protocol": "chat"})):
        live = studio.live(**options)
        check(f"a WebSocket with {what}", live.status != 101, live.status)
        live.close()
    live = studio.live(origin=own)
    check("a WebSocket of its own page", live.status == 101, live.status)
    live.close()


def refused(live, text, what=None):
    live.send_bytes(text.encode() if isinstance(text, str) else text)
    answer = live.until_is("problem")
    check(f"message {what or text[:60]}", bool(answer["message"]), answer)


def check_messages(studio):
    live = studio.live()
    live.until_frame()
    for text in ("", "{", "[]", "null", "17", '"run"', "{}", '{"do": 1}', '{"do": "fly"}', '{"do": "run", "to": 1}', '{"do": "open"}',
                 '{"do": "open", "scene": 3}', '{"do": "speed", "value": -1}', '{"do": "speed", "value": 1e9}',
                 '{"do": "speed", "value": NaN}', '{"do": "change", "change": []}', '{"do": "run"} {"do": "run"}',
                 '{"do": "run", "do": "pause"}', '{"do": "change", "change": {"type": "nothing"}}',
                 '{"do": "change", "change": {"type": "gravity", "gravity": "up"}}'):
        refused(live, text)
    refused(live, "[" * 5000, "that is deep")
    refused(live, '{"do": "open", "scene": "' + "a" * 300 + '"}', "with a long name")
    for name in ("../../etc/passwd", "/etc/passwd", str(scene), "examples/../examples/double_dam_2d", "examples/double_dam_2d.json"):
        for verb in ("open", "sketch"):
            refused(live, json.dumps({"do": verb, "scene": name}), f"{verb} with a path: {name}".replace(str(work), "WORK"))
    live.do("sketch", scene="examples/dam_break_3d")
    sketch = live.until(lambda m: isinstance(m, bytes) and m[:4] == b"SKP1")
    width, height, length = struct.unpack_from("<3I", sketch, 4)
    pixels = sketch[16 + (length + 3 & ~3):]
    blue = sum(pixels[i + 2] > pixels[i] + 40 for i in range(0, len(pixels), 4)) / (width * height)
    check("the picture of a scene", len(pixels) == 4 * width * height and 0.02 < blue < 0.5, (width, height, blue))
    mesh = {"type": "mesh", "file": "/etc/passwd"}
    refused(live, json.dumps({"do": "change", "change": {"type": "obstacle", "obstacle": {"name": "x", "shape": mesh}}}),
            "with a file in a change")
    changed = scene.read_text().replace('"obstacles": [', '"obstacles": [{"shape": ' + json.dumps(mesh) + "},")
    live.do("load", text=changed)
    answer = live.until_is("check")
    check("a file in a scene's text", not answer["good"] and "no file of the opened scene" in answer["message"], answer)

    # Too large, too many, not text: the connection is closed, the studio lives on.
    for what, act in (("of 2 MB", lambda l: l.send_bytes(b" " * (2 << 20))),
                      ("in bytes", lambda l: l.send_bytes(b"\0\1\2", opcode=2)),
                      ("that is no UTF-8", lambda l: l.send_bytes(b'{"do": "\xff\xfe"}')),
                      ("of fragments without end", lambda l: [l.send_bytes(b" " * 60000, opcode=0 if i else 1, last=False) for i in range(40)]),
                      ("sent 5000 times", lambda l: [l.do("pause") for i in range(5000)])):
        other = studio.live()
        try:
            act(other)
        except OSError:
            pass
        check(f"a message {what} closes the connection", other.is_closed())
        other.close()
    live.do("step")
    live.until_is("state", step=1)
    check("the studio still works", True)
    live.close()


def check_roles(studio):
    first = studio.live()
    first.until_is("role", controller=True)
    second = studio.live()
    second.until_is("role", controller=False)
    second.do("step")
    check("a watcher cannot steer", "watches" in second.until_is("problem")["message"])
    if not second.frames:
        second.until_frame()
    check("a watcher sees frames", second.frames > 0)
    second.do("control")
    second.until_is("role", controller=True)
    first.until_is("role", controller=False)
    check("control can be taken", True)
    second.close()
    first.until_is("role", controller=True)
    check("and goes back", True)
    first.close()


def check_crowd(studio):
    """A thousand connections: most are refused, those that stay work, and afterwards everything does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    lives, crowd = [], []
    for _ in range(40):
        live = studio.live()
        lives.append(live)
    check("at most 32 live connections", sum(live.status == 101 for live in lives) == 32,
          sum(live.status == 101 for live in lives))
    for _ in range(1000):
        try:
            made = socket.socket()
            made.setblocking(False)
            made.connect_ex(("127.0.0.1", studio.port))
            crowd.append(made)
        except OSError:
            break
    lives[0].do("step")
    lives[0].until_is("state")
    check(f"{len(crowd)} connections do not stop it", True)
    for made in crowd:
        made.close()
    for live in lives:
        live.close()
    for _ in range(100):
        try:
            if studio.http("/")[0] == 200:
                break
        except OSError:
            pass
        time.sleep(0.1)
    check("and it answers again", studio.http("/")[0] == 200)


def check_run(studio):
    live = studio.live()
    frame = live.until_frame()
    check("a frame", frame.count == live.state["particles"] > 0 and frame.dimension == 2 and frame.solids == 1, vars(frame))
    wide = max(frame.positions[0::2]) / 65535 * frame.size[0]
    check("positions", abs(wide - 0.5) < 0.03, wide)
    check("the obstacle's outline", live.solids[:4] == b"SKG1" and len(live.solids) == 16 + 8 + 4 * 6 * 4, len(live.solids))
    live.do("speed", value=0)
    live.do("run")
    live.until_is("state", finished=True)
    check("it pauses at the end of the scene", not live.state["running"] and abs(live.state["time"] - 0.5) < 1e-9, live.state)
    live.do("reset")
    live.until_is("scene")
    check("reset", live.until_frame().time == 0)

    # Steered by hand, recorded, and replayed by `selkie run` with the same bits.
    live.do("step")
    live.do("change", change={"type": "gravity", "gravity": [4, -9]})
    live.do("step")
    live.do("change", change={"type": "obstacle", "obstacle": {"name": "ball", "shape": {"type": "sphere", "center": [0.75, 0.6], "radius": 0.1}}})
    live.do("change", change={"type": "liquid", "liquid": {"shape": {"type": "sphere", "center": [0.2, 0.8], "radius": 0.1}}})
    live.do("change", change={"type": "force", "force": {"name": "push", "type": "jet", "from": [0.1, 0.2], "to": [0.4, 0.2], "radius": 0.1, "strength": 20}})
    live.do("step")
    live.do("step")
    live.until_is("state", step=4, changes=4)
    final = live.frame if live.frame.step == 4 else live.until_frame(lambda f: f.step == 4)
    check("the new obstacle has a pose", final.solids == 2, final.solids)
    live.do("change", change={"type": "remove", "list": "forces", "name": "push"})
    live.until_is("state", changes=5)
    check("what was added can be removed by its name", True)
    live.do("record")
    record = live.until_is("record")
    (work / "record.json").write_text(record["text"])
    live.do("run")
    live.until_is("state", finished=True)
    expected = dict(zip([c["name"] for c in live.scene["columns"]], live.state["values"]))
    out = work / "replay"
    run = subprocess.run([selkie, "run", work / "record.json", "--out", out, "--quiet", "-j", "1"], capture_output=True, text=True)
    check("the record runs", run.returncode == 0, run.stderr)
    rows = (out / "stats.csv").read_text().splitlines()
    names = rows[0].split(",")
    match = [row for row in (dict(zip(names, line.split(","))) for line in rows[1:]) if int(row["step"]) == expected["step"]]
    same = match and all(match[0][k] == f"{expected[k]:.9g}" for k in ("time", "particles", "kinetic_energy", "potential_energy", "max_speed"))
    check("with the same energy, to the last digit", bool(same), (match, expected))

    # The editor.
    bad = scene.read_text().replace('"resolution": 24', '"resolutoin": 24')
    live.do("check", text=bad)
    answer = live.until_is("check")
    check("a wrong key has a line", not answer["good"] and answer["line"] == 2 and "resolution" in answer["message"], answer)
    live.do("check", text=scene.read_text())
    check("a right text is good", live.until_is("check")["good"])
    live.do("load", text=scene.read_text().replace("24", "12"))
    live.until_is("scene")
    check("a changed key takes effect", abs(live.scene["cell"] - 1 / 12) < 1e-9, live.scene["cell"])
    live.close()


def check_runs():
    """A run that was made before: listed, opened, scrubbed and played, but not steered."""
    runs = work / "runs"
    run = subprocess.run([selkie, "run", scene, "--out", runs / "first", "--quiet", "-j", "1"], capture_output=True, text=True)
    check("a run to look at", run.returncode == 0, run.stderr)
    with Studio(selkie, "--runs", str(runs), "-j", "1") as studio:
        listed = json.loads(studio.http(f"/api/runs?token={studio.token}")[2])
        check("the list of runs", [item["name"] for item in listed] == ["first"], listed)
        live = studio.live()
        for name in ("../runs/first", "second", "first/../first"):
            refused(live, json.dumps({"do": "open_run", "run": name}), f"a run called {name}")
        live.do("open_run", run="first")
        live.until_is("scene")
        start = live.until_frame(lambda f: f.time == 0)
        while "run_frames" not in live.state:  # the first frame may come before the state that counts them
            live.until_is("state")
        frames = live.state["run_frames"]
        live.do("seek", frame=frames - 1)
        last = live.until_frame(lambda f: f.time > 0)
        check("its last frame", frames == 11 and abs(last.time - 0.5) < 1e-6 and last.count == start.count, (frames, last.time))
        check("the particles have moved", last.positions != start.positions)
        refused(live, '{"do": "change", "change": {"type": "gravity", "gravity": [1, 0]}}', "a change of a run")
        live.do("reset")
        live.until_frame(lambda f: f.time == 0)
        live.do("speed", value=4)
        live.do("run")
        live.until_is("state", finished=True)
        check("it plays to its end", live.state["run_frame"] == frames - 1 and not live.state["running"], live.state)
        live.close()


# Solids that a scene's own changes bring, move and take away. All are in the air, so that nothing turns or stops them.
changing = work / "changing.json"
changing.write_text("""{"domain": {"dimension": 2, "size": [1, 1], "resolution": 16},
  "time": {"end": 0.5, "fps": 20, "step": 0.025},
  "liquids": [{"shape": {"type": "box", "min": [0, 0], "max": [1, 0.1]}}],
  "obstacles": [{"name": "plate", "shape": {"type": "box", "min": [0.1, 0.8], "max": [0.2, 0.9]}}],
  "bodies": [{"name": "square", "density": 500, "shape": {"type": "box", "min": [0.7, 0.3], "max": [0.8, 0.4]}}],
  "changes": [{"step": 4, "type": "move", "name": "plate", "translate": [0.2, 0], "duration": 0.1},
    {"step": 6, "type": "body", "body": {"name": "disc", "density": 500,
      "shape": {"type": "sphere", "center": [0.5, 0.8], "radius": 0.1}}},
    {"step": 8, "type": "remove", "list": "bodies", "name": "square"}]
}""")


def outlines(solids):
    """The points of each solid, as floats."""
    made, at = [], 16
    for _ in range(struct.unpack_from("<I", solids, 8)[0]):
        floats, = struct.unpack_from("<I", solids, at + 4)
        made.append(struct.unpack_from(f"<{floats}f", solids, at + 8))
        at += 8 + 4 * floats
    return made


def check_solids(live, frame, name):
    """Compares what is drawn after 0.4 s with the scene: the plate 0.2 m to the right, the disc, no square."""
    check(f"{name}: the solids belong to the frame", frame.solids == 2 and struct.unpack_from("<I", live.solids, 4)[0] == frame.solids_number,
          (frame.solids, frame.solids_number, live.solids[:16]))
    plate, disc = outlines(live.solids)
    check(f"{name}: the plate has moved", abs(frame.poses[0][3] - 0.2) < 1e-6, frame.poses[0])
    # The disc comes at 0.15 s, so that it has fallen g (0.25 s)^2 / 2 = 0.31 m, a step more or less.
    row, center = frame.poses[1][4:8], (sum(disc[0::3]) / len(disc[0::3]), sum(disc[1::3]) / len(disc[1::3]))
    fallen = center[1] - (row[0] * center[0] + row[1] * center[1] + row[3])
    check(f"{name}: a new body has its own shape", len(disc) > 24 and abs(center[0] - 0.5) < 0.01 and 0.2 < fallen < 0.4,
          (len(disc), center, fallen))


def check_changes():
    runs = work / "runs_of_changes"
    with Studio(selkie, str(changing), "-j", "1") as studio:
        live = studio.live()
        live.until_frame()
        for _ in range(16):
            live.do("step")
        check_solids(live, live.until_frame(lambda f: f.step == 16), "live")
        live.close()
    run = subprocess.run([selkie, "run", changing, "--out", runs / "made", "--quiet", "-j", "1"], capture_output=True, text=True)
    check("a run with changes", run.returncode == 0, run.stderr)
    with Studio(selkie, "--runs", str(runs), "-j", "1") as studio:
        live = studio.live()
        live.do("open_run", run="made")
        live.until_is("scene")
        live.until_frame(lambda f: f.time == 0)
        live.do("seek", frame=8)
        check_solids(live, live.until_frame(lambda f: abs(f.time - 0.4) < 1e-6), "a run")
        live.do("seek", frame=1)
        frame = live.until_frame(lambda f: abs(f.time - 0.05) < 1e-6)
        square = outlines(live.solids)[1]
        check("back to an early frame", frame.solids == 2 and frame.poses[0][3] == 0 and len(square) == 24, (frame.poses, len(square)))
        live.close()


def check_slow(studio):
    """A page that never says what it has seen gets two frames, and slows nothing."""
    slow, live = studio.live(), studio.live()
    live.do("control")
    live.until_is("role", controller=True)
    live.do("speed", value=0)
    live.do("run")
    live.until_is("state", finished=True)
    live.do("run")
    live.until_frame(lambda f: f.step > 100)
    check("a scene goes on beyond its end", True)
    slow.socket.settimeout(0.3)
    frames, end = 0, time.monotonic() + 1
    try:
        while time.monotonic() < end and (message := slow.receive()) is not None:
            frames += isinstance(message, bytes) and message[:4] == b"SKF1"
    except TimeoutError:
        pass
    check("frames are dropped, not queued", frames <= 2, frames)
    slow.close()
    live.close()


with Studio(selkie, str(scene), "-j", "1") as studio:
    check_http(studio)
    check_handshake(studio)
    check_run(studio)
    check_messages(studio)
    check_roles(studio)
    check_crowd(studio)
    check_slow(studio)
    code = studio.stop()
    check("it ends by Ctrl-C with 0", code == 0, (code, studio.process.stderr.read()))
check_runs()
check_changes()
with Studio(selkie, str(scene), "--run", "-j", "1") as studio:
    live = studio.live()
    check("--run needs no button", live.until_frame(lambda f: f.time > 0).time > 0)
    live.do("reset")
    live.until_is("scene")
    live.do("speed", value=0.05)
    live.do("run")
    frame = live.until_frame(lambda f: f.has_velocities)  # steps are far apart: the page draws what lies between
    pairs = zip(frame.velocities[::2], frame.velocities[1::2])
    off = max(abs((x * x + y * y) ** 0.5 / 127 - s / 255) for (x, y), s in zip(pairs, frame.speeds))
    check("velocities are those of the speeds", off < 0.015, off)
    live.close()
taken = socket.socket()
taken.bind(("127.0.0.1", 0))
taken.listen()
run = subprocess.run([selkie, "studio", "--no-browser", "--port", str(taken.getsockname()[1])], capture_output=True, text=True, timeout=30)
check("a port that is taken", run.returncode == 2 and len(run.stderr.splitlines()) == 1 and "port" in run.stderr, run)
sys.exit(failures > 0)
