"""Writes canyon.asc and canyon_water.asc: a winding canyon with two waterfalls, 100 m long and 50 m wide.

x runs downstream, z across; heights are along y, in metres. Rows of an ESRI ASCII grid go from north to south, which is
z upwards here (north is -z). Run: python3 make_canyon.py
"""
import math

LENGTH, WIDTH = 100.0, 50.0
FALLS = ((36.0, 4.5), (68.0, 4.0))  # where (m), how far down (m)
BOULDERS = ((12, -1.5, 0.9, 0.9), (20, 1.8, 1.1, 1.0), (27, -0.5, 0.8, 0.7), (48, 1.6, 1.3, 1.2), (55, -1.8, 1.2, 1.0),
            (60, 0.4, 0.9, 0.8), (79, -1.2, 1.2, 1.1), (86, 1.5, 1.0, 0.9), (92, -0.6, 1.1, 0.8))  # x, off middle, radius, height


def step(a, b, x):
    t = min(max((x - a) / (b - a), 0.0), 1.0)
    return t * t * (3 - 2 * t)


def lattice(i, j, k):
    """A number in [-1, 1) for each point of a lattice: the same everywhere, with no tables."""
    n = (i * 374761393 + j * 668265263 + k * 2147483647) & 0xffffffff
    n = ((n ^ (n >> 13)) * 1274126177) & 0xffffffff
    n ^= n >> 16
    return n / 2147483648.0 - 1.0


def noise(x, z, k):
    i, j = math.floor(x), math.floor(z)
    u, v = step(0, 1, x - i), step(0, 1, z - j)
    return ((1 - u) * (1 - v) * lattice(i, j, k) + u * (1 - v) * lattice(i + 1, j, k)
            + (1 - u) * v * lattice(i, j + 1, k) + u * v * lattice(i + 1, j + 1, k))


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


def write(name, spacing, height):
    columns, rows = round(LENGTH / spacing) + 1, round(WIDTH / spacing) + 1
    with open(name, "w") as out:
        out.write("ncols %d\nnrows %d\nxllcenter 0\nyllcenter %g\ncellsize %g\n" % (columns, rows, -WIDTH, spacing))
        for row in range(rows):
            out.write(" ".join("%.2f" % height(column * spacing, row * spacing) for column in range(columns)) + "\n")


write("canyon.asc", 0.25, ground)
write("canyon_water.asc", 0.5, water)
