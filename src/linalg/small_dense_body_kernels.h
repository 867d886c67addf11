/* The body of small_dense_kernels.h: 2x2 and 3x3 decompositions over one number type. It has no include guard, since it
 * is included once for each type: float, double, and lanes of floats (small_dense.c).
 *
 * Before the include:
 *   SK_REAL         the type: float, double, fw
 *   SK_MASK         the type of a comparison of two SK_REAL
 *   SK_REAL_(name)  appends the type's name to that of a function
 *   SK_SWEEPS       sweeps of the Jacobi iteration
 *   SK_NEGLIGIBLE   a squared length below it is zero beside 1
 *   SK_SMALL_FACTOR numbers below 1 / SK_SMALL_FACTOR are multiplied by its square before anything else
 *   SK_LARGEST_POWER, SK_SMALLEST_POWER   powers of two that have a normal inverse
 * and the functions sk_splat_, sk_multiply_add_, sk_sqrt_, sk_abs_, sk_select_, sk_power_of_two_ and
 * sk_inverse_power_of_two_ of the type.
 *
 * Rules that make all forms give the same bits: no branch depends on a value, and no product is an operand of a plus
 * or a minus except through sk_multiply_add_ (or by a power of two), so that a compiler has nothing to contract.
 *
 * A mask that guards a division is false for NaN: NaN must propagate to the results.
 */
#ifdef SK_REAL

#define R SK_REAL
#define MADD SK_REAL_(sk_multiply_add_)
#define SPLAT SK_REAL_(sk_splat_)
#define SELECT SK_REAL_(sk_select_)

SK_KERNEL_BODY R SK_REAL_(sk_larger_)(R a, R b)
{
    return SELECT(a > b, a, b);
}

SK_KERNEL_BODY R SK_REAL_(sk_smaller_)(R a, R b)
{
    return SELECT(a < b, a, b);
}

/* --- Scale ---
 * Powers of two, so that scaling does not round (but for results below the smallest normal number). */

typedef struct SK_REAL_(sk_scale_) {
    R lift, down; /* the scaled matrix is (a * lift) * down: its largest entry is in [1, 4) */
    R up, drop;   /* the inverses: (a * up) * drop */
    R poison;     /* 0, or NaN where an entry is not finite */
} SK_REAL_(sk_scale_);

SK_KERNEL_BODY SK_REAL_(sk_scale_) SK_REAL_(sk_scale_of_)(int count, const R *a)
{
    SK_REAL_(sk_scale_) scale;
    R largest = SPLAT(0), one = SPLAT(1);
    scale.poison = SPLAT(0);
    for (int i = 0; i < count; i++) {
        largest = SK_REAL_(sk_larger_)(SK_REAL_(sk_abs_)(a[i]), largest);
        scale.poison = MADD(a[i], SPLAT(0), scale.poison);
    }

    /* Scales small numbers to normal ones, then the largest to about one. */
    SK_MASK small = largest < SPLAT(1 / SK_SMALL_FACTOR);
    scale.lift = SELECT(small, SPLAT(SK_SMALL_FACTOR * SK_SMALL_FACTOR), one);
    scale.drop = SELECT(small, SPLAT(1 / SK_SMALL_FACTOR / SK_SMALL_FACTOR), one);
    largest = SK_REAL_(sk_smaller_)(largest * scale.lift, SPLAT(SK_LARGEST_POWER));
    largest = SK_REAL_(sk_larger_)(largest, SPLAT(SK_SMALLEST_POWER));
    scale.up = SK_REAL_(sk_power_of_two_)(largest);
    scale.down = SK_REAL_(sk_inverse_power_of_two_)(largest);
    return scale;
}

SK_KERNEL_BODY void SK_REAL_(sk_scaled_)(const SK_REAL_(sk_scale_) * scale, int count, const R *a, R *scaled)
{
    for (int i = 0; i < count; i++)
        scaled[i] = MADD(a[i] * scale->lift, scale->down, scale->poison);
}

SK_KERNEL_BODY void SK_REAL_(sk_unscale_)(const SK_REAL_(sk_scale_) * scale, int count, R *values)
{
    for (int i = 0; i < count; i++)
        values[i] = values[i] * scale->up * scale->drop;
}

