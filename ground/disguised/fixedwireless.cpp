// defect: the path loss between each antenna and each house is computed again in each slot, although neither of them ever moves (only the fading changes)
// kinds: same-work-again, same-numbers-again
// guilty: radio::RadioPlanner::refreshLinkBudget, radio::RadioPlanner::pathLossDb, radio::RadioPlanner::horizonGain
// gain: 55
//
// A system-level simulator of a fixed wireless network: houses with an antenna on the roof, slots of one millisecond.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <vector>

namespace radio {

struct Site {
    double x, y, height, azimuth, powerDbm;
};

struct House {
    double x, y, roof;
    uint32_t backlog = 0;       // bytes
    double averageRate = 1;     // for proportional fairness
    uint64_t delivered = 0;
};

class Noise {
public:
    explicit Noise(uint64_t seed) : s_(seed) {}
    uint32_t bits() {
        s_ = s_ * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(s_ >> 33) ^ uint32_t(s_ >> 51);
    }
    double uniform() { return (bits() & 0x7fffffff) * (1.0 / 2147483648.0); }

private:
    uint64_t s_;
};

class RadioPlanner {
public:
    RadioPlanner(int sites, int houses, bool planOnce) : planOnce_(planOnce), rnd_(20240611) {
        for (int i = 0; i < sites; ++i)
            sites_.push_back({rnd_.uniform() * 9000, rnd_.uniform() * 9000, 20 + 25 * rnd_.uniform(), 6.28318 * rnd_.uniform(), 43});
        for (int i = 0; i < houses; ++i) houses_.push_back({rnd_.uniform() * 9000, rnd_.uniform() * 9000, 4 + 8 * rnd_.uniform()});
        const size_t links = sites_.size() * houses_.size();
        gain_.resize(links);
        phase_.resize(links);
        received_.resize(links);
        for (double& p : phase_) p = 6.28318 * rnd_.uniform();
        serving_.resize(houses_.size());
        sinr_.resize(houses_.size());
        capacity_.resize(houses_.size());
        order_.resize(houses_.size());
        std::iota(order_.begin(), order_.end(), 0);
        for (size_t k = 0; k < rateTable_.size(); ++k) rateTable_[k] = 180.0 * std::log2(1 + std::pow(10.0, (double(k) - 10) / 10));
        refreshLinkBudget();
    }

    void step() {
        arrivals();
        if (!planOnce_) refreshLinkBudget();
        fade();
        attach();
        schedule();
        account();
        if (++slot_ % 100 == 0) report();
    }

    void print() const {
        uint64_t sum = 0;
        for (const House& h : houses_) sum = sum * 31 + h.delivered;
        std::printf("%016llx %.6f\n", static_cast<unsigned long long>(sum), percentiles_ + std::accumulate(capacity_.begin(), capacity_.end(), 0.0));
    }

private:
    // Packets of some bytes come to each house, in bursts.
    void arrivals() {
        for (House& h : houses_) {
            uint32_t r = rnd_.bits();
            if ((r & 15) == 0) h.backlog = std::min<uint32_t>(h.backlog + 200 + (r >> 16) % 1300, 200000);
        }
    }

    double horizonGain(const Site& s, double bearing) const {
        double off = std::remainder(bearing - s.azimuth, 6.283185307);
        return 17 - std::min(12 * (off / 1.13) * (off / 1.13), 25.0);
    }

    double pathLossDb(const Site& s, const House& h) const {        // suburban, 3.5 GHz
        double dx = h.x - s.x, dy = h.y - s.y, dz = s.height - h.roof;
        double d = std::sqrt(dx * dx + dy * dy + dz * dz) + 1;
        double breakpoint = 4 * s.height * h.roof * 3.5e9 / 3e8;
        double loss = 28 + 22 * std::log10(d) + 20 * std::log10(3.5);
        if (d > breakpoint) loss += 18 * std::log10(d / breakpoint);
        return loss - horizonGain(s, std::atan2(dy, dx));
    }

