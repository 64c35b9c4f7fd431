// defect: each command is forced to the disk before the loop goes on
// kinds: file-wait
// guilty: teleop::Journal::Write
// build: -O2 -g
// strip: -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include "stepscope.h"

namespace teleop {
struct Journal {
    int file; bool forced;
    __attribute__((noinline)) void Write(double command) {
        if (write(file, &command, sizeof command) < 0) std::abort();
        if (forced) fdatasync(file);
    }
};
}

int main(int argc, char **argv) {
    char path[] = "/var/tmp/teleopXXXXXX";
    teleop::Journal journal{mkstemp(path), argc > 1 && !std::strcmp(argv[1], "slow")};
    unlink(path);
    double command = 0;
    for (long step = 0;; ++step) {
        STEPSCOPE_STEP(step * 0.01);
        for (int i = 0; i < 60000; ++i) command += 1e-6 * std::sin(command + i);
        journal.Write(command);
        if (step % 5000 == 4999 && ftruncate(journal.file, 0) < 0) return 1;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}
