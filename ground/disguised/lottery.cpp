// defect: a random passenger is taken from a std::set by advancing an iterator from its beginning, which walks half of the tree each time
// kinds: list-search, chain-climbed-each-time, moved-elements-each-step, called-very-often
// guilty: lottery::Queue::Draw
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <vector>

namespace lottery {
class Queue {
public:
    Queue(int number, bool walks) : walks_(walks) {
        for (int i = 0; i < number; ++i) Join(i * 7 % (number * 7));
    }
    void Join(int passenger) {
        waiting_.insert(passenger);
        if (!walks_) row_.push_back(passenger);
    }
    __attribute__((noinline)) int Draw(std::mt19937 &generator) {
        std::size_t k = generator() % waiting_.size();
        if (!walks_) {
            int passenger = row_[k];
            row_[k] = row_.back();
            row_.pop_back();
            waiting_.erase(passenger);
            return passenger;
        }
        auto at = waiting_.begin();
        std::advance(at, k);
        int passenger = *at;
        waiting_.erase(at);
        return passenger;
    }
    bool Waits(int passenger) const { return waiting_.count(passenger) > 0; }
private:
    bool walks_;
    std::set<int> waiting_;
    std::vector<int> row_;
};
class Station {
public:
    explicit Station(bool walks) : queue_(4000, walks), seats_(120) {}
    __attribute__((noinline)) double Board() {
        double weight = 0;
        for (int &seat : seats_) {
            int old = seat;
            seat = queue_.Draw(generator_);
            weight += 50 + seat % 60;
            if (!queue_.Waits(old)) queue_.Join(old);
        }
        return weight;
    }
    __attribute__((noinline)) double Drive(double weight) {
        double speed = 0, place = 0;
        for (int i = 0; i < 4000; ++i) {
            speed += (9000 - speed * speed * 0.3) / (weight + 8000) * 0.01;
            place += speed * 0.01 + 1e-6 * std::sin(place);
        }
        return place;
    }
private:
    Queue queue_;
    std::vector<int> seats_;
    std::mt19937 generator_{7};
};
} // namespace lottery

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    lottery::Station station(slow);
    double sum = 0;
    for (long step = 0; step != steps; ++step) sum += station.Drive(station.Board());
    std::printf("%g\n", sum);
}
