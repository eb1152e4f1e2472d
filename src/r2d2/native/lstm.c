/* One direction of a layer of an LSTM, read without gradients. Legend: b sentences, n places, w its width; gates are in
   PyTorch's order. */

#include <stdlib.h>
#include <string.h>

#include "products.h"
#include "rows.h"

INLINE float logistic(float x) {
    const float falling = falling_exponential(fabsf(x)), one = 1.0f / (1.0f + falling);
    const float value = x < 0.0f ? falling * one : one;
    return x == x ? value : x; /* what is no number stays none */
}

INLINE float hyperbolic_tangent(float x) { return 2.0f * logistic(2.0f * x) - 1.0f; }

KERNEL static void new_state(const float *restrict gates, integer w, float *restrict c, float *restrict h) {
    for (integer j = 0; j < w; j++) {
        const float candidate = hyperbolic_tangent(gates[2 * w + j]);
        c[j] = logistic(gates[w + j]) * c[j] + logistic(gates[j]) * candidate;
        h[j] = logistic(gates[3 * w + j]) * hyperbolic_tangent(c[j]);
    }
}

/* read[b, n, ...], places `step` apart, from the gates that the inputs alone make, of_inputs[b, n, 4 w], and the packed
   weight of the state. It is 0 from the ends of sentences on, so that one that is read backwards begins at its own end.
   Threads share the sentences. */
typedef struct {
    const float *of_inputs;
    const integer *lengths;
    integer n, w;
    const void *panels;
    int backwards;
    float *gates, *c; /* [b, 4 w], [b, w] */
    float *read;
    integer step;
} lstm_arguments;

static void read_part(const void *arguments, integer part, integer begin, integer end) {
    const lstm_arguments *a = arguments;
    const integer n = a->n, w = a->w;
    (void)part;
    memset(a->c + begin * w, 0, (size_t)((end - begin) * w) * sizeof(float));
    for (integer done = 0; done < n; done++) {
        const integer place = a->backwards ? n - 1 - done : done, before = a->backwards ? place + 1 : place - 1;
        const float *of_inputs = a->of_inputs + (begin * n + place) * 4 * w;
        if (done > 0)
            product(a->read + (begin * n + before) * a->step, end - begin, w, n * a->step, a->panels, 4 * w, of_inputs,
                    n * 4 * w, a->gates + begin * 4 * w, 4 * w, 0);
        for (integer s = begin; s < end; s++) {
            float *h = a->read + (s * n + place) * a->step;
            if (place < a->lengths[s])
                new_state(done > 0 ? a->gates + s * 4 * w : a->of_inputs + (s * n + place) * 4 * w, w, a->c + s * w, h);
            else
                memset(h, 0, (size_t)w * sizeof(float));
        }
    }
}

void read_lstm(const float *of_inputs, const integer *lengths, integer b, integer n, integer w, const void *panels,
               int backwards, float *read, integer step) {
    float *gates = malloc((size_t)(b * 5 * w) * sizeof(float));
    lstm_arguments arguments = {of_inputs, lengths, n, w, panels, backwards, gates, gates + b * 4 * w, read, step};
    share(read_part, &arguments, b, most(1, least(parts_of(b, n * 4 * w), b)));
    free(gates);
}
