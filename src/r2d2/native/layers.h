/* What layers.c and choice.c have for others to call; they tell what each of them does. */

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
void unselect_pairs(float *restrict into, const integer *restrict chosen, const float *restrict rows, integer x,
                    integer r, integer w);
void scatter_pairs(float *restrict into, const integer *restrict left, const integer *restrict right,
                   const float *restrict rows, integer x, integer w);
void add_sums(float *restrict into, const float *restrict rows, integer tokens, integer n, integer w);
void attend_backward(const float *qkv, float *weights, const float *gradient, integer seen, integer x, integer d,
                     integer heads, uint64_t seed, uint32_t threshold, float factor, float *out);
void norm_backward(const float *gradient, const float *summed, const float *mean, const float *rstd,
                   const float *weight, uint64_t seed, uint32_t threshold, integer n, integer d, float *into_weight,
                   float *into_bias, float *sum, float *out, float *dropped);
void gelu_backward(float *gradient, const float *expanded, const float *bias, uint64_t seed, uint32_t threshold,
                   integer n, integer f, float *sum, float *hidden);
void choose_backward(const float *restrict e, const float *restrict cell_log_p, const float *restrict cell_tree,
                     const float *restrict h, const float *restrict weight, const float *restrict score,
                     const float *restrict log_p, const float *restrict log_p_tree, const float *restrict soft,
                     const float *restrict composed, const integer *restrict left, const integer *restrict right,
                     const integer *restrict chosen, float temperature, integer c, integer k, integer d,
                     float *restrict parts, float *restrict into_weight, float *restrict into_bias,
                     float *restrict out);
void blend_backward(const float *restrict gradient, const float *restrict h, const float *restrict weight,
                    const float *restrict weights, const float *restrict blended, const float *restrict mean,
                    const float *restrict rstd, integer r, integer d, float *restrict into_weight,
                    float *restrict into_bias, float *restrict out);

#endif
