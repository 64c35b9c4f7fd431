/* Ranks of a season. */
// defect: while the season is replayed, the whole table is sorted with qsort after each result that is entered
// kinds: sort-each-step
// guilty: enter_result, by_points, replay
// seconds: 20
// build: -O2 -g
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct athlete { int number, races; double points, form; };
struct result { int athlete; double seconds; };

static int by_points(const void *a, const void *b) {
    double one = ((const struct athlete *)a)->points, other = ((const struct athlete *)b)->points;
    return one < other ? 1 : one > other ? -1 : 0;
}

/* A season of results, drawn from each athlete's form over time. */
static struct result *draw(int results, int athletes) {
    struct result *all = malloc(sizeof *all * results);
    unsigned seed = 4711;
    for (int i = 0; i < results; ++i) {
        double noise = 0;
        for (int k = 0; k < 12; ++k) {
            seed = seed * 1664525u + 1013904223u;
            noise += (seed >> 8) / 16777216.0;
        }
        int who = (seed >> 10) % athletes;
        for (int k = 0; k < 100; ++k) noise += 1e-3 * sin(who * 0.1 + k + i * 1e-3);
        all[i] = (struct result){who, 600 + 30 * noise + who % 50};
    }
    return all;
}

static void enter_result(struct athlete *table, int *place, int athletes, struct result result, int sorts) {
    struct athlete *one = &table[place[result.athlete]];
    one->form = 0.9 * one->form + 0.1 * exp(-result.seconds / 700);
    one->points += 10 * one->form;
    one->races++;
    if (sorts) {
        qsort(table, athletes, sizeof *table, by_points);
        for (int i = 0; i < athletes; ++i) place[table[i].number] = i;
        return;
    }
    int at = (int)(one - table);
    while (at > 0 && table[at - 1].points < table[at].points) {
        struct athlete other = table[at - 1];
        table[at - 1] = table[at];
        table[at] = other;
        place[table[at].number] = at;
        place[table[at - 1].number] = at - 1;
        --at;
    }
}

static double replay(struct athlete *table, int athletes, const struct result *results, int number, int sorts) {
    int *place = malloc(sizeof *place * athletes);
    double led = 0;
    for (int i = 0; i < athletes; ++i) place[i] = i;
    for (int i = 0; i < number; ++i) {
        enter_result(table, place, athletes, results[i], sorts);
        led += table[0].points - table[1].points;
    }
    free(place);
    return led;
}

/* The chance of each athlete to win next year. */
static double forecast(const struct athlete *table, int athletes, int rounds) {
    double *wins = calloc(athletes, sizeof *wins), sum = 0;
    for (int round = 0; round < rounds; ++round) {
        int best = 0;
        double most = -1e9;
        for (int i = 0; i < athletes; ++i) {
            double drawn = table[i].form * 100 + 5 * cos(round * 1.7 + i * 0.3);
            if (drawn > most) most = drawn, best = i;
        }
        wins[best] += 1;
    }
    for (int i = 0; i < athletes; ++i) sum += wins[i] * table[i].points;
    free(wins);
    return sum / rounds;
}

int main(int argc, char **argv) {
    int slow = argc > 1 && !strcmp(argv[1], "slow");
    enum { athletes = 400, results = 60000 };
    struct athlete *table = malloc(sizeof *table * athletes);
    for (int i = 0; i < athletes; ++i) table[i] = (struct athlete){i, 0, (i * 37 % 100) * 0.01, 0.4};
    struct result *season = draw(results, athletes);
    double led = replay(table, athletes, season, results, slow);
    double expected = forecast(table, athletes, 150000);
    printf("%.2f %.2f %d\n", led, expected, table[0].number);
    free(season);
    free(table);
    return 0;
}
