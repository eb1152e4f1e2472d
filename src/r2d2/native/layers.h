/* What layers.c has for others to call; it tells what each of them does. */

#ifndef R2D2_LAYERS_H
#define R2D2_LAYERS_H

#include "sharing.h"

void gather_pairs(const float *table, const integer *left, const integer *right, const float *first, const float *terms,
                  integer x, integer w, float *out);
void select_pairs(const float *rows, const integer *chosen, const float *first, integer step, integer x, integer r,
                  integer w, float *out);
void attend(const float *qkv, integer seen, integer x, integer d, integer heads, uint64_t seed, uint32_t threshold,
            float factor, float *weights, float *out);
void add_norm(float *y, const float *y_bias, const float *x, const float *weight, const float *bias, float eps,
              uint64_t seed, uint32_t threshold, integer n, integer d, float *out, float *mean, float *rstd);
void gelu(const float *expanded, const float *bias, uint64_t seed, uint32_t threshold, integer n, integer f,
          float *hidden);
void choose(const float *restrict h, const float *restrict weight, float bias, const integer *restrict left,
            const integer *restrict right, const integer *restrict places, const float *restrict noise,
            float temperature, integer x, integer c, integer k, integer d, integer first, float *restrict cell_log_p,
            float *restrict cell_log_p_tree, float *restrict score, float *restrict log_p, float *restrict log_p_tree,
            float *restrict soft, integer *restrict chosen, integer *restrict rest);
void blend(const float *restrict h, const float *restrict weight, const float *restrict bias, float eps, integer r,
           integer d, float *restrict weights, float *restrict blended, float *restrict mean, float *restrict rstd,
           float *restrict out);

#endif
