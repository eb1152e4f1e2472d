/* Products of matrices, at the speed of the processor however small they are.

   The library that PyTorch multiplies with is made for large matrices, and for processors of one maker. What R2D2
   multiplies is some hundred rows at a time with weights that fit into a cache.

   All is read from and written to float32. Factors are taken as they are, or rounded to bfloat16 where that is asked for
   and the processor can: then a number is a pair of neighbours along the sum, of which an instruction takes as many as it
   takes floats, and does twice the work. Sums are float32 in any case. The instruction takes the tiniest numbers, those
   without a leading 1, for 0.

   The right-hand side is packed into panels[o / PANEL, numbers, PANEL]: what belongs to PANEL outputs stands together,
   input after input or pair after pair, so that the innermost loop reads it from front to end. The last panel is filled
   up with zeros, and so is the last pair.
   Legend: n rows, i width of the input, o width of the output. */

#include <stdlib.h>
#include <string.h>

#include "products.h"

#define PANEL 16
#define ROWS_OF_FLOATS 6 /* of a tile: its sums, a row of a panel and a number fit into the registers */
#define ROWS_OF_PAIRS 8  /* their instructions take longer, so that more must be under way */
#ifndef MOST_LANES
#define MOST_LANES 16 /* less makes a processor with wide vectors go the way of one without */
#endif
#define PRODUCTS_A_VALUE 16 /* how many multiplications take as long as other steps take for a value */
#define PAIRS_AT_ONCE 16384 /* left-hand sides are rounded some rows at a time, which stay in a cache */

typedef struct {
    const void *left, *panel; /* float or pairs, which are as large */
    integer n, row_step, inner_step, inner;
    const float *start;
    integer start_step;
    float *out;
    integer out_step;
} strip_arguments;

typedef struct {
    void (*strip)(const strip_arguments *);
    integer rows; /* of its tiles */
} way;

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)

#define ADD_FLOAT(sum, number, factor) sum += number * factor

#define KIND 16
#define ROWS ROWS_OF_FLOATS
#define LANES 16
#define NUMBER float
#define ADD_PRODUCT ADD_FLOAT
#define ARCHITECTURE "arch=x86-64-v4"
#include "product_strip.h"
#define KIND 8
#define ROWS ROWS_OF_FLOATS
#define LANES 8
#define NUMBER float
#define ADD_PRODUCT ADD_FLOAT
#define ARCHITECTURE "arch=x86-64-v3"
#include "product_strip.h"

/* How many numbers a vector of this processor has, or 0 if its products are better left to others. */
int product_lanes(void) {
    __builtin_cpu_init();
    return MOST_LANES >= 16 && __builtin_cpu_supports("x86-64-v4") ? 16 : __builtin_cpu_supports("x86-64-v3") ? 8 : 0;
}

#include <immintrin.h>

#define ADD_PAIRS(sum, number, factor) \
    sum = (vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)factor, (__m512bh)_mm512_set1_epi32((int)number))

#define KIND pairs
#define ROWS ROWS_OF_PAIRS
#define LANES 16
#define NUMBER uint32_t
#define ADD_PRODUCT ADD_PAIRS
#define ARCHITECTURE "arch=x86-64-v4,avx512bf16"
#include "product_strip.h"

int has_bfloat16(void) { return product_lanes() == 16 && __builtin_cpu_supports("avx512bf16"); }

static way way_of(int bfloat16) {
    if (bfloat16) return (way){strip_of_pairs, ROWS_OF_PAIRS};
    return (way){product_lanes() == 16 ? strip_of_16 : strip_of_8, ROWS_OF_FLOATS};
}

#else

int product_lanes(void) { return 0; }
int has_bfloat16(void) { return 0; }
static way way_of(int bfloat16) {
    (void)bfloat16;
    return (way){NULL, 1};
}

#endif

INLINE integer panels_of(integer width) { return (width + PANEL - 1) / PANEL; }
INLINE integer numbers_of(integer width, int bfloat16) { return bfloat16 ? (width + 1) / 2 : width; }

/* The nearest bfloat16, of two as near the even one. What is no number stays so. */
INLINE uint32_t rounded(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, no_number = bits >> 16 | 0x40;
    return (bits & 0x7fffffff) > 0x7f800000 ? no_number : near;
}

INLINE uint32_t pair(float first, float second) { return rounded(first) | rounded(second) << 16; }

