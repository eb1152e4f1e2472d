/* The bookkeeping of a chart on the processor: Algorithms 1 and 2 of the paper, all but the values of cells.

   One call a step does in plain loops what r2d2.chart.tensor_bookkeeping does in some two hundred tensor operations,
   which are the law for it. The caller computes the values of the cells that a step lists, between chart_grow or
   chart_prune and chart_record.

   A cell is an integer, a row of the arrays marked [r]; row 0 is the null cell, "no cell here". Units are the words of
   a sentence, and later also the cells that merges have made of them. Boundary x of a sentence lies before its word x,
   and a split "at x" joins (start, x) and (x, end). Legend: b sentences, n words of the longest, m rows of the table,
   k splits of a cell over m units (one if m is 1), r cells at most, the null cell included. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define NULL_CELL 0
#define SMALLEST_COMPLEMENT 1e-9 /* as in r2d2.chart.find */
#define ROUNDING_STEPS 64        /* likewise */

/* All that is known of a batch. r2d2.native.chart has the same fields in the same order. */
struct chart {
    int64_t sentences; /* b */
    int64_t words;     /* n */
    int64_t rows;      /* m */
    int64_t splits;    /* k */
    int64_t used;      /* how many rows [r] are taken */
    int64_t step;      /* how many times FIND has run */
    int64_t missing;   /* of the cells listed last, how many splits do not exist */
    int64_t merges;    /* how many cells stand in merged */
    int64_t doubles;   /* whether scores and log p are double rather than float */

    int64_t *units;     /* [b] how many units each sentence has now; falling */
    int64_t *table;     /* [b, m, n] the cell over w units from unit i on is in row w - 1, place i */
    uint8_t *alive;     /* [b, n+1] whether no merge has swallowed the boundary */
    int64_t *mark;      /* [r] the last run of FIND that reached the cell */
    int64_t *merged;    /* [all merges] the cells merged, step by step, sentence by sentence */
    double *complement; /* [r] log(1 - p), once FIND has asked for it */
    double *find_score; /* [n] FIND's own */
    const int64_t *innermost_start, *innermost_end; /* [b, n+1] see r2d2.chart.protected; none without such spans */

    int64_t *sentence, *start, *end;     /* [r] where a cell stands */
    int64_t *at, *left, *right;          /* [r, k] its splits: boundary and parts; 0 where there is none */
    void *score;                         /* [r, k] log p~ of its splits; -inf where there is none */
    int64_t *living_left, *living_right; /* [r] the parts of its best split among the living */
    int64_t *longest_from, *longest_to;  /* [b, n+1] the longest cell that starts or ends at a boundary */
};

/* For the caller to see whether its idea of the struct is this one. */
int64_t chart_size(void) { return sizeof(struct chart); }

static double number(const struct chart *chart, const void *numbers, int64_t place) {
    return chart->doubles ? ((const double *)numbers)[place] : ((const float *)numbers)[place];
}

/* The cells of a sentence over `width` units, by their first unit; null beyond the sentence's end. */
static int64_t *row_of(const struct chart *chart, int64_t sentence, int64_t width) {
    return chart->table + (sentence * chart->rows + width - 1) * chart->words;
}

/* Takes the next number for a cell and puts it where it stands. Later cells at a boundary are longer ones. */
static int64_t add_cell(struct chart *chart, int64_t sentence, int64_t start, int64_t end) {
    int64_t cell = chart->used++, boundaries = sentence * (chart->words + 1);
    chart->sentence[cell] = sentence;
    chart->start[cell] = start;
    chart->end[cell] = end;
    chart->longest_from[boundaries + start] = cell;
    chart->longest_to[boundaries + end] = cell;
    return cell;
}

/* Starts with the leaves. `units` tells the lengths; all other arrays are zero, but for scores of -inf. */
void chart_open(struct chart *chart) {
    chart->sentence[NULL_CELL] = -1;
    for (int64_t sentence = 0; sentence < chart->sentences; sentence++) {
        int64_t *leaves = row_of(chart, sentence, 1);
        for (int64_t i = 0; i < chart->units[sentence]; i++)
            leaves[i] = add_cell(chart, sentence, i, i + 1);
    }
    memset(chart->alive, 1, chart->sentences * (chart->words + 1));
}

