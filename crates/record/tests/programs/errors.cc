// Programs with known memory errors.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
__attribute__((noinline)) void use_after_free() {
    int *block = static_cast<int *>(malloc(40));
    free(block);
    *(volatile int *)(block + 2) = 1;
}
__attribute__((noinline)) void overflow() {
    volatile char *block = static_cast<char *>(malloc(10));
    block[10] = 1;
    free((void *)block);
}
__attribute__((noinline)) void leak() {
    volatile char *block = static_cast<char *>(malloc(33));
    block[0] = 1;
}
__attribute__((noinline)) int uninitialised() {
    int *block = static_cast<int *>(malloc(16));
    int value = *(volatile int *)(block + 1);
    free(block);
    return value > 3 ? puts("many") : 0;
}
static int shared;
__attribute__((noinline)) void count() { for (int i = 0; i < 1000; ++i) *(volatile int *)&shared += 1; }
__attribute__((noinline)) int signed_overflow(int by) { volatile int most = INT_MAX; return most + by; }
int main(int argc, char **argv) {
    std::string what = argc > 1 ? argv[1] : "";
    for (int i = 0; i < 3; ++i) {
        if (what == "use") use_after_free();
        if (what == "overflow") overflow();
        if (what == "leak") leak();
        if (what == "uninitialised") uninitialised();
        if (what == "signed") signed_overflow(i + 1);
    }
    if (what == "race") { std::thread other(count); count(); other.join(); }
    return 0;
}
