/* The steps of the recursive Transformer that are no matrix products, in float32.

   `r2d2/model/tensor_kernels.py` has the same steps in tensor operations, and is what these must equal. All arrays are
   contiguous. Legend: x pairs, r rows of the value path, n rows, d width, f width of the feed-forward part, h heads.
   Tokens: 0 [SUM] or [CLS], 1 left, 2 right.

   Dropout draws nothing and stores nothing: whether value i is dropped is a hash of i and of a seed, so the backward
   pass asks again. A threshold of 0 drops nothing. The factor 1 / (1 - p) is in the weights, but for attention. */

#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "rows.h"

/* A hash of 32 bits whose every output bit hangs on every input bit. */
INLINE uint32_t mixed(uint32_t value) {
    value ^= value >> 16;
    value *= 0x21f0aaadu;
    value ^= value >> 15;
    value *= 0xd35a2d97u;
    value ^= value >> 15;
    return value;
}

typedef struct {
    uint32_t first, second, threshold;
} dropout;

INLINE dropout dropout_of(uint64_t seed, uint32_t threshold) {
    return (dropout){mixed((uint32_t)seed), mixed((uint32_t)(seed >> 32) ^ 0x9e3779b9u), threshold};
}

INLINE float keep(dropout drop, uint32_t place, float value) {
    uint32_t chance = mixed(mixed(place ^ drop.first) + drop.second);
    return chance < drop.threshold ? 0.0f : value;
}

/* The normal distribution's cumulative function and density at x: gelu(x) = x · cdf, gelu'(x) = cdf + x · density.
   The error function by Abramowitz and Stegun, 7.1.26: 1.5e-7 off. */
INLINE void normal(float x, float *cdf, float *density) {
    float z = fabsf(x) * 0.70710678f;
    float t = 1.0f / (1.0f + 0.3275911f * z);
    float bell = falling_exponential(z * z);
    float tail = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    float below = 0.5f * tail * bell;
    *cdf = x < 0.0f ? below : 1.0f - below;
    *density = 0.39894228f * bell;
}

/* ---- reading and writing rows of cells ---- */

/* out[3, x, w]: the row `first`, and the rows left and right of `table`, each with `terms`[its token] added. */
typedef struct {
    const float *table;
    const integer *left, *right;
    const float *first, *terms;
    integer x, w;
    float *out;
} gather_arguments;

KERNEL static void gather_part(const void *arguments, integer part, integer begin, integer end) {
    const gather_arguments *a = arguments;
    const integer x = a->x, w = a->w;
    (void)part;
    for (int token = 0; token < 3; token++)
        for (integer i = begin; i < end; i++) {
            const float *row = token == 0 ? a->first : a->table + (token == 1 ? a->left : a->right)[i] * w;
            float *restrict to = a->out + (token * x + i) * w;
            const float *restrict terms = a->terms + token * w;
            if (a->terms == NULL)
                memcpy(to, row, (size_t)w * sizeof(float));
            else
                for (integer j = 0; j < w; j++) to[j] = row[j] + terms[j];
        }
}

void gather_pairs(const float *table, const integer *left, const integer *right, const float *first, const float *terms,
                  integer x, integer w, float *out) {
    gather_arguments arguments = {table, left, right, first, terms, x, w, out};
    share(gather_part, &arguments, x, parts_of(x, 3 * w));
}

/* into[left[i]] += rows[1, i] and into[right[i]] += rows[2, i], with rows[3, x, w]. */
KERNEL void scatter_pairs(float *restrict into, const integer *restrict left, const integer *restrict right,
                          const float *restrict rows, integer x, integer w) {
    for (integer i = 0; i < x; i++) add_row(into + left[i] * w, rows + (x + i) * w, w);
    for (integer i = 0; i < x; i++) add_row(into + right[i] * w, rows + (2 * x + i) * w, w);
}

/* out[3, r, w]: `first`, one row for all (step 0) or one each (step w), and rows[1:, chosen] of rows[3, x, w]. */
typedef struct {
    const float *rows;
    const integer *chosen;
    const float *first;
    integer step, x, r, w;
    float *out;
} select_arguments;

static void select_part(const void *arguments, integer part, integer begin, integer end) {
    const select_arguments *a = arguments;
    const integer x = a->x, r = a->r, w = a->w;
    const size_t bytes = (size_t)w * sizeof(float);
    (void)part;
    for (integer i = begin; i < end; i++) {
        memcpy(a->out + i * w, a->first + i * a->step, bytes);
        memcpy(a->out + (r + i) * w, a->rows + (x + a->chosen[i]) * w, bytes);
        memcpy(a->out + (2 * r + i) * w, a->rows + (2 * x + a->chosen[i]) * w, bytes);
    }
}

