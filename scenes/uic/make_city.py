"""Prints the buildings of city_flood.json: 15 blocks of 36 x 36 m, each with a low base and one or two towers on it.

x runs inland, z along the coast, y up; metres. Run: python3 make_city.py
"""


def lattice(i, j, k):
    """A number in [0, 1) for each building: the same everywhere, with no tables."""
    n = (i * 374761393 + j * 668265263 + k * 2147483647 + 99991) & 0xffffffff
    n = ((n ^ (n >> 13)) * 1274126177) & 0xffffffff
    n = ((n ^ (n >> 15)) * 2246822519) & 0xffffffff
    return (n ^ (n >> 16)) / 4294967296.0


def box(x0, x1, y1, z0, z1):
    print('                    {"type": "box", "min": [%g, -8, %g], "max": [%g, %g, %g]},' % (x0, z0, x1, y1, z1))


BLOCK, STREET = 36, 14
for i in range(5):
    for j in range(3):
        x, z = 232 + i * (BLOCK + STREET), 12 + j * (BLOCK + STREET)
        base = 2 * round(5 + 5 * lattice(i, j, 0))
        box(x, x + BLOCK, base, z, z + BLOCK)
        towers = 1 + (lattice(i, j, 1) > 0.45)
        for t in range(towers):
            height = base + 2 * round(10 + 38 * lattice(i, j, 2 + t) ** 1.4)
            wide = BLOCK / towers - 4 - 2 * round(3 * lattice(i, j, 4 + t))
            deep = BLOCK - 6 - 2 * round(5 * lattice(i, j, 6 + t))
            middle_x, middle_z = x + BLOCK * (t + 0.5) / towers, z + BLOCK / 2
            box(middle_x - wide / 2, middle_x + wide / 2, height, middle_z - deep / 2, middle_z + deep / 2)
