"""The studio for a long time, and how fast it is. Usage: studio_soak.py SELKIE SECONDS [--speed [SCENE]]

Without --speed: a page steers for SECONDS (pushes, liquid, obstacles, a tilt, a reset a minute) while a second one reads
slowly and a third one not at all. The memory of the studio must stay bounded.

With --speed: windows with and without a page that reads every frame, in turn. Prints frames a second, and the speed of
the simulation with the page, and with a page that reads nothing, over that without one."""
import os
import random
import statistics
import sys
import threading
import time

from studio_client import Studio

selkie, seconds = sys.argv[1], float(sys.argv[2])
failures = 0


def check(what, holds, shown=""):
    global failures
    failures += not holds
    print(f"{'ok   ' if holds else 'FAIL '} {what}: {shown}", flush=True)


def resident(studio):
    """Bytes of memory that the studio has."""
    with open(f"/proc/{studio.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def read_slowly(studio, stop):
    """One frame in two seconds."""
    live = studio.live()
    while not stop.is_set():
        live.until_frame(seconds=60)
        stop.wait(2)
    live.close()


def steer(live, number):
    """One change of a page that plays; some are refused, as on a page."""
    x, y = random.uniform(0.1, 0.9), random.uniform(0.1, 0.9)
    ball = {"type": "sphere", "center": [x, y], "radius": 0.05}
    live.do("change", change=[
        {"type": "force", "force": {"name": "push", "type": "jet", "from": [x, y], "to": [x + 0.05, y], "radius": 0.1, "strength": 5}},
        {"type": "liquid", "liquid": {"shape": ball}},
        {"type": "obstacle", "obstacle": {"name": f"o{number % 5}", "shape": ball}},
        {"type": "remove", "list": "obstacles", "name": f"o{(number + 2) % 5}"},
        {"type": "gravity", "gravity": [random.uniform(-3, 3), -9]},
        {"type": "clear", "shape": ball},
    ][number % 6])


def soak():
    random.seed(1)
    stop, sizes = threading.Event(), []
    with Studio(selkie, "double_dam_2d", "-j", "1") as studio:
        live = studio.live()
        live.until_frame()
        idle = studio.live()  # never reads
        slow = threading.Thread(target=read_slowly, args=(studio, stop))
        slow.start()
        live.do("speed", value=0)
        live.do("run")
        begin, number, reset = time.monotonic(), 0, time.monotonic()
        while time.monotonic() < begin + seconds:
            live.until_is("state")
            steer(live, number)
            number += 1
            if live.state.get("finished") and not live.state["running"]:
                live.do("run")
            if time.monotonic() > reset + min(60, seconds / 8):
                live.do("reset")
                live.do("run")
                reset = time.monotonic()
            sizes.append(resident(studio))
        stop.set()
        slow.join()
        check("it still runs", live.state["step"] > 0 and live.frames > 0, f"{live.frames} frames, {number} changes sent")
        idle.close()
        live.close()
        first, second = sizes[len(sizes) // 8:len(sizes) // 2], sizes[len(sizes) // 2:]
        # Both halves have the same resets. Allocators keep some more; what leaks with frames or changes is far more.
        check("memory is bounded", max(second) < 1.1 * max(first) + (8 << 20),
              f"{max(first) / 2**20:.0f} MiB in the first half, {max(second) / 2**20:.0f} MiB in the second")
        check("it ends", studio.stop() == 0, studio.process.returncode)


def measure(live, length, watches):
    """Simulated seconds a second, and frames a second, over a window."""
    live.answers = watches
    while watches and live.unanswered:
        live.do("seen", frame=0)
        live.unanswered -= 1
    live.until_is("state")
    start, time_before, frames = time.monotonic(), live.state["time"], live.frames
    while time.monotonic() < start + length:
        live.until_is("state", seconds=60)
    wall = time.monotonic() - start
    return (live.state["time"] - time_before) / wall, (live.frames - frames) / wall


def speed(scene):
    with Studio(selkie, scene) as studio:
        live = studio.live()
        live.until_frame(seconds=120)
        live.do("speed", value=0)
        live.do("run")
        window, alone, watched, stalled, rates = max(2, seconds / 12), [], [], [], []
        measure(live, window, True)
        for _ in range(4):
            alone.append(measure(live, window, False)[0])
            rate, frames = measure(live, window, True)
            watched.append(rate)
            rates.append(frames)
            idle = studio.live()
            stalled.append(measure(live, window, False)[0])
            idle.close()
        ratio = statistics.median(w / a for w, a in zip(watched, alone))
        lazy = statistics.median(s / a for s, a in zip(stalled, alone))
        particles = live.state["particles"]
        print(f"{particles:.0f} particles, {statistics.median(alone):.3f} simulated seconds a second without a page")
        check("frames a second", True, f"{statistics.median(rates):.1f}")
        check("speed with a page over that without", ratio > 0.9, f"{ratio:.3f}")
        check("speed with a page that reads nothing", lazy > 0.9, f"{lazy:.3f}")


if "--speed" in sys.argv:
    speed(sys.argv[4] if len(sys.argv) > 4 else "double_dam_2d")
else:
    soak()
sys.exit(failures > 0)
