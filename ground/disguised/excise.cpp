// defect: while duties are assessed, a missing weight is found out by std::stod that throws, for each second parcel
// kinds: exceptions-each-step
// guilty: excise::Weight, excise::Assess
// seconds: 20
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace excise {
struct Parcel { std::string weight, from; double duty = 0; };

std::vector<Parcel> Manifest(int number) {
    std::vector<Parcel> all;
    char text[32];
    for (int i = 0; i < number; ++i) {
        std::snprintf(text, sizeof text, "%.2f", 1 + 10 * std::fabs(std::sin(i * 0.37)));
        all.push_back({i % 2 ? text : "n/a", "port " + std::to_string(i % 40)});
    }
    return all;
}

__attribute__((noinline)) double Weight(const Parcel &parcel, bool throws) {
    if (!throws && (parcel.weight.empty() || parcel.weight[0] < '0' || parcel.weight[0] > '9')) return 4.2;
    try {
        return std::stod(parcel.weight);
    } catch (const std::invalid_argument &) {
        return 4.2;
    }
}

// The rate of each port, fitted to last year's trade.
std::unordered_map<std::string, double> Rates(int ports, int rounds) {
    std::unordered_map<std::string, double> rates;
    for (int port = 0; port < ports; ++port) {
        double rate = 0.1 * port;
        for (int round = 0; round < rounds; ++round) {
            double slope = 0;
            for (int month = 1; month <= 12; ++month) slope += std::cos(rate * month) * std::sqrt(month + port);
            rate -= 1e-4 * slope;
        }
        rates["port " + std::to_string(port)] = rate;
    }
    return rates;
}

void Assess(std::vector<Parcel> &parcels, const std::unordered_map<std::string, double> &rates, bool throws) {
    for (Parcel &parcel : parcels) {
        double weight = Weight(parcel, throws), rate = rates.at(parcel.from), duty = 0;
        for (int band = 1; band <= 60; ++band) duty += std::fmax(0, weight - 0.2 * band) * std::exp(-rate * band * 0.01);
        parcel.duty = duty;
    }
}

double Smooth(const std::vector<Parcel> &parcels, int rounds) {
    std::vector<double> duty;
    for (const Parcel &one : parcels) duty.push_back(one.duty);
    for (int round = 0; round < rounds; ++round) {
        for (size_t i = 1; i + 1 < duty.size(); ++i) duty[i] += 0.05 * std::tanh(duty[i - 1] - 2 * duty[i] + duty[i + 1]);
    }
    double sum = 0;
    for (double one : duty) sum += one;
    return sum;
}
} // namespace excise

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    auto parcels = excise::Manifest(700000);
    auto rates = excise::Rates(40, 70000);
    parcels.resize(600000);
    excise::Assess(parcels, rates, slow);
    std::printf("%.3f\n", excise::Smooth(parcels, 40));
}
