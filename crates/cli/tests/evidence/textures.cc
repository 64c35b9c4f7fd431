// Steps of some 1 ms with three allocations each. Every 20th step loads a texture for 4 ms more, with 500 allocations and 40 system calls.
#include <cstdlib>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

#include "stepscope.h"

#define NOINLINE __attribute__((noinline))
#define KEEP(block) asm volatile("" ::"r"(block) : "memory")

static long turns_of_ms;

static void turn(long turns) {
    for (volatile long done = 0; done < turns; done = done + 1) {
    }
}

/// Without a system call.
static void spin(long ms) { turn(ms * turns_of_ms); }

static void calibrate() {
    const long turns = 10000000;
    timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    turn(turns);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    long us = (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000;
    turns_of_ms = turns / us * 1000;
}

NOINLINE void update() {
    for (int i = 0; i < 3; i++) {
        void *block = malloc(32);
        KEEP(block);
        free(block);
    }
    spin(1);
}

NOINLINE void read_texture() {
    for (int i = 0; i < 40; i++)
        syscall(SYS_getppid);
    asm volatile("");
}

NOINLINE void load_texture() {
    for (int i = 0; i < 500; i++) {
        void *block = malloc(1000);
        KEEP(block);
        free(block);
    }
    read_texture();
    spin(4);
}

int main(int, char **arguments) {
    calibrate();
    for (int step = 0, steps = atoi(arguments[1]); step < steps; step++) {
        STEPSCOPE_STEP(step);
        update();
        if (step % 20 == 19)
            load_texture();
    }
}
