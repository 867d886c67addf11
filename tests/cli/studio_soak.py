"""The studio for a long time, and how fast it is. Usage: studio_soak.py SELKIE SECONDS [--speed [SCENE]]

Without --speed: a page steers for SECONDS (pushes, liquid, obstacles, a tilt, a reset a minute) while a second one reads
slowly and a third one not at all. The memory of the studio must stay bounded.

With --speed: windows with and without a page that reads every frame, in turn, of the double dams in 2D and 3D or of one
scene. Prints frames a second, what a frame costs, and the speed of the simulation with the page, and with a page that
reads nothing, over that without one."""
import os
import random
import statistics
import sys
import threading
import time
from types import SimpleNamespace

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


def processor(studio):
    """Seconds of processor time that the studio has used: all of its threads, and the server's."""
    tasks, used = f"/proc/{studio.process.pid}/task", {}
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/schedstat") as file:
            used[int(task)] = int(file.read().split()[0]) / 1e9
    return sum(used.values()), used[studio.process.pid]


least_steps = 8  # of a window: one that the machine has hardly time for says nothing


def measure(studio, live, length, watches):
    """Steps, frames, seconds and seconds of processor time of a window."""
    live.answers = watches
    while watches and live.unanswered:
        live.do("seen", frame=0)
        live.unanswered -= 1
    live.until_is("state", seconds=60)
    start = time.monotonic(), live.state["step"], live.frames, processor(studio)
    while time.monotonic() < start[0] + length or live.state["step"] < start[1] + least_steps:
        live.until_is("state", seconds=60)
        if live.state["finished"] and not live.state["running"]:  # it goes on beyond its end
            live.do("run")
    whole, server = processor(studio)
    return SimpleNamespace(steps=live.state["step"] - start[1], frames=live.frames - start[2],
                           wall=time.monotonic() - start[0], processor=whole - start[3][0], server=server - start[3][1])


def speed(scene, seconds):
    """The machine may be busy with other work, so a step is counted in processor time, of all threads of the studio: what
    a page costs is taken from the simulation where every core is in use. One thread simulates: several would spin while
    they wait for one that the machine has stopped."""
    with Studio(selkie, scene, "-j", "1") as studio:
        live = studio.live()
        live.until_frame(seconds=120)
        live.do("speed", value=0)
        live.do("run")
        window, alone, watched, stalled = max(2, seconds / 13), [], [], []
        measure(studio, live, window, True)
        for _ in range(4):
            alone.append(measure(studio, live, window, False))
            watched.append(measure(studio, live, window, True))
            idle = studio.live()
            stalled.append(measure(studio, live, window, False))
            idle.close()
        cost = lambda windows: statistics.median(w.processor / w.steps for w in windows)
        frames = sum(w.frames for w in watched)
        frame = sum(w.server for w in watched) / frames
        rate = statistics.median(w.frames / w.wall for w in watched)
        print(f"{scene}: {live.state['particles']:.0f} particles, a step {1000 * cost(alone):.1f} ms of processor time, "
              f"{statistics.median(w.steps / w.wall for w in alone):.1f} steps a second without a page")
        print(f"a frame {len(live.frame.data) / 1e6:.2f} MB, {1000 * frame:.2f} ms of the server, {rate:.1f} a second")
        cores = len(os.sched_getaffinity(0))
        check(f"{scene}: 30 frames a second leave 90 % of the machine", 30 * frame < 0.1 * cores, f"{1 - 30 * frame / cores:.3f}")
        check(f"{scene}: speed with a page over that without", cost(alone) / cost(watched) > 0.9, f"{cost(alone) / cost(watched):.3f}")
        check(f"{scene}: speed with a page that reads nothing", cost(alone) / cost(stalled) > 0.9, f"{cost(alone) / cost(stalled):.3f}")


if "--speed" in sys.argv:
    scenes = sys.argv[4:] or ["double_dam_2d", "double_dam_3d"]
    for scene in scenes:
        speed(scene, seconds / len(scenes))
else:
    soak()
sys.exit(failures > 0)
