// defect: a counter is looked up by its name, by comparing with all names before it
// kinds: list-search, text-compared-each-step, text-keys-each-step, superlinear-lookup
// guilty: counter_add, counter_slot
// build: -O2
// strip: all
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 300
static char names[N][24];
static double values[N];
static int by_name;

static int counter_slot(const char *name) {
    for (int i = 0; i < N; ++i) {
        const char *a = names[i], *b = name;
        while (*a && *a == *b) { ++a; ++b; }
        if (*a == *b) return i;
    }
    return -1;
}
__attribute__((noinline)) void counter_add(const char *name, int slot, double value) {
    int at = by_name ? counter_slot(name) : slot;
    if (at >= 0) values[at] += value;
}
__attribute__((noinline)) double machine(double t) {
    double sum = 0;
    for (int i = 0; i < 2500; ++i) sum += sin(t + i * 0.1) * sqrt(i + t);
    return sum;
}
int main(int argc, char **argv) {
    by_name = argc > 1 && !strcmp(argv[1], "slow");
    long steps = argc > 2 ? atol(argv[2]) : -1;
    for (int i = 0; i < N; ++i) snprintf(names[i], 24, "%c%d.load", 'a' + i % 26, i);
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        sum += machine(step * 0.01);
        for (int i = 0; i < 90; ++i) { int at = (i * 7 + (int)(step % 97)) % N; counter_add(names[at], at, 1); }
    }
    printf("%g %g\n", sum, values[3]);
}
