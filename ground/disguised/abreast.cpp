// defect: the counters of the two lane workers lie in one cache line, and each vehicle of each worker adds to them
// kinds: false-sharing
// guilty: Plain::at, Plain, Worker::roll, Worker::glide, Worker::tally
// phase: steady
// gain: 42
//
// Traffic on a motorway: two workers move the vehicles of a half of the lanes each, and the main thread changes lanes, lets vehicles in
// and out, runs the signs above the road, and writes detector readings.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

enum Counter { MOVED, BRAKED, STOPPED, METRES, COUNTERS };

// Where the counters of a worker are.
struct Bank {
    virtual ~Bank() = default;
    virtual std::atomic<uint64_t>* at(int worker) = 0;
};
struct Plain : Bank {
    std::atomic<uint64_t>* at(int worker) override { return &all_[worker * COUNTERS]; }
    alignas(64) std::atomic<uint64_t> all_[2 * COUNTERS] = {};
};
struct Apart : Bank {
    std::atomic<uint64_t>* at(int worker) override { return all_[worker].of; }
    struct alignas(128) One {
        std::atomic<uint64_t> of[COUNTERS] = {};
    };
    One all_[2];
};

struct Car {
    float at, speed, wish, length;
    uint32_t id;
    uint16_t exit, patience;
};

struct Lane {
    std::vector<Car> cars;  // by place, first is foremost
    float limit = 33;
};

// Moves the cars of some lanes.
class Worker {
public:
    Worker(int number, Bank& bank) : counters_(bank.at(number)) {}
    void roll(std::vector<Lane>& lanes, size_t first, size_t last) {
        for (size_t l = first; l < last; l++) {
            Lane& lane = lanes[l];
            for (size_t i = 0; i < lane.cars.size(); i++) glide(lane, i);
            tally(MOVED, lane.cars.size());
        }
    }

private:
    void glide(Lane& lane, size_t i) {
        Car& car = lane.cars[i];
        float gap = i ? lane.cars[i - 1].at - lane.cars[i - 1].length - car.at : 1e4f, ahead = i ? lane.cars[i - 1].speed : 99;
        // The intelligent driver model.
        float wish = std::min(car.wish, lane.limit), need = 2 + car.speed * 1.2f + car.speed * (car.speed - ahead) / (2 * std::sqrt(1.4f * 2.0f));
        float ratio = car.speed / wish, close = need / std::max(gap, 0.5f);
        float push = 1.4f * (1 - ratio * ratio * ratio * ratio - close * close);
        float before = car.speed;
        car.speed = std::max(0.0f, car.speed + std::max(push, -7.0f) * 0.1f);
        car.at += car.speed * 0.1f;
        tally(METRES, uint64_t(car.speed * 10));
        if (car.speed < before) tally(BRAKED, 1);
        if (car.speed < 0.1f) tally(STOPPED, 1);
    }
    void tally(Counter which, uint64_t by) { counters_[which].fetch_add(by, std::memory_order_relaxed); }
    std::atomic<uint64_t>* counters_;
};