void select_pairs(const float *rows, const integer *chosen, const float *first, integer step, integer x, integer r,
                  integer w, float *out) {
    select_arguments arguments = {rows, chosen, first, step, x, r, w, out};
    share(select_part, &arguments, r, parts_of(r, 3 * w));
}

/* into[1:, chosen] += rows[1:], with into[3, x, w] and rows[3, r, w]. */
KERNEL void unselect_pairs(float *restrict into, const integer *restrict chosen, const float *restrict rows, integer x,
                           integer r, integer w) {
    for (int token = 1; token < 3; token++)
        for (integer i = 0; i < r; i++) add_row(into + (token * x + chosen[i]) * w, rows + (token * r + i) * w, w);
}

/* into[t] += the sum of rows[t] over its n rows, for each of t tokens. */
KERNEL void add_sums(float *restrict into, const float *restrict rows, integer tokens, integer n, integer w) {
    for (integer token = 0; token < tokens; token++)
        for (integer i = 0; i < n; i++) add_row(into + token * w, rows + (token * n + i) * w, w);
}

/* ---- attention over three tokens ---- */

/* Token 0 sees all three, left and right see only left and right. Queries of the first `seen` tokens (1 or 3).
   qkv[3, x, 3d]; weights[seen, 3, x, h] after the softmax, before dropout; out[seen, x, d]. */
typedef struct {
    const float *qkv, *gradient;
    integer seen, x, d, heads;
    dropout drop;
    float factor, *weights, *out;
} attend_arguments;

KERNEL static void attend_part(const void *arguments, integer part, integer begin, integer end) {
    const attend_arguments *a = arguments;
    const integer seen = a->seen, x = a->x, d = a->d, heads = a->heads, size = d / heads, plane = x * heads;
    const float *restrict qkv = a->qkv;
    float *restrict weights = a->weights, *restrict out = a->out;
    const dropout drop = a->drop;
    const float scale = sqrtf(1.0f / (float)size), factor = a->factor;
    (void)part;
    for (integer q = 0; q < seen; q++)
        for (integer i = begin; i < end; i++)
            for (integer head = 0; head < heads; head++) {
                const float *query = qkv + (q * x + i) * 3 * d + head * size;
                float score[3] = {-INFINITY, 0.0f, 0.0f}, used[3];
                for (integer key = q > 0; key < 3; key++) {
                    const float *other = qkv + (key * x + i) * 3 * d + d + head * size;
                    float sum = 0.0f;
                    for (integer j = 0; j < size; j++) sum += query[j] * other[j];
                    score[key] = sum * scale;
                }
                float most = score[1] > score[2] ? score[1] : score[2];
                most = score[0] > most ? score[0] : most;
                float total = 0.0f;
                for (int key = 0; key < 3; key++) {
                    used[key] = q > 0 && key == 0 ? 0.0f : falling_exponential(most - score[key]);
                    total += used[key];
                }
                for (int key = 0; key < 3; key++) {
                    integer place = (q * 3 + key) * plane + i * heads + head;
                    float weight = used[key] / total;
                    weights[place] = weight;
                    used[key] = keep(drop, (uint32_t)place, weight * factor);
                }
                const float *value = qkv + i * 3 * d + 2 * d + head * size;
                float *to = out + (q * x + i) * d + head * size;
                const integer step = x * 3 * d;
                for (integer j = 0; j < size; j++)
                    to[j] = used[0] * value[j] + used[1] * value[step + j] + used[2] * value[2 * step + j];
            }
}

void attend(const float *qkv, integer seen, integer x, integer d, integer heads, uint64_t seed, uint32_t threshold,
            float factor, float *weights, float *out) {
    attend_arguments arguments = {qkv, NULL, seen, x, d, heads, dropout_of(seed, threshold), factor, weights, out};
    share(attend_part, &arguments, x, parts_of(x, 6 * seen * d));
}

