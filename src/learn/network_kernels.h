/* Activations, losses and the optimiser for one value. */
#ifndef SK_LEARN_NETWORK_KERNELS_H
#define SK_LEARN_NETWORK_KERNELS_H

#include "base/kernel.h"

/* tanh as a rational function, to a few units of the last place. It vectorises. */
SK_KERNEL float sk_learn_tanh(float x)
{
    const float c = x < -7.9f ? -7.9f : x > 7.9f ? 7.9f : x, s = c * c;
    const float p =
        c * (4.89352455891786e-03f +
             s * (6.37261928875436e-04f +
                  s * (1.48572235717979e-05f +
                       s * (5.12229709037114e-08f +
                            s * (-8.60467152213735e-11f + s * (2.00018790482477e-13f + s * -2.76076847742355e-16f))))));
    const float q =
        4.89352518554385e-03f + s * (2.26843463243900e-03f + s * (1.18534705686654e-04f + s * 1.19825839466702e-06f));
    return p / q;
}

/* GELU by tanh (Hendrycks and Gimpel 2016), and its slope. */
SK_KERNEL float sk_learn_gelu(float x)
{
    return 0.5f * x * (1.0f + sk_learn_tanh(0.797884561f * (x + 0.044715f * x * x * x)));
}

SK_KERNEL float sk_learn_gelu_slope(float x)
{
    const float t = sk_learn_tanh(0.797884561f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.797884561f * (1.0f + 0.134145f * x * x);
}

/* log(1 + exp(x)) without overflow. */
SK_KERNEL float sk_learn_softplus(float x)
{
    return x > 0.0f ? x + __builtin_log1pf(__builtin_expf(-x)) : __builtin_log1pf(__builtin_expf(x));
}

SK_KERNEL float sk_learn_sigmoid(float x)
{
    return 1.0f / (1.0f + __builtin_expf(-x));
}

/* The probability of a calibrated logit: its factor and what is added. */
SK_KERNEL float sk_learn_calibrated(const float calibration[2], float logit)
{
    return sk_learn_sigmoid(calibration[0] * logit + calibration[1]);
}

/* Negative log likelihood of a label (0 or 1) for a logit; *slope is its derivative. */
SK_KERNEL float sk_learn_logistic_loss(float logit, float label, float *slope)
{
    *slope = sk_learn_sigmoid(logit) - label;
    return sk_learn_softplus(logit) - label * logit;
}

/* Negative log likelihood of a value for a Student-t distribution with 3 degrees of freedom around a mean; slopes for
 * mean and log_scale. The scale is bounded, so that a single value cannot make the likelihood infinite. */
SK_KERNEL float sk_learn_student_loss(float value, float mean, float log_scale, float slopes[2])
{
    const float bounded = log_scale < -6.0f ? -6.0f : log_scale > 6.0f ? 6.0f : log_scale;
    const float inverse = __builtin_expf(-bounded), r = (value - mean) * inverse, part = 1.0f + r * r / 3.0f;
    slopes[0] = -(4.0f / 3.0f) * r / part * inverse;
    slopes[1] = bounded == log_scale ? 1.0f - (4.0f / 3.0f) * r * r / part : 0.0f;
    return 1.000888f + bounded + 2.0f * __builtin_logf(part);
}

/* The same for a normal distribution with a log variance (Eq. 6 of Um et al. 2018, with its constant). */
SK_KERNEL float sk_learn_normal_loss(float value, float mean, float log_variance, float slopes[2])
{
    const float bounded = log_variance < -12.0f ? -12.0f : log_variance > 12.0f ? 12.0f : log_variance;
    const float r = value - mean, inverse = __builtin_expf(-bounded);
    slopes[0] = -r * inverse;
    slopes[1] = bounded == log_variance ? 0.5f - 0.5f * r * r * inverse : 0.0f;
    return 0.918938533f + 0.5f * (bounded + r * r * inverse);
}

/* AdamW (Loshchilov and Hutter 2019): one value with its moments. */
typedef struct sk_learn_adam {
    float rate, decay;   /* decay: of the weights, times the rate */
    float first, second; /* 1 - beta^t of both moments */
} sk_learn_adam;

SK_KERNEL float sk_learn_adam_value(const sk_learn_adam *adam, float value, float slope, float *first, float *second,
                                    int decays)
{
    *first = 0.9f * *first + 0.1f * slope;
    *second = 0.999f * *second + 0.001f * slope * slope;
    const float step = (*first / adam->first) / (__builtin_sqrtf(*second / adam->second) + 1e-8f);
    return value - adam->rate * step - (decays ? adam->rate * adam->decay * value : 0.0f);
}

#endif