// Starts and ends of a part of the step, for the workers.
class Gate {
public:
    explicit Gate(int parties) : parties_(parties) {}
    void pass() {
        std::unique_lock lock(mutex_);
        long turn = turn_;
        if (++arrived_ == parties_) {
            arrived_ = 0, turn_++;
            lock.unlock();
            opens_.notify_all();
            return;
        }
        opens_.wait(lock, [&] { return turn_ != turn; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opens_;
    int parties_, arrived_ = 0;
    long turn_ = 0;
};

// A thread keeps to one CPU, as on the target.
void keep_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

class Motorway {
public:
    Motorway(std::unique_ptr<Bank> bank, int lanes, int cars) : bank_(std::move(bank)), lanes_(lanes), gate_(2) {
        for (int l = 0; l < lanes; l++)
            for (int i = 0; i < cars; i++) lanes_[l].cars.push_back(fresh(LENGTH - float(i) * LENGTH / float(cars)));
        loops_.resize(size_t(lanes) * 64);
        helper_ = std::thread([this] {
            keep_to(1);
            Worker worker(1, *bank_);
            for (;;) {
                gate_.pass();
                if (ends_) return;
                worker.roll(lanes_, lanes_.size() / 2, lanes_.size());
                gate_.pass();
            }
        });
        keep_to(0);
        mine_ = std::make_unique<Worker>(0, *bank_);
    }
    ~Motorway() {
        ends_ = true;
        gate_.pass();
        helper_.join();
    }
    void step() {
        gate_.pass();
        mine_->roll(lanes_, 0, lanes_.size() / 2);
        gate_.pass();
        change();
        ends();
        detectors();
        signs();
        if (step_ % 10 == 0) report();
        step_++;
    }
    double sum() const {
        double s = 0;
        for (const Lane& one : lanes_)
            for (const Car& car : one.cars) s += car.at * 1e-3;
        for (int k = 0; k < COUNTERS; k++) s += double(total(k) % 10007);
        return s + double(text_.size());
    }

private:
    static constexpr float LENGTH = 40000;
    uint64_t total(int which) const { return bank_->at(0)[which] + bank_->at(1)[which]; }
    uint32_t random() {
        seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(seed_ >> 33);
    }
    Car fresh(float at) {
        return {at, 20, 24 + float(random() % 140) * 0.1f, random() % 8 ? 4.5f : 14.0f, next_++, uint16_t(random() % 12), 0};
    }
    // Some cars of a part of each lane look for a gap beside them.
    void change() {
        for (size_t l = 0; l + 1 < lanes_.size(); l++) {
            std::vector<Car>&here = lanes_[l].cars, &there = lanes_[l + 1].cars;
            int moved = 0;
            for (size_t i = 1 + (step_ * 5 + l) % 11; i < here.size() && moved < 3; i += 11) {
                Car& car = here[i];
                if (here[i - 1].at - car.at > car.speed * 2 || car.speed > car.wish * 0.8f) continue;
                auto next = std::lower_bound(there.begin(), there.end(), car.at, [](const Car& a, float at) { return a.at > at; });
                bool room = (next == there.begin() || (next - 1)->at - (next - 1)->length - car.at > 12) && (next == there.end() || car.at - car.length - next->at > 12);
                if (!room) {
                    car.patience++;
                    continue;
                }
                Car copy = car;
                here.erase(here.begin() + long(i));
                there.insert(next, copy);
                moved++;
            }
        }
    }
    void ends() {
        for (Lane& one : lanes_) {
            size_t gone = 0;
            while (gone < one.cars.size() && one.cars[gone].at > LENGTH) gone++;
            if (gone) {
                left_ += gone;
                one.cars.erase(one.cars.begin(), one.cars.begin() + long(gone));
            }
            waiting_ += gone;
            while (waiting_ && (one.cars.empty() || one.cars.back().at > 40)) one.cars.push_back(fresh(0)), waiting_--;
        }
    }
    // Speeds at loops in the road.
    void detectors() {
        for (size_t l = 0; l < lanes_.size(); l++) {
            float* loops = &loops_[l * 64];
            for (const Car& car : lanes_[l].cars) {
                int k = int(car.at * (64 / LENGTH));
                if (k >= 0 && k < 64) loops[k] += 0.02f * (car.speed - loops[k]);
            }
        }
    }
    // Limits from a smoothed speed, and which signs show them.
    void signs() {
        for (size_t l = 0; l < lanes_.size(); l++) {
            std::vector<float> sorted(&loops_[l * 64], &loops_[l * 64] + 64);
            std::nth_element(sorted.begin(), sorted.begin() + 16, sorted.end());
            lanes_[l].limit = std::clamp(std::round((sorted[16] + 14) / 2.5f) * 2.5f, 22.0f, 36.0f);
            shown_[int(lanes_[l].limit * 2)]++;
        }
    }
    void report() {
        if (text_.size() > 100'000) text_.clear();
        for (size_t l = 0; l < lanes_.size(); l++)
            for (int k = 0; k < 64; k += 8) {
                char line[64];
                text_.append(line, size_t(std::snprintf(line, sizeof line, "%ld;%zu;%d;%.1f\n", step_, l, k, loops_[l * 64 + size_t(k)])));
            }
    }
    std::unique_ptr<Bank> bank_;
    std::vector<Lane> lanes_;
    Gate gate_;
    std::thread helper_;
    std::unique_ptr<Worker> mine_;
    std::atomic<bool> ends_{false};
    std::vector<float> loops_;
    std::unordered_map<int, long> shown_;
    std::string text_;
    uint64_t seed_ = 99, left_ = 0, waiting_ = 0;
    uint32_t next_ = 1;
    long step_ = 0;
};

int main(int argc, char** argv) {
    bool plain = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : 1L << 40;
    std::unique_ptr<Bank> bank;
    if (plain)
        bank = std::make_unique<Plain>();
    else
        bank = std::make_unique<Apart>();
    Motorway road(std::move(bank), 12, 2000);
    for (long i = 0; i < steps; i++) road.step();
    std::printf("sum %.6f\n", road.sum());
}