static int crosses(const struct chart *chart, int64_t sentence, int64_t start, int64_t end) {
    int64_t boundaries = sentence * (chart->words + 1);
    return chart->innermost_start != NULL &&
           (chart->innermost_end[boundaries + start] < end || chart->innermost_start[boundaries + end] > start);
}

/* Lists the cell over `width` units from unit i on, with its splits in order of their boundary, unless it crosses a
   protected span. A split with a part that does is left out. */
static void list_cell(struct chart *chart, int64_t sentence, int64_t width, int64_t i) {
    const int64_t *units = row_of(chart, sentence, 1);
    int64_t start = chart->start[units[i]], end = chart->end[units[i + width - 1]];
    if (crosses(chart, sentence, start, end))
        return;
    int64_t cell = add_cell(chart, sentence, start, end);
    for (int64_t split = 0; split < width - 1; split++) {
        int64_t left = row_of(chart, sentence, split + 1)[i];
        int64_t right = row_of(chart, sentence, width - split - 1)[i + split + 1];
        if (left == NULL_CELL || right == NULL_CELL) {
            chart->missing++;
            continue;
        }
        int64_t place = cell * chart->splits + split;
        chart->at[place] = chart->start[right];
        chart->left[place] = left;
        chart->right[place] = right;
    }
    row_of(chart, sentence, width)[i] = cell;
}

/* Lists every cell over `width` units; they are the rows from the old `used` to the new. */
void chart_grow(struct chart *chart, int64_t width) {
    chart->missing = 0;
    for (int64_t sentence = 0; sentence < chart->sentences; sentence++)
        for (int64_t i = 0; i + width <= chart->units[sentence]; i++)
            list_cell(chart, sentence, width, i);
}

/* Marks the cells that the trees of the m-th row use, each cell split at its best living split. */
static void mark_used(struct chart *chart, int64_t sentence) {
    int64_t units = chart->units[sentence], m = chart->rows, *mark = chart->mark;
    const int64_t *top = row_of(chart, sentence, m);
    for (int64_t i = 0; i + m <= units; i++)
        mark[top[i]] = chart->step;
    for (int64_t width = m; width > 2; width--) {
        const int64_t *row = row_of(chart, sentence, width);
        for (int64_t i = 0; i + width <= units; i++)
            if (mark[row[i]] == chart->step) {
                mark[chart->living_left[row[i]]] = chart->step;
                mark[chart->living_right[row[i]]] = chart->step;
            }
    }
    mark[NULL_CELL] = 0;
}

/* log(1 - p) of a cell, and p = 0 for the null cell. A cell's p never changes, so it is computed once. */
static double complement_of(struct chart *chart, const void *log_p, int64_t cell) {
    if (cell == NULL_CELL)
        return 0;
    double *complement = chart->complement + cell;
    if (*complement == 0)
        *complement = log(fmax(-expm1(number(chart, log_p, cell)), SMALLEST_COMPLEMENT));
    return *complement;
}

/* The first place whose score is the best, but for the rounding of float or double; or is no number, where a model has
   gone wrong. Places of -inf do not count. */
static int64_t leftmost_best(const struct chart *chart, int64_t places) {
    double best = -INFINITY, *score = chart->find_score;
    for (int64_t i = 0; i < places; i++)
        best = score[i] > best ? score[i] : best;
    double rounding = ROUNDING_STEPS * (chart->doubles ? DBL_EPSILON : FLT_EPSILON) * (1 + fabs(best));
    for (int64_t i = 0; i < places; i++)
        if (score[i] != -INFINITY && !(score[i] < best - rounding))
            return i;
    return 0;
}

/* Algorithm 2, FIND: units u and u+1 are to become one. Candidates are the pairs in the trees of the m-th row; if
   protected spans have left none, all pairs. The score is that of r2d2.chart.find. */
