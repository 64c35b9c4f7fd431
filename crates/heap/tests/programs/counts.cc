// Allocations of known numbers. It prints nothing, so that the C library allocates nothing of its own.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <csignal>
#include <new>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define KEEP(block) asm volatile("" ::"r"(block) : "memory")

NOINLINE void temporaries() {
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(100);
        KEEP(block);
        free(block);
    }
}

NOINLINE void not_temporary() {
    for (int i = 0; i < 500; i++) {
        void *one = malloc(40), *two = malloc(50);
        KEEP(one);
        KEEP(two);
        free(one);
        free(two);
    }
}

NOINLINE void leaks() {
    for (int i = 0; i < 7; i++) {
        void *block = malloc(1000);
        KEEP(block);
    }
}

/// The compiler must not see that a block is not used.
NOINLINE void *used(void *block) {
    KEEP(block);
    return block;
}

NOINLINE void family() {
    void *block = used(calloc(3, 11));
    block = used(realloc(block, 200));
    block = used(reallocarray(block, 4, 100));
    free(block);
    if (posix_memalign(&block, 64, 640) == 0)
        free(used(block));
    if (posix_memalign(&block, 3, 640) != EINVAL)
        abort();
    free(used(aligned_alloc(128, 256)));
    free(used(memalign(32, 96)));
    free(used(valloc(5000)));
    free(used(pvalloc(5000)));
    delete (char *)used(new char);
    delete[] (long *)used(new long[10]);
    struct alignas(128) Wide { char bytes[128]; };
    delete (Wide *)used(new Wide);
    errno = 0;
    volatile size_t most = ~(size_t)0 / 2;
    if (used(malloc(most)) || errno != ENOMEM)
        abort();
    void *kept = used(malloc(77));
    if (realloc(kept, most) || reallocarray(kept, most, 3))
        abort();
    if (malloc_usable_size(kept) < 77)
        abort();
    free(kept);
    free(nullptr);
    kept = used(malloc(5));
    if (realloc(kept, 0))
        abort();
}

NOINLINE void peak() {
    char *large = (char *)malloc(1 << 20);
    KEEP(large);
    char *small = (char *)malloc(1000);
    KEEP(small);
    free(large);
    free(small);
    for (int i = 0; i < 10; i++) {
        void *block = malloc(70000);
        KEEP(block);
        free(block);
    }
}

static void *blocks[200];
static void *allocate(void *) {
    for (void *&block : blocks)
        block = malloc(48);
    return nullptr;
}
static void *release(void *) {
    for (void *block : blocks)
        free(block);
    return nullptr;
}
static void *both(void *) {
    for (int i = 0; i < 50; i++) {
        void *block = malloc(16);
        KEEP(block);
        free(block);
    }
    return nullptr;
}
NOINLINE void threads() {
    pthread_t thread;
    pthread_create(&thread, nullptr, allocate, nullptr);
    pthread_join(thread, nullptr);
    pthread_create(&thread, nullptr, release, nullptr);
    pthread_join(thread, nullptr);
    pthread_t many[8];
    for (int round = 0; round < 40; round++) {
        for (pthread_t &one : many)
            pthread_create(&one, nullptr, both, nullptr);
        for (pthread_t one : many)
            pthread_join(one, nullptr);
    }
}

NOINLINE void in_child() {
    for (int i = 0; i < 33; i++) {
        void *block = malloc(1);
        KEEP(block);
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "exec")) {
        in_child();
        execl(arguments[0], arguments[0], "leaks", nullptr);
    } else if (!strcmp(what, "leaks")) {
        leaks();
        _exit(0);
    } else if (!strcmp(what, "fork")) {
        leaks();
        void *of_parent = used(malloc(10));
        pid_t child = fork();
        if (child == 0) {
            free(of_parent);
            in_child();
            _exit(0);
        }
        waitpid(child, nullptr, 0);
    } else if (!strcmp(what, "kill")) {
        leaks();
        kill(getpid(), 9);
    } else if (!strcmp(what, "threads")) {
        threads();
    } else if (!strcmp(what, "bursts")) {
        for (int i = 0; i < 5; i++) {
            in_child();
            usleep(20000);
        }
        _exit(0);
    } else if (!strcmp(what, "peak")) {
        peak();
    } else {
        temporaries();
        not_temporary();
        leaks();
        family();
    }
    return 0;
}