/* The gradient of qkv[3, x, 3d], all of it written, from that of the output, gradient[seen, x, d]. */
KERNEL static void attend_backward_part(const void *arguments, integer part, integer begin, integer end) {
    const attend_arguments *a = arguments;
    const integer seen = a->seen, x = a->x, d = a->d, heads = a->heads, size = d / heads;
    const integer plane = x * heads, step = x * 3 * d;
    const float *restrict qkv = a->qkv, *restrict weights = a->weights, *restrict gradient = a->gradient;
    float *restrict out = a->out;
    const dropout drop = a->drop;
    const float scale = sqrtf(1.0f / (float)size), factor = a->factor;
    (void)part;
    for (int token = 0; token < 3; token++)
        memset(out + token * step + begin * 3 * d, 0, (size_t)((end - begin) * 3 * d) * sizeof(float));
    for (integer q = 0; q < seen; q++)
        for (integer i = begin; i < end; i++)
            for (integer head = 0; head < heads; head++) {
                const float *flow = gradient + (q * x + i) * d + head * size;
                const integer own = i * 3 * d + head * size;
                float weight[3], back[3], inner = 0.0f;
                for (integer key = 0; key < 3; key++) {
                    integer place = (q * 3 + key) * plane + i * heads + head;
                    weight[key] = weights[place];
                    float used = keep(drop, (uint32_t)place, factor);
                    const float *value = qkv + key * step + own + 2 * d;
                    float *value_out = out + key * step + own + 2 * d;
                    float sum = 0.0f, share = used * weight[key];
                    for (integer j = 0; j < size; j++) {
                        sum += flow[j] * value[j];
                        value_out[j] += share * flow[j];
                    }
                    back[key] = sum * used;
                    inner += back[key] * weight[key];
                }
                const float *query = qkv + q * step + own;
                float *query_out = out + q * step + own;
                for (integer key = q > 0; key < 3; key++) {
                    const float score = weight[key] * (back[key] - inner) * scale;
                    const float *other = qkv + key * step + own + d;
                    float *key_out = out + key * step + own + d;
                    for (integer j = 0; j < size; j++) {
                        query_out[j] += score * other[j];
                        key_out[j] += score * query[j];
                    }
                }
            }
}

void attend_backward(const float *qkv, float *weights, const float *gradient, integer seen, integer x, integer d,
                     integer heads, uint64_t seed, uint32_t threshold, float factor, float *out) {
    attend_arguments arguments = {qkv, gradient, seen, x, d, heads, dropout_of(seed, threshold), factor, weights, out};
    share(attend_backward_part, &arguments, x, parts_of(x, 12 * seen * d));
}

/* ---- the rest of a layer ---- */

/* y becomes drop(y + y_bias) + x, and out is its layer norm. */
typedef struct {
    float *y;
    const float *y_bias, *x, *weight, *bias;
    float eps;
    dropout drop;
    integer d;
    float *out, *mean, *rstd;
} norm_arguments;

KERNEL static void add_norm_part(const void *arguments, integer part, integer begin, integer end) {
    const norm_arguments *a = arguments;
    const integer d = a->d;
    const float *restrict weight = a->weight, *restrict bias = a->bias, *restrict y_bias = a->y_bias;
    const dropout drop = a->drop;
    (void)part;
    for (integer i = begin; i < end; i++) {
        float *restrict row = a->y + i * d, *restrict to = a->out + i * d;
        const float *restrict other = a->x + i * d;
        if (drop.threshold)
            for (integer j = 0; j < d; j++) row[j] = keep(drop, (uint32_t)(i * d + j), row[j] + y_bias[j]) + other[j];
        else
            for (integer j = 0; j < d; j++) row[j] += y_bias[j] + other[j];
        statistics(row, d, a->eps, a->mean + i, a->rstd + i);
        const float middle = a->mean[i], sharpness = a->rstd[i];
        for (integer j = 0; j < d; j++) to[j] = (row[j] - middle) * sharpness * weight[j] + bias[j];
    }
}

void add_norm(float *y, const float *y_bias, const float *x, const float *weight, const float *bias, float eps,
              uint64_t seed, uint32_t threshold, integer n, integer d, float *out, float *mean, float *rstd) {
    norm_arguments arguments = {y, y_bias, x, weight, bias, eps, dropout_of(seed, threshold), d, out, mean, rstd};
    share(add_norm_part, &arguments, n, parts_of(n, 3 * d));
}

/* From the gradient of add_norm's output to that of x, `out`, and of y, `dropped`; those of weight and bias are added,
   and to `sum` the sum of `dropped` over rows: the gradient of the bias that y was made with. */
typedef struct {
    const float *gradient, *summed, *mean, *rstd, *weight;
    dropout drop;
    integer d;
    float *sums; /* [parts, 3, d]: of weight, bias and `sum` */
    float *out, *dropped;
} norm_backward_arguments;

