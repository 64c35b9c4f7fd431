// switches KIND PAIRS MILLISECONDS [TURNS]: pairs of threads hand a token to and fro as fast as they can. TURNS of a loop between two tokens, by the
// first thread of each pair, make it slower.
//
// The first thread of each pair waits in `seventy` for seven of ten tokens, and in `thirty` for the others. Both call the same function
// with frames of the same size. The main thread sleeps 10 ms again and again in `nap`. KIND: pipe, futex, condition, epoll. Prints the
// tokens, the CPU time of the process in ns, and its context switches.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone, noipa))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

enum kind { PIPE, FUTEX, CONDITION, EPOLL };

// One direction: what is sent is received once.
struct way {
  int from, to, poll;
  _Atomic uint32_t full;
  pthread_mutex_t mutex;
  pthread_cond_t filled;
};

struct pair {
  struct way there, back;
  // The token that comes is the last one.
  _Atomic int last;
};

static enum kind kind;
static _Atomic int over;
static uint64_t turns;

static void open_way(struct way *way) {
  int ends[2];
  memset(way, 0, sizeof *way);
  pthread_mutex_init(&way->mutex, 0);
  pthread_cond_init(&way->filled, 0);
  if (kind == PIPE && pipe(ends) == 0) way->from = ends[0], way->to = ends[1];
  if (kind == EPOLL) {
    way->from = way->to = eventfd(0, 0);
    way->poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(way->poll, EPOLL_CTL_ADD, way->from, &event);
  }
}

static void give(struct way *way) {
  uint64_t one = 1;
  switch (kind) {
    case PIPE:
      if (write(way->to, &one, 1) != 1) abort();
      break;
    case EPOLL:
      if (write(way->to, &one, 8) != 8) abort();
      break;
    case FUTEX:
      atomic_store(&way->full, 1);
      syscall(SYS_futex, &way->full, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
      break;
    case CONDITION:
      pthread_mutex_lock(&way->mutex);
      atomic_store(&way->full, 1);
      pthread_mutex_unlock(&way->mutex);
      pthread_cond_signal(&way->filled);
  }
}

NOINLINE void receive(struct way *way) {
  uint64_t word;
  struct epoll_event event;
  switch (kind) {
    case PIPE:
      if (read(way->from, &word, 1) != 1) abort();
      break;
    case EPOLL:
      if (epoll_wait(way->poll, &event, 1, -1) != 1 || read(way->from, &word, 8) != 8) abort();
      break;
    case FUTEX:
      while (!atomic_exchange(&way->full, 0)) syscall(SYS_futex, &way->full, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
      break;
    case CONDITION:
      pthread_mutex_lock(&way->mutex);
      while (!atomic_exchange(&way->full, 0)) pthread_cond_wait(&way->filled, &way->mutex);
      pthread_mutex_unlock(&way->mutex);
  }
  KEEP_FRAME();
}

NOINLINE void seventy(struct way *way) {
  receive(way);
  KEEP_FRAME();
}

NOINLINE void thirty(struct way *way) {
  receive(way);
  KEEP_FRAME();
}

NOINLINE void nap(void) {
  usleep(10000);
  KEEP_FRAME();
}

static void *answer(void *argument) {
  struct pair *pair = argument;
  pthread_setname_np(pthread_self(), "answers");
  for (;;) {
    receive(&pair->there);
    if (atomic_load(&pair->last)) return 0;
    give(&pair->back);
  }
}

static void *ask(void *argument) {
  struct pair *pair = argument;
  pthread_setname_np(pthread_self(), "asks");
  uint64_t tokens = 0;
  for (; !atomic_load(&over); tokens++) {
    give(&pair->there);
    if (tokens % 10 < 7) seventy(&pair->back);
    else thirty(&pair->back);
    for (uint64_t turn = 0; turn < turns; turn++) KEEP_FRAME();
  }
  atomic_store(&pair->last, 1);
  give(&pair->there);
  return (void *)tokens;
}

int main(int count, char **words) {
  const char *kinds[] = {"pipe", "futex", "condition", "epoll"};
  if (count != 4 && count != 5) return 2;
  if (count == 5) turns = strtoull(words[4], 0, 10);
  for (int index = 0; index < 4; index++)
    if (strcmp(kinds[index], words[1]) == 0) kind = index;
  int pairs = atoi(words[2]);
  struct pair *all = calloc(pairs, sizeof *all);
  pthread_t *asking = calloc(pairs, sizeof *asking), *answering = calloc(pairs, sizeof *answering);
  for (int index = 0; index < pairs; index++) {
    open_way(&all[index].there), open_way(&all[index].back);
    pthread_create(&answering[index], 0, answer, &all[index]);
    pthread_create(&asking[index], 0, ask, &all[index]);
  }
  for (int rest = atoi(words[3]); rest > 0; rest -= 10) nap();
  atomic_store(&over, 1);
  uint64_t tokens = 0;
  for (int index = 0; index < pairs; index++) {
    void *own;
    pthread_join(asking[index], &own), pthread_join(answering[index], 0);
    tokens += (uint64_t)own;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  uint64_t us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ull + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  printf("tokens %lu cpu_ns %lu switches %ld\n", tokens, us * 1000, usage.ru_nvcsw + usage.ru_nivcsw);
}