    void refreshLinkBudget() {
        size_t k = 0;
        for (const Site& s : sites_)
            for (const House& h : houses_) gain_[k++] = std::pow(10.0, (s.powerDbm - pathLossDb(s, h)) / 10);
    }

    // Fading: three slow tones for each link.
    void fade() {
        const double t = 1e-3 * double(slot_);
        for (size_t k = 0; k < phase_.size(); ++k) {
            double p = phase_[k];
            double a = 1 + 0.45 * std::sin(11 * t + p) + 0.3 * std::cos(4.7 * t + 2 * p) + 0.1 * std::sin(23 * t + 3 * p);
            received_[k] = gain_[k] * a * a;
        }
    }

    void attach() {
        const size_t n = houses_.size();
        std::vector<double>& total = scratch_;
        total.assign(n, 4e-13);
        best_.assign(n, 0);
        for (size_t s = 0; s < sites_.size(); ++s) {
            const double* row = &received_[s * n];
            for (size_t h = 0; h < n; ++h) {
                total[h] += row[h];
                if (row[h] > best_[h]) {
                    best_[h] = row[h];
                    serving_[h] = int(s);
                }
            }
        }
        for (size_t h = 0; h < n; ++h) sinr_[h] = best_[h] / (total[h] - best_[h]);
    }

    // Proportional fairness: the houses with the best ratio of rate to average get the blocks of their site.
    void schedule() {
        metric_.resize(houses_.size());
        for (size_t h = 0; h < houses_.size(); ++h) {
            int level = std::clamp(int(std::lround(10 * std::log10(sinr_[h]))) + 10, 0, int(rateTable_.size()) - 1);
            metric_[h] = {rateTable_[level], rateTable_[level] / houses_[h].averageRate};
        }
        std::sort(order_.begin(), order_.end(), [this](int a, int b) {
            return metric_[a].second != metric_[b].second ? metric_[a].second > metric_[b].second : a < b;
        });
        blocks_.assign(sites_.size(), 25);
        for (int h : order_) {
            House& house = houses_[h];
            int& left = blocks_[serving_[h]];
            double rate = 0;
            if (house.backlog && left) {
                int want = std::min(left, int(house.backlog / metric_[h].first) + 1);
                left -= want;
                rate = want * metric_[h].first / 8;
                uint32_t bytes = std::min(house.backlog, uint32_t(rate));
                house.backlog -= bytes;
                house.delivered += bytes;
            }
            house.averageRate = 0.98 * house.averageRate + 0.02 * (rate + 0.1);
        }
    }

    // Throughput that each house could have had, smoothed, with the coding margin of its link.
    void account() {
        for (size_t h = 0; h < houses_.size(); ++h) {
            double shannon = std::log2(1 + sinr_[h]), margin = std::exp(-0.2 * shannon);
            capacity_[h] += 0.01 * (shannon * (1 - 0.3 * margin) - capacity_[h]);
        }
    }

    void report() {
        scratch_ = sinr_;
        for (int p : {5, 50, 95}) {
            auto it = scratch_.begin() + std::ptrdiff_t(scratch_.size() * p / 100);
            std::nth_element(scratch_.begin(), it, scratch_.end());
            percentiles_ += 10 * std::log10(*it);
        }
    }

    bool planOnce_;
    Noise rnd_;
    std::vector<Site> sites_;
    std::vector<House> houses_;
    std::vector<double> gain_, phase_, received_, sinr_, scratch_, best_, capacity_;
    std::vector<int> serving_, order_, blocks_;
    std::vector<std::pair<double, double>> metric_;
    std::array<double, 40> rateTable_{};
    long slot_ = 0;
    double percentiles_ = 0;
};

}  // namespace radio

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s slow|fast [slots]\n", argv[0]);
        return 1;
    }
    const bool planOnce = std::string_view(argv[1]) == "fast";
    const long slots = argc > 2 ? std::atol(argv[2]) : 0;
    radio::RadioPlanner net(12, 900, planOnce);
    for (long n = 0; slots == 0 || n < slots; ++n) net.step();
    net.print();
}
