/* A step of the induction in one call, new cells from pairs of old ones, and its gradient in another.

   It is `FastValues._forward` and `FastGradients.add_step` of r2d2/model, which explain the two paths, made of the same
   functions in the same order. Cells are taken in blocks: a thread takes a block from front to end, so that what it
   works on stays in its cache, and the threads meet once a step, or three times in its gradient. Without gradients a
   block's memory serves the next one too; with them it is kept.

   Legend: x pairs, c cells, k splits of each, r cells of a block, d width, f width of the feed-forward part, n rows, l
   layers. Tokens: 0 [SUM] or [CLS], 1 left, 2 right. */

#include <string.h>

#include "steps.h"

#define PAIRS_A_BLOCK 48      /* without gradients */
#define PAIRS_A_KEPT_BLOCK 96 /* gradients of weights want many rows at once */
#define ROWS_AT_ONCE 48       /* through the feed-forward part */

integer composer_layers(void) { return MOST_LAYERS; }

/* ---- memory ---- */

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

size_t take_block(block *to, char *memory, const composer *model, integer r, integer k) {
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

place place_of(const step *s, integer number) {
    const integer cell = s->c * number / s->blocks, end = s->c * (number + 1) / s->blocks;
    const integer pair = first_pair(s->places, s->x, cell * s->k);
    return (place){cell, end - cell, s->first + cell, pair, first_pair(s->places, s->x, end * s->k) - pair};
}

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
