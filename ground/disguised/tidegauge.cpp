// defect: while the tides are exported, the stream is flushed after each line
// kinds: small-writes-each-step
// guilty: tide::Export, tide::Line
// seconds: 20
// build: -O2 -g
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace tide {
struct Wave { double speed, height, phase; };

std::vector<double> Predict(const std::vector<Wave> &waves, int hours) {
    std::vector<double> levels(hours);
    for (int hour = 0; hour < hours; ++hour) {
        for (const Wave &wave : waves) levels[hour] += wave.height * std::cos(wave.speed * hour + wave.phase);
    }
    return levels;
}

// Fits the waves' phases to the levels by descent.
void Fit(std::vector<Wave> &waves, const std::vector<double> &levels, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        for (Wave &wave : waves) {
            double slope = 0;
            for (size_t hour = 0; hour < levels.size(); hour += 97) slope += levels[hour] * std::sin(wave.speed * hour + wave.phase);
            wave.phase -= 1e-5 * slope;
        }
    }
}

void Line(std::ofstream &out, int hour, double level, bool flushes) {
    out << hour / 24 << ' ' << hour % 24 << ' ' << int(level * 1000);
    if (flushes) out << std::endl;
    else out << '\n';
}

void Export(const std::string &path, const std::vector<double> &levels, bool flushes) {
    std::ofstream out(path);
    double mean = 0;
    for (size_t hour = 0; hour < levels.size(); ++hour) {
        mean = 0.99 * mean + 0.01 * levels[hour];
        double surge = 0;
        for (int k = 1; k <= 12; ++k) surge += 0.01 * std::sin(mean * k);
        Line(out, int(hour), levels[hour] + surge, flushes);
    }
}

double Floods(const std::vector<double> &levels, int draws) {
    double risk = 0;
    for (int draw = 0; draw < draws; ++draw) {
        double wind = std::fabs(std::sin(draw * 12.9898)) * 2, highest = 0;
        for (size_t hour = draw % 13; hour < levels.size(); hour += 5) highest = std::fmax(highest, levels[hour] + wind * std::exp(-wind));
        risk += highest > 4.2;
    }
    return risk / draws;
}
} // namespace tide

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    std::vector<tide::Wave> waves;
    for (int i = 1; i <= 37; ++i) waves.push_back({0.26 + 0.013 * i, 1.8 / i, i * 0.4});
    auto levels = tide::Predict(waves, 600000);
    tide::Fit(waves, levels, 60);
    std::string path = "/tmp/tidegauge." + std::to_string(getpid());
    tide::Export(path, levels, slow);
    std::remove(path.c_str());
    std::printf("%.4f\n", tide::Floods(levels, 400));
}
