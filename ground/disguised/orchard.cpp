// defect: world transforms of all trees are computed again in each frame, though only the cart moves
// kinds: unchanged-work, full-scan-each-step, called-very-often
// guilty: Scene::update, Node::refresh
// build: -O2 -g
// options: --step Scene::update
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

using Matrix = std::array<double, 16>;

static Matrix times(const Matrix &a, const Matrix &b) {
    Matrix c{};
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 4; ++k)
            for (int j = 0; j < 4; ++j) c[i * 4 + j] += a[i * 4 + k] * b[k * 4 + j];
    return c;
}

struct Node {
    Matrix local{}, world{};
    bool moved = true;
    __attribute__((noinline)) void refresh(const Matrix &parent) { world = times(parent, local); }
};

struct Scene {
    std::vector<Node> trees{20000};
    Matrix root{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    bool always;
    double cart = 0;
    __attribute__((noinline)) void update() {
        for (auto &tree : trees)
            if (always || tree.moved) { tree.refresh(root); tree.moved = false; }
        for (int i = 0; i < 20000; ++i) cart += 1e-6 * std::sin(cart + i);
    }
};

int main(int argc, char **argv) {
    Scene scene;
    scene.always = argc > 1 && !std::strcmp(argv[1], "slow");
    for (auto &tree : scene.trees) tree.local = scene.root;
    for (;;) scene.update();
}
