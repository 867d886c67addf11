"""Writes canyon.asc and canyon_water.asc: a winding canyon with two waterfalls, 100 m long and 50 m wide.

x runs downstream, z across; heights are along y, in metres. Run: python3 make_canyon.py
"""
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from landscape import noise, step, write_heights  # noqa: E402

LENGTH, WIDTH = 100.0, 50.0
FALLS = ((36.0, 4.5), (68.0, 4.0))  # where (m), how far down (m)
BOULDERS = ((12, -1.5, 0.9, 0.9), (20, 1.8, 1.1, 1.0), (27, -0.5, 0.8, 0.7), (48, 1.6, 1.3, 1.2), (55, -1.8, 1.2, 1.0),
            (60, 0.4, 0.9, 0.8), (79, -1.2, 1.2, 1.1), (86, 1.5, 1.0, 0.9), (92, -0.6, 1.1, 0.8))  # x, off middle, radius, height


def rough(x, z):
    return sum(noise(x * 0.11 * 2 ** k, z * 0.11 * 2 ** k, k) / 1.9 ** k for k in range(4))


def middle(x):
    return 25 + 8.5 * math.sin(2 * math.pi * x / 74 + 0.5) + 2 * math.sin(2 * math.pi * x / 29)


def half_width(x):
    narrow = sum(math.exp(-((x - fall) / 4.0) ** 2) for fall, _ in FALLS)
    return 4.3 + 0.8 * math.sin(2 * math.pi * x / 23 + 1) - 1.0 * narrow


def bed(x):
    """Without pools."""
    return 14.5 - 0.012 * x - sum(drop * step(fall - 0.3, fall + 1.4, x) for fall, drop in FALLS)


def ground(x, z):
    off = z - middle(x)
    beside = abs(off) - half_width(x)
    height = bed(x) + 0.25 * (off / half_width(x)) ** 2 + 0.12 * noise(x * 0.9, z * 0.9, 9)
    for fall, _ in FALLS:  # the water digs a pool where it lands
        height -= 1.4 * math.exp(-((x - fall - 4.5) / 2.4) ** 2 - (off / 3.4) ** 2)
    for at, aside, radius, size in BOULDERS:
        height += size * math.exp(-(((x - at) ** 2 + (off - aside) ** 2) / radius ** 2) ** 2)
    if beside > -0.6:  # the walls: a steep foot, a ledge, a slope
        s = beside + 0.6
        wild = rough(x, z)
        height += 4.2 * step(0, 2.4, s) + 3.0 * step(4, 7, s + 1.2 * wild) + 0.16 * s + 1.6 * wild * step(0.5, 4, s)
    return min(max(height, 0.5), 24.0)


def water(x, z):
    depth = 1.0
    for fall, _ in FALLS:  # thin over the lip
        depth -= 0.45 * math.exp(-((x - fall) / 2.0) ** 2)
    if abs(z - middle(x)) > half_width(x) + 2.0:
        return ground(x, z) - 1.0
    return bed(x) + depth


write_heights("canyon.asc", LENGTH, WIDTH, 0.25, ground)
write_heights("canyon_water.asc", LENGTH, WIDTH, 0.5, water)
