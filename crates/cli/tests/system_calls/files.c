/* Writes 6000 files of a byte, each once, and one file in each round. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void save(const char *name) {
    int file = open(name, O_WRONLY | O_CREAT, 0644);
    if (file < 0 || write(file, "x", 1) != 1)
        exit(1);
    close(file);
}

int main(void) {
    for (int round = 0; round < 6000; round++) {
        char name[32];
        snprintf(name, sizeof name, "file-%d", round);
        save(name);
        save("log");
    }
}
