// defect: the distance of each parcel's depot is looked up by the depot's name in a tree of texts
// kinds: text-keys-each-step
// guilty: Courier::cost
// build: -O2
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

struct Courier {
    std::map<std::string, double> depots;
    std::vector<std::string> parcels;
    std::vector<double> direct;
    bool by_name;
    __attribute__((noinline)) double cost(std::size_t parcel) const {
        double far = by_name ? depots.find(parcels[parcel])->second : direct[parcel];
        double cost = far;
        for (int i = 0; i < 30; ++i) cost += 1e-3 * std::sin(cost + i);
        return cost;
    }
};

int main(int argc, char **argv) {
    Courier courier;
    courier.by_name = argc > 1 && !strcmp(argv[1], "slow");
    for (int i = 0; i < 800; ++i) courier.depots["region/north-west/depot/number-" + std::to_string(i)] = i;
    for (int i = 0; i < 3000; ++i) {
        courier.parcels.push_back("region/north-west/depot/number-" + std::to_string(i * 7 % 800));
        courier.direct.push_back(i * 7 % 800);
    }
    volatile double sum = 0;
    for (;;) for (std::size_t i = 0; i < courier.parcels.size(); ++i) sum = sum + courier.cost(i);
}
