/* What products.c has for others to call; it tells what each of them does. */

#ifndef R2D2_PRODUCTS_H
#define R2D2_PRODUCTS_H

#include "sharing.h"

int product_lanes(void);
int has_bfloat16(void);
void product(const float *x, integer n, integer i, integer x_step, const void *panels, integer o, const float *start,
             integer start_step, float *out, integer out_step, int bfloat16);
void add_weight_gradient(const float *y, integer n, integer o, integer y_step, const float *x, integer i,
                         integer x_step, float *into, int bfloat16);

#endif
