// Stacks that are hard to unwind. Each function allocates through several frames.
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline))

void *volatile kept;
NOINLINE void take(size_t size) {
    void *block = malloc(size);
    asm volatile("" ::"r"(block) : "memory");
    free(block);
    asm volatile("");
}

NOINLINE void with_alloca(int n) {
    char *room = (char *)alloca(n * 24 + 8);
    memset(room, n, n * 24 + 8);
    take(n + 1);
    asm volatile("" ::"r"(room) : "memory");
}

NOINLINE void aligned_locals(int n) {
    alignas(64) char room[128];
    memset(room, n, sizeof room);
    asm volatile("" ::"r"(room) : "memory");
    with_alloca(n);
    take(n + 2);
    asm volatile("" ::"r"(room) : "memory");
}

NOINLINE void tail_called(int n) { take(n + 3); }
NOINLINE void tail_caller(int n) {
    if (n & 1)
        return tail_called(n + 1);
    return with_alloca(n);
}

// The same callee from two places at the same depth: only an outer return address differs.
NOINLINE void inner(int n) { take(n); asm volatile(""); }
NOINLINE void middle(int n) { inner(n); asm volatile(""); }
NOINLINE void two_places(int n) {
    middle(n);
    asm volatile("");
    middle(n);
    asm volatile("");
}

NOINLINE int recursive(int n) {
    volatile char pad[40];
    pad[0] = (char)n;
    if (n % 7 == 0)
        take(n + 8);
    return n == 0 ? pad[0] : recursive(n - 1) + pad[0];
}

NOINLINE void thrower(int n) {
    std::string text(n + 40, 'x');
    if (n % 3)
        throw std::runtime_error(text);
    take(n);
}
NOINLINE void catcher(int n) {
    try {
        thrower(n);
    } catch (const std::exception &error) {
        std::string copy = error.what();
        take(copy.size());
    }
}

static jmp_buf back;
NOINLINE void jumper(int n) {
    take(n + 5);
    if (n % 2)
        longjmp(back, 1);
}
NOINLINE void jumps(int n) {
    if (setjmp(back) == 0)
        with_alloca(n), jumper(n);
    else
        take(n + 6);
}

static ucontext_t main_context, task[2];
static void run_task(int which) {
    for (int i = 0; i < 20; i++) {
        tail_caller(i + which);
        recursive(i);
        swapcontext(&task[which], &main_context);
    }
}
NOINLINE void coroutines() {
    const size_t bytes = 256 << 10;
    char *stacks[2];
    for (int which = 0; which < 2; which++) {
        stacks[which] = (char *)malloc(bytes);
        getcontext(&task[which]);
        task[which].uc_stack.ss_sp = stacks[which];
        task[which].uc_stack.ss_size = bytes;
        task[which].uc_link = &main_context;
        makecontext(&task[which], (void (*)())run_task, 1, which);
    }
    for (int i = 0; i < 20; i++)
        for (int which = 0; which < 2; which++) {
            swapcontext(&main_context, &task[which]);
            take(i);
        }
    for (char *stack : stacks)
        free(stack);
}

static volatile int handled;
static void handler(int) {
    handled = handled + 1;
    take(100 + handled % 3);
}
NOINLINE void signals(int flags) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(SIGUSR1, &action, nullptr);
    for (int i = 0; i < 50; i++) {
        raise(SIGUSR1);
        if (i % 5 == 0)
            with_alloca(i), kill(getpid(), SIGUSR1);
    }
}

NOINLINE void any_place(int n) {
    switch (n % 4) {
    case 0: return two_places(n);
    case 1: return aligned_locals(n);
    case 2: return catcher(n);
    default: return jumps(n);
    }
}

int main() {
    for (int i = 0; i < 500; i++) {
        with_alloca(i % 13);
        aligned_locals(i % 7);
        tail_caller(i);
        two_places(i % 5 + 1);
        catcher(i);
        jumps(i);
        any_place(i * 7 / 3);
    }
    for (int depth = 1; depth < 400; depth += 13)
        recursive(depth);
    coroutines();
    signals(0);
    static char other_stack[1 << 16];
    stack_t other = {};
    other.ss_sp = other_stack;
    other.ss_size = sizeof other_stack;
    sigaltstack(&other, nullptr);
    signals(SA_ONSTACK);
    kept = malloc(12345);
    return 0;
}
