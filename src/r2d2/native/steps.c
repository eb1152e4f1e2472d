/* A step of the induction in one call, new cells from pairs of old ones, and its gradient in another.

   It is `FastValues._forward` and `FastGradients.add_step` of r2d2/model, which explain the two paths, made of the same
   functions in the same order. Cells are taken in blocks: a thread takes a block from front to end, so that what it
   works on stays in its cache, and the threads meet once a step, or three times in its gradient. Without gradients a
   block's memory serves the next one too; with them it is kept.

   Legend: x pairs, c cells, k splits of each, r cells of a block, d width, f width of the feed-forward part, n rows, l
   layers. Tokens: 0 [SUM] or [CLS], 1 left, 2 right. */

#include <string.h>

#include "layers.h"
#include "products.h"

#define PAIRS_A_BLOCK 48      /* without gradients */
#define PAIRS_A_KEPT_BLOCK 96 /* gradients of weights want many rows at once */
#define ROWS_AT_ONCE 48       /* through the feed-forward part */
#define KEPT_ROWS_AT_ONCE 96
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

integer composer_layers(void) { return MOST_LAYERS; }

/* Seeds of their own for every layer of every path of every block of a forward pass, apart enough for its draws; `row`
   is the first cell of the block. */
static uint64_t seed_of(const composer *model, integer row, int kind, integer number) {
    return model->seed + (((uint64_t)row * 3 + (uint64_t)kind) * MOST_LAYERS + (uint64_t)number) * 4 * DRAWS_OF_A_KIND;
}

/* ---- memory ---- */

/* Memory given out piece by piece; without any it is only counted. */
typedef struct {
    char *memory;
    size_t used;
} supply;

static void *take(supply *from, integer size, size_t each) {
    void *taken = from->memory == NULL ? NULL : from->memory + from->used;
    from->used += ((size_t)size * each + 63) / 64 * 64;
    return taken;
}

static float *floats(supply *from, integer size) { return take(from, size, sizeof(float)); }

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

static integer seen_of(const composer *model, int kind, integer number) {
    return (kind == MAIN) == (number == model->layers - 1) ? 1 : 3;
}

/* Without `keep` all layers share what only one of them needs at a time. */
static void take_path(supply *from, path *to, const composer *model, int kind, integer p, int keep) {
    const integer d = model->d, l = model->layers;
    for (integer number = 0; number < l; number++) {
        path_layer *own = to->layer + number;
        const integer seen = keep ? seen_of(model, kind, number) : 3, rows = keep ? seen * p : ROWS_AT_ONCE;
        if (number > 0 && !keep) *own = to->layer[0];
        own->x = floats(from, (kind == MAIN || number == l - 1 ? 3 : 1) * p * d);
        own->qkv = floats(from, 9 * p * d);
        if (number > 0 && !keep) continue;
        own->weights = floats(from, seen * 3 * p * model->heads);
        own->attended = floats(from, seen * p * d);
        own->summed1 = floats(from, rows * d);
        own->mean1 = floats(from, rows);
        own->rstd1 = floats(from, rows);
        own->h = floats(from, rows * d);
        own->expanded = floats(from, rows * model->f);
        own->summed2 = floats(from, rows * d);
        own->mean2 = floats(from, rows);
        own->rstd2 = floats(from, rows);
    }
    to->out = floats(from, (kind == MAIN ? 1 : 3) * p * d);
    if (kind == MAIN) return;
    to->weights = floats(from, 2 * p);
    to->blended = floats(from, p * d);
    to->mean = floats(from, p);
    to->rstd = floats(from, p);
}

/* All of a block of r cells: what is kept for its gradient, and what a thread needs besides. */
typedef struct {
    path main, value, rest;
    float *score, *log_p, *soft, *composed, *unchosen;
    float *hidden, *own;
    integer *chosen, *others, *places;
} block;

static size_t take_block(block *to, char *memory, const composer *model, integer r, integer k) {
    supply from = {memory, 0};
    const integer x = r * k, d = model->d;
    const int keep = (int)model->keep;
    take_path(&from, &to->main, model, MAIN, x, keep);
    take_path(&from, &to->value, model, VALUE, r, keep);
    to->score = floats(&from, x);
    to->log_p = floats(&from, x);
    to->chosen = take(&from, r, sizeof(integer));
    to->others = take(&from, x, sizeof(integer));
    to->places = take(&from, x, sizeof(integer));
    to->soft = keep ? floats(&from, x) : NULL;
    to->composed = keep && k > 1 ? floats(&from, x * d) : NULL;
    return from.used;
}

static size_t take_scratch(block *to, char *memory, const composer *model, integer r, integer k) {
    supply from = {memory, 0};
    const integer x = r * k, d = model->d;
    to->hidden = floats(&from, most(ROWS_AT_ONCE, KEPT_ROWS_AT_ONCE) * model->f);
    to->own = floats(&from, x * 3 * d);
    if (model->keep && k > 1) {
        take_path(&from, &to->rest, model, REST, x, 0);
        to->unchosen = floats(&from, x * d);
    }
    return from.used;
}

