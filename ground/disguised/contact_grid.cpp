// defect: the grid of a contact search is a map of vectors that is built again in each step
// kinds: allocations-each-step
// guilty: sim::Contacts::Find, sim::Contacts::Insert
#include <cstdint>
#include <unordered_map>
#include "loop.hpp"

namespace sim {
class Contacts {
public:
    Contacts(int number, bool slow) : bodies_(number), number_(number), cells_(64 * 64), slow_(slow) {}
    __attribute__((noinline)) void Insert(std::unordered_map<std::uint64_t, std::vector<int>> &grid, int body) {
        grid[Cell(body)].push_back(body);
    }
    __attribute__((noinline)) int Find() {
        int pairs = 0;
        if (slow_) {
            std::unordered_map<std::uint64_t, std::vector<int>> grid;
            for (int body = 0; body < number_; ++body) Insert(grid, body);
            for (auto &[cell, bodies] : grid) pairs += bodies.size() / 2;
        } else {
            for (auto &cell : cells_) cell.clear();
            for (int body = 0; body < number_; ++body) cells_[Cell(body)].push_back(body);
            for (auto &cell : cells_) pairs += cell.size() / 2;
        }
        return pairs;
    }
    void Advance() { bodies_.Advance(1); }

private:
    std::uint64_t Cell(int body) const {
        int x = int(bodies_.at(body) * 3.0) & 63, y = int(bodies_.at(body + 7) * 3.0) & 63;
        return x * 64 + y;
    }
    Bodies bodies_;
    int number_;
    std::vector<std::vector<int>> cells_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Contacts contacts(6000, sim::IsSlow(argc, argv));
    sim::Run([&](long) {
        contacts.Advance();
        sim::sink = contacts.Find();
    });
}
