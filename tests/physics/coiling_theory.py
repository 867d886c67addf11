#!/usr/bin/env python3
"""Steady coiling of a thin viscous thread, for the threads of coiling.c: rate, radii and exponents.

The equations of Ribe (Proc. R. Soc. A 460, 3223, 2004): a thread with axis x(s), stretched, bent and twisted by
gravity and inertia, steady in a frame that turns with the coil. 17 unknowns along the axis, and the rate and the length
of the thread, by Newton's method on a box scheme. It needs numpy and scipy. Lengths in cm, times in s, forces and
moments over the density.

usage: coiling_theory.py [height of the pile in cm, 0.8 unless given]
"""
import sys
import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve

GRAVITY, FALL, NOZZLE, POINTS = 981.0, 6.0, 0.3, 241
TINY = 1e-30  # step of complex differences
# cm2/s, cm3/s; the first three have one flow, and with `middle` among them the last two one viscosity
HONEY = {"middle": 0, "threads": [(500.0, 1.0), (1000.0, 1.0), (2000.0, 1.0), (500.0, 1.4), (500.0, 2.0)]}
WITHOUT_INERTIA = {"middle": 1, "threads": [(6400 / 1.5, 0.25), (6400.0, 0.25), (6400 * 1.5, 0.25),
                                            (6400.0, 0.25 / 1.5), (6400.0, 0.25 * 1.5)]}


def directors(q):
    """Unit vectors d1, d2 and the tangent d3, from a quaternion."""
    w, x, y, z = q
    return (np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]),
            np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)]),
            np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]))


def slopes(y, rate, length, c):
    """Derivatives by s / length. y: place (3), quaternion (4), curvatures k1 k2, spin, speed, force (3), moment (3)."""
    x, q, (k1, k2, spin, u), (n1, n2, n3), (m1, m2, m3) = y[0:3], y[3:7], y[7:11], y[11:14], y[14:17]
    area = c["flow"] / u
    inertia = area * area / (4 * np.pi)
    d1, d2, d3 = directors(q)
    stretch = n3 / (3 * c["viscosity"] * area)
    turn = 0.5 * np.array([-q[1] * k1 - q[2] * k2, q[0] * k1 - q[3] * k2, q[0] * k2 + q[3] * k1, q[1] * k2 - q[2] * k1])
    bend = 3 * c["viscosity"] * inertia
    k1_slope = (m1 / bend - stretch * k1 - k2 * spin) / u
    k2_slope = (m2 / bend - stretch * k2 + k1 * spin) / u
    zero = 0 * x[0]
    forces = c["inertia"] * (2 * u * rate * np.array([d3[2], zero, -d3[0]]) - rate**2 * np.array([x[0], zero, x[2]]))
    forces = forces + np.array([zero, zero + c["gravity"], zero])
    a1 = (forces * d1).sum(0) + c["inertia"] * u * u * k2
    a2 = (forces * d2).sum(0) - c["inertia"] * u * u * k1
    a3 = (forces * d3).sum(0) + c["inertia"] * u * stretch
    return length * np.array([*d3, *turn, k1_slope, k2_slope, m3 / (2 * c["viscosity"] * inertia), stretch,
                              area * a1 - k2 * n3, area * a2 + k1 * n3, area * a3 - k1 * n2 + k2 * n1,
                              n2 - k2 * m3, k1 * m3 - n1, k2 * m1 - k1 * m2])


def ends(top, foot, rate, c):
    """At the nozzle the liquid does not turn; at the foot it rests on the pile, a radius above it."""
    d1, d2, d3 = directors(foot[3:7])
    u, x = foot[10], foot[0:3]
    slip = u * d3 + rate * np.array([x[2], 0 * u, -x[0]])
    turning = u * foot[7] * d1 + u * foot[8] * d2 + foot[9] * d3
    radius = np.sqrt(c["flow"] / (np.pi * u))
    return np.array([top[0], top[1] - FALL, top[2], *(top[3:7] - c["start"]), top[10] - c["flow"] / (np.pi * NOZZLE**2),
                     top[7], top[8], top[9] - rate, *slip, x[1] - radius - c["pile"], x[2],
                     turning[0], turning[1] + rate, turning[2]])


def residual(z, t, c):
    y = z[:-2].reshape(len(t), 17).T
    steps = (y[:, 1:] - y[:, :-1]) - np.diff(t) * slopes(0.5 * (y[:, 1:] + y[:, :-1]), z[-2], z[-1], c)
    return np.concatenate([steps.T.ravel(), ends(y[:, 0], y[:, -1], z[-2], c)])