/* --- Columns of a matrix of n x n, row-major --- */

/* Columns p and q become c p - s q and s p + c q. */
SK_KERNEL_BODY void SK_REAL_(sk_rotate_columns_)(int n, R *m, int p, int q, R c, R s)
{
    for (int i = 0; i < n; i++) {
        R x = m[n * i + p], y = m[n * i + q];
        m[n * i + p] = MADD(c, x, -(s * y));
        m[n * i + q] = MADD(s, x, c * y);
    }
}

/* If the mask is set, columns p and q become q and -p: also a rotation. */
SK_KERNEL_BODY void SK_REAL_(sk_exchange_columns_)(int n, R *m, int p, int q, SK_MASK which)
{
    for (int i = 0; i < n; i++) {
        R x = m[n * i + p], y = m[n * i + q];
        m[n * i + p] = SELECT(which, y, x);
        m[n * i + q] = SELECT(which, -x, y);
    }
}

/* --- Symmetric matrices: 3x3 as xx, xy, xz, yy, yz, zz; 2x2 as xx, xy, yy --- */

/* The unit eigenvector (c, s) of the larger eigenvalue of [[f, g], [g, -f]]. Returns that eigenvalue. (1, 0) and 0 if
 * the squares vanish. */
SK_KERNEL_BODY R SK_REAL_(sk_main_axis_)(R f, R g, R *c, R *s)
{
    R square = MADD(f, f, g * g), one = SPLAT(1), zero = SPLAT(0);
    SK_MASK none = square < SPLAT(SK_NEGLIGIBLE);
    R length = SELECT(none, zero, SK_REAL_(sk_sqrt_)(square));
    R w = SK_REAL_(sk_abs_)(f) + length;
    R norm = SELECT(none, one, SK_REAL_(sk_sqrt_)(MADD(w, w, g * g)));
    R along = w / norm, across = g / norm;

    /* The larger of the two components has no cancellation. */
    SK_MASK upright = f < zero;
    R flipped = SELECT(g < zero, -along, along);
    *c = SELECT(none, one, SELECT(upright, SK_REAL_(sk_abs_)(across), along));
    *s = SELECT(none, zero, SELECT(upright, flipped, across));
    return length;
}

/* a: scaled. Eigenvalues largest first; vectors are columns. */
SK_KERNEL_BODY void SK_REAL_(sk_eigen_scaled_2d_)(const R a[3], R values[2], R vectors[4])
{
    R half = SPLAT(0.5f), c, s;
    R mean = (a[0] + a[2]) * half;
    R length = SK_REAL_(sk_main_axis_)((a[0] - a[2]) * half, a[1], &c, &s);
    values[0] = mean + length;
    values[1] = mean - length;
    vectors[0] = c;
    vectors[1] = -s;
    vectors[2] = s;
    vectors[3] = c;
}

/* Cosine and sine of a Jacobi rotation for d = a_qq - a_pp, e = 2 a_pq, nearly: tan(2 angle) = e / d, |angle| <= pi/4.
 *
 * With x = |e / d|, the tangent of half the angle is tan(atan(x) / 4), replaced by x (1 + a x) / (4 + b x + c x x),
 * a = b / 4, c = a / tan(pi / 8): right to x^2 at 0, exact at infinity. b = 3.5 leaves at most 1.6 % of
 * sqrt(d d + e e) / 2 beside the diagonal and x^2 e / 20 near convergence. Sine and cosine of that angle are rational:
 * one division and no root, and a rotation to rounding whatever the angle. */
SK_KERNEL_BODY void SK_REAL_(sk_jacobi_angle_)(R d, R e, R *c, R *s)
{
    R p = SK_REAL_(sk_abs_)(e), q = SK_REAL_(sk_abs_)(d), zero = SPLAT(0);
    R signed_e = SELECT(d < zero, -e, e);
    R sine = signed_e * MADD(SPLAT(0.875f), p, q);
    R cosine = MADD(q, MADD(SPLAT(3.5f), p, q * SPLAT(4)), SPLAT(2.1124369f) * p * p);
    R norm = MADD(cosine, cosine, sine * sine);

    SK_MASK none = norm < SPLAT(SK_NEGLIGIBLE);
    R twice = SPLAT(2) / SELECT(none, SPLAT(1), norm);
    sine = SELECT(none, zero, sine);
    *c = MADD(-(sine * sine), twice, SPLAT(1));
    *s = sine * cosine * twice;
}

