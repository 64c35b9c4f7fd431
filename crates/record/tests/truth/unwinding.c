// Stacks that unwind tables alone do not explain: signal handlers, code without tables, very deep recursion.
//
// usage: unwinding CASE
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "work.h"

static const int64_t MS = 1000000;

// A signal handler that works, above a loop that it interrupts.
static volatile int handled;
NOINLINE void handler_work(void) { BURN(20 * MS); KEEP_FRAME(); }
static void handler(int number) {
  handler_work();
  handled += number != 0;
}
NOINLINE void interrupted(void) {
  while (handled < 15) BURN_WHILE(0);
}
NOINLINE void caller_of_interrupted(void) { interrupted(); KEEP_FRAME(); }
static void signals(int flags) {
  stack_t other = {.ss_size = 256 << 10};
  other.ss_sp = mmap(NULL, other.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&other, NULL);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | flags};
  sigaction(SIGPROF, &action, NULL);
  // The timer counts CPU time, the handler's as well.
  const struct itimerval every = {{0, 25000}, {0, 25000}};
  setitimer(ITIMER_PROF, &every, NULL);
  caller_of_interrupted();
  // No signal comes in `main` then.
  setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
}

// Assembly without tables: a leaf that saves registers, and a loop around a call, which no epilogue follows.
#ifdef __x86_64__
__asm__(
    ".text\n.globl assembly_leaf\n.type assembly_leaf, @function\n"
    "assembly_leaf: push %rbx\n push %r12\n sub $40, %rsp\n mov %rdi, %rbx\n"
    "1: imul %rbx, %r12\n add $1, %r12\n dec %rbx\n jnz 1b\n"
    "add $40, %rsp\n pop %r12\n pop %rbx\n ret\n.size assembly_leaf, . - assembly_leaf\n"
    ".globl assembly_loop\n.type assembly_loop, @function\n"
    "assembly_loop: push %rbp\n push %rbx\n sub $24, %rsp\n mov %rdi, %rbx\n mov $3, %ebp\n"
    "2: call *%rbx\n dec %ebp\n jnz 2b\n"
    "add $24, %rsp\n pop %rbx\n pop %rbp\n ret\n.size assembly_loop, . - assembly_loop\n"
    ".globl assembly_once\n.type assembly_once, @function\n"
    "assembly_once: push %rbx\n sub $16, %rsp\n call *%rdi\n add $16, %rsp\n pop %rbx\n ret\n"
    ".size assembly_once, . - assembly_once\n");
#else
void assembly_leaf(long n) { while (n--) KEEP_FRAME(); }
void assembly_loop(void (*f)(void)) { for (int i = 0; i < 3; ++i) f(); }
void assembly_once(void (*f)(void)) { f(); KEEP_FRAME(); }
#endif
void assembly_leaf(long rounds);
void assembly_loop(void (*callback)(void));
void assembly_once(void (*callback)(void));
NOINLINE void called_by_assembly(void) { BURN(10 * MS); KEEP_FRAME(); }
NOINLINE void called_once_by_assembly(void) { BURN(10 * MS); KEEP_FRAME(); }
NOINLINE void calls_assembly(void) {
  for (int i = 0; i < 10; ++i) assembly_loop(called_by_assembly);
  KEEP_FRAME();
}
NOINLINE void calls_assembly_once(void) {
  for (int i = 0; i < 30; ++i) assembly_once(called_once_by_assembly);
  KEEP_FRAME();
}
NOINLINE void calls_assembly_leaf(void) {
  for (const int64_t until = thread_cpu_ns() + 300 * MS; thread_cpu_ns() < until;) assembly_leaf(20000);
  KEEP_FRAME();
}

// A callback of the C library, which musl builds without tables.
NOINLINE int slow_compare(const void* a, const void* b) {
  BURN_WHILE(0);
  return *(const int*)a - *(const int*)b;
}
NOINLINE void sorting(void) {
  static int values[3000];
  for (int i = 0; i < 600; ++i) values[i] = (int)((i * 2654435761u) >> 16);
  qsort(values, 600, sizeof(int), slow_compare);
  KEEP_FRAME();
}

// Recursion deeper than any stack that is kept whole. It rests at its end for long: the recorder reads such a stack a little
// later, on a busy machine much later.
NOINLINE int descend(int depth, volatile char* up) {
  volatile char frame[64];
  frame[0] = up ? up[0] : 1;
  if (depth == 0) {
    BURN(400 * MS);
    return frame[0];
  }
  const int result = descend(depth - 1, frame);
  KEEP_FRAME();
  return result + frame[0];
}
NOINLINE void bottomless(void) {
  descend(20000, NULL);
  // The last samples are read while the process still lives.
  usleep(200000);
}

int main(int argc, char** argv) {
  const char* which = argc > 1 ? argv[1] : "";
  if (!strcmp(which, "signal")) signals(0);
  else if (!strcmp(which, "signal-alternate-stack")) signals(SA_ONSTACK);
  else if (!strcmp(which, "assembly")) calls_assembly(), calls_assembly_once();
  else if (!strcmp(which, "assembly-leaf")) calls_assembly_leaf();
  else if (!strcmp(which, "sort")) sorting();
  else if (!strcmp(which, "bottomless")) bottomless();
  else return fprintf(stderr, "usage: unwinding CASE\n"), 2;
  const int64_t total = thread_cpu_ns();
  printf("truth total %lld\n", (long long)total);
  return 0;
}
