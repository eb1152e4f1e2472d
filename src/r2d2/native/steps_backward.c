/* The gradient of a step; steps.c has the step itself and the legend. */

#include <string.h>

#include "steps.h"

/* Where gradients of parameters are added, each thread `step` numbers from the one before. */
typedef struct {
    float *qkv, *qkv_bias, *output, *output_bias, *norm1, *norm1_bias, *expand, *expand_bias, *contract, *contract_bias;
    float *norm2, *norm2_bias, *main_sums, *value_sums;
} layer_gradients;

typedef struct {
    integer stride;
    const layer_gradients *layer;
    float *special_e, *score, *score_bias, *blend, *blend_bias;
    float *e, *qkv, *log_p, *log_p_tree; /* of all cells */
} gradients;

/* What a block's gradient needs: `flow` until the threads have met, the rest only while it is at work. */
typedef struct {
    float *sum;                                                        /* flow: of [SUM], [x, d] */
    float *x, *qkv;                                                    /* flow: of pairs, [3, x, d] and [3, x, 3d] */
    float *state, *seen, *attended, *value_x, *value_qkv[MOST_LAYERS]; /* [3, p, d], ..., [3, r, 3d] */
    float *h, *contracted, *projected, *expanded, *hidden;             /* of the rows at work */
} flow;

static size_t take_flow(flow *to, char *memory, const composer *model, integer r, integer k) {
    supply from = {memory, 0};
    const integer x = r * k, d = model->d;
    to->sum = floats(&from, x * d);
    to->x = floats(&from, 3 * x * d);
    to->qkv = floats(&from, 9 * x * d);
    return from.used;
}

static size_t take_work(flow *to, char *memory, const composer *model, integer r, integer k) {
    supply from = {memory, 0};
    const integer x = r * k, d = model->d, some = KEPT_ROWS_AT_ONCE;
    to->state = floats(&from, 3 * x * d);
    to->seen = floats(&from, 3 * x * d);
    to->attended = floats(&from, 3 * x * d);
    to->value_x = floats(&from, 3 * r * d);
    for (integer number = 0; number < model->layers; number++) to->value_qkv[number] = floats(&from, 9 * r * d);
    to->h = floats(&from, some * d);
    to->contracted = floats(&from, some * d);
    to->projected = floats(&from, some * d);
    to->expanded = floats(&from, some * model->f);
    to->hidden = floats(&from, some * model->f);
    return from.used;
}

/* `finish_layer_backward` for n rows: from `gradient` to that of x, and to that of attended. `shift` leads to a thread's
   own sums. */
static void finish_backward(const composer *model, const layer *w, const layer_gradients *into, integer shift,
                            const path_layer *m, const flow *g, uint64_t seed, const float *gradient, integer n,
                            float *x, float *attended) {
    const integer d = model->d, f = model->f;
    const uint32_t threshold = (uint32_t)model->threshold;
    for (integer first = 0; first < n; first += KEPT_ROWS_AT_ONCE, seed++) {
        const integer rows = least(n - first, KEPT_ROWS_AT_ONCE), at = first * d;
        norm_backward(gradient + at, m->summed2 + at, m->mean2 + first, m->rstd2 + first, w->norm2, seed + SECOND_NORM,
                      threshold, rows, d, into->norm2 + shift, into->norm2_bias + shift, into->contract_bias + shift,
                      g->h, g->contracted);
        times(model, g->contracted, rows, d, d, w->contract_back, f, NULL, 0, g->expanded, f);
        gelu_backward(g->expanded, m->expanded + first * f, w->expand_bias, seed + HIDDEN, threshold, rows, f,
                      into->expand_bias + shift, g->hidden);
        add_weights(model, g->contracted, rows, d, d, g->hidden, f, f, into->contract + shift);
        add_weights(model, g->expanded, rows, f, f, m->h + at, d, d, into->expand + shift);
        times(model, g->expanded, rows, f, f, w->expand_back, d, g->h, d, g->h, d);
        norm_backward(g->h, m->summed1 + at, m->mean1 + first, m->rstd1 + first, w->norm1, seed + FIRST_NORM, threshold,
                      rows, d, into->norm1 + shift, into->norm1_bias + shift, into->output_bias + shift, x + at,
                      g->projected);
        add_weights(model, g->projected, rows, d, d, m->attended + at, d, d, into->output + shift);
        times(model, g->projected, rows, d, d, w->output_back, d, NULL, 0, attended + at, d);
    }
}