/* A strip whose panel may be the last one, with fewer columns: then by way of rows that have them all. */
static void strip_of(const strip_arguments *s, way by, integer columns) {
    if (columns == PANEL) {
        by.strip(s);
        return;
    }
    float rows[ROWS_OF_PAIRS * PANEL];
    for (integer first = 0; first < s->n; first += by.rows) {
        strip_arguments some = *s;
        some.n = least(s->n - first, by.rows);
        some.left = (const float *)s->left + first * s->row_step;
        some.out = rows;
        some.out_step = PANEL;
        if (s->start != NULL) {
            some.start = rows;
            some.start_step = PANEL;
            for (integer r = 0; r < some.n; r++)
                memcpy(rows + r * PANEL, s->start + (first + r) * s->start_step, (size_t)columns * sizeof(float));
        }
        by.strip(&some);
        for (integer r = 0; r < some.n; r++)
            memcpy(s->out + (first + r) * s->out_step, rows + r * PANEL, (size_t)columns * sizeof(float));
    }
}

/* ---- packing ---- */

/* Some columns of W[o, i], which is read at its output · output_step + its input · input_step, side by side: `size` of
   them, those that are not there left as they are. */
typedef struct {
    const float *from;
    integer output_step, input_step, i, columns;
    void *to;
} column_arguments;

INLINE void pack_floats(const column_arguments *a, const integer size) {
    const float *restrict from = a->from;
    float *restrict to = a->to;
    if (a->output_step == 1 && a->columns == size)
        for (integer k = 0; k < a->i; k++)
            memcpy(to + k * size, from + k * a->input_step, (size_t)size * sizeof(float));
    else
        for (integer k = 0; k < a->i; k++)
            for (integer column = 0; column < a->columns; column++)
                to[k * size + column] = from[column * a->output_step + k * a->input_step];
}

INLINE void pack_pairs(const column_arguments *a, const integer size) {
    uint32_t *restrict to = a->to;
    for (integer k = 0; k < a->i; k += 2, to += size) {
        const float *restrict one = a->from + k * a->input_step, *restrict other = one + a->input_step;
        if (k + 1 == a->i)
            for (integer column = 0; column < a->columns; column++) to[column] = rounded(one[column * a->output_step]);
        else if (a->output_step == 1 && a->columns == size)
            for (integer column = 0; column < size; column++) to[column] = pair(one[column], other[column]);
        else
            for (integer column = 0; column < a->columns; column++)
                to[column] = pair(one[column * a->output_step], other[column * a->output_step]);
    }
}

/* For each size that there is: a panel's, and those of tiles. */
KERNEL static void pack_columns(const column_arguments *a, integer size, int bfloat16) {
    if (size == PANEL && bfloat16)
        pack_pairs(a, PANEL);
    else if (size == PANEL)
        pack_floats(a, PANEL);
    else if (bfloat16)
        pack_pairs(a, ROWS_OF_PAIRS);
    else
        pack_floats(a, ROWS_OF_FLOATS);
}

typedef struct {
    const float *weight;
    integer output_step, input_step, i, o;
    float *panels;
    int bfloat16;
} pack_arguments;

static void pack_part(const void *arguments, integer part, integer begin, integer end) {
    const pack_arguments *a = arguments;
    const integer size = PANEL * numbers_of(a->i, a->bfloat16);
    (void)part;
    for (integer panel = begin; panel < end; panel++) {
        float *to = a->panels + panel * size;
        const integer first = panel * PANEL, columns = least(a->o - first, PANEL);
        column_arguments some = {a->weight + first * a->output_step, a->output_step, a->input_step, a->i, columns, to};
        if (columns < PANEL) memset(to, 0, (size_t)size * sizeof(float));
        pack_columns(&some, PANEL, a->bfloat16);
    }
}

void pack(const float *weight, integer output_step, integer input_step, integer o, integer i, int bfloat16,
          void *panels) {
    pack_arguments arguments = {weight, output_step, input_step, i, o, panels, bfloat16};
    share(pack_part, &arguments, panels_of(o), parts_of(panels_of(o), PANEL * i));
}

/* ---- x Wᵀ ---- */

/* out[n, o] = start + x Wᵀ, for x[n, i] with rows x_step apart, and `out` likewise; `start` may be NULL, a row for all
   (start_step 0), or `out` itself. Threads share the rows, or if these are few, the panels. */
typedef struct {
    const float *x;
    integer n, i, o, x_step;
    const float *panels, *start;
    integer start_step;
    float *out;
    integer out_step;
    int bfloat16;
    way by;
} product_arguments;

typedef uint16_t half __attribute__((may_alias)); /* of a pair */

/* Pairs of some rows, one row after another. */
KERNEL static void round_rows(const float *restrict x, integer n, integer i, integer x_step, half *restrict to) {
    const integer step = 2 * numbers_of(i, 1);
    for (integer row = 0; row < n; row++, x += x_step, to += step) {
        for (integer k = 0; k < i; k++) to[k] = (half)rounded(x[k]);
        if (i < step) to[i] = 0;
    }
}

