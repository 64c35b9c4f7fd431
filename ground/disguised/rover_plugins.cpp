// defect: each start looks for plug-ins in many folders that do not exist
// kinds: failed-look-ups
// guilty: plugins::Find, plugins::LoadAll
// build: -O2 -g
// options: --with syscalls
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace plugins {
std::vector<std::string> folders;
__attribute__((noinline)) void *Find(const std::string &name) {
    for (const auto &folder : folders)
        if (void *handle = dlopen((folder + "/lib" + name + ".so").c_str(), RTLD_NOW)) return handle;
    return nullptr;
}
__attribute__((noinline)) int LoadAll() {
    int found = 0;
    for (int i = 0; i < 60; ++i) found += Find("rover_plugin_" + std::to_string(i)) != nullptr;
    return found;
}
}

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    for (int i = 0; i < (slow ? 120 : 1); ++i) plugins::folders.push_back("/opt/rover/" + std::to_string(i) + "/plugins");
    std::printf("%d\n", plugins::LoadAll());
    volatile double at = 0.1;
    for (;;) at = at + 1e-6 * std::sin(at);
}
