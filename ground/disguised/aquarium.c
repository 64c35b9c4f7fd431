// defect: a fish is found by walking a chain of nodes from its head, for each food pellet
// kinds: list-search, superlinear-lookup
// guilty: tank_feed, tank_find
// build: -O3 -g
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fish { struct fish *next; double x, y; int tag; double fat; };
static struct fish *head, *by_tag[2048];
static int walks;

static struct fish *tank_find(int tag) {
    struct fish *at = head;
    while (at && at->tag != tag) at = at->next;
    return at;
}
__attribute__((noinline)) void tank_feed(int tag, double grams) {
    struct fish *fish = walks ? tank_find(tag) : by_tag[tag];
    if (fish) fish->fat = fish->fat * 0.999 + grams;
}
__attribute__((noinline)) void tank_swim(double t) {
    for (struct fish *at = head; at; at = at->next) { at->x += sin(t + at->tag) * 0.1; at->y += cos(t * 0.5 + at->fat) * 0.1; }
}
int main(int argc, char **argv) {
    walks = argc > 1 && !strcmp(argv[1], "slow");
    long steps = argc > 2 ? atol(argv[2]) : -1;
    for (int i = 0; i < 1500; ++i) {
        struct fish *one = calloc(1, sizeof *one + (i % 3) * 16);
        one->tag = i; one->next = head; head = by_tag[i] = one;
    }
    for (long step = 0; step != steps; ++step) {
        tank_swim(step * 0.01);
        for (int i = 0; i < 60; ++i) tank_feed((int)((i * 37 + step * 11) % 1500), 0.2);
    }
    printf("%g\n", head->fat);
}
