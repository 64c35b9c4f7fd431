// defect: while entries are read, a regular expression is compiled for each of them
// kinds: pattern-compiled-each-step
// guilty: parish::Read, parish::Matches, parish::ReadAll
// seconds: 20
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace parish {
struct Entry { std::string name; int year = 0; bool is_christening = false; };

std::vector<std::string> Lines(int number) {
    std::vector<std::string> lines;
    char line[96];
    for (int i = 0; i < number; ++i) {
        std::snprintf(line, sizeof line, "%s Person%d of the parish, %d", i % 3 ? "christened" : "buried", i * 7919 % 997, 1700 + i % 120);
        lines.push_back(line);
    }
    return lines;
}

Entry Read(const std::string &line, const std::regex *kept) {
    std::smatch match;
    Entry entry;
    const std::regex &pattern = kept ? *kept : std::regex("^(christened|buried) ([A-Z][a-z0-9]+)");
    std::string start = line.substr(0, 24);
    if (std::regex_search(start, match, pattern)) {
        entry.name = match[2];
        entry.is_christening = match[1] == "christened";
    }
    entry.year = std::atoi(line.c_str() + line.rfind(' '));
    return entry;
}

std::vector<Entry> ReadAll(const std::vector<std::string> &lines, bool again) {
    std::regex pattern("^(christened|buried) ([A-Z][a-z0-9]+)");
    std::vector<Entry> entries;
    for (const std::string &line : lines) entries.push_back(Read(line, again ? nullptr : &pattern));
    return entries;
}

std::map<int, double> Growth(const std::vector<Entry> &entries, int rounds) {
    std::map<int, double> years;
    for (const Entry &entry : entries) years[entry.year] += entry.is_christening ? 1 : -1;
    for (int round = 0; round < rounds; ++round) {
        double last = 0;
        for (auto &[year, growth] : years) {
            growth = 0.9 * growth + 0.1 * last + 1e-3 * std::sin(growth * round);
            last = growth;
        }
    }
    return years;
}
} // namespace parish

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    auto lines = parish::Lines(16000);
    auto entries = parish::ReadAll(lines, slow);
    entries.resize(15000);
    auto years = parish::Growth(entries, 200000);
    std::printf("%zu %.4f\n", entries.size(), years.begin()->second);
}