KERNEL static void norm_backward_part(const void *arguments, integer part, integer begin, integer end) {
    const norm_backward_arguments *a = arguments;
    const integer d = a->d;
    const float *restrict weight = a->weight;
    float *restrict into_weight = a->sums + part * 3 * d, *restrict into_bias = into_weight + d;
    float *restrict sum = into_bias + d;
    const dropout drop = a->drop;
    for (integer i = begin; i < end; i++) {
        const float *restrict flow = a->gradient + i * d, *restrict row = a->summed + i * d;
        float *restrict to = a->out + i * d, *restrict to_dropped = a->dropped + i * d;
        const float middle = a->mean[i], sharpness = a->rstd[i];
        float plain = 0.0f, along = 0.0f;
        for (integer j = 0; j < d; j++) {
            const float place = (row[j] - middle) * sharpness, scaled = flow[j] * weight[j];
            plain += scaled;
            along += scaled * place;
            into_weight[j] += flow[j] * place;
            into_bias[j] += flow[j];
        }
        plain /= (float)d;
        along /= (float)d;
        for (integer j = 0; j < d; j++) {
            const float place = (row[j] - middle) * sharpness;
            to[j] = sharpness * (flow[j] * weight[j] - plain - place * along);
        }
        if (drop.threshold)
            for (integer j = 0; j < d; j++) to_dropped[j] = keep(drop, (uint32_t)(i * d + j), to[j]);
        else
            memcpy(to_dropped, to, (size_t)d * sizeof(float));
        add_row(sum, to_dropped, d);
    }
}

void norm_backward(const float *gradient, const float *summed, const float *mean, const float *rstd,
                   const float *weight, uint64_t seed, uint32_t threshold, integer n, integer d, float *into_weight,
                   float *into_bias, float *sum, float *out, float *dropped) {
    const integer parts = parts_of(n, 6 * d);
    float *sums = calloc((size_t)(parts * 3 * d), sizeof(float));
    norm_backward_arguments arguments = {gradient, summed, mean, rstd, weight, dropout_of(seed, threshold),
                                         d,        sums,   out,  dropped};
    share(norm_backward_part, &arguments, n, parts);
    for (integer part = 0; part < parts; part++) {
        add_row(into_weight, sums + part * 3 * d, d);
        add_row(into_bias, sums + (part * 3 + 1) * d, d);
        add_row(sum, sums + (part * 3 + 2) * d, d);
    }
    free(sums);
}

/* hidden = drop(gelu(expanded + bias)), over n rows of f values. */
typedef struct {
    float *gradient;
    const float *expanded, *bias;
    dropout drop;
    integer f;
    float *sums; /* [parts, f] */
    float *hidden;
} gelu_arguments;

KERNEL static void gelu_part(const void *arguments, integer part, integer begin, integer end) {
    const gelu_arguments *a = arguments;
    const integer f = a->f;
    const float *restrict bias = a->bias;
    const dropout drop = a->drop;
    (void)part;
    for (integer i = begin; i < end; i++) {
        const float *restrict value = a->expanded + i * f;
        float *restrict to = a->hidden + i * f;
        for (integer j = 0; j < f; j++) {
            float cdf, density, x = value[j] + bias[j];
            normal(x, &cdf, &density);
            to[j] = x * cdf;
        }
        if (drop.threshold)
            for (integer j = 0; j < f; j++) to[j] = keep(drop, (uint32_t)(i * f + j), to[j]);
    }
}

void gelu(const float *expanded, const float *bias, uint64_t seed, uint32_t threshold, integer n, integer f,
          float *hidden) {
    gelu_arguments arguments = {NULL, expanded, bias, dropout_of(seed, threshold), f, NULL, hidden};
    share(gelu_part, &arguments, n, parts_of(n, 2 * f));
}

/* gradient, of hidden, becomes that of `expanded`; hidden is made once more. Over n rows of f values.
   To `sum` the gradient's sum over rows is added. */
KERNEL static void gelu_backward_part(const void *arguments, integer part, integer begin, integer end) {
    const gelu_arguments *a = arguments;
    const integer f = a->f;
    const float *restrict bias = a->bias;
    float *restrict sum = a->sums + part * f;
    const dropout drop = a->drop;
    for (integer i = begin; i < end; i++) {
        float *restrict flow = a->gradient + i * f, *restrict to = a->hidden + i * f;
        const float *restrict value = a->expanded + i * f;
        for (integer j = 0; j < f; j++) {
            float cdf, density, x = value[j] + bias[j];
            normal(x, &cdf, &density);
            flow[j] *= cdf + x * density;
            to[j] = x * cdf;
        }
        if (drop.threshold)
            for (integer j = 0; j < f; j++) {
                const float kept = keep(drop, (uint32_t)(i * f + j), 1.0f);
                flow[j] *= kept;
                to[j] *= kept;
            }
        add_row(sum, flow, f);
    }
}

void gelu_backward(float *gradient, const float *expanded, const float *bias, uint64_t seed, uint32_t threshold,
                   integer n, integer f, float *sum, float *hidden) {
    const integer parts = parts_of(n, 4 * f);
    float *sums = calloc((size_t)(parts * f), sizeof(float));
    gelu_arguments arguments = {gradient, expanded, bias, dropout_of(seed, threshold), f, sums, hidden};
    share(gelu_backward_part, &arguments, n, parts);
    for (integer part = 0; part < parts; part++) add_row(sum, sums + part * f, f);
    free(sums);
}