static int64_t find(struct chart *chart, int64_t sentence, const void *log_p) {
    mark_used(chart, sentence);
    const int64_t *pair = row_of(chart, sentence, 2), *mark = chart->mark;
    int64_t pairs = chart->units[sentence] - 1, any_used = 0;
    for (int64_t i = 0; i < pairs; i++)
        any_used |= mark[pair[i]] == chart->step;
    for (int64_t i = 0; i < pairs; i++) {
        int candidate = any_used ? mark[pair[i]] == chart->step : pair[i] != NULL_CELL;
        int64_t before = i > 0 ? pair[i - 1] : NULL_CELL, after = pair[i + 1]; /* null beyond the last pair */
        chart->find_score[i] = -INFINITY;
        if (candidate)
            chart->find_score[i] = number(chart, log_p, pair[i]) + complement_of(chart, log_p, before) +
                                   complement_of(chart, log_p, after);
    }
    return leftmost_best(chart, pairs);
}

/* Function PRUNING of Algorithm 1, in place: units u and u+1 of the sentence become one. A cell that holds the new
   unit comes from one row higher up; in the topmost row there is none, and its place waits to be filled. */
static void merge_units(struct chart *chart, int64_t sentence, int64_t u) {
    int64_t units = chart->units[sentence];
    for (int64_t width = 1; width <= chart->rows; width++) {
        int64_t *row = row_of(chart, sentence, width);
        for (int64_t i = u - width + 1 > 0 ? u - width + 1 : 0; i <= u; i++)
            row[i] = width < chart->rows ? row[i + chart->words] : NULL_CELL;
        memmove(row + u + 1, row + u + 2, (units - u - 2) * sizeof *row);
        row[units - 1] = NULL_CELL;
    }
    chart->units[sentence]--;
}

/* The best split of a cell among those at living boundaries; the first of equals. */
static void choose_living_split(struct chart *chart, int64_t cell) {
    const uint8_t *alive = chart->alive + chart->sentence[cell] * (chart->words + 1);
    int64_t first = cell * chart->splits, best = first;
    double best_score = -INFINITY;
    for (int64_t place = first; place < first + chart->splits; place++) {
        double score = number(chart, chart->score, place);
        if (alive[chart->at[place]] && score > best_score) {
            best_score = score;
            best = place;
        }
    }
    chart->living_left[cell] = chart->left[best];
    chart->living_right[cell] = chart->right[best];
}

/* Cells that hold the boundary inside the new unit u may have lost their best split. FIND looks into those of three
   units and more, and those of m units that hold it are yet to come. */
static void choose_living_splits(struct chart *chart, int64_t sentence, int64_t u) {
    for (int64_t width = 3; width < chart->rows; width++)
        for (int64_t i = u - width + 1 > 0 ? u - width + 1 : 0; i <= u; i++) {
            int64_t cell = row_of(chart, sentence, width)[i];
            if (cell != NULL_CELL)
                choose_living_split(chart, cell);
        }
}

/* A step of Algorithm 1 beyond the first rows: in every sentence of more than m units, the first ones of the batch,
   merges the best pair, and lists the cells of the m-th row that are missing then, as chart_grow does. */
void chart_prune(struct chart *chart, const void *log_p) {
    int64_t m = chart->rows;
    chart->missing = 0;
    chart->step++;
    for (int64_t sentence = 0; sentence < chart->sentences && chart->units[sentence] > m; sentence++) {
        int64_t u = find(chart, sentence, log_p);
        int64_t swallowed = chart->end[row_of(chart, sentence, 1)[u]];
        chart->alive[sentence * (chart->words + 1) + swallowed] = 0;
        chart->merged[chart->merges++] = row_of(chart, sentence, 2)[u];
        merge_units(chart, sentence, u);
        choose_living_splits(chart, sentence, u);
        for (int64_t i = u - m + 1 > 0 ? u - m + 1 : 0; i <= u && i + m <= chart->units[sentence]; i++)
            list_cell(chart, sentence, m, i);
    }
}

/* Writes down the scores [used - first, k'] of the cells listed last, the rows from `first` on, and the parts of their
   best splits. k' is how many splits these cells have. */
void chart_record(struct chart *chart, int64_t first, int64_t splits, const void *scores) {
    size_t bytes = chart->doubles ? sizeof(double) : sizeof(float);
    for (int64_t cell = first; cell < chart->used; cell++) {
        char *to = (char *)chart->score + cell * chart->splits * bytes;
        memcpy(to, (const char *)scores + (cell - first) * splits * bytes, splits * bytes);
        choose_living_split(chart, cell);
    }
}