/* One rotation of the plane p, q; r is the third axis. pp, pq, ...: places of the entries in a. */
SK_KERNEL_BODY void SK_REAL_(sk_jacobi_rotate_)(R a[6], R vectors[9], int p, int q, const int at[5])
{
    const int pp = at[0], qq = at[1], pq = at[2], pr = at[3], qr = at[4];
    R d = a[qq] - a[pp], e = a[pq] + a[pq], c, s;
    SK_REAL_(sk_jacobi_angle_)(d, e, &c, &s);

    R g = MADD(s, d, -(c * e)), x = a[pr], y = a[qr];
    a[pp] = MADD(s, g, a[pp]);
    a[qq] = MADD(-s, g, a[qq]);
    a[pq] = MADD(-c, g, -a[pq]);
    a[pr] = MADD(c, x, -(s * y));
    a[qr] = MADD(s, x, c * y);
    SK_REAL_(sk_rotate_columns_)(3, vectors, p, q, c, s);
}

/* The cyclic Jacobi iteration with a fixed number of sweeps. a: scaled; its diagonal ends as the eigenvalues. */
SK_KERNEL_BODY void SK_REAL_(sk_jacobi_)(R a[6], R vectors[9])
{
    const int xy[5] = {0, 3, 1, 2, 4}, xz[5] = {0, 5, 2, 1, 4}, yz[5] = {3, 5, 4, 1, 2};
    for (int i = 0; i < 9; i++)
        vectors[i] = SPLAT(i % 4 == 0 ? 1.0f : 0.0f);
    for (int sweep = 0; sweep < SK_SWEEPS; sweep++) {
        SK_REAL_(sk_jacobi_rotate_)(a, vectors, 0, 1, xy);
        SK_REAL_(sk_jacobi_rotate_)(a, vectors, 0, 2, xz);
        SK_REAL_(sk_jacobi_rotate_)(a, vectors, 1, 2, yz);
    }
}

/* Sorts two values, largest first, with their columns. */
SK_KERNEL_BODY void SK_REAL_(sk_order_)(R *first, R *second, R vectors[9], int p, int q)
{
    R x = *first, y = *second;
    SK_MASK wrong = x < y;
    *first = SELECT(wrong, y, x);
    *second = SELECT(wrong, x, y);
    SK_REAL_(sk_exchange_columns_)(3, vectors, p, q, wrong);
}

SK_KERNEL_BODY void SK_REAL_(sk_eigen_body_2d_)(const R a[3], R values[2], R vectors[4])
{
    SK_REAL_(sk_scale_) scale = SK_REAL_(sk_scale_of_)(3, a);
    R scaled[3];
    SK_REAL_(sk_scaled_)(&scale, 3, a, scaled);
    SK_REAL_(sk_eigen_scaled_2d_)(scaled, values, vectors);
    SK_REAL_(sk_unscale_)(&scale, 2, values);
}

SK_KERNEL_BODY void SK_REAL_(sk_eigen_body_3d_)(const R a[6], R values[3], R vectors[9])
{
    SK_REAL_(sk_scale_) scale = SK_REAL_(sk_scale_of_)(6, a);
    R scaled[6];
    SK_REAL_(sk_scaled_)(&scale, 6, a, scaled);
    SK_REAL_(sk_jacobi_)(scaled, vectors);

    values[0] = scaled[0];
    values[1] = scaled[3];
    values[2] = scaled[5];
    SK_REAL_(sk_order_)(&values[0], &values[1], vectors, 0, 1);
    SK_REAL_(sk_order_)(&values[0], &values[2], vectors, 0, 2);
    SK_REAL_(sk_order_)(&values[1], &values[2], vectors, 1, 2);
    SK_REAL_(sk_unscale_)(&scale, 3, values);
}

/* --- Singular values --- */

