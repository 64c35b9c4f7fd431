/* Hides through the pits of a tannery, and a log of them. */
// defect: while hides are booked, the log is opened to append a line and closed again, for each hide
// kinds: file-opened-each-time
// guilty: book, book_all
// seconds: 20
// build: -O2 -g
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hide { int number; double bark, age, price; };

static void soak(struct hide *hides, int number, int weeks) {
    for (int week = 0; week < weeks; ++week) {
        for (int i = 0; i < number; ++i) {
            hides[i].bark += 0.02 * (1 - hides[i].bark) * (1 + 0.1 * sin(week + i));
            hides[i].age += 7;
        }
    }
}

static void book(const char *path, FILE *kept, const struct hide *hide) {
    FILE *log = kept ? kept : fopen(path, "a");
    if (!log) exit(1);
    fprintf(log, "%d %.4f %.0f %.2f\n", hide->number, hide->bark, hide->age, hide->price);
    if (!kept) fclose(log);
}

static void book_all(const char *path, struct hide *hides, int number, int reopens) {
    FILE *kept = reopens ? NULL : fopen(path, "a");
    for (int i = 0; i < number; ++i) {
        for (int buyer = 1; buyer <= 60; ++buyer) hides[i].price = fmax(0.99 * hides[i].price, hides[i].bark * log1p(buyer * i % 97));
        book(path, kept, &hides[i]);
    }
    if (kept) fclose(kept);
}

static double market(const struct hide *hides, int number, int days) {
    double index = 1;
    for (int day = 0; day < days; ++day) {
        for (int i = 0; i < number; ++i) index += 1e-6 * (hides[i].price - index) + 1e-7 * cos(day * hides[i].bark);
    }
    return index;
}

int main(int argc, char **argv) {
    int slow = argc > 1 && !strcmp(argv[1], "slow");
    enum { hides = 120000 };
    struct hide *all = calloc(hides, sizeof *all);
    char path[64];
    snprintf(path, sizeof path, "/tmp/tannery.%d", getpid());
    for (int i = 0; i < hides; ++i) all[i].number = i;
    soak(all, hides, 150);
    book_all(path, all, hides, slow);
    remove(path);
    printf("%.6f\n", market(all, hides, 140));
    free(all);
    return 0;
}
