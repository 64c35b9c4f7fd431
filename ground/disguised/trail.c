// defect: a recorder keeps each pose of each body, and nothing ever frees them
// kinds: memory-grows-over-time
// guilty: -
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "stepscope.h"

enum { BODIES = 500 };
struct pose { double x, y, heading; struct pose *before; };
struct body { double x, v; struct pose *trail; };

static void remember(struct body *body) {
    struct pose *pose = malloc(sizeof *pose);
    pose->x = body->x;
    pose->y = body->v;
    pose->heading = 0;
    pose->before = body->trail;
    body->trail = pose;
}

static void replace(struct body *body) {
    if (!body->trail) remember(body);
    body->trail->x = body->x;
    body->trail->y = body->v;
}

static void advance(struct body *bodies) {
    for (int round = 0; round < 20; ++round)
        for (int i = 0; i < BODIES; ++i) {
            bodies[i].v -= 0.001 * sin(bodies[i].x);
            bodies[i].x += 0.001 * bodies[i].v;
        }
}

int main(int argc, char **argv) {
    int slow = argc > 1 && strcmp(argv[1], "slow") == 0;
    static struct body bodies[BODIES];
    for (int i = 0; i < BODIES; ++i) bodies[i].x = i * 0.01;
    puts("ready");
    fflush(stdout);
    for (long step = 0;; ++step) {
        STEPSCOPE_STEP(step * 0.001);
        advance(bodies);
        for (int i = 0; i < BODIES; ++i) slow ? remember(&bodies[i]) : replace(&bodies[i]);
    }
}
