// defect: the next letter is erased from the front of a long vector, which moves all others
// kinds: elements-moved-each-step
// guilty: post::Box::Take, post::Office::Round
// build: -O2 -g
#include <cmath>
#include <cstring>
#include <deque>
#include <vector>

namespace post {
struct Letter { int to; double weight, stamp; };

class Box {
public:
    explicit Box(bool slow) : slow_(slow) {}
    void Put(const Letter &letter) { if (slow_) letters_.push_back(letter); else queue_.push_back(letter); }
    __attribute__((noinline)) Letter Take() {
        Letter first;
        if (slow_) { first = letters_.front(); letters_.erase(letters_.begin()); }
        else { first = queue_.front(); queue_.pop_front(); }
        return first;
    }

private:
    bool slow_;
    std::vector<Letter> letters_;
    std::deque<Letter> queue_;
};

class Office {
public:
    explicit Office(bool slow) : box_(slow), bags_(500) {
        for (int i = 0; i < 20000; ++i) box_.Put({i % 500, 1.0 + i % 7, 0.1 * i});
    }
    void Round(int at) {
        for (int i = 0; i < 30; ++i) {
            Letter letter = box_.Take();
            bags_[letter.to] += letter.weight;
            letter.to = (letter.to * 7 + at) % 500;
            box_.Put(letter);
        }
        Sort();
    }
    __attribute__((noinline)) void Sort() {
        for (int round = 0; round < 10; ++round)
            for (double &bag : bags_) bag = 0.99 * bag + 0.01 * std::sin(bag);
    }

private:
    Box box_;
    std::vector<double> bags_;
};
} // namespace post

int main(int argc, char **argv) {
    post::Office office(argc > 1 && !std::strcmp(argv[1], "slow"));
    for (int at = 0;; ++at) office.Round(at);
}
