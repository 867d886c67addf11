"""Writes hull.obj: the hull of a ship with a closed deck, bow towards +x, keel at y = 0, 16 m long.

Stations along the length have a half breadth, a height of the keel and of the deck; between keel and deck the side follows a
power of the height, full amidships and fine at the ends. Run: python3 make_ship.py > hull.obj
"""

LENGTH, BREADTH, DEPTH = 16.0, 4.0, 3.0  # m
STATIONS, POINTS = 32, 12


def section(s):
    """Half breadths and heights from the keel to the deck at the share s of the length."""
    half = 0.5 * BREADTH * (1.0 - max(0.0, (s - 0.45) / 0.55) ** 2.2) * (0.72 + 0.28 * min(1.0, s / 0.35))
    keel = 0.9 * max(0.0, (s - 0.8) / 0.2) ** 2 + 0.35 * max(0.0, (0.12 - s) / 0.12) ** 2
    deck = DEPTH + 0.9 * max(0.0, (s - 0.5) / 0.5) ** 2 + 0.35 * max(0.0, (0.3 - s) / 0.3) ** 2
    fullness = 0.30 + 0.45 * max(0.0, (s - 0.55) / 0.45)
    half = max(half, 0.03)
    return [(half * (p / POINTS) ** fullness if p else 0.0, keel + (deck - keel) * (p / POINTS) ** 1.6) for p in range(POINTS + 1)]


def main():
    print("# The hull of a ship, made by make_ship.py.")
    ring = 2 * POINTS + 1  # from the deck on one side over the keel to the deck on the other
    for n in range(STATIONS + 1):
        s = n / STATIONS
        x, points = LENGTH * (s - 0.5), section(s)
        for half, height in [(-h, y) for h, y in reversed(points)] + points[1:]:
            print("v %.5f %.5f %.5f" % (x, height, half))
    for n in range(STATIONS):
        for k in range(ring):  # the last one is the deck
            a, b = n * ring + k + 1, n * ring + (k + 1) % ring + 1
            c, d = a + ring, b + ring
            print("f %d %d %d\nf %d %d %d" % (a, b, d, a, d, c))
    for first, turn in ((1, 1), (STATIONS * ring + 1, 0)):  # stern and bow
        for k in range(1, ring - 1):
            triangle = (first, first + k, first + k + 1)
            print("f %d %d %d" % (triangle if not turn else triangle[::-1]))


main()
