/* The choice of a split, Equations 2 to 6, and the vector of a pair, Equation 7, with their gradients, in float32.

   `r2d2/model/tensor_kernels.py` has the same in tensor operations, and is what these must equal. Legend: x pairs, c cells,
   k splits, r rows of the value path, d width. */

#include "layers.h"
#include "rows.h"

/* ---- the choice of a split: Equations 2 to 6 ---- */

INLINE float log_sigmoid(float x) { return (x < 0.0f ? x : 0.0f) - log1pf(expf(-fabsf(x))); }

/* Scores all pairs and chooses a split for each cell: the first of the best, noise added.
   h[x, d]: [SUM] of each pair. places[x]: where the pair stands among c·k splits, or NULL if all are there.
   cell_log_p and cell_log_p_tree: of all cells; the new ones begin at row `first` and are written.
   Writes score[x], log_p[x], log_p_tree[c, k] (-inf where there is no pair), chosen[c] and rest[x - c], both among the
   pairs, and soft[c, k], the softmax of the noisy scores, unless it is NULL. */
KERNEL void choose(const float *restrict h, const float *restrict weight, float bias, const integer *restrict left,
                   const integer *restrict right, const integer *restrict places, const float *restrict noise,
                   float temperature, integer x, integer c, integer k, integer d, integer first,
                   float *restrict cell_log_p, float *restrict cell_log_p_tree, float *restrict score,
                   float *restrict log_p, float *restrict log_p_tree, float *restrict soft, integer *restrict chosen,
                   integer *restrict rest) {
    if (places != NULL)
        for (integer z = 0; z < c * k; z++) log_p_tree[z] = -INFINITY;
    for (integer i = 0; i < x; i++) {
        score[i] = dot(h + i * d, weight, d) + bias;
        log_p[i] = log_sigmoid(score[i]);
        log_p_tree[places == NULL ? i : places[i]] = log_p[i] + cell_log_p_tree[left[i]] + cell_log_p_tree[right[i]];
    }
    integer pair = 0, others = 0;
    for (integer z = 0; z < c; z++) {
        const float *logits = log_p_tree + z * k;
        integer best = 0;
        float most = -INFINITY;
        for (integer y = 0; y < k; y++) {
            const float noisy = noise == NULL ? logits[y] : logits[y] + noise[z * k + y];
            if (noisy > most) {
                most = noisy;
                best = y;
            }
        }
        for (integer y = 0; y < k; y++) {
            if (logits[y] == -INFINITY) continue;
            if (y == best)
                chosen[z] = pair;
            else
                rest[others++] = pair;
            pair++;
        }
        cell_log_p[first + z] = log_p[chosen[z]];
        cell_log_p_tree[first + z] = logits[best];
        if (soft == NULL) continue;
        float total = 0.0f;
        for (integer y = 0; y < k; y++) {
            const float noisy = noise == NULL ? logits[y] : logits[y] + noise[z * k + y];
            soft[z * k + y] = expf((noisy - most) / temperature);
            total += soft[z * k + y];
        }
        for (integer y = 0; y < k; y++) soft[z * k + y] /= total;
    }
}

/* From the gradients of cells, e[c, d], log p and log p~, to those of the pairs' [SUM], out[x, d], and of log p~ of their
   parts, added to parts. composed[x, d] holds c of every pair, or is NULL if each cell has one split.
   Of a part that is one unit only the value of p~ counts, not the gradient. */
