"""Writes terrain.asc: uneven ground of 26 x 20 m that a dam breaks over.

x runs away from the dam, z across, heights along y; metres. Rows of an ESRI ASCII grid go from north to south, which is z
upwards here (north is -z). Run: python3 make_terrain.py
"""
import math

LENGTH, WIDTH, SPACING = 26.0, 20.0, 0.25
HILLS = ((11.0, 5.0, 1.9, 2.3), (12.5, 14.5, 2.4, 2.0), (16.5, 9.5, 1.6, 2.9), (20.5, 16.0, 2.6, 2.6),
         (21.5, 4.0, 2.3, 3.4))  # x, z, radius, height


def step(a, b, x):
    t = min(max((x - a) / (b - a), 0.0), 1.0)
    return t * t * (3 - 2 * t)


def lattice(i, j, k):
    n = (i * 374761393 + j * 668265263 + k * 2147483647) & 0xffffffff
    n = ((n ^ (n >> 13)) * 1274126177) & 0xffffffff
    n ^= n >> 16
    return n / 2147483648.0 - 1.0


def noise(x, z, k):
    i, j = math.floor(x), math.floor(z)
    u, v = step(0, 1, x - i), step(0, 1, z - j)
    return ((1 - u) * (1 - v) * lattice(i, j, k) + u * (1 - v) * lattice(i + 1, j, k)
            + (1 - u) * v * lattice(i, j + 1, k) + u * v * lattice(i + 1, j + 1, k))


def ground(x, z):
    height = 0.35 + 0.25 * noise(x * 0.35, z * 0.35, 1) + 0.1 * noise(x * 0.9, z * 0.9, 2)
    for at, aside, radius, size in HILLS:
        height += size * math.exp(-((x - at) ** 2 + (z - aside) ** 2) / radius ** 2)
    return max(height * step(5.0, 8.5, x), 0.0) + 0.02


columns, rows = round(LENGTH / SPACING) + 1, round(WIDTH / SPACING) + 1
with open("terrain.asc", "w") as out:
    out.write("ncols %d\nnrows %d\nxllcenter 0\nyllcenter %g\ncellsize %g\n" % (columns, rows, -WIDTH, SPACING))
    for row in range(rows):
        out.write(" ".join("%.2f" % ground(column * SPACING, row * SPACING) for column in range(columns)) + "\n")
