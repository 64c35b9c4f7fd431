// defect: while households are joined with their streets, the street is searched in a list from its start, for each household
// kinds: list-search, text-compared-each-step, superlinear-lookup
// guilty: census::Town::StreetOf, census::Join, census::Town::Place
// seconds: 20
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

namespace census {
struct Street { unsigned code; double east, north; int households; };
struct Household { unsigned street; int people; double income, distance; };

class Town {
public:
    Town(int streets, bool searches) : searches_(searches) {
        for (int i = 0; i < streets; ++i) {
            streets_.push_back({unsigned(i) * 2654435761u, std::cos(i * 0.7) * i, std::sin(i * 0.7) * i, 0});
            by_code_[streets_.back().code] = i;
        }
    }
    Street *StreetOf(unsigned code) {
        if (!searches_) {
            auto found = by_code_.find(code);
            return found == by_code_.end() ? nullptr : &streets_[found->second];
        }
        auto found = std::find_if(streets_.begin(), streets_.end(), [code](const Street &one) { return one.code == code; });
        return found == streets_.end() ? nullptr : &*found;
    }
    const std::vector<Street> &Streets() const { return streets_; }
private:
    bool searches_;
    std::vector<Street> streets_;
    std::map<unsigned, int> by_code_;
};

// Synthetic households: incomes from a sum of uniform numbers.
std::vector<Household> Draw(int number, int streets) {
    std::vector<Household> all;
    unsigned seed = 12345;
    auto next = [&seed] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
    for (int i = 0; i < number; ++i) {
        double income = 0;
        for (int k = 0; k < 24; ++k) income += std::log1p(next() % 1000);
        all.push_back({(next() % streets) * 2654435761u, int(next() % 6) + 1, income * 250, 0});
    }
    return all;
}

void Join(Town &town, std::vector<Household> &households) {
    for (Household &one : households) {
        Street *street = town.StreetOf(one.street);
        if (!street) continue;
        ++street->households;
        double east = street->east * 1e-3, north = street->north * 1e-3;
        for (int stop = 0; stop < 30; ++stop) {
            double far = std::hypot(east - std::cos(stop), north - std::sin(stop));
            one.distance = stop && one.distance < far ? one.distance : far;
        }
    }
}

struct Report { double gini, median, worst; };

Report Evaluate(const std::vector<Household> &households, int draws) {
    std::vector<double> incomes;
    for (const Household &one : households) incomes.push_back(one.income / one.people);
    std::sort(incomes.begin(), incomes.end());
    double below = 0, all = 0;
    for (size_t i = 0; i < incomes.size(); ++i) below += (2.0 * i - incomes.size() + 1) * incomes[i], all += incomes[i];
    double worst = 0;
    // A bootstrap of the mean distance.
    unsigned seed = 7;
    for (int draw = 0; draw < draws; ++draw) {
        double sum = 0;
        for (size_t i = 0; i < households.size(); i += 7) {
            seed = seed * 1664525u + 1013904223u;
            sum += std::sqrt(households[seed % households.size()].distance);
        }
        worst = std::max(worst, sum / (households.size() / 7));
    }
    return {below / (all * incomes.size()), incomes[incomes.size() / 2], worst};
}
} // namespace census

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    census::Town town(9000, slow);
    auto households = census::Draw(300000, 9000);
    census::Join(town, households);
    auto report = census::Evaluate(households, 700);
    int most = 0;
    for (const auto &street : town.Streets()) most = std::max(most, street.households);
    std::printf("%.3f %.0f %.3f %d\n", report.gini, report.median, report.worst, most);
}
