// Makes COUNT rounds of system calls of a KIND in FOLDER, and prints their number and time:
//   ask    getppid
//   one    open, lseek, write and close of one file
//   many   open, read and close of a file that no round had before; FOLDER has them
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long ask(void) {
    syscall(SYS_getppid);
    return 1;
}

static long one(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/one", folder);
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    if (file < 0 || lseek(file, 0, SEEK_SET) != 0 || write(file, "record", 6) != 6) {
        perror(path);
        exit(1);
    }
    close(file);
    return 4;
}

static long many(const char *folder, long round) {
    char path[4096], byte;
    snprintf(path, sizeof path, "%s/many/%ld", folder, round);
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, &byte, 1) < 0) {
        perror(path);
        exit(1);
    }
    close(file);
    return 3;
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: %s ask|one|many ROUNDS FOLDER\n", arguments[0]);
        return 2;
    }
    const char *kind = arguments[1], *folder = arguments[3];
    long rounds = atol(arguments[2]), calls = 0;
    long long begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (long round = 0; round < rounds; round++) {
        calls += strcmp(kind, "ask") == 0 ? ask() : strcmp(kind, "one") == 0 ? one(folder) : many(folder, round);
    }
    printf("calls %ld wall_ns %lld cpu_ns %lld\n", calls, now(CLOCK_MONOTONIC) - begin,
           now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
