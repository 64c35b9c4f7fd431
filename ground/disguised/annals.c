/* Writes a chronicle. */
// defect: the chronicle is put together with strcat, which searches the end of the text from its start for each line
// kinds: list-search, text-compared-each-step
// guilty: append_line, chronicle
// seconds: 20
// build: -O2 -g
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct year { int number; double harvest, tax, peace; };

/* Years of a country: harvest, tax and peace pull at each other. */
static struct year *simulate(int years, int days) {
    struct year *all = malloc(sizeof *all * years);
    double harvest = 1, tax = 0.2, peace = 0.7;
    for (int y = 0; y < years; ++y) {
        for (int day = 0; day < days; ++day) {
            harvest += 0.001 * (sin(day * 0.017) + peace - tax * harvest);
            tax += 0.0005 * (harvest - 2 * tax);
            peace += 0.0007 * (0.7 - peace) - 0.0002 * cos(harvest * day);
        }
        all[y] = (struct year){y, harvest, tax, peace};
    }
    return all;
}

struct text { char *start; size_t length, room; };

static void append_line(struct text *text, const char *line, int from_start) {
    size_t more = strlen(line);
    if (text->length + more + 1 > text->room) {
        text->room = 2 * (text->length + more + 1);
        text->start = realloc(text->start, text->room);
    }
    if (from_start) strcat(text->start, line);
    else memcpy(text->start + text->length, line, more + 1);
    text->length += more;
}

static struct text chronicle(const struct year *years, int number, int from_start) {
    struct text text = {calloc(64, 1), 0, 64};
    char line[160];
    for (int i = 0; i < number; ++i) {
        const char *mood = years[i].peace > 0.7 ? "quiet" : years[i].tax > 0.4 ? "hard" : "plain";
        snprintf(line, sizeof line, "In the year %d the harvest was %.3f, the tax %.3f; it was a %s year.\n",
                 years[i].number, years[i].harvest, years[i].tax, mood);
        append_line(&text, line, from_start);
    }
    return text;
}

/* How often the chronicle's letters follow each other, and what that shows of its author. */
static double style(const struct text *text, int rounds) {
    static double pairs[128][128];
    double sum = 0;
    for (size_t i = 1; i < text->length; ++i) pairs[text->start[i - 1] & 127][text->start[i] & 127] += 1;
    for (int round = 0; round < rounds; ++round) {
        for (int a = 0; a < 128; ++a) {
            for (int b = 0; b < 128; ++b) sum += log1p(pairs[a][b]) * 1e-4 / (1 + round);
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    int slow = argc > 1 && !strcmp(argv[1], "slow");
    enum { years = 30000 };
    struct year *all = simulate(years, 500);
    struct text text = chronicle(all, years, slow);
    double width = style(&text, 3000);
    printf("%zu %.4f\n", text.length, width);
    free(text.start);
    free(all);
    return 0;
}
