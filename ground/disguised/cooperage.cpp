// defect: none; lines that are parsed once with temporaries, groups that are sorted once each, one pattern, rare exceptions, a few files
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
#include <regex>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace cooperage {
struct Cask { std::string wood; double litres; std::vector<double> staves; };

void MakeInput(const std::string &path, int number) {
    std::ofstream out(path);
    for (int i = 0; i < number; ++i) {
        out << (i % 3 ? "sessile oak from the east " : "pedunculate oak from here ") << i % 41 << ';' << 200 + i % 57 << ";";
        for (int k = 0; k < 12; ++k) out << 5 + (i * k) % 13 << ' ';
        out << '\n';
    }
}

std::vector<Cask> Read(const std::string &path) {
    std::ifstream in(path);
    std::vector<Cask> casks;
    std::string line;
    while (std::getline(in, line)) {
        size_t a = line.find(';'), b = line.find(';', a + 1);
        Cask cask{line.substr(0, a), std::stod(line.substr(a + 1, b - a - 1)), {}};
        const char *at = line.c_str() + b + 1;
        char *end = nullptr;
        for (double stave = std::strtod(at, &end); end != at; stave = std::strtod(at, &end)) cask.staves.push_back(stave), at = end;
        casks.push_back(std::move(cask));
    }
    return casks;
}

std::map<std::string, std::vector<const Cask *>> Group(const std::vector<Cask> &casks) {
    std::map<std::string, std::vector<const Cask *>> groups;
    for (const Cask &cask : casks) groups[cask.wood].push_back(&cask);
    for (auto &[wood, group] : groups) std::sort(group.begin(), group.end(), [](auto *a, auto *b) { return a->litres < b->litres; });
    return groups;
}

double Bend(const Cask &cask) {
    double force = 0;
    if (cask.litres > 256.5) throw std::range_error("too large");
    for (double stave : cask.staves) {
        for (int hour = 1; hour <= 12; ++hour) force += std::tanh(stave / hour) * std::exp(-force * 1e-3);
    }
    return force;
}

double BendAll(const std::vector<Cask> &casks) {
    double sum = 0;
    for (const Cask &cask : casks) sum += Bend(cask);
    return sum;
}
} // namespace cooperage

int main() {
    std::string path = "/tmp/cooperage." + std::to_string(getpid());
    cooperage::MakeInput(path, 120000);
    auto casks = cooperage::Read(path);
    double force = cooperage::BendAll(casks);
    auto groups = cooperage::Group(casks);
    std::regex pattern("sessile.*[0-9]");
    int sessile = 0;
    for (const auto &[wood, group] : groups) sessile += std::regex_search(wood, pattern);
    std::ofstream out(path);
    for (const auto &[wood, group] : groups) {
        for (const cooperage::Cask *cask : group) out << wood << ' ' << cask->litres << ' ' << cask->staves.size() << '\n';
    }
    out.close();
    std::remove(path.c_str());
    std::printf("%.2f %d\n", force, sessile);
}