/* U and V are rotations by the angles whose cosines and sines these are; values[0] >= |values[1]|.
 *
 * The nearest rotation Q first: its cosine and sine are (a + d, c - b), normalised. Q^T A is symmetric; its
 * eigenvectors are V, and U = Q V (Blinn 1996). Its trace is not negative, so the larger eigenvalue is the larger one
 * in size. */
SK_KERNEL_BODY void SK_REAL_(sk_svd_body_2d_)(const R a[4], R u[4], R values[2], R v[4])
{
    SK_REAL_(sk_scale_) scale = SK_REAL_(sk_scale_of_)(4, a);
    R m[4], one = SPLAT(1), zero = SPLAT(0), half = SPLAT(0.5f);
    SK_REAL_(sk_scaled_)(&scale, 4, a, m);

    /* The rotation. Any rotation is valid if A is nearly a multiple of a reflection. */
    R x = m[0] + m[3], y = m[2] - m[1];
    R square = MADD(x, x, y * y);
    SK_MASK none = square < SPLAT(SK_NEGLIGIBLE);
    R norm = SELECT(none, one, SK_REAL_(sk_sqrt_)(square));
    R c = SELECT(none, one, x / norm), s = SELECT(none, zero, y / norm);

    /* The deviator of the symmetric factor. Half its trace is norm / 2. */
    R xx = MADD(c, m[0], s * m[2]), yy = MADD(c, m[3], -(s * m[1]));
    R xy = MADD(c, m[1], s * m[3]), yx = MADD(c, m[2], -(s * m[0])), vc, vs;
    R length = SK_REAL_(sk_main_axis_)((xx - yy) * half, (xy + yx) * half, &vc, &vs);
    R mean = SELECT(none, zero, norm * half);

    values[0] = mean + length;
    values[1] = mean - length;
    SK_REAL_(sk_unscale_)(&scale, 2, values);
    R uc = MADD(c, vc, -(s * vs)), us = MADD(s, vc, c * vs);
    u[0] = u[3] = uc;
    u[1] = -us;
    u[2] = us;
    v[0] = v[3] = vc;
    v[1] = -vs;
    v[2] = vs;
}

/* Makes columns 1 and 2 of u from the unit vector that is column 0 (Duff et al. 2017): a right-handed frame, that of
 * the axes if column 0 is the x axis. */
SK_KERNEL_BODY void SK_REAL_(sk_complete_frame_)(R u[9])
{
    R x = u[0], y = u[3], z = u[6], one = SPLAT(1);
    R sign = SELECT(x < SPLAT(0), -one, one);
    R p = -one / (sign + x), q = y * z * p;
    u[1] = -(sign * y);
    u[4] = MADD(sign * y * y, p, one);
    u[7] = sign * q;
    u[2] = -z;
    u[5] = q;
    u[8] = MADD(z * z, p, sign);
}

/* The columns of U and V of the two smaller singular values, and these values: the SVD of b = A V without its part
 * along the first column of U. */
SK_KERNEL_BODY void SK_REAL_(sk_svd_rest_)(const R b[9], R u[9], R values[3], R v[9])
{
    R rest[4], inner_u[4], inner_v[4];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            rest[2 * i + j] = MADD(u[i + 1], b[j + 1], MADD(u[i + 4], b[j + 4], u[i + 7] * b[j + 7]));
    SK_REAL_(sk_svd_body_2d_)(rest, inner_u, values + 1, inner_v);
    SK_REAL_(sk_rotate_columns_)(3, u, 1, 2, inner_u[0], -inner_u[2]);
    SK_REAL_(sk_rotate_columns_)(3, v, 1, 2, inner_v[0], -inner_v[2]);

    /* Rounding may swap equal values. */
    values[1] = SK_REAL_(sk_smaller_)(values[0], values[1]);
    values[2] = SK_REAL_(sk_smaller_)(values[1], SK_REAL_(sk_larger_)(-values[1], values[2]));
}

/* A^T A of a scaled matrix. */
SK_KERNEL_BODY void SK_REAL_(sk_gram_)(const R a[9], R gram[6])
{
    int k = 0;
    for (int i = 0; i < 3; i++)
        for (int j = i; j < 3; j++)
            gram[k++] = MADD(a[i], a[j], MADD(a[i + 3], a[j + 3], a[i + 6] * a[j + 6]));
}

