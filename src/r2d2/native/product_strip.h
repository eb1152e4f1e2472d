/* A strip of a product, n rows by one panel; products.c includes this for each KIND of processor and of number.

   out[r] = start[r] + sum over k of left[r, k] · panel[k], where panel[k] is PANEL numbers. left[r, k] is read at
   r · row_step + k · inner_step. Without `start` sums begin at 0; with a start_step of 0 it is one row for all.

   LANES sums make a vector. A NUMBER is a float, or a pair of shorter ones whose products are added; ADD_PRODUCT adds
   that of one number, for all lanes, and of a vector of them. A tile of up to ROWS rows keeps its sums in registers. Every
   sum is added up in the same order whatever else is in its tile: a row's product is the same bits in any company. */

#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
#define VECTORS (PANEL / LANES)
#define vector NAME(vector_of_, KIND)
#define tile NAME(tile_of_, KIND)
#define strip NAME(strip_of_, KIND)
#define TARGET __attribute__((target(ARCHITECTURE)))

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

TARGET INLINE void tile(int rows, const strip_arguments *s, integer first) {
    const NUMBER *left = (const NUMBER *)s->left + first * s->row_step, *panel = s->panel;
    const float *start = s->start + first * s->start_step;
    float *out = s->out + first * s->out_step;
    const integer row_step = s->row_step, inner_step = s->inner_step, inner = s->inner;
    vector sum[ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = s->start == NULL ? (vector){0} : *(const vector *)(start + r * s->start_step + v * LANES);
    for (integer k = 0; k < inner; k++, panel += PANEL) {
        vector factor[VECTORS];
        for (int v = 0; v < VECTORS; v++) factor[v] = *(const vector *)(panel + v * LANES);
        for (int r = 0; r < rows; r++) {
            const NUMBER number = left[r * row_step + k * inner_step];
            for (int v = 0; v < VECTORS; v++) ADD_PRODUCT(sum[r][v], number, factor[v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) *(vector *)(out + r * s->out_step + v * LANES) = sum[r][v];
}

TARGET static void strip(const strip_arguments *s) {
    integer first = 0;
    for (; first + ROWS <= s->n; first += ROWS) tile(ROWS, s, first);
    switch (s->n - first) {
#if ROWS > 6
    case 7: tile(7, s, first); break;
    case 6: tile(6, s, first); break;
#endif
    case 5: tile(5, s, first); break;
    case 4: tile(4, s, first); break;
    case 3: tile(3, s, first); break;
    case 2: tile(2, s, first); break;
    case 1: tile(1, s, first); break;
    }
}

#undef JOIN
#undef NAME
#undef VECTORS
#undef vector
#undef tile
#undef strip
#undef TARGET
#undef KIND
#undef ROWS
#undef LANES
#undef NUMBER
#undef ADD_PRODUCT
#undef ARCHITECTURE
