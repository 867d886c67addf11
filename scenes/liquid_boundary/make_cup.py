"""Writes cup.obj: a cup as a surface of revolution about the y axis, bottom at y = 0, with a foot and a rim that flares.

The profile goes up the outside, over the rim and down the inside; its ends lie on the axis. Run: python3 make_cup.py > cup.obj
"""
import math

# radius, height (m)
PROFILE = [(0.0, 0.0), (0.42, 0.0), (0.46, 0.03), (0.52, 0.20), (0.60, 0.55), (0.66, 0.95), (0.70, 1.20),  # outside
           (0.62, 1.20),                                                                                     # rim
           (0.58, 0.95), (0.52, 0.55), (0.44, 0.22), (0.38, 0.12), (0.0, 0.10)]                              # inside
STEPS = 64  # around


def main():
    print("# A cup, made by make_cup.py.")
    rings, count = [], 0
    for radius, height in PROFILE:
        number = 1 if radius == 0.0 else STEPS
        rings.append((count + 1, number))
        for k in range(number):
            angle = 2.0 * math.pi * k / STEPS
            print("v %.6f %.6f %.6f" % (radius * math.cos(angle), height, radius * math.sin(angle)))
        count += number
    for (first, n), (second, m) in zip(rings, rings[1:]):
        for k in range(STEPS):
            a, b = first + k % n, first + (k + 1) % n
            c, d = second + k % m, second + (k + 1) % m
            if a != b:
                print("f %d %d %d" % (a, d, b) if c == d else "f %d %d %d" % (a, c, b))
            if c != d:
                print("f %d %d %d" % (b, c, d))


main()
