/* Products of matrices in float32, at the speed of the processor however small they are.

   The library that PyTorch multiplies with is made for large matrices, and for processors of one maker. What R2D2
   multiplies is some hundred rows at a time with weights that fit into a cache.

   The right-hand side is packed into panels[o / PANEL, i, PANEL]: what belongs to PANEL outputs stands together, input
   after input, so that the innermost loop reads it from front to end. The last panel is filled up with zeros.
   Legend: n rows, i width of the input, o width of the output. */

#include <stdlib.h>
#include <string.h>

#include "products.h"

#define PANEL 16
#define ROWS 6 /* ROWS x PANEL sums, a row of a panel and a number fit into the registers of AVX2, and of AVX-512 */
#ifndef MOST_LANES
#define MOST_LANES 16 /* less makes a processor with wide vectors go the way of one without */
#endif
#define PRODUCTS_A_VALUE 16 /* how many multiplications take as long as other steps take for a value */

typedef struct {
    const float *left;
    integer n, row_step, inner_step, inner;
    const float *panel, *start;
    integer start_step;
    float *out;
    integer out_step;
} strip_arguments;

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)

#define LANES 16
#define ARCHITECTURE "arch=x86-64-v4"
#include "product_strip.h"
#undef LANES
#undef ARCHITECTURE
#define LANES 8
#define ARCHITECTURE "arch=x86-64-v3"
#include "product_strip.h"
#undef LANES
#undef ARCHITECTURE

/* How many numbers a vector of this processor has, or 0 if its products are better left to others. */
int product_lanes(void) {
    __builtin_cpu_init();
    return MOST_LANES >= 16 && __builtin_cpu_supports("x86-64-v4") ? 16 : __builtin_cpu_supports("x86-64-v3") ? 8 : 0;
}

static void strip(const strip_arguments *s, int lanes) {
    if (lanes == 16)
        strip_of_16(s);
    else
        strip_of_8(s);
}

#else

int product_lanes(void) { return 0; }
static void strip(const strip_arguments *s, int lanes) { (void)s, (void)lanes; }

#endif

INLINE integer panels_of(integer width) { return (width + PANEL - 1) / PANEL; }

/* A strip whose panel may be the last one, with fewer columns: then by way of rows that have them all. */
static void strip_of(const strip_arguments *s, int lanes, integer columns) {
    if (columns == PANEL) {
        strip(s, lanes);
        return;
    }
    float rows[ROWS * PANEL];
    for (integer first = 0; first < s->n; first += ROWS) {
        strip_arguments some = *s;
        some.n = least(s->n - first, ROWS);
        some.left += first * s->row_step;
        some.out = rows;
        some.out_step = PANEL;
        if (s->start != NULL) {
            some.start = rows;
            some.start_step = PANEL;
            for (integer r = 0; r < some.n; r++)
                memcpy(rows + r * PANEL, s->start + (first + r) * s->start_step, (size_t)columns * sizeof(float));
        }
        strip(&some, lanes);
        for (integer r = 0; r < some.n; r++)
            memcpy(s->out + (first + r) * s->out_step, rows + r * PANEL, (size_t)columns * sizeof(float));
    }
}

/* ---- packing ---- */

/* panels of W[o, i], which is read at its output · output_step + its input · input_step. */
typedef struct {
    const float *weight;
    integer output_step, input_step, i, o;
    float *panels;
} pack_arguments;

KERNEL static void pack_part(const void *arguments, integer part, integer begin, integer end) {
    const pack_arguments *a = arguments;
    (void)part;
    for (integer panel = begin; panel < end; panel++) {
        const float *restrict from = a->weight + panel * PANEL * a->output_step;
        float *restrict to = a->panels + panel * PANEL * a->i;
        const integer columns = least(a->o - panel * PANEL, PANEL);
        if (columns < PANEL) memset(to, 0, (size_t)(PANEL * a->i) * sizeof(float));
        if (a->output_step == 1 && columns == PANEL)
            for (integer k = 0; k < a->i; k++) memcpy(to + k * PANEL, from + k * a->input_step, PANEL * sizeof(float));
        else
            for (integer k = 0; k < a->i; k++)
                for (integer column = 0; column < columns; column++)
                    to[k * PANEL + column] = from[column * a->output_step + k * a->input_step];
    }
}

