// defect: none; a batch job that reads text, builds maps, sorts once, copies once and writes a buffered file, each in a stage of its own
// kinds: -
// guilty: -
// seconds: 20
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace ropewalk {
struct Rope { std::string ship; double length, load; int strands; };

std::string Orders(int number) {
    std::string text;
    char line[96];
    for (int i = 0; i < number; ++i) {
        std::snprintf(line, sizeof line, "ship%d;%.3f;%.2f;%d\n", i * 7919 % 9001, 10 + i % 200 * 0.5, 3 + std::sin(i) * 2, 3 + i % 4);
        text += line;
    }
    return text;
}

std::vector<Rope> Parse(const std::string &text) {
    std::vector<Rope> all;
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
        size_t a = line.find(';'), b = line.find(';', a + 1), c = line.find(';', b + 1);
        all.push_back({line.substr(0, a), std::strtod(&line[a + 1], nullptr), std::strtod(&line[b + 1], nullptr), std::atoi(&line[c + 1])});
    }
    return all;
}

std::map<std::string, std::vector<const Rope *>> ByShip(const std::vector<Rope> &ropes) {
    std::map<std::string, std::vector<const Rope *>> ships;
    for (const Rope &rope : ropes) ships[rope.ship].push_back(&rope);
    return ships;
}

double Strain(const std::vector<Rope> &ropes, int rounds) {
    double worst = 0;
    for (int round = 1; round <= rounds; ++round) {
        for (const Rope &rope : ropes) {
            double strain = rope.load * std::sqrt(rope.length) / rope.strands * std::exp(-0.01 * round);
            worst = std::fmax(0.999999 * worst, std::sin(strain) + strain);
        }
    }
    return worst;
}

void Write(const std::string &path, const std::map<std::string, std::vector<const Rope *>> &ships) {
    std::ofstream out(path);
    for (const auto &[ship, ropes] : ships) {
        out << ship;
        for (const Rope *rope : ropes) out << ' ' << rope->length << ' ' << rope->load;
        out << '\n';
    }
}
} // namespace ropewalk

int main() {
    std::vector<ropewalk::Rope> ropes = ropewalk::Parse(ropewalk::Orders(400000));
    double worst = ropewalk::Strain(ropes, 45);
    std::vector<ropewalk::Rope> sorted = ropes;
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.length * a.load < b.length * b.load; });
    auto ships = ropewalk::ByShip(sorted);
    std::string path = "/tmp/ropewalk." + std::to_string(getpid());
    ropewalk::Write(path, ships);
    std::remove(path.c_str());
    std::printf("%.3f %zu\n", worst, ships.size());
}