static void product_of(const product_arguments *a, const void *x, integer x_step, integer first, integer last,
                       integer first_panel, integer last_panel) {
    const integer inner = numbers_of(a->i, a->bfloat16);
    for (integer panel = first_panel; panel < last_panel; panel++) {
        const integer column = panel * PANEL;
        const float *start = a->start == NULL ? NULL : a->start + first * a->start_step + column;
        strip_arguments some = {x, a->panels + column * inner, last - first, x_step, 1, inner, start, a->start_step,
                                a->out + first * a->out_step + column, a->out_step};
        strip_of(&some, a->by, least(a->o - column, PANEL));
    }
}

static void product_part(const product_arguments *a, integer first, integer last, integer first_panel,
                         integer last_panel) {
    if (!a->bfloat16) {
        product_of(a, a->x + first * a->x_step, a->x_step, first, last, first_panel, last_panel);
        return;
    }
    const integer step = numbers_of(a->i, 1), rows = most(PAIRS_AT_ONCE / step, a->by.rows) / a->by.rows * a->by.rows;
    uint32_t *x = malloc((size_t)(least(rows, last - first) * step) * sizeof(uint32_t));
    for (; first < last; first += rows) {
        const integer end = least(first + rows, last);
        round_rows(a->x + first * a->x_step, end - first, a->i, a->x_step, (half *)x);
        product_of(a, x, step, first, end, first_panel, last_panel);
    }
    free(x);
}

static void product_rows(const void *arguments, integer part, integer begin, integer end) {
    const product_arguments *a = arguments;
    (void)part;
    product_part(a, begin * a->by.rows, least(end * a->by.rows, a->n), 0, panels_of(a->o));
}

static void product_panels(const void *arguments, integer part, integer begin, integer end) {
    const product_arguments *a = arguments;
    (void)part;
    product_part(a, 0, a->n, begin, end);
}

void product(const float *x, integer n, integer i, integer x_step, const void *panels, integer o, const float *start,
             integer start_step, float *out, integer out_step, int bfloat16) {
    product_arguments arguments = {x,   n,        i,        o,              x_step, panels, start, start_step,
                                   out, out_step, bfloat16, way_of(bfloat16)};
    const integer tiles = (n + arguments.by.rows - 1) / arguments.by.rows;
    const integer parts = parts_of(n, i * o / PRODUCTS_A_VALUE);
    if (tiles >= 2 * parts)
        share(product_rows, &arguments, tiles, parts);
    else
        share(product_panels, &arguments, panels_of(o), parts);
}

/* ---- yᵀ x ---- */

/* into[o, i] += yᵀ x, for y[n, o] and x[n, i] with rows y_step and x_step apart: the gradient of a weight. Threads share
   the rows of `into`. x is packed, and so is y, as many columns at a time as a tile has rows. */
typedef struct {
    const float *y;
    integer n, o, i, y_step;
    const float *panels;
    float *tiles; /* [parts, numbers, rows of a tile] */
    float *into;
    int bfloat16;
    way by;
} gradient_arguments;

static void gradient_part(const void *arguments, integer part, integer begin, integer end) {
    const gradient_arguments *a = arguments;
    const integer inner = numbers_of(a->n, a->bfloat16), size = a->by.rows;
    float *tile = a->tiles + part * inner * size;
    for (integer row = begin * size; row < least(end * size, a->o); row += size) {
        const integer rows = least(a->o - row, size);
        column_arguments columns = {a->y + row, 1, a->y_step, a->n, rows, tile};
        pack_columns(&columns, size, a->bfloat16);
        for (integer column = 0; column < a->i; column += PANEL) {
            float *into = a->into + row * a->i + column;
            strip_arguments some = {tile, a->panels + column * inner, rows, 1, size, inner, into, a->i, into, a->i};
            strip_of(&some, a->by, least(a->i - column, PANEL));
        }
    }
}

void add_weight_gradient(const float *y, integer n, integer o, integer y_step, const float *x, integer i,
                         integer x_step, float *into, int bfloat16) {
    const way by = way_of(bfloat16);
    const integer tiles = (o + by.rows - 1) / by.rows, parts = least(parts_of(n, i * o / PRODUCTS_A_VALUE), tiles);
    const integer inner = numbers_of(n, bfloat16), packed = panels_of(i) * PANEL * inner;
    float *panels = malloc((size_t)(packed + parts * inner * by.rows) * sizeof(float));
    pack(x, 1, x_step, i, n, bfloat16, panels);
    gradient_arguments arguments = {y, n, o, i, y_step, panels, panels + packed, into, bfloat16, by};
    share(gradient_part, &arguments, tiles, parts);
    free(panels);
}
