/* Small functions over numbers and rows that several files share, small enough to stand where they are called. */

#ifndef R2D2_ROWS_H
#define R2D2_ROWS_H

#include <math.h>

#include "sharing.h"

typedef union {
    int32_t bits;
    float value;
} number;

/* e to the power of -a, for a of at least 0; about 1e-7 off, relatively, and never below e^-87. The limit is set on the
   bits of a, which are ordered as their values are: compilers turn that into vector instructions, and do not branch. */
INLINE float falling_exponential(float a) {
    const number limit = {.value = 87.0f};
    number limited = {.value = a};
    limited.bits = limited.bits < limit.bits ? limited.bits : limit.bits;
    const float x = -limited.value;
    const int32_t n = (int32_t)(x * 1.44269504f - 0.5f);
    const float part = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
    float power = 1.9875691500e-4f;
    power = power * part + 1.3981999507e-3f;
    power = power * part + 8.3334519073e-3f;
    power = power * part + 4.1665795894e-2f;
    power = power * part + 1.6666665459e-1f;
    power = power * part + 5.0000001201e-1f;
    power = power * part * part + part + 1.0f;
    const number scale = {.bits = (n + 127) << 23};
    return power * scale.value;
}

INLINE void add_row(float *restrict into, const float *restrict row, integer width) {
    for (integer j = 0; j < width; j++) into[j] += row[j];
}

INLINE float dot(const float *restrict a, const float *restrict b, integer d) {
    float sum = 0.0f;
    for (integer j = 0; j < d; j++) sum += a[j] * b[j];
    return sum;
}

INLINE void statistics(const float *restrict row, integer d, float eps, float *mean, float *rstd) {
    float sum = 0.0f, squares = 0.0f;
    for (integer j = 0; j < d; j++) sum += row[j];
    const float middle = sum / (float)d;
    for (integer j = 0; j < d; j++) squares += (row[j] - middle) * (row[j] - middle);
    *mean = middle;
    *rstd = 1.0f / sqrtf(squares / (float)d + eps);
}

#endif