/* How many blocks c cells of k splits make, for so many threads. */
static integer blocks_of(const composer *model, integer c, integer k, integer threads) {
    const integer cells = most((model->keep ? PAIRS_A_KEPT_BLOCK : PAIRS_A_BLOCK) / k, 1);
    const integer blocks = (c + cells - 1) / cells;
    return least((blocks + threads - 1) / threads * threads, c);
}

/* ---- products ---- */

static void times(const composer *model, const float *x, integer n, integer i, integer x_step, const float *panels,
                  integer o, const float *start, integer start_step, float *out, integer out_step) {
    product(x, n, i, x_step, panels, o, start, start_step, out, out_step, (int)model->bfloat16);
}

static void add_weights(const composer *model, const float *y, integer n, integer o, integer y_step, const float *x,
                        integer i, integer x_step, float *into) {
    add_weight_gradient(y, n, o, y_step, x, i, x_step, into, (int)model->bfloat16);
}

/* ---- forward ---- */

/* `finish_layer`: all of a layer after its attention, for n rows. */
static void finish(const composer *model, const layer *w, const path_layer *m, float *hidden, int keep, uint64_t seed,
                   integer n, float *out) {
    const integer d = model->d, f = model->f, some = keep ? KEPT_ROWS_AT_ONCE : ROWS_AT_ONCE;
    const float eps = (float)model->eps;
    const uint32_t threshold = (uint32_t)model->threshold;
    for (integer first = 0; first < n; first += some, seed++) {
        const integer rows = least(n - first, some), to = keep ? first : 0;
        float *summed1 = m->summed1 + to * d, *h = m->h + to * d, *expanded = m->expanded + to * f;
        float *summed2 = m->summed2 + to * d;
        times(model, m->attended + first * d, rows, d, d, w->output, d, NULL, 0, summed1, d);
        add_norm(summed1, w->output_bias, m->x + first * d, w->norm1, w->norm1_bias, eps, seed + FIRST_NORM,
                 threshold, rows, d, h, m->mean1 + to, m->rstd1 + to);
        times(model, h, rows, d, d, w->expand, f, NULL, 0, expanded, f);
        gelu(expanded, w->expand_bias, seed + HIDDEN, threshold, rows, f, hidden);
        times(model, hidden, rows, f, f, w->contract, d, NULL, 0, summed2, d);
        add_norm(summed2, w->contract_bias, h, w->norm2, w->norm2_bias, eps, seed + SECOND_NORM, threshold, rows,
                 d, out + first * d, m->mean2 + to, m->rstd2 + to);
    }
}

static void attend_layer(const composer *model, const path_layer *m, integer seen, integer p, uint64_t seed) {
    attend(m->qkv, seen, p, model->d, model->heads, seed, (uint32_t)model->attention_threshold,
           (float)model->attention_factor, m->weights, m->attended);
}

/* `_main_path`. */
static void main_path(const composer *model, const block *b, const integer *left, const integer *right, integer x,
                      integer row) {
    const integer d = model->d;
    gather_pairs(model->e, left, right, model->sum_e, NULL, x, d, b->main.layer[0].x);
    for (integer number = 0; number < model->layers; number++) {
        const layer *w = model->layer + number;
        const path_layer *m = b->main.layer + number;
        const int last = number == model->layers - 1;
        if (number == 0)
            gather_pairs(model->qkv, left, right, model->sum_qkv, model->roles, x, 3 * d, m->qkv);
        else
            for (integer token = 0; token < 3; token++) {
                const float *rows = m->x + token * x * d, *terms = w->terms + token * 3 * d;
                float *to = m->qkv + token * x * 3 * d;
                if (token == 0 || !last)
                    times(model, rows, x, d, d, w->qkv, 3 * d, terms, 0, to, 3 * d);
                else
                    times(model, rows, x, d, d, w->key_value, 2 * d, terms + d, 0, to + d, 3 * d);
            }
        const integer seen = last ? 1 : 3;
        const uint64_t seed = seed_of(model, row, MAIN, number);
        attend_layer(model, m, seen, x, seed);
        finish(model, w, m, b->hidden, (int)model->keep, seed, seen * x, last ? b->main.out : m[1].x);
    }
}

