// Allocates much, below 30 frames: temporary strings for look-ups in a map, a tree that is rebuilt each step, and blocks of random
// sizes that live for a while.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct Node {
    std::vector<std::unique_ptr<Node>> children;
    std::string name;
};

static std::map<std::string, int> table;
static std::mt19937 choice(1);
static std::vector<std::vector<char>> kept(1000);

NOINLINE int look_up(const char *name) {
    auto found = table.find(std::string(name) + ", which is too long for a short string");
    return found == table.end() ? 0 : found->second;
}

NOINLINE std::unique_ptr<Node> build(int depth) {
    auto node = std::make_unique<Node>();
    node->name = "node at depth " + std::to_string(depth) + " of the tree";
    for (int child = 0; depth > 0 && child < 3; child++)
        node->children.push_back(build(depth - 1));
    return node;
}

NOINLINE void keep() {
    for (int i = 0; i < 50; i++)
        kept[choice() % kept.size()] = std::vector<char>(1 + choice() % 4000);
}

NOINLINE int step() {
    int sum = 0;
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "entity %d", i % 50);
        sum += look_up(name);
    }
    auto tree = build(3 + choice() % 2);
    keep();
    return sum + (int)tree->children.size();
}

template <int Depth> NOINLINE int below(int n) {
    volatile char room[16];
    room[0] = (char)n;
    int result = 0;
    if constexpr (Depth == 0)
        result = step();
    else
        result = below<Depth - 1>(n);
    asm volatile("" ::: "memory");
    return result + room[0];
}

int main(int count, char **arguments) {
    int steps = count > 1 ? atoi(arguments[1]) : 1000;
    for (int i = 0; i < 50; i++)
        table["entity " + std::to_string(i) + ", which is too long for a short string"] = i;
    long sum = 0;
    for (int i = 0; i < steps; i++)
        sum += below<24>(i);
    printf("%ld\n", sum);
}
