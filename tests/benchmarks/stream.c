/* Reads memory once with each of N threads and prints GB/s of every round: what engine/hardware/memory_speed.py is held
   against. cc -O3 -march=native -pthread stream.c -o stream; ./stream MEGABYTES THREADS ROUNDS */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_THREADS = 256, LANES = 64 };

static pthread_barrier_t together;

struct part {
    const int32_t *values;
    size_t count;
    double began, ended;
    int32_t sums[LANES];
};

static double now(void) {
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec + 1e-9 * moment.tv_nsec;
}

static void *add_up(void *argument) {
    struct part *part = argument;
    int32_t sums[LANES] = {0};
    pthread_barrier_wait(&together);
    part->began = now();
    for (size_t i = 0; i < part->count; i += LANES)
        for (int lane = 0; lane < LANES; lane++) sums[lane] += part->values[i + lane];
    part->ended = now();
    memcpy(part->sums, sums, sizeof sums);
    return NULL;
}

int main(int n, char **words) {
    if (n != 4) return 2;
    size_t n_bytes = (size_t)atoll(words[1]) * 1000000 >> 21 << 21;
    int n_threads = atoi(words[2]), n_rounds = atoi(words[3]);
    if (n_threads < 1 || n_threads > MOST_THREADS) return 2;
    char *memory = aligned_alloc(2 << 20, n_bytes);
    if (!memory) return 1;
    madvise(memory, n_bytes, MADV_HUGEPAGE);
    memset(memory, 1, n_bytes);
    static struct part parts[MOST_THREADS];
    size_t count = n_bytes / 4 / n_threads / LANES * LANES;
    for (int round = 0; round < n_rounds; round++) {
        pthread_t threads[MOST_THREADS];
        pthread_barrier_init(&together, NULL, n_threads);
        for (int i = 0; i < n_threads; i++) {
            parts[i].values = (const int32_t *)memory + i * count;
            parts[i].count = count;
            pthread_create(&threads[i], NULL, add_up, &parts[i]);
        }
        double began = 1e30, ended = 0;
        for (int i = 0; i < n_threads; i++) {
            pthread_join(threads[i], NULL);
            if (parts[i].began < began) began = parts[i].began;
            if (parts[i].ended > ended) ended = parts[i].ended;
        }
        pthread_barrier_destroy(&together);
        printf("%.3f\n", 4.0 * count * n_threads / (ended - began) / 1e9);
    }
    return 0;
}
