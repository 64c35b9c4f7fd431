// defect: none; two series are aligned by dynamic programming, and histograms of bytes are made
// kinds: -
// guilty: -
// build: -O3 -g
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 400
static int table[N + 1][N + 1];
static unsigned counts[256];
__attribute__((noinline)) int align(const int *a, const int *b) {
    for (int i = 1; i <= N; ++i)
        for (int k = 1; k <= N; ++k) {
            int d = a[i - 1] > b[k - 1] ? a[i - 1] - b[k - 1] : b[k - 1] - a[i - 1];
            int m = table[i - 1][k - 1];
            if (table[i - 1][k] < m) m = table[i - 1][k];
            if (table[i][k - 1] < m) m = table[i][k - 1];
            table[i][k] = d + m;
        }
    return table[N][N];
}
__attribute__((noinline)) uint32_t digest(const unsigned char *bytes, int n) {
    uint32_t hash = 2166136261u;
    for (int i = 0; i < n; ++i) { hash = (hash ^ bytes[i]) * 16777619u; ++counts[bytes[i]]; }
    return hash;
}
__attribute__((noinline)) int words(const char *text, int n) {
    int count = 0, at = 0;
    while (at < n) { while (at < n && text[at] == ' ') ++at; if (at < n) ++count; while (at < n && text[at] != ' ') ++at; }
    return count;
}
int main(int argc, char **argv) {
    long steps = argc > 2 ? atol(argv[2]) : -1;
    static int a[N], b[N];
    static unsigned char bytes[60000];
    uint64_t sum = 0;
    for (long step = 0; step != steps; ++step) {
        for (int i = 0; i < N; ++i) { a[i] = (int)((i * 31 + step) % 211); b[i] = (int)((i * 17 + step * 3) % 223); }
        for (int i = 0; i < 60000; ++i) bytes[i] = (unsigned char)(((i + step) * 2654435761u) >> 27 ? 'a' + i % 20 : ' ');
        sum += (uint64_t)align(a, b) + digest(bytes, 60000) + (uint64_t)words((char *)bytes, 60000);
    }
    printf("%lu\n", (unsigned long)sum);
}