static void attend_layer_backward(const composer *model, const path_layer *m, integer seen, integer p, uint64_t seed,
                                  const float *attended, float *qkv) {
    attend_backward(m->qkv, m->weights, attended, seen, p, model->d, model->heads, seed,
                    (uint32_t)model->attention_threshold, (float)model->attention_factor, qkv);
}

/* `_value_backward`: leaves for each layer what flows to left and right of its qkv, and in value_x to a last layer's x. */
static void value_backward(const composer *model, const gradients *into, integer shift, const block *b, const flow *g,
                           integer row, integer r) {
    const integer d = model->d;
    for (integer number = model->layers - 1; number >= 0; number--) {
        const layer *w = model->layer + number;
        const layer_gradients *own = into->layer + number;
        const path_layer *m = b->value.layer + number;
        const int last = number == model->layers - 1;
        const integer seen = last ? 3 : 1;
        const uint64_t seed = seed_of(model, row, VALUE, number);
        float *x = last ? g->value_x : g->seen, *qkv = g->value_qkv[number];
        finish_backward(model, w, own, shift, m, g, seed, g->state, seen * r, x, g->attended);
        attend_layer_backward(model, m, seen, r, seed, g->attended, qkv);
        add_sums(own->value_sums + shift, qkv, 1, r, 3 * d);
        if (number == 0) {
            add_sums(into->special_e + shift + d, x, 1, r, d);
            return;
        }
        for (integer token = 1; token < 3 && last; token++) { /* queries that the main path does not have */
            float *query = qkv + token * r * 3 * d, *sums = own->value_sums + shift + token * 3 * d;
            add_weights(model, query, r, d, 3 * d, m->x + token * r * d, d, d, own->qkv + shift);
            times(model, query, r, d, 3 * d, w->query_back, d, x + token * r * d, d, x + token * r * d, d);
            for (integer i = 0; i < r; i++)
                for (integer j = 0; j < d; j++) {
                    sums[j] += query[i * 3 * d + j];
                    query[i * 3 * d + j] = 0.0f;
                }
        }
        add_weights(model, qkv, r, 3 * d, 3 * d, m->x, d, d, own->qkv + shift);
        times(model, qkv, r, 3 * d, 3 * d, w->qkv_back, d, x, d, g->state, d);
    }
}

/* `_main_backward`: leaves what flows to the pairs' cells in g->x and g->qkv. */
static void main_backward(const composer *model, const gradients *into, integer shift, const block *b, const flow *g,
                          integer row, integer x, integer r) {
    const integer d = model->d;
    const float *state = g->sum;
    for (integer number = model->layers - 1; number >= 0; number--) {
        const layer *w = model->layer + number;
        const layer_gradients *own = into->layer + number;
        const path_layer *m = b->main.layer + number;
        const int last = number == model->layers - 1;
        const integer seen = last ? 1 : 3;
        const uint64_t seed = seed_of(model, row, MAIN, number);
        finish_backward(model, w, own, shift, m, g, seed, state, seen * x, g->x, g->attended);
        attend_layer_backward(model, m, seen, x, seed, g->attended, g->qkv);
        unselect_pairs(g->qkv, b->chosen, g->value_qkv[number], x, r, 3 * d);
        if (last) {
            memset(g->x + x * d, 0, (size_t)(2 * x * d) * sizeof(float));
            unselect_pairs(g->x, b->chosen, g->value_x, x, r, d);
        }
        add_sums(own->main_sums + shift, g->qkv, 3, x, 3 * d);
        if (number == 0) {
            add_sums(into->special_e + shift, g->x, 1, x, d);
            return;
        }
        if (last) { /* of queries only [SUM]'s has a gradient */
            add_weights(model, g->qkv, x, d, 3 * d, m->x, d, d, own->qkv + shift);
            add_weights(model, g->qkv + d, 3 * x, 2 * d, 3 * d, m->x, d, d, own->qkv + shift + d * d);
            times(model, g->qkv, x, d, 3 * d, w->query_back, d, g->x, d, g->x, d);
            times(model, g->qkv + d, 3 * x, 2 * d, 3 * d, w->key_value_back, d, g->x, d, g->state, d);
        } else {
            add_weights(model, g->qkv, 3 * x, 3 * d, 3 * d, m->x, d, d, own->qkv + shift);
            times(model, g->qkv, 3 * x, 3 * d, 3 * d, w->qkv_back, d, g->x, d, g->state, d);
        }
        state = g->state;
    }
}