void pack(const float *weight, integer output_step, integer input_step, integer o, integer i, float *panels) {
    pack_arguments arguments = {weight, output_step, input_step, i, o, panels};
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
    int lanes;
} product_arguments;

static void product_of(const product_arguments *a, integer first, integer last, integer first_panel,
                       integer last_panel) {
    for (integer panel = first_panel; panel < last_panel; panel++) {
        const integer column = panel * PANEL;
        const float *start = a->start == NULL ? NULL : a->start + first * a->start_step + column;
        strip_arguments some = {a->x + first * a->x_step, last - first, a->x_step, 1, a->i, a->panels + column * a->i,
                                start, a->start_step, a->out + first * a->out_step + column, a->out_step};
        strip_of(&some, a->lanes, least(a->o - column, PANEL));
    }
}

static void product_rows(const void *arguments, integer part, integer begin, integer end) {
    const product_arguments *a = arguments;
    (void)part;
    product_of(a, begin * ROWS, least(end * ROWS, a->n), 0, panels_of(a->o));
}

static void product_panels(const void *arguments, integer part, integer begin, integer end) {
    const product_arguments *a = arguments;
    (void)part;
    product_of(a, 0, a->n, begin, end);
}

void product(const float *x, integer n, integer i, integer x_step, const float *panels, integer o, const float *start,
             integer start_step, float *out, integer out_step) {
    product_arguments arguments = {x,     n,          i,   o,        x_step,         panels,
                                   start, start_step, out, out_step, product_lanes()};
    const integer tiles = (n + ROWS - 1) / ROWS, parts = parts_of(n, i * o / PRODUCTS_A_VALUE);
    if (tiles >= 2 * parts)
        share(product_rows, &arguments, tiles, parts);
    else
        share(product_panels, &arguments, panels_of(o), parts);
}

/* ---- yᵀ x ---- */

/* into[o, i] += yᵀ x, for y[n, o] and x[n, i] with rows y_step and x_step apart: the gradient of a weight. Threads share
   the rows of `into`. x is packed, and so is y, ROWS columns at a time. */
typedef struct {
    const float *y;
    integer n, o, i, y_step;
    const float *panels;
    float *strips; /* [parts, n, ROWS] */
    float *into;
    int lanes;
} gradient_arguments;

static void gradient_part(const void *arguments, integer part, integer begin, integer end) {
    const gradient_arguments *a = arguments;
    float *restrict strip = a->strips + part * a->n * ROWS;
    for (integer row = begin * ROWS; row < least(end * ROWS, a->o); row += ROWS) {
        const integer rows = least(a->o - row, ROWS);
        for (integer k = 0; k < a->n; k++)
            for (integer r = 0; r < rows; r++) strip[k * ROWS + r] = a->y[k * a->y_step + row + r];
        for (integer column = 0; column < a->i; column += PANEL) {
            float *into = a->into + row * a->i + column;
            strip_arguments some = {strip, rows, 1, ROWS, a->n, a->panels + column * a->n, into, a->i, into, a->i};
            strip_of(&some, a->lanes, least(a->i - column, PANEL));
        }
    }
}

void add_weight_gradient(const float *y, integer n, integer o, integer y_step, const float *x, integer i,
                         integer x_step, float *into) {
    const integer tiles = (o + ROWS - 1) / ROWS, parts = least(parts_of(n, i * o / PRODUCTS_A_VALUE), tiles);
    float *panels = malloc((size_t)(panels_of(i) * PANEL * n + parts * n * ROWS) * sizeof(float));
    pack(x, 1, x_step, i, n, panels);
    gradient_arguments arguments = {y, n, o, i, y_step, panels, panels + panels_of(i) * PANEL * n, into, product_lanes()};
    share(gradient_part, &arguments, tiles, parts);
    free(panels);
}
