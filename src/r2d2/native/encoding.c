/* A step of the induction without gradients, in one call: new cells from pairs of old ones.

   It is `FastValues._forward` of r2d2/model/fast_values.py, which explains the two paths, made of the same functions in
   the same order. Each thread takes some of the cells from front to end, so that the threads meet once a step, and
   takes them in blocks, so that what it works on stays in its cache.

   Legend: x pairs, c cells, k splits of each, d width, f width of the feed-forward part, n rows. Tokens: 0 [SUM] or
   [CLS], 1 left, 2 right. */

#include <string.h>

#include "layers.h"
#include "products.h"

#define PAIRS_A_BLOCK 48
#define ROWS_AT_ONCE 48 /* through the feed-forward part */

/* The weights of a layer, matrices packed, as LayerWeights and LayerMatrices have them. r2d2.model.encoding has the
   same fields in the same order, here and below. */
typedef struct {
    const float *query, *key_value, *qkv, *output, *expand, *contract; /* matrices; the first two beyond the first layer */
    const float *terms, *output_bias, *norm1, *norm1_bias, *expand_bias, *contract_bias, *norm2, *norm2_bias;
} layer;

typedef struct {
    integer d, f, heads, layers;
    double eps, blend_eps, temperature, score_bias;
    const layer *layer;
    const float *sum_e, *cls_e, *sum_qkv, *cls_qkv; /* of the special tokens; the last with its role */
    const float *roles, *qkv_bias;                  /* of the first layer */
    const float *score, *blend, *blend_bias;
    float *e, *qkv, *log_p, *log_p_tree; /* of all cells */
} encoder;

integer encoder_size(void) { return (integer)sizeof(encoder); }

INLINE integer least(integer a, integer b) { return a < b ? a : b; }
INLINE integer most(integer a, integer b) { return a > b ? a : b; }

/* What a thread works with, for blocks of x pairs and r cells. */
typedef struct {
    float *x, *qkv;               /* the main path of all layers: [layers, 3, x, d] and [layers, 3, x, 3d] */
    float *attended, *weights;    /* of either path */
    float *special, *own;         /* the value path: [CLS], [r, d], and its query, key and value, [r, 3d] */
    float *value_x, *value_qkv;   /* [3, r, d] and [3, r, 3d] */
    float *out;                   /* of a layer of either path, [3, x, d] */
    float *h, *summed, *expanded, *hidden, *mean, *rstd;
    float *score, *pair_log_p;
    integer *chosen, *rest, *places;
} scratch;

static integer cells_a_block(integer k) { return most(PAIRS_A_BLOCK / k, 1); }

/* Gives out the parts of `memory`; returns how many bytes they take. */
static size_t cut(scratch *s, char *memory, const encoder *model, integer k) {
    const integer r = cells_a_block(k), x = r * k, d = model->d, f = model->f, n = ROWS_AT_ONCE, l = model->layers;
    const integer numbers = most(x, most(r, n));
    struct {
        float **to;
        integer size;
    } floats[] = {
        {&s->x, l * 3 * x * d}, {&s->qkv, l * 9 * x * d}, {&s->attended, 3 * x * d}, {&s->weights, 9 * x * model->heads},
        {&s->special, r * d}, {&s->own, r * 3 * d}, {&s->value_x, 3 * r * d}, {&s->value_qkv, 9 * r * d},
        {&s->out, 3 * x * d}, {&s->h, n * d}, {&s->summed, most(n, r) * d}, {&s->expanded, n * f}, {&s->hidden, n * f},
        {&s->mean, numbers}, {&s->rstd, numbers}, {&s->score, x}, {&s->pair_log_p, x},
    };
    struct {
        integer **to;
        integer size;
    } integers[] = {{&s->chosen, r}, {&s->rest, x}, {&s->places, x}};
    size_t at = 0;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        *floats[i].to = (float *)(memory + at);
        at += ((size_t)floats[i].size * sizeof(float) + 63) / 64 * 64;
    }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        *integers[i].to = (integer *)(memory + at);
        at += ((size_t)integers[i].size * sizeof(integer) + 63) / 64 * 64;
    }
    return at;
}

/* The memory, in bytes, that each thread needs for cells of k splits. */
integer encoder_bytes(const encoder *model, integer k) {
    scratch s;
    return (integer)cut(&s, NULL, model, k);
}

/* `finish_layer`: all of a layer after its attention, for n rows. */
static void finish(const encoder *model, const layer *w, const scratch *s, const float *x, const float *attended,
                   integer n, float *out) {
    const integer d = model->d, f = model->f;
    const float eps = (float)model->eps;
    for (integer first = 0; first < n; first += ROWS_AT_ONCE) {
        const integer rows = least(n - first, ROWS_AT_ONCE), at = first * d;
        product(attended + at, rows, d, d, w->output, d, NULL, 0, s->summed, d);
        add_norm(s->summed, w->output_bias, x + at, w->norm1, w->norm1_bias, eps, 0, 0, rows, d, s->h, s->mean, s->rstd);
        product(s->h, rows, d, d, w->expand, f, NULL, 0, s->expanded, f);
        gelu(s->expanded, w->expand_bias, 0, 0, rows, f, s->hidden);
        product(s->hidden, rows, f, f, w->contract, d, NULL, 0, s->summed, d);
        add_norm(s->summed, w->contract_bias, s->h, w->norm2, w->norm2_bias, eps, 0, 0, rows, d, out + at, s->mean,
                 s->rstd);
    }
}

