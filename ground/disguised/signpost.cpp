// defect: each walker asks for the next post by a name that a helper puts together, though posts have numbers
// kinds: text-keys-each-step, allocations-each-step, values-through-text
// guilty: signpost::Trail::Next, signpost::Trail::Name
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace signpost {
struct Post {
    double x, y;
};

struct Trail {
    std::map<std::string, Post> named;
    std::vector<Post> posts;
    static std::string Name(int valley, int post) {
        std::string name = "valley-";
        name += static_cast<char>('a' + valley % 26);
        name += "/post-";
        name += static_cast<char>('0' + post / 10 % 10);
        name += static_cast<char>('0' + post % 10);
        return name;
    }
    Trail() {
        for (int valley = 0; valley < 26; ++valley)
            for (int post = 0; post < 100; ++post) {
                Post one{valley * 10.0 + std::sin(post), post * 2.0};
                named[Name(valley, post)] = one;
                posts.push_back(one);
            }
    }
    __attribute__((noinline)) const Post &Next(int valley, int post, bool slow) {
        if (slow) return named.find(Name(valley, post))->second;
        return posts[valley % 26 * 100 + post % 100];
    }
};

struct Walker {
    double x = 0, y = 0, tired = 0;
    int valley, post = 0;
    __attribute__((noinline)) void Walk(const Post &to, double t) {
        for (int i = 0; i < 30; ++i) {
            double dx = to.x - x, dy = to.y - y, far = std::sqrt(dx * dx + dy * dy) + 0.1;
            x += 0.02 * dx / far;
            y += 0.02 * dy / far;
            tired += std::exp(-far) * std::sin(t + i);
        }
        post += 1;
    }
};
} // namespace signpost

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    signpost::Trail trail;
    std::vector<signpost::Walker> walkers(300);
    for (int i = 0; i < 300; ++i) walkers[i].valley = i;
    for (double t = 0;; t += 0.01)
        for (auto &walker : walkers) walker.Walk(trail.Next(walker.valley, walker.post, slow), t);
}