KERNEL void choose_backward(const float *restrict e, const float *restrict cell_log_p, const float *restrict cell_tree,
                            const float *restrict h, const float *restrict weight, const float *restrict score,
                            const float *restrict log_p, const float *restrict log_p_tree, const float *restrict soft,
                            const float *restrict composed, const integer *restrict left,
                            const integer *restrict right, const integer *restrict chosen, float temperature,
                            integer c, integer k, integer d, float *restrict parts, float *restrict into_weight,
                            float *restrict into_bias, float *restrict out) {
    integer first = 0;
    for (integer z = 0; z < c; z++) {
        const float *logits = log_p_tree + z * k;
        float alpha[k], inner = 0.0f;
        integer pair = first;
        for (integer y = 0; y < k; y++) {
            alpha[y] = 0.0f;
            if (logits[y] == -INFINITY) continue;
            if (composed != NULL) {
                alpha[y] = dot(composed + pair * d, e + z * d, d) + cell_log_p[z] * log_p[pair] + cell_tree[z] * logits[y];
                inner += soft[z * k + y] * alpha[y];
            }
            pair++;
        }
        pair = first;
        for (integer y = 0; y < k; y++) {
            if (logits[y] == -INFINITY) continue;
            float tree = composed == NULL ? 0.0f : soft[z * k + y] * (alpha[y] - inner) / temperature;
            float single = tree;
            if (pair == chosen[z]) {
                tree += cell_tree[z];
                single = tree + cell_log_p[z];
            }
            if (y > 0) parts[left[pair]] += tree;
            if (y < k - 1) parts[right[pair]] += tree;
            const float flow = single / (1.0f + expf(score[pair]));
            *into_bias += flow;
            for (integer j = 0; j < d; j++) {
                into_weight[j] += flow * h[pair * d + j];
                out[pair * d + j] = flow * weight[j];
            }
            pair++;
        }
        first = pair;
    }
}

/* ---- Equation 7: [CLS] weighs left and right ---- */

/* h[3, r, d] -> weights[r, 2], blended[r, d], and its norm without parameters, out[r, d]. */
KERNEL void blend(const float *restrict h, const float *restrict weight, const float *restrict bias, float eps,
                  integer r, integer d, float *restrict weights, float *restrict blended, float *restrict mean,
                  float *restrict rstd, float *restrict out) {
    for (integer i = 0; i < r; i++) {
        const float *left = h + (r + i) * d, *right = h + (2 * r + i) * d;
        const float difference = dot(h + i * d, weight + d, d) + bias[1] - dot(h + i * d, weight, d) - bias[0];
        const float one = 1.0f / (1.0f + expf(difference)), other = 1.0f - one;
        weights[2 * i] = one;
        weights[2 * i + 1] = other;
        float *row = blended + i * d, *to = out + i * d;
        for (integer j = 0; j < d; j++) row[j] = one * left[j] + other * right[j];
        statistics(row, d, eps, mean + i, rstd + i);
        const float middle = mean[i], sharpness = rstd[i];
        for (integer j = 0; j < d; j++) to[j] = (row[j] - middle) * sharpness;
    }
}

/* From the gradient of c, gradient[r, d], to that of h, out[3, r, d]. */
KERNEL void blend_backward(const float *restrict gradient, const float *restrict h, const float *restrict weight,
                           const float *restrict weights, const float *restrict blended, const float *restrict mean,
                           const float *restrict rstd, integer r, integer d, float *restrict into_weight,
                           float *restrict into_bias, float *restrict out) {
    for (integer i = 0; i < r; i++) {
        const float *flow = gradient + i * d, *row = blended + i * d;
        const float *special = h + i * d, *left = h + (r + i) * d, *right = h + (2 * r + i) * d;
        float *to_special = out + i * d, *to_left = out + (r + i) * d, *to_right = out + (2 * r + i) * d;
        const float middle = mean[i], sharpness = rstd[i], one = weights[2 * i], other = weights[2 * i + 1];
        float plain = 0.0f, along = 0.0f, difference = 0.0f;
        for (integer j = 0; j < d; j++) {
            plain += flow[j];
            along += flow[j] * (row[j] - middle) * sharpness;
        }
        plain /= (float)d;
        along /= (float)d;
        for (integer j = 0; j < d; j++) {
            const float back = sharpness * (flow[j] - plain - (row[j] - middle) * sharpness * along);
            difference += back * (left[j] - right[j]);
            to_left[j] = one * back;
            to_right[j] = other * back;
        }
        const float logit = one * other * difference; /* of the first weight; the second's is its negative */
        into_bias[0] += logit;
        into_bias[1] -= logit;
        for (integer j = 0; j < d; j++) {
            into_weight[j] += logit * special[j];
            into_weight[d + j] -= logit * special[j];
            to_special[j] = logit * (weight[j] - weight[d + j]);
        }
    }
}
