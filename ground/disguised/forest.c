/* Trees that compete for light. */
// defect: all trees are sorted by height in each season, though heights hardly change their order
// kinds: sort-each-step
// guilty: season, shade
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TREES = 8000 };
static struct tree { double height, light; } trees[TREES], *order[TREES];

static int higher(const void *a, const void *b) {
    double x = (*(struct tree *const *)a)->height, y = (*(struct tree *const *)b)->height;
    return x < y ? 1 : x > y ? -1 : 0;
}

__attribute__((noinline)) static void shade(int sorts) {
    if (sorts) qsort(order, TREES, sizeof *order, higher);
    double light = 1;
    for (int i = 0; i < TREES; ++i) { order[i]->light = light; light *= 0.9999; }
}

__attribute__((noinline)) static void season(int sorts) {
    shade(sorts);
    for (int i = 0; i < TREES; ++i) trees[i].height += 1e-3 * trees[i].light * (1 + sin(trees[i].height));
}

int main(int argc, char **argv) {
    int sorts = argc > 1 && !strcmp(argv[1], "slow");
    for (int i = 0; i < TREES; ++i) { trees[i].height = (i * 7919) % TREES; order[i] = &trees[i]; }
    qsort(order, TREES, sizeof *order, higher);
    for (;;) season(sorts);
}
