"""Writes terrain.asc: uneven ground of 26 x 20 m that a dam breaks over.

x runs away from the dam, z across, heights along y; metres. Run: python3 make_terrain.py
"""
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from landscape import noise, step, write_heights  # noqa: E402

LENGTH, WIDTH, SPACING = 26.0, 20.0, 0.25
HILLS = ((11.0, 5.0, 1.9, 2.3), (12.5, 14.5, 2.4, 2.0), (16.5, 9.5, 1.6, 2.9), (20.5, 16.0, 2.6, 2.6),
         (21.5, 4.0, 2.3, 3.4))  # x, z, radius, height


def ground(x, z):
    height = 0.35 + 0.25 * noise(x * 0.35, z * 0.35, 1) + 0.1 * noise(x * 0.9, z * 0.9, 2)
    for at, aside, radius, size in HILLS:
        height += size * math.exp(-((x - at) ** 2 + (z - aside) ** 2) / radius ** 2)
    return max(height * step(5.0, 8.5, x), 0.0) + 0.02


write_heights("terrain.asc", LENGTH, WIDTH, SPACING, ground)
