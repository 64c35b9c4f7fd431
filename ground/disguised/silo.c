// defect: each delivery is kept in a list from which nothing is ever taken
// kinds: memory-grows-over-time
// guilty: deliver, -
// build: -O2 -g
// options: --with heap
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct delivery { struct delivery *next; double grain[120]; };
static struct delivery *first;
static int count;

__attribute__((noinline)) static void deliver(double amount, int keeps) {
    struct delivery *one = malloc(sizeof *one);
    for (int i = 0; i < 120; ++i) one->grain[i] = amount + i;
    one->next = first;
    first = one;
    if (!keeps && ++count > 500) {
        struct delivery *at = first;
        while (at->next->next) at = at->next;
        free(at->next);
        at->next = NULL;
        --count;
    }
}

int main(int argc, char **argv) {
    double level = 0;
    for (long hour = 0;; ++hour) {
        for (int i = 0; i < 20000; ++i) level += 1e-5 * sin(level + i);
        deliver(level, argc > 1 && !strcmp(argv[1], "slow"));
        if (hour % 4 == 0) usleep(500);
    }
}
