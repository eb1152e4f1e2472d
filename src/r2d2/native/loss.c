/* The loss: cross-entropies over a vocabulary and their gradients in one pass. Legend: t tokens, v words. */

#include <stdlib.h>
#include <string.h>

#include "rows.h"

/* Side by side in lanes: compilers do not turn one running maximum into vector instructions. */
INLINE float largest(const float *restrict row, integer v) {
    float lane[16], most = row[0];
    integer j = 0;
    for (int l = 0; l < 16; l++) lane[l] = most;
    for (; j + 16 <= v; j += 16)
        for (int l = 0; l < 16; l++) lane[l] = row[j + l] > lane[l] ? row[j + l] : lane[l];
    for (; j < v; j++) most = row[j] > most ? row[j] : most;
    for (int l = 0; l < 16; l++) most = lane[l] > most ? lane[l] : most;
    return most;
}

/* scores[t, v] of t tokens become the gradients of their cross-entropies, p less 1 at the label, or 0 for a token whose
   label is `ignored`; their sums over tokens are added to `sum`. Returns the sum of the cross-entropies. */
typedef struct {
    float *scores;
    const integer *labels;
    integer ignored, v;
    float *sums; /* [parts, v] */
    double *losses; /* [parts] */
} loss_arguments;

KERNEL static void cross_entropy_part(const void *arguments, integer part, integer begin, integer end) {
    const loss_arguments *a = arguments;
    const integer v = a->v;
    float *restrict sum = a->sums + part * v;
    double total = 0.0;
    for (integer i = begin; i < end; i++) {
        float *restrict row = a->scores + i * v;
        const integer label = a->labels[i];
        if (label == a->ignored) {
            memset(row, 0, (size_t)v * sizeof(float));
            continue;
        }
        const float most = largest(row, v), own = row[label];
        float all = 0.0f;
        for (integer j = 0; j < v; j++) {
            row[j] = falling_exponential(most - row[j]);
            all += row[j];
        }
        total += log((double)all) + (double)most - (double)own;
        const float share_of_all = 1.0f / all;
        for (integer j = 0; j < v; j++) {
            row[j] *= share_of_all;
            sum[j] += row[j];
        }
        row[label] -= 1.0f;
        sum[label] -= 1.0f;
    }
    a->losses[part] = total;
}

double cross_entropy(float *scores, const integer *labels, integer ignored, integer t, integer v, float *sum) {
    const integer parts = parts_of(t, v);
    float *sums = calloc((size_t)(parts * v), sizeof(float));
    double losses[MOST_PARTS] = {0.0}, total = 0.0;
    loss_arguments arguments = {scores, labels, ignored, v, sums, losses};
    share(cross_entropy_part, &arguments, t, parts);
    for (integer part = 0; part < parts; part++) {
        add_row(sum, sums + part * v, v);
        total += losses[part];
    }
    free(sums);
    return total;
}