def jacobian(z, t, c):
    n, y, h = len(t), z[:-2].reshape(len(t), 17).T.astype(complex), np.diff(t)
    middle, rate, length = 0.5 * (y[:, 1:] + y[:, :-1]), z[-2], z[-1]
    at, last = 17 * np.arange(n - 1), 17 * (n - 1) + np.arange(19)
    entries = []
    for j in range(17):
        y[j] += 1j * TINY
        change = slopes(0.5 * (y[:, 1:] + y[:, :-1]), rate, length, c).imag / TINY
        for i in range(17):
            entries += [(at + i, at + j, -0.5 * h * change[i] - (i == j)),
                        (at + i, at + 17 + j, -0.5 * h * change[i] + (i == j))]
        for end, column in ((0, j), (1, 17 * (n - 1) + j)):
            here = (y[:, 0], y[:, -1].real) if end == 0 else (y[:, 0].real, y[:, -1])
            entries.append((last, np.full(19, column), ends(*here, rate, c).imag / TINY))
        y[j] -= 1j * TINY
    for k, (r, l) in enumerate(((rate + 1j * TINY, length), (rate, length + 1j * TINY))):
        change = -h * slopes(middle, r, l, c).imag / TINY
        entries.append((np.arange(17 * (n - 1)), np.full(17 * (n - 1), 17 * n + k), change.T.ravel()))
    entries.append((last, np.full(19, 17 * n), ends(y[:, 0], y[:, -1], rate + 1j * TINY, c).imag / TINY))
    rows, columns, values = (np.concatenate(part) for part in zip(*entries))
    return sparse.csr_matrix((values, (rows, columns)), shape=(len(z), len(z)))


def newton(z, t, c, most=40):
    """The solution, or None."""
    r = residual(z, t, c)
    for _ in range(most):
        j = jacobian(z, t, c)
        columns = 1 / np.maximum(abs(j).max(0).toarray().ravel(), 1e-12)
        j = j @ sparse.diags(columns)
        rows = 1 / np.maximum(abs(j).max(1).toarray().ravel(), 1e-12)
        change = columns * spsolve((sparse.diags(rows) @ j).tocsc(), -rows * r)
        part, size = 1.0, np.linalg.norm(rows * r)
        while True:
            new = z + part * change
            if new[:-2].reshape(len(t), 17)[:, 10].min() > 0 and new[-1] > 0:
                new_r = residual(new, t, c)
                if np.linalg.norm(rows * new_r) < max((1 - 0.1 * part) * size, 1e-10):
                    break
            part *= 0.5
            if part < 1e-4:
                return None
        z, r = new, new_r
        if np.linalg.norm(r) < 1e-8:
            return z
    return None


def guess(t, c, radius, rate):
    """A thread that hangs down and bends into a circle: a cubic curve, its frame carried along without twist."""
    corners = np.array([[0, FALL, 0], [0, 0.3 * radius, 0], [radius, 0.2, -radius], [radius, 0.2, 0]])
    u = np.linspace(0, 1, 4001)[:, None]
    x = (1 - u)**3 * corners[0] + 3 * u * (1 - u)**2 * corners[1] + 3 * u**2 * (1 - u) * corners[2] + u**3 * corners[3]
    s = np.r_[0, np.linalg.norm(np.diff(x, axis=0), axis=1).cumsum()]
    even = np.linspace(0, s[-1], 4001)
    x = np.array([np.interp(even, s, x[:, k]) for k in range(3)]).T
    d3 = np.gradient(x, even, axis=0)
    d3 /= np.linalg.norm(d3, axis=1)[:, None]
    bend, y, d1, last = np.gradient(d3, even, axis=0), [], np.array([1.0, 0, 0]), np.array([1.0, 0, 0, 0])
    wanted = set(np.round(t * 4000).astype(int))
    for i in range(4001):
        d1 = d1 - d3[i] * (d1 @ d3[i])
        d1 /= np.linalg.norm(d1)
        if i not in wanted:
            continue
        d2 = np.cross(d3[i], d1)
        m = np.array([d1, d2, d3[i]]).T
        k = np.array([[m.trace(), m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]], [0] * 4, [0] * 4, [0] * 4])
        k[1:, 1:] = m + m.T - m.trace() * np.eye(3)
        k = np.triu(k) + np.triu(k, 1).T
        q = np.linalg.eigh(k)[1][:, -1]
        last = q if q @ last >= 0 else -q
        y.append([*x[i], *last, -(bend[i] @ d2) * (i > 0), (bend[i] @ d1) * (i > 0)])
    y = np.array(y)
    speed = c["flow"] / (np.pi * NOZZLE**2)
    y = np.c_[y, rate * (1 - t), speed + (rate * radius - speed) * t, np.zeros((len(t), 6))]
    s, k1, k2, area = t * even[-1], y[:, 7], y[:, 8], c["flow"] / y[:, 10]
    bend = 3 * c["viscosity"] * area**2 / (4 * np.pi)
    y[:, 13] = 3 * c["viscosity"] * area * np.gradient(y[:, 10], s)
    y[:, 14] = bend * (np.gradient(y[:, 10] * k1, s) + k2 * y[:, 9])
    y[:, 15] = bend * (np.gradient(y[:, 10] * k2, s) - k1 * y[:, 9])
    c["start"] = y[0, 3:7].copy()
    return np.r_[y.ravel(), rate, even[-1]]