typedef struct {
    const composer *model;
    const gradients *into;
    const step *step;
    char *flow, *work;
    size_t bytes, flow_bytes, work_bytes;
} backward_arguments;

static void find_block(const backward_arguments *a, integer number, block *b, flow *g) {
    const integer r = largest_block(a->step), k = a->step->k;
    take_block(b, a->step->memory + (size_t)number * a->bytes, a->model, r, k);
    take_flow(g, a->flow + (size_t)number * a->flow_bytes, a->model, r, k);
}

/* `_take`: all that was read from the cells of some blocks is there, and goes through their first-layer projections. */
static void take_part(const void *arguments, integer part, integer begin, integer end) {
    const backward_arguments *a = arguments;
    const composer *model = a->model;
    const integer d = model->d, shift = part * a->into->stride;
    const layer_gradients *own = a->into->layer;
    for (integer number = begin; number < end; number++) {
        const place at = place_of(a->step, number);
        const float *qkv = a->into->qkv + at.row * 3 * d;
        float *e = a->into->e + at.row * d;
        add_weights(model, qkv, at.r, 3 * d, 3 * d, model->e + at.row * d, d, d, own->qkv + shift);
        add_sums(own->qkv_bias + shift, qkv, 1, at.r, 3 * d);
        times(model, qkv, at.r, 3 * d, 3 * d, model->layer->qkv_back, d, e, d, e, d);
    }
}

static void choice_backward(const backward_arguments *a, integer number) {
    const composer *model = a->model;
    const gradients *into = a->into;
    const step *s = a->step;
    const place at = place_of(s, number);
    block b;
    flow g;
    find_block(a, number, &b, &g);
    choose_backward(into->e + at.row * model->d, into->log_p + at.row, into->log_p_tree + at.row, b.main.out,
                    model->score, b.score, b.log_p, s->log_p_tree + at.cell * s->k, b.soft,
                    at.x == at.r ? NULL : b.composed, s->left + at.pair, s->right + at.pair, b.chosen,
                    (float)model->temperature, at.r, s->k, model->d, into->log_p_tree, into->score, into->score_bias,
                    g.sum);
}

static void backward_part(const void *arguments, integer part, integer begin, integer end) {
    const backward_arguments *a = arguments;
    const composer *model = a->model;
    const integer shift = part * a->into->stride, r = largest_block(a->step);
    block b;
    flow g;
    take_work(&g, a->work + (size_t)part * a->work_bytes, model, r, a->step->k);
    for (integer number = begin; number < end; number++) {
        const place at = place_of(a->step, number);
        find_block(a, number, &b, &g);
        blend_backward(a->into->e + at.row * model->d, b.value.out, model->blend, b.value.weights, b.value.blended,
                       b.value.mean, b.value.rstd, at.r, model->d, a->into->blend + shift, a->into->blend_bias + shift,
                       g.state);
        value_backward(model, a->into, shift, &b, &g, at.row, at.r);
        main_backward(model, a->into, shift, &b, &g, at.row, at.x, at.r);
    }
}

integer flow_bytes(const composer *model, const step *s) {
    flow g;
    return (integer)take_flow(&g, NULL, model, largest_block(s), s->k);
}

integer work_bytes(const composer *model, const step *s) {
    flow g;
    return (integer)take_work(&g, NULL, model, largest_block(s), s->k);
}

/* Steps come in reverse. `flow` has as many times flow_bytes as there are blocks, `work` has as many times work_bytes as
   there are threads. */
void step_backward(const composer *model, const gradients *into, const step *s, char *flow_memory, char *work) {
    const integer d = model->d;
    backward_arguments arguments = {model,
                                    into,
                                    s,
                                    flow_memory,
                                    work,
                                    (size_t)block_bytes(model, s),
                                    (size_t)flow_bytes(model, s),
                                    (size_t)work_bytes(model, s)};
    share(take_part, &arguments, s->blocks, s->threads);
    for (integer number = 0; number < s->blocks; number++) choice_backward(&arguments, number);
    share(backward_part, &arguments, s->blocks, s->threads);
    for (integer number = 0; number < s->blocks; number++) {
        const place at = place_of(s, number);
        block b;
        flow g;
        find_block(&arguments, number, &b, &g);
        scatter_pairs(into->qkv, s->left + at.pair, s->right + at.pair, g.qkv, at.x, 3 * d);
        scatter_pairs(into->e, s->left + at.pair, s->right + at.pair, g.x, at.x, d);
    }
}
