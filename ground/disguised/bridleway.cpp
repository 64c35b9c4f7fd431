// defect: when one rider's arrival changes, the whole heap of arrivals is made again, instead of moving that one key
// kinds: heap-made-again, sort-each-step, elements-moved-each-step, list-search, full-scan-each-step, same-data-each-call, superlinear-lookup
// guilty: bridleway::Calendar::Change, bridleway::Calendar::Remake, bridleway::Country::Delay, bridleway::Country::Step
// gain: 25
// build: -O2 -g
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace bridleway {

struct Arrival {
    double when;
    int rider;
    bool operator>(const Arrival &other) const { return when != other.when ? when > other.when : rider > other.rider; }
};

/// When which rider arrives at the next inn.
class Calendar {
public:
    explicit Calendar(bool heap) : heap_(heap) {}
    void Set(int rider, double when) {
        if (size_t(rider) >= times_.size()) times_.resize(size_t(rider) + 1, -1);
        times_[size_t(rider)] = when;
        if (heap_) {
            arrivals_.push_back({when, rider});
            std::push_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
        } else {
            ordered_.insert({when, rider});
        }
    }
    void Change(int rider, double when) {
        double before = times_[size_t(rider)];
        times_[size_t(rider)] = when;
        if (heap_) {
            Remake(rider, when);
        } else {
            ordered_.erase({before, rider});
            ordered_.insert({when, rider});
        }
    }
    double When(int rider) const { return times_[size_t(rider)]; }
    bool Due(double now) const {
        if (heap_) return !arrivals_.empty() && arrivals_.front().when <= now;
        return !ordered_.empty() && ordered_.begin()->first <= now;
    }
    int Take() {
        if (heap_) {
            std::pop_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
            int rider = arrivals_.back().rider;
            arrivals_.pop_back();
            return rider;
        }
        int rider = ordered_.begin()->second;
        ordered_.erase(ordered_.begin());
        return rider;
    }

private:
    void Remake(int rider, double when) {
        auto found = std::find_if(arrivals_.begin(), arrivals_.end(), [rider](const Arrival &one) { return one.rider == rider; });
        if (found == arrivals_.end()) return;
        found->when = when;
        std::make_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
    }
    bool heap_;
    std::vector<double> times_;
    std::vector<Arrival> arrivals_;
    std::set<std::pair<double, int>> ordered_;
};

/// Tiredness of a horse: muscles that fill and empty.
struct Horse {
    std::array<double, 8> muscles{};
    double heart = 40;
    void Trot(double effort) {
        for (int i = 0; i < 2; ++i)
            for (size_t k = 0; k < muscles.size(); ++k) {
                double need = effort * (1 + 0.2 * std::sin(double(k) + heart * 0.1));
                muscles[k] += 0.02 * (need - muscles[k] * 0.7);
                heart += 0.01 * (40 + 60 * muscles[k] - heart);
            }
    }
};

struct Inn {
    std::string name;
    double x, y;
    int guests = 0;
    std::vector<int> roads;
};

struct Rider {
    int from = 0, to = 0, number = 0;
    double left = 0;
    Horse horse;
};

/// Rain that drifts over the land.
class Weather {
public:
    Weather() : rain_(kSide * kSide), next_(kSide * kSide) {
        for (size_t i = 0; i < rain_.size(); ++i) rain_[i] = std::max(0.0, std::sin(double(i) * 0.013));
    }
    void Drift() {
        for (int y = 0; y < kSide; ++y)
            for (int x = 0; x < kSide; ++x) {
                int west = (x + kSide - 1) % kSide, north = (y + kSide - 1) % kSide;
                next_[size_t(y * kSide + x)] = 0.9 * rain_[size_t(y * kSide + x)] + 0.06 * rain_[size_t(y * kSide + west)] + 0.04 * rain_[size_t(north * kSide + x)];
            }
        rain_.swap(next_);
    }
    double At(double x, double y) const { return rain_[size_t(int(y * 0.64) % kSide * kSide + int(x * 0.64) % kSide)]; }

private:
    static constexpr int kSide = 64;
    std::vector<double> rain_, next_;
};

/// What was sent by which way: for the post's account.
class Post {
public:
    void Enter(const Inn &inn, int rider) {
        auto &entry = books_[inn.name];
        entry.push_back(rider);
        if (entry.size() > 50) entry.erase(entry.begin(), entry.begin() + 25);
    }
    double Weight() const {
        double sum = 0;
        for (const auto &[name, riders] : books_) sum += double(riders.size()) * double(name.size());
        return sum;
    }

private:
    std::map<std::string, std::vector<int>> books_;
};

class Country {
public:
    explicit Country(bool heap) : calendar_(heap), random_(11) {
        for (int i = 0; i < 200; ++i) inns_.push_back({"inn at the " + std::to_string(i * 7919 % 1000) + "th mile", double(random_() % 100), double(random_() % 100), 0, {}});
        for (auto &inn : inns_)
            for (int k = 0; k < 4; ++k) inn.roads.push_back(int(random_() % inns_.size()));
        for (int i = 0; i < 3000; ++i) {
            Rider rider;
            rider.number = i;
            rider.from = int(random_() % inns_.size());
            rider.to = inns_[size_t(rider.from)].roads[0];
            riders_.push_back(rider);
            calendar_.Set(i, Way(rider.from, rider.to) * (0.2 + double(random_() % 100) * 0.01));
        }
    }
    void Step() {
        now_ += 0.5;
        while (calendar_.Due(now_)) Arrive(calendar_.Take());
        Delay();
        for (auto &rider : riders_) rider.horse.Trot(0.4 + 0.1 * (rider.number % 5));
        weather_.Drift();
        for (int i = 0; i < 30; ++i) sum_ += Lookout(int(random_() % inns_.size()));
    }
    double sum() const { return sum_ + post_.Weight(); }

private:
    double Way(int from, int to) const {
        const Inn &a = inns_[size_t(from)], &b = inns_[size_t(to)];
        return 5 + std::hypot(a.x - b.x, a.y - b.y);
    }
    void Arrive(int number) {
        Rider &rider = riders_[size_t(number)];
        Inn &inn = inns_[size_t(rider.to)];
        ++inn.guests;
        post_.Enter(inn, number);
        rider.from = rider.to;
        rider.to = inn.roads[random_() % inn.roads.size()];
        --inns_[size_t(rider.from)].guests;
        calendar_.Set(number, now_ + Way(rider.from, rider.to));
    }
    /// Some riders meet rain, and come later.
    void Delay() {
        for (int i = 0; i < 30; ++i) {
            int number = int(random_() % riders_.size());
            const Inn &to = inns_[size_t(riders_[size_t(number)].to)];
            calendar_.Change(number, calendar_.When(number) + 0.3 + weather_.At(to.x, to.y));
        }
    }
    /// How many inns an inn's tower sees.
    double Lookout(int number) const {
        const Inn &tower = inns_[size_t(number)];
        double seen = 0;
        for (const auto &inn : inns_) {
            double dx = inn.x - tower.x, dy = inn.y - tower.y;
            seen += std::exp(-(dx * dx + dy * dy) * 0.01) * (1 + inn.guests);
        }
        return seen;
    }
    Calendar calendar_;
    std::mt19937 random_;
    std::vector<Inn> inns_;
    std::vector<Rider> riders_;
    Weather weather_;
    Post post_;
    double now_ = 0, sum_ = 0;
};

} // namespace bridleway

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    bridleway::Country country(slow);
    for (long i = 0; i < steps; ++i) country.Step();
    std::printf("%g\n", country.sum());
}
