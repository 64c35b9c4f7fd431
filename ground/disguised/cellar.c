// defect: the worker keeps the result of each job in a list that nobody shortens
// kinds: memory-grows-over-time
// guilty: keep, rack, work
// build: -O2 -g -pthread
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bottle { struct bottle *next; double samples[250]; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static int jobs, slow, kept;
static struct bottle *rack;

__attribute__((noinline)) static void keep(const double *taste) {
    struct bottle *one = malloc(sizeof *one);
    memcpy(one->samples, taste, sizeof one->samples);
    one->next = rack;
    rack = one;
    if (!slow && ++kept > 100) {
        rack = one->next->next;
        free(one->next);
        free(one);
        kept -= 2;
    }
}

__attribute__((noinline)) static void taste(double *into, int job) {
    for (int round = 0; round < 8; ++round)
        for (int i = 0; i < 250; ++i) into[i] = sin(job * 0.1 + i + into[i]);
}

static void *work(void *unused) {
    double found[250] = {0};
    for (int job = 0;; ++job) {
        pthread_mutex_lock(&lock);
        while (!jobs) pthread_cond_wait(&some, &lock);
        --jobs;
        pthread_mutex_unlock(&lock);
        taste(found, job);
        keep(found);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t worker;
    slow = argc > 1 && !strcmp(argv[1], "slow");
    pthread_create(&worker, NULL, work, NULL);
    for (;;) {
        pthread_mutex_lock(&lock);
        if (jobs < 50) jobs += 15;
        pthread_cond_signal(&some);
        pthread_mutex_unlock(&lock);
        usleep(2000);
    }
}