/* `_value_path` for p of the x pairs, behind the main path; their c are written to e[p, d]. */
static void value_path(const composer *model, const block *b, const path *to, int kind, int keep, const integer *chosen,
                       integer x, integer p, integer row, float *e) {
    const integer d = model->d;
    const float *special = model->cls_e, *own = model->cls_qkv;
    integer step = 0; /* between the rows of `special`: first there is one for all */
    for (integer number = 0; number < model->layers; number++) {
        const layer *w = model->layer + number;
        const path_layer *m = to->layer + number, *below = b->main.layer + number;
        const int last = number == model->layers - 1;
        if (number > 0) {
            times(model, special, p, d, d, w->qkv, 3 * d, w->terms, 0, b->own, 3 * d);
            own = b->own;
        }
        select_pairs(below->qkv, chosen, own, 3 * step, x, p, 3 * d, m->qkv);
        if (last) {
            select_pairs(below->x, chosen, special, step, x, p, d, m->x);
            for (integer token = 1; token < 3 && number > 0; token++)
                times(model, m->x + token * p * d, p, d, d, w->query, d, w->terms + token * 3 * d, 0,
                      m->qkv + token * p * 3 * d, 3 * d);
        } else if (number == 0)
            for (integer i = 0; i < p; i++) memcpy(m->x + i * d, special, (size_t)d * sizeof(float));
        const integer seen = last ? 3 : 1;
        const uint64_t seed = seed_of(model, row, kind, number);
        attend_layer(model, m, seen, p, seed);
        /* A last layer copies [CLS] beside left and right, and so it waits elsewhere. */
        float *out = number >= model->layers - 2 ? to->out : m[1].x;
        finish(model, w, m, b->hidden, keep, seed, seen * p, out);
        special = out;
        step = d;
    }
    blend(to->out, model->blend, model->blend_bias, (float)model->blend_eps, p, d, to->weights, to->blended, to->mean,
          to->rstd, e);
}

/* The first of the x ascending `places` that is not below `place`; where all splits exist it is the place itself. */
static integer first_pair(const integer *places, integer x, integer place) {
    integer low = 0, high = x;
    if (places == NULL) return place;
    while (low < high) {
        const integer middle = (low + high) / 2;
        if (places[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

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

static place place_of(const step *s, integer number) {
    const integer cell = s->c * number / s->blocks, end = s->c * (number + 1) / s->blocks;
    const integer pair = first_pair(s->places, s->x, cell * s->k);
    return (place){cell, end - cell, s->first + cell, pair, first_pair(s->places, s->x, end * s->k) - pair};
}

static integer largest_block(const step *s) { return (s->c + s->blocks - 1) / s->blocks; }

typedef struct {
    const composer *model;
    const step *step;
    size_t bytes, scratch_bytes;
} forward_arguments;

static void forward_block(const composer *model, const step *s, const block *b, place at) {
    const integer d = model->d, k = s->k, x = at.x, r = at.r;
    const integer *left = s->left + at.pair, *right = s->right + at.pair;
    float *e = model->e + at.row * d;
    if (s->places != NULL)
        for (integer i = 0; i < x; i++) b->places[i] = s->places[at.pair + i] - at.cell * k;
    main_path(model, b, left, right, x, at.row);
    choose(b->main.out, model->score, (float)model->score_bias, left, right, s->places == NULL ? NULL : b->places,
           s->noise == NULL ? NULL : s->noise + at.cell * k, (float)model->temperature, x, r, k, d, at.row,
           model->log_p, model->log_p_tree, b->score, b->log_p, s->log_p_tree + at.cell * k, b->soft, b->chosen,
           b->others);
    value_path(model, b, &b->value, VALUE, (int)model->keep, b->chosen, x, r, at.row, e);
    times(model, e, r, d, d, model->layer->qkv, 3 * d, model->qkv_bias, 0, model->qkv + at.row * 3 * d, 3 * d);
    if (b->composed == NULL) return;
    for (integer z = 0; z < r; z++) memcpy(b->composed + b->chosen[z] * d, e + z * d, (size_t)d * sizeof(float));
    if (x == r) return;
    value_path(model, b, &b->rest, REST, 0, b->others, x, x - r, at.row, b->unchosen);
    for (integer z = 0; z < x - r; z++)
        memcpy(b->composed + b->others[z] * d, b->unchosen + z * d, (size_t)d * sizeof(float));
}

static void forward_part(const void *arguments, integer part, integer begin, integer end) {
    const forward_arguments *a = arguments;
    const step *s = a->step;
    const integer r = largest_block(s);
    block b;
    for (integer number = begin; number < end; number++) {
        take_block(&b, s->memory + (size_t)(a->model->keep ? number : part) * a->bytes, a->model, r, s->k);
        take_scratch(&b, s->scratch + (size_t)part * a->scratch_bytes, a->model, r, s->k);
        forward_block(a->model, s, &b, place_of(s, number));
    }
}

/* How many threads c cells of k splits are worth. */
integer step_threads(const composer *model, integer c, integer k) {
    return parts_of(c, k * model->layers * (8 * model->d * model->d + 4 * model->d * model->f) / 16);
}

integer step_blocks(const composer *model, integer c, integer k, integer threads) {
    return blocks_of(model, c, k, threads);
}

integer block_bytes(const composer *model, const step *s) {
    block b;
    return (integer)take_block(&b, NULL, model, largest_block(s), s->k);
}

integer scratch_bytes(const composer *model, const step *s) {
    block b;
    return (integer)take_scratch(&b, NULL, model, largest_block(s), s->k);
}

void step_forward(const composer *model, const step *s) {
    forward_arguments arguments = {model, s, (size_t)block_bytes(model, s), (size_t)scratch_bytes(model, s)};
    share(forward_part, &arguments, s->blocks, s->threads);
}

/* ---- backward ---- */

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
