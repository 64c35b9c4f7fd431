// defect: a wagon is found by std::any_of and std::find_if with lambdas over all wagons, for each coupling
// kinds: list-search, text-compared-each-step, superlinear-lookup
// guilty: switchman::Yard::Wagon, switchman::Yard::Couple, switchman::Yard::Step
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace switchman {
struct Car { std::string plate; double load = 1, speed = 0; };
class Yard {
public:
    Yard(int number, bool indexed) : indexed_(indexed) {
        for (int i = 0; i < number; ++i) {
            cars_.push_back(std::make_unique<Car>(Car{"wagon-series-" + std::to_string(i * 7919 % 10007), 1.0 + i % 5, 0}));
            index_[cars_.back()->plate] = cars_.back().get();
        }
    }
    Car *Wagon(std::string_view plate) {
        if (indexed_) return index_.find(plate)->second;
        auto is_it = [plate](const std::unique_ptr<Car> &car) { return car->plate == plate; };
        auto found = std::find_if(cars_.begin(), cars_.end(), is_it);
        return found == cars_.end() ? nullptr : found->get();
    }
    void Couple(std::string_view one, std::string_view other) {
        Car *a = Wagon(one), *b = Wagon(other);
        if (!a || !b) return;
        double speed = (a->load * a->speed + b->load * b->speed) / (a->load + b->load);
        for (int k = 0; k < 20; ++k) speed += 0.001 * std::sin(speed + k);
        a->speed = b->speed = speed;
    }
    void Step(long step) {
        for (size_t i = 0; i < 100; ++i) {
            const Car &a = *cars_[(i * 31 + size_t(step)) % cars_.size()], &b = *cars_[(i * 17) % cars_.size()];
            Couple(a.plate, b.plate);
        }
        for (auto &car : cars_) for (int k = 0; k < 4; ++k) car->speed = 0.99 * car->speed + 0.01 * std::cos(car->load + k);
    }
    double Speed() const { return cars_[3]->speed; }
private:
    bool indexed_;
    std::vector<std::unique_ptr<Car>> cars_;
    std::map<std::string, Car *, std::less<>> index_;
};
} // namespace switchman

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    switchman::Yard yard(1500, !slow);
    for (long step = 0; step != steps; ++step) yard.Step(step);
    std::printf("%g\n", yard.Speed());
}
