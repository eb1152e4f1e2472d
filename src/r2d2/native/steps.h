/* What a step of the induction and its gradient share: the model, a step, its blocks and their memory. steps.c tells how
   they hang together, and has the legend. */

#ifndef R2D2_STEPS_H
#define R2D2_STEPS_H

#include "layers.h"
#include "products.h"

#define KEPT_ROWS_AT_ONCE 96 /* through the feed-forward part, with gradients */
#define MOST_LAYERS 16
#define DRAWS_OF_A_KIND 1024 /* more than a block has times of ROWS_AT_ONCE */

/* Paths; the last is that of splits not chosen. */
enum { MAIN, VALUE, REST };
/* Where a layer drops, beside its attention: how far these seeds are from the layer's own. */
enum { FIRST_NORM = DRAWS_OF_A_KIND, HIDDEN = 2 * DRAWS_OF_A_KIND, SECOND_NORM = 3 * DRAWS_OF_A_KIND };

/* The weights of a layer as LayerWeights and LayerMatrices have them, matrices packed; those named `back` are their
   transposes, for gradients. r2d2.model.native_steps has the same fields in the same order, here and below. */
typedef struct {
    const float *query, *key_value, *qkv, *output, *expand, *contract; /* the first two beyond the first layer */
    const float *query_back, *key_value_back, *qkv_back, *output_back, *expand_back, *contract_back;
    const float *terms, *output_bias, *norm1, *norm1_bias, *expand_bias, *contract_bias, *norm2, *norm2_bias;
} layer;

typedef struct {
    integer d, f, heads, layers, keep, bfloat16; /* keep: for gradients; bfloat16: how its matrices are packed */
    uint64_t seed;
    integer threshold, attention_threshold;
    double attention_factor, eps, blend_eps, temperature, score_bias;
    const layer *layer;
    const float *sum_e, *cls_e, *sum_qkv, *cls_qkv; /* of the special tokens; the last with its role */
    const float *roles, *qkv_bias;                  /* of the first layer */
    const float *score, *blend, *blend_bias;
    float *e, *qkv, *log_p, *log_p_tree; /* of all cells */
} composer;

/* Seeds of their own for every layer of every path of every block of a forward pass, apart enough for its draws; `row`
   is the first cell of the block. */
static inline uint64_t seed_of(const composer *model, integer row, int kind, integer number) {
    return model->seed + (((uint64_t)row * 3 + (uint64_t)kind) * MOST_LAYERS + (uint64_t)number) * 4 * DRAWS_OF_A_KIND;
}

/* ---- memory ---- */

/* Memory given out piece by piece; without any it is only counted. */
typedef struct {
    char *memory;
    size_t used;
} supply;

static inline void *take(supply *from, integer size, size_t each) {
    void *taken = from->memory == NULL ? NULL : from->memory + from->used;
    from->used += ((size_t)size * each + 63) / 64 * 64;
    return taken;
}

static inline float *floats(supply *from, integer size) { return take(from, size, sizeof(float)); }

/* One layer of one path over p pairs. `seen` tokens have queries; they make n = seen · p rows. */
typedef struct {
    float *x, *qkv;            /* what it reads, [1 or 3, p, d], and [3, p, 3d] */
    float *weights, *attended; /* [seen, 3, p, heads] and [n, d] */
    float *summed1, *mean1, *rstd1, *h, *expanded, *summed2, *mean2, *rstd2; /* [n, ...], or of the rows at work */
} path_layer;

typedef struct {
    path_layer layer[MOST_LAYERS];
    float *out; /* of the last layer: [SUM] of each pair, [p, d], or [3, p, d] */
    float *weights, *blended, *mean, *rstd; /* of Equation 7; not in the main path */
} path;

static inline integer seen_of(const composer *model, int kind, integer number) {
    return (kind == MAIN) == (number == model->layers - 1) ? 1 : 3;
}

/* All of a block of r cells: what is kept for its gradient, and what a thread needs besides. */
typedef struct {
    path main, value, rest;
    float *score, *log_p, *soft, *composed, *unchosen;
    float *hidden, *own;
    integer *chosen, *others, *places;
} block;

size_t take_block(block *to, char *memory, const composer *model, integer r, integer k);

/* ---- a step ---- */

/* A step: c cells from row `first` on, of x pairs left[x] and right[x], which stand at the ascending places[x] among c · k
   splits, or if it is NULL at all of them. `memory` has as many times block_bytes as there are blocks, or without
   gradients threads; `scratch` has as many times scratch_bytes as there are threads. */
typedef struct {
    const integer *left, *right, *places;
    const float *noise;
    integer x, c, k, first, blocks, threads;
    char *memory, *scratch;
    float *log_p_tree; /* [c, k] is written, -inf where there is no pair */
} step;

/* One of its blocks. */
typedef struct {
    integer cell, r, row, pair, x;
} place;

place place_of(const step *s, integer number);
integer block_bytes(const composer *model, const step *s);

static inline integer largest_block(const step *s) { return (s->c + s->blocks - 1) / s->blocks; }

/* ---- products ---- */

static inline void times(const composer *model, const float *x, integer n, integer i, integer x_step,
                         const float *panels, integer o, const float *start, integer start_step, float *out,
                         integer out_step) {
    product(x, n, i, x_step, panels, o, start, start_step, out, out_step, (int)model->bfloat16);
}

static inline void add_weights(const composer *model, const float *y, integer n, integer o, integer y_step,
                               const float *x, integer i, integer x_step, float *into) {
    add_weight_gradient(y, n, o, y_step, x, i, x_step, into, (int)model->bfloat16);
}

#endif
