/* What all C files of this folder share: code for several kinds of processors, and work for several threads. */

#ifndef R2D2_SHARING_H
#define R2D2_SHARING_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL
#endif
#define INLINE static inline __attribute__((always_inline))

typedef int64_t integer;

INLINE integer least(integer a, integer b) { return a < b ? a : b; }
INLINE integer most(integer a, integer b) { return a > b ? a : b; }

/* ---- sharing work between threads ----

   PyTorch's own threads are used, which wait for work between its operations: others would fight with them for the
   processor. They belong to OpenMP's library, and are found when PyTorch was loaded before. Without it there is one
   thread. */

extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));
extern int omp_get_max_threads(void) __attribute__((weak));
extern int omp_get_num_threads(void) __attribute__((weak));
extern int omp_get_thread_num(void) __attribute__((weak));
extern int omp_in_parallel(void) __attribute__((weak));

#define MOST_PARTS 64
#define VALUES_A_PART 16384

typedef void kernel(const void *arguments, integer part, integer begin, integer end);

typedef struct {
    kernel *work;
    const void *arguments;
    integer n, parts;
} shared;

static void work_on_parts(void *data) {
    const shared *all = data;
    for (integer part = omp_get_thread_num(); part < all->parts; part += omp_get_num_threads())
        all->work(all->arguments, part, all->n * part / all->parts, all->n * (part + 1) / all->parts);
}

/* Into how many parts n rows of so many values are worth cutting; what is a part already is not cut again. */
static inline integer parts_of(integer n, integer values) {
    if (!GOMP_parallel || !omp_get_max_threads || !omp_get_num_threads || !omp_get_thread_num) return 1;
    if (!omp_in_parallel || omp_in_parallel()) return 1;
    integer parts = n * values / VALUES_A_PART, threads = omp_get_max_threads();
    parts = parts < threads ? parts : threads;
    return parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
}

/* Rows begin to end of n by each of the parts. */
static inline void share(kernel *work, const void *arguments, integer n, integer parts) {
    shared all = {work, arguments, n, parts};
    if (parts == 1)
        work(arguments, 0, 0, n);
    else
        GOMP_parallel(work_on_parts, &all, (unsigned)parts, 0);
}

#endif
