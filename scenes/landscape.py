"""What the scripts that make ground for scenes share: smooth noise, and heights as a file."""
import math


def step(a, b, x):
    """From 0 at a to 1 at b, smoothly."""
    t = min(max((x - a) / (b - a), 0.0), 1.0)
    return t * t * (3 - 2 * t)


def lattice(i, j, k):
    """A number in [-1, 1) for each point of a lattice: the same everywhere, with no tables."""
    n = (i * 374761393 + j * 668265263 + k * 2147483647) & 0xffffffff
    n = ((n ^ (n >> 13)) * 1274126177) & 0xffffffff
    n ^= n >> 16
    return n / 2147483648.0 - 1.0


def noise(x, z, k):
    """The lattice's numbers, interpolated; k chooses one of many lattices."""
    i, j = math.floor(x), math.floor(z)
    u, v = step(0, 1, x - i), step(0, 1, z - j)
    return ((1 - u) * (1 - v) * lattice(i, j, k) + u * (1 - v) * lattice(i + 1, j, k)
            + (1 - u) * v * lattice(i, j + 1, k) + u * v * lattice(i + 1, j + 1, k))


def write_heights(name, length, width, spacing, height):
    """An ESRI ASCII grid of height(x, z). Its rows go from north to south, which is z upwards here (north is -z)."""
    columns, rows = round(length / spacing) + 1, round(width / spacing) + 1
    with open(name, "w") as out:
        out.write("ncols %d\nnrows %d\nxllcenter 0\nyllcenter %g\ncellsize %g\n" % (columns, rows, -width, spacing))
        for row in range(rows):
            out.write(" ".join("%.2f" % height(column * spacing, row * spacing) for column in range(columns)) + "\n")
