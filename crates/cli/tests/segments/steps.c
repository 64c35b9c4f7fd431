#include "stepscope.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

static void *sleeper(void *unused) { (void)unused; for (;;) sleep(1000); }

int main(int count, char **argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, NULL);
    long steps = 0, scopes = 0;
    STEPSCOPE_SCOPE("run");
    while (access(argument[1], F_OK) != 0) {
        STEPSCOPE_STEP_UNTIMED();
        STEPSCOPE_FRAME_MARK("render");
        steps++;
        for (int call = 0; call < 3; call++) {
            STEPSCOPE_SCOPE("work");
            scopes++;
            for (double until = now() + 2e-4; now() < until;) {}
        }
        usleep(1000);
    }
    printf("%ld steps, %ld scopes\n", steps, scopes + 1);
    return 0;
}