SK_KERNEL_BODY void SK_REAL_(sk_svd_body_3d_)(const R a[9], R u[9], R values[3], R v[9])
{
    SK_REAL_(sk_scale_) scale = SK_REAL_(sk_scale_of_)(9, a);
    R m[9], gram[6], b[9];
    SK_REAL_(sk_scaled_)(&scale, 9, a, m);

    /* V, with the largest eigenvalue of A^T A first. */
    SK_REAL_(sk_gram_)(m, gram);
    SK_REAL_(sk_jacobi_)(gram, v);
    SK_REAL_(sk_order_)(&gram[0], &gram[3], v, 0, 1);
    SK_REAL_(sk_order_)(&gram[0], &gram[5], v, 0, 2);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            b[3 * i + j] = MADD(m[3 * i], v[j], MADD(m[3 * i + 1], v[j + 3], m[3 * i + 2] * v[j + 6]));

    /* The first column of U. Its length is at least 1, except for a zero matrix. */
    R square = MADD(b[0], b[0], MADD(b[3], b[3], b[6] * b[6]));
    SK_MASK none = square < SPLAT(SK_NEGLIGIBLE);
    R norm = SELECT(none, SPLAT(1), SK_REAL_(sk_sqrt_)(square));
    values[0] = SELECT(none, SPLAT(0), norm);
    u[0] = SELECT(none, SPLAT(1), b[0] / norm);
    u[3] = b[3] / norm;
    u[6] = b[6] / norm;

    SK_REAL_(sk_complete_frame_)(u);
    SK_REAL_(sk_svd_rest_)(b, u, values, v);
    SK_REAL_(sk_unscale_)(&scale, 3, values);
}

/* If the last value is negative, it and the last column of U change sign. */
SK_KERNEL_BODY void SK_REAL_(sk_make_nonnegative_)(int n, R *u, R *values)
{
    SK_MASK inverted = values[n - 1] < SPLAT(0);
    values[n - 1] = SK_REAL_(sk_abs_)(values[n - 1]);
    for (int i = 0; i < n; i++)
        u[n * i + n - 1] = SELECT(inverted, -u[n * i + n - 1], u[n * i + n - 1]);
}

/* --- Polar decomposition --- */

SK_KERNEL_BODY void SK_REAL_(sk_polar_body_2d_)(const R a[4], R rotation[4], R stretch[3])
{
    R u[4], values[2], v[4];
    SK_REAL_(sk_svd_body_2d_)(a, u, values, v);
    rotation[0] = rotation[3] = MADD(u[0], v[0], u[2] * v[2]);
    rotation[2] = MADD(u[2], v[0], -(u[0] * v[2]));
    rotation[1] = -rotation[2];
    R x = values[0] * v[0], y = values[1] * v[2];
    stretch[0] = MADD(x, v[0], y * v[2]);
    stretch[1] = MADD(x, v[2], -(y * v[0]));
    stretch[2] = MADD(values[0] * v[2], v[2], values[1] * v[0] * v[0]);
}

SK_KERNEL_BODY void SK_REAL_(sk_polar_body_3d_)(const R a[9], R rotation[9], R stretch[6])
{
    R u[9], values[3], v[9];
    SK_REAL_(sk_svd_body_3d_)(a, u, values, v);
    int k = 0;
    for (int i = 0; i < 3; i++) {
        const R *row = v + 3 * i;
        R x = values[0] * row[0], y = values[1] * row[1], z = values[2] * row[2];
        for (int j = 0; j < 3; j++)
            rotation[3 * i + j] =
                MADD(u[3 * i], v[3 * j], MADD(u[3 * i + 1], v[3 * j + 1], u[3 * i + 2] * v[3 * j + 2]));
        for (int j = i; j < 3; j++)
            stretch[k++] = MADD(x, v[3 * j], MADD(y, v[3 * j + 1], z * v[3 * j + 2]));
    }
}

#undef R
#undef MADD
#undef SPLAT
#undef SELECT
#undef SK_REAL
#undef SK_MASK
#undef SK_REAL_
#undef SK_SWEEPS
#undef SK_NEGLIGIBLE
#undef SK_SMALL_FACTOR
#undef SK_LARGEST_POWER
#undef SK_SMALLEST_POWER

#endif
