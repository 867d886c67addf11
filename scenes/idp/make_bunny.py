"""Writes bunny.obj: the outline of a sitting rabbit, drawn by hand, as a flat mesh (z = 0).

Points of the outline go counter-clockwise, in hundredths of its height; a closed Catmull-Rom curve runs through them, and
clipping ears (of the polygon, not of the rabbit) makes triangles of it. Run: python3 make_bunny.py > bunny.obj
"""

POINTS = [
    (6, 3), (14, 0), (30, 0), (46, 0), (60, 0), (72, 0), (82, 1), (86, 5), (81, 9), (74, 10),  # feet, from the tail on
    (76, 16), (79, 23), (80, 31), (79, 39), (81, 44),                                          # chest
    (88, 45), (95, 48), (98, 54), (97, 60), (92, 66), (85, 70),                                # chin, nose, brow
    (82, 74), (83, 81), (82, 89), (78, 97), (73, 100), (69, 96), (69, 88), (71, 79),           # front ear
    (69, 76), (65, 81), (59, 88), (52, 93), (46, 93), (45, 88), (50, 82), (57, 75), (62, 69),  # rear ear
    (60, 64), (53, 61), (44, 60), (34, 57), (25, 51), (18, 43), (13, 34), (10, 26),            # neck, back
    (4, 26), (-1, 21), (-1, 14), (3, 10), (4, 6),                                              # tail
]
STEPS = 6  # straight pieces between two points


def curve(points):
    result = []
    for i in range(len(points)):
        a, b, c, d = (points[(i + k) % len(points)] for k in (-1, 0, 1, 2))
        for s in range(STEPS):
            t = s / STEPS
            result.append(tuple(0.005 * (2 * b[k] + (c[k] - a[k]) * t + (2 * a[k] - 5 * b[k] + 4 * c[k] - d[k]) * t * t
                                         + (3 * b[k] - a[k] - 3 * c[k] + d[k]) * t * t * t) for k in (0, 1)))
    return result


def turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def triangles(points):
    left = list(range(len(points)))
    result = []
    while len(left) > 3:
        for n in range(len(left)):
            i, j, k = left[n - 1], left[n], left[(n + 1) % len(left)]
            a, b, c = points[i], points[j], points[k]
            if turn(a, b, c) <= 0:
                continue
            inside = any(m not in (i, j, k) and turn(a, b, points[m]) >= 0 and turn(b, c, points[m]) >= 0
                         and turn(c, a, points[m]) >= 0 for m in left)
            if not inside:
                result.append((i, j, k))
                del left[n]
                break
        else:
            raise SystemExit("the outline crosses itself")
    return result + [tuple(left)]


def main():
    outline = curve(POINTS)
    faces = triangles(outline)
    area = 0.5 * sum(turn((0, 0), outline[i - 1], outline[i]) for i in range(len(outline)))
    print("# A sitting rabbit, seen from the side; made by make_bunny.py. Height 1, area %.5f." % area)
    for x, y in outline:
        print("v %.5f %.5f 0" % (x, y))
    for face in faces:
        print("f %d %d %d" % tuple(i + 1 for i in face))


main()