def follow(z, t, c, **goal):
    """The solution while some constants change to new values, by steps that Newton's method can follow."""
    begin, done, step = dict(c), 0.0, 0.2
    while done < 1:
        to = min(1.0, done + step)
        new = {**c, **{k: begin[k] + (v - begin[k]) * to for k, v in goal.items()}}
        found = newton(z, t, new, 12)
        if found is not None and abs(found[-2] / z[-2] - 1) < 0.3:
            z, c, done, step = found, new, to, 1.5 * step
        else:
            step *= 0.5
            if step < 1e-4:
                sys.exit(f"coiling_theory.py: no solution on the way to {goal}")
    return z, c


def main():
    pile = float(sys.argv[1]) if len(sys.argv) > 1 else 0.8
    u = np.linspace(0, 1, POINTS)
    t = 0.75 * np.tanh(2.2 * u) / np.tanh(2.2) + 0.25 * u  # fine at the foot
    c = {"viscosity": 500.0, "flow": 1.0, "gravity": 100.0, "inertia": 0.0, "pile": 0.0}
    for radius in (0.6, 0.9, 1.2, 1.5):
        z = newton(guess(t, c, radius, 2.1 / radius), t, c)
        if z is not None and 4 < z[-2] < 5:
            break
    else:
        sys.exit("coiling_theory.py: no first solution")
    z, c = follow(z, t, c, gravity=GRAVITY)
    creeping = z[-2]
    z, c = follow(z, t, c, inertia=1.0)
    print(f"without inertia, on a plate: {creeping:.2f} rad/s; with it {z[-2]:.2f}")
    z, c = follow(z, t, c, pile=pile)
    for family in (HONEY, WITHOUT_INERTIA):
        print_family(z, t, c, **family)


def print_family(z, t, c, middle, threads):
    """Each thread of a family, and the exponents of its three flows and three viscosities."""
    found = []
    for viscosity, flow in threads:
        z1, c1 = follow(z, t, c, viscosity=viscosity, flow=flow)
        y = z1[:-2].reshape(POINTS, 17)
        radius = np.sqrt(flow / (np.pi * y[:, 10]))
        low = y[:, 1] < c["pile"] + radius[-1] + (FALL - c["pile"]) / 3  # as coiling.c: of the lower third
        thread, rate = np.sqrt((radius[low]**2).mean()), z1[-2]
        found.append(np.log(rate * thread**2))
        print(f"{viscosity * 1e-4:.3g} m2/s, {flow:.3g} cm3/s: {rate:.2f} rad/s, "
              f"coil {10 * np.hypot(*y[-1, [0, 2]]):.2f} mm, thread {10 * thread:.3f} mm ({10 * radius[-1]:.3f} at its "
              f"foot), rate a^2 / (g Q^3 / nu)^(1/4) {np.exp(found[-1]) / (GRAVITY * flow**3 / viscosity)**0.25:.4f}, "
              f"inertia / gravity {y[-1, 10]**2 / GRAVITY / np.hypot(*y[-1, [0, 2]]):.4f}")
    logs, found = np.log(threads), np.array(found)
    print(f"exponent of the flow {np.polyfit(logs[[middle, 3, 4], 1], found[[middle, 3, 4]], 1)[0]:.3f}, "
          f"of the viscosity {np.polyfit(logs[:3, 0], found[:3], 1)[0]:.3f}")


main()
