"""Writes pool.obj: the wall of a round pool about the axis x = z = 0, a closed ring. Run: python3 make_pool.py"""
import math

INNER, OUTER, BOTTOM, TOP, PARTS = 9.0, 9.6, -0.5, 2.6, 96  # m

with open("pool.obj", "w") as out:
    out.write("# the wall of a round pool, made by make_pool.py\n")
    for part in range(PARTS):
        angle = 2 * math.pi * part / PARTS
        for radius, height in ((INNER, BOTTOM), (OUTER, BOTTOM), (OUTER, TOP), (INNER, TOP)):
            out.write("v %.5f %g %.5f\n" % (radius * math.cos(angle), height, radius * math.sin(angle)))
    for part in range(PARTS):
        here, there = 4 * part, 4 * ((part + 1) % PARTS)
        for corner in range(4):
            following = (corner + 1) % 4
            out.write("f %d %d %d %d\n" % (here + corner + 1, here + following + 1, there + following + 1, there + corner + 1))
