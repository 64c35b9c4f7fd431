// defect: while loans are checked, the function that judges a loan takes the whole catalogue of rooms by value
// kinds: copies-each-step, allocations-each-step
// guilty: museum::Risk, museum::Check, museum::Room::Room
// seconds: 20
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace museum {
struct Room { int number; std::vector<double> humidity; std::vector<float> light; };
struct Loan { int room, days; double value, risk = 0; };

std::vector<Room> Rooms(int number) {
    std::vector<Room> all;
    for (int i = 0; i < number; ++i) {
        Room room{i, {}, {}};
        for (int hour = 0; hour < 48; ++hour) {
            room.humidity.push_back(50 + 5 * std::sin(hour * 0.26 + i));
            room.light.push_back(float(40 + 20 * std::cos(hour * 0.13 - i)));
        }
        all.push_back(std::move(room));
    }
    return all;
}

std::vector<Loan> Loans(int number, int rooms) {
    std::vector<Loan> all;
    double market = 1000;
    for (int i = 0; i < number; ++i) {
        for (int k = 0; k < 300; ++k) market = 0.999 * market + std::fabs(std::sin(i + k * 0.1)) + 0.5;
        all.push_back({i * 7 % rooms, 10 + i % 300, market});
    }
    return all;
}

__attribute__((noinline)) double Judge(const Loan &loan, const std::vector<Room> &rooms) {
    double risk = 0;
    const Room &room = rooms[loan.room];
    for (size_t hour = 0; hour < room.humidity.size(); ++hour) {
        risk += std::exp(-std::fabs(room.humidity[hour] - 50)) + room.light[hour] * 1e-3 * std::log1p(loan.days);
    }
    return risk * std::sqrt(loan.value);
}

__attribute__((noinline)) double Risk(const Loan &loan, std::vector<Room> rooms) { return Judge(loan, rooms); }

void Check(std::vector<Loan> &loans, const std::vector<Room> &rooms, bool copies) {
    for (Loan &loan : loans) loan.risk = copies ? Risk(loan, rooms) : Judge(loan, rooms);
}

// Packs loans into crates: a tour that is improved by swaps.
double Pack(const std::vector<Loan> &loans, int rounds) {
    std::vector<int> order;
    for (size_t i = 0; i < loans.size(); ++i) order.push_back(int(i));
    auto cost = [&](int a, int b) { return std::fabs(loans[order[a]].risk - loans[order[b]].risk) + std::abs(loans[order[a]].room - loans[order[b]].room); };
    unsigned seed = 99;
    double saved = 0;
    for (int round = 0; round < rounds; ++round) {
        seed = seed * 1664525u + 1013904223u;
        int a = 1 + (seed >> 8) % (order.size() - 2);
        seed = seed * 1664525u + 1013904223u;
        int b = 1 + (seed >> 8) % (order.size() - 2);
        if (a == b) continue;
        double before = cost(a - 1, a) + cost(a, a + 1) + cost(b - 1, b) + cost(b, b + 1);
        std::swap(order[a], order[b]);
        double after = cost(a - 1, a) + cost(a, a + 1) + cost(b - 1, b) + cost(b, b + 1);
        if (after > before) std::swap(order[a], order[b]);
        else saved += before - after;
    }
    return saved;
}
} // namespace museum

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    auto rooms = museum::Rooms(120);
    auto loans = museum::Loans(70000, 120);
    std::vector<museum::Loan> asked(loans.begin(), loans.begin() + 40000);
    museum::Check(asked, rooms, slow);
    std::printf("%.2f\n", museum::Pack(asked, 12000000));
}