/* `_main_path`: x and qkv of every layer are left in the scratch, and [SUM] of each pair in its `out`. */
static void main_path(const encoder *model, const scratch *s, const integer *left, const integer *right, integer x) {
    const integer d = model->d;
    gather_pairs(model->e, left, right, model->sum_e, NULL, x, d, s->x);
    for (integer number = 0; number < model->layers; number++) {
        const layer *w = model->layer + number;
        const int last = number == model->layers - 1;
        float *in = s->x + number * 3 * x * d, *qkv = s->qkv + number * 9 * x * d;
        if (number == 0)
            gather_pairs(model->qkv, left, right, model->sum_qkv, model->roles, x, 3 * d, qkv);
        else
            for (integer token = 0; token < 3; token++) {
                const float *rows = in + token * x * d, *terms = w->terms + token * 3 * d;
                float *to = qkv + token * x * 3 * d;
                if (token == 0 || !last)
                    product(rows, x, d, d, w->qkv, 3 * d, terms, 0, to, 3 * d);
                else
                    product(rows, x, d, d, w->key_value, 2 * d, terms + d, 0, to + d, 3 * d);
            }
        const integer seen = last ? 1 : 3;
        attend(qkv, seen, x, d, model->heads, 0, 0, 1.0f, s->weights, s->attended);
        finish(model, w, s, in, s->attended, seen * x, last ? s->out : in + 3 * x * d);
    }
}

/* `_value_path` for the chosen one of the pairs of each cell, behind the main path; e[r, d] is written. */
static void value_path(const encoder *model, const scratch *s, integer x, integer r, float *e) {
    const integer d = model->d;
    const float *special = model->cls_e, *own = model->cls_qkv;
    integer step = 0; /* between the rows of `special`: first there is one for all */
    for (integer number = 0; number < model->layers; number++) {
        const layer *w = model->layer + number;
        const int last = number == model->layers - 1;
        if (number > 0) {
            product(special, r, d, d, w->qkv, 3 * d, w->terms, 0, s->own, 3 * d);
            own = s->own;
        }
        select_pairs(s->qkv + number * 9 * x * d, s->chosen, own, 3 * step, x, r, 3 * d, s->value_qkv);
        if (last) {
            select_pairs(s->x + number * 3 * x * d, s->chosen, special, step, x, r, d, s->value_x);
            for (integer token = 1; token < 3 && number > 0; token++)
                product(s->value_x + token * r * d, r, d, d, w->query, d, w->terms + token * 3 * d, 0,
                        s->value_qkv + token * r * 3 * d, 3 * d);
        } else
            for (integer i = 0; i < r; i++)
                memcpy(s->value_x + i * d, special + i * step, (size_t)d * sizeof(float));
        const integer seen = last ? 3 : 1;
        attend(s->value_qkv, seen, r, d, model->heads, 0, 0, 1.0f, s->weights, s->attended);
        finish(model, w, s, s->value_x, s->attended, seen * r, last ? s->out : s->special);
        special = s->special;
        step = d;
    }
    blend(s->out, model->blend, model->blend_bias, (float)model->blend_eps, r, d, s->weights, s->summed, s->mean, s->rstd, e);
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

typedef struct {
    const encoder *model;
    const integer *left, *right, *places;
    const float *noise;
    integer x, k, first;
    float *log_p_tree;
    char *memory;
    size_t bytes;
} step_arguments;

static void encode_part(const void *arguments, integer part, integer begin, integer end) {
    const step_arguments *a = arguments;
    const encoder *model = a->model;
    const integer d = model->d, k = a->k;
    scratch s;
    cut(&s, a->memory + (size_t)part * a->bytes, model, k);
    for (integer cell = begin; cell < end; cell += cells_a_block(k)) {
        const integer r = least(end - cell, cells_a_block(k)), row = a->first + cell;
        const integer pair = first_pair(a->places, a->x, cell * k), x = first_pair(a->places, a->x, (cell + r) * k) - pair;
        const integer *left = a->left + pair, *right = a->right + pair, *places = NULL;
        if (a->places != NULL) {
            for (integer i = 0; i < x; i++) s.places[i] = a->places[pair + i] - cell * k;
            places = s.places;
        }
        main_path(model, &s, left, right, x);
        choose(s.out, model->score, (float)model->score_bias, left, right, places,
               a->noise == NULL ? NULL : a->noise + cell * k, (float)model->temperature, x, r, k, d, row, model->log_p,
               model->log_p_tree, s.score, s.pair_log_p, a->log_p_tree + cell * k, NULL, s.chosen, s.rest);
        value_path(model, &s, x, r, model->e + row * d);
        product(model->e + row * d, r, d, d, model->layer->qkv, 3 * d, model->qkv_bias, 0, model->qkv + row * 3 * d, 3 * d);
    }
}

/* Computes the c cells from row `first` on, of x pairs left[x] and right[x], which stand at the ascending places[x] among
   c · k splits, or if it is NULL at all of them. Writes log_p_tree[c, k], -inf where there is no pair. `memory` has
   `parts` times encoder_bytes. */
void encode_step(const encoder *model, const integer *left, const integer *right, const integer *places,
                 const float *noise, integer x, integer c, integer k, integer first, integer parts, char *memory,
                 float *log_p_tree) {
    step_arguments arguments = {model, left,  right,      places, noise,
                                x,     k,     first,      log_p_tree, memory, (size_t)encoder_bytes(model, k)};
    const integer work = model->layers * (8 * model->d * model->d + 4 * model->d * model->f) / 16;
    share(encode_part, &arguments, c, least(parts_of(c, k * work), parts));
}
