// defect: loops over the players have `auto` without a reference, so each player with its name and its notes is copied for each look at it
// kinds: copies-each-step, allocations-each-step
// guilty: orchestra::Player::Player, orchestra::Hall::Loudness, orchestra::Hall::Tempo, orchestra::Hall::Step
// build: -O2 -g
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace orchestra {
struct Player {
    std::string name, instrument;
    std::vector<double> notes;
    double volume, tempo;
    bool rests;
};
class Hall {
public:
    Hall(int number, bool copies) : copies_(copies) {
        for (int i = 0; i < number; ++i) {
            Player one{"the player with number " + std::to_string(i), "violoncello, second desk", std::vector<double>(24), 1.0, 120.0, i % 5 == 0};
            for (std::size_t k = 0; k < one.notes.size(); ++k) one.notes[k] = std::sin(i + k * 0.3);
            players_.push_back(one);
        }
    }
    double Loudness() const {
        double sum = 0;
        if (copies_) {
            for (auto one : players_) if (!one.rests) sum += Of(one);
        } else {
            for (const auto &one : players_) if (!one.rests) sum += Of(one);
        }
        return sum;
    }
    double Tempo() const {
        double sum = 0;
        if (copies_) {
            for (const auto one : players_) sum += one.tempo * one.volume;
        } else {
            for (const auto &one : players_) sum += one.tempo * one.volume;
        }
        return sum / players_.size();
    }
    double Step(double t) {
        for (auto &one : players_) {
            one.volume = 1 + 0.1 * std::sin(t + one.notes[3]);
            one.tempo += 0.01 * std::cos(t);
        }
        return Loudness() + Tempo();
    }
private:
    __attribute__((noinline)) static double Of(const Player &one) {
        double sum = 0;
        for (double note : one.notes) sum += std::abs(note) * one.volume;
        return std::sqrt(sum);
    }
    bool copies_;
    std::vector<Player> players_;
};
} // namespace orchestra

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    orchestra::Hall hall(2500, slow);
    double sum = 0;
    for (long step = 0; step != steps; ++step) {
        sum += hall.Step(step * 0.002);
        if (steps < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::printf("%g\n", sum);
}
