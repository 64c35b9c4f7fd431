// defect: a signal's state is asked by name in an array of pointers to structures
// kinds: list-search, text-compared-each-step, text-keys-each-step, superlinear-lookup
// guilty: box_signal, box_route
// build: -O2 -g
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct signal { char name[20]; int aspect; double since; };
static struct signal *signals[500];
static int slow;
static struct signal *box_signal(const char *name, int at) {
    if (!slow) return signals[at];
    for (int i = 0; signals[i]; ++i) if (strcmp(signals[i]->name, name) == 0) return signals[i];
    return 0;
}
__attribute__((noinline)) int box_route(const char (*names)[20], int at, double t) {
    struct signal *signal = box_signal(names[at], at);
    signal->aspect = (signal->aspect + 1) % 4;
    signal->since = t;
    return signal->aspect;
}
__attribute__((noinline)) double trains(double t) { double sum = 0; for (int i = 0; i < 4000; ++i) sum += sin(t + i * 0.2) / (1 + i); return sum; }
int main(int argc, char **argv) {
    slow = argc > 1 && !strcmp(argv[1], "slow");
    long steps = argc > 2 ? atol(argv[2]) : -1;
    static char names[499][20];
    for (int i = 0; i < 499; ++i) { signals[i] = calloc(1, sizeof *signals[i]); snprintf(signals[i]->name, 20, "line%02d/signal%d", i % 20, i); memcpy(names[i], signals[i]->name, 20); }
    double sum = 0;
    for (long step = 0; step != steps; ++step) { sum += trains(step * 0.01); for (int i = 0; i < 60; ++i) sum += box_route(names, (int)((i * 101 + step) % 499), sum); }
    printf("%g\n", sum);
}
