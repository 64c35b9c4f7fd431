// defect: the scan computes the sines and cosines of all beams again in each scan, and the weakening of the light by pow of a constant, though the angles of the beams never change
// kinds: same-numbers-again, same-work-again, same-data-each-call, called-very-often
// guilty: campanile::Scanner::Sweep, campanile::Scanner::Beam
// gain: 39
// build: -O2 -g
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace campanile {

struct Vec {
    double x = 0, y = 0, z = 0;
    Vec operator+(const Vec &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec operator-(const Vec &o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec operator*(double s) const { return {x * s, y * s, z * s}; }
    double Dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
};

struct Attitude {
    double yaw = 0, pitch = 0;
    double m[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    void Update() {
        double c = std::cos(yaw), s = std::sin(yaw), d = std::cos(pitch), t = std::sin(pitch);
        double r[9] = {c * d, -s, c * t, s * d, c, s * t, -t, 0, d};
        std::copy(r, r + 9, m);
    }
    Vec Turn(const Vec &v) const {
        return {m[0] * v.x + m[1] * v.y + m[2] * v.z, m[3] * v.x + m[4] * v.y + m[5] * v.z, m[6] * v.x + m[7] * v.y + m[8] * v.z};
    }
};

/// Heights of the square around the tower.
class Ground {
public:
    Ground() : heights_(kSide * kSide) {
        for (int y = 0; y < kSide; ++y)
            for (int x = 0; x < kSide; ++x) heights_[size_t(y * kSide + x)] = float(2 * std::sin(x * 0.11) * std::cos(y * 0.07));
    }
    float At(double x, double y) const {
        int i = std::clamp(int(x) + kSide / 2, 0, kSide - 1), k = std::clamp(int(y) + kSide / 2, 0, kSide - 1);
        return heights_[size_t(k * kSide + i)];
    }
    static constexpr int kSide = 256;

private:
    std::vector<float> heights_;
};

class Scanner {
public:
    static constexpr int kRows = 16, kColumns = 720;
    Scanner(const Ground &ground, bool computes) : ground_(ground), computes_(computes) {
        beams_.reserve(kRows * kColumns);
        for (int row = 0; row < kRows; ++row)
            for (int column = 0; column < kColumns; ++column) beams_.push_back(Beam(row, column));
        for (int i = 0; i < 256; ++i) weakening_.push_back(std::pow(0.985, i * 0.5));
        ranges_.resize(kRows * kColumns);
        intensities_.resize(ranges_.size());
    }
    void Sweep(const Vec &from, const Attitude &attitude) {
        for (int row = 0; row < kRows; ++row)
            for (int column = 0; column < kColumns; ++column) {
                size_t at = size_t(row * kColumns + column);
                Vec way = attitude.Turn(computes_ ? Beam(row, column) : beams_[at]);
                double range = 6;
                Vec place = from + way * range;
                int hops = 12;
                while (hops < 40 && place.z > ground_.At(place.x, place.y)) {
                    range += 2;
                    ++hops;
                    place = from + way * range;
                }
                ranges_[at] = float(range);
                double weak = computes_ ? std::pow(0.985, hops * 0.5) : weakening_[size_t(hops)];
                intensities_[at] = float(weak * std::max(0.1, -way.z));
            }
    }
    const std::vector<float> &ranges() const { return ranges_; }
    const std::vector<float> &intensities() const { return intensities_; }

private:
    static Vec Beam(int row, int column) {
        double up = (row - kRows + 2) * 0.035, around = column * 2 * M_PI / kColumns;
        return {std::cos(up) * std::cos(around), std::cos(up) * std::sin(around), std::sin(up)};
    }
    const Ground &ground_;
    bool computes_;
    std::vector<Vec> beams_;
    std::vector<double> weakening_;
    std::vector<float> ranges_, intensities_;
};

/// Removes single outliers of a scan.
class Smoother {
public:
    void Clean(const std::vector<float> &ranges) {
        clean_.resize(ranges.size());
        for (size_t i = 2; i + 2 < ranges.size(); ++i) {
            std::array<float, 5> w{ranges[i - 2], ranges[i - 1], ranges[i], ranges[i + 1], ranges[i + 2]};
            if (w[0] > w[1]) std::swap(w[0], w[1]);
            if (w[3] > w[4]) std::swap(w[3], w[4]);
            if (w[0] > w[3]) { std::swap(w[0], w[3]); std::swap(w[1], w[4]); }
            float middle = w[2];
            clean_[i] = middle > w[1] ? std::min(w[1], std::max(middle, w[3])) : std::max(middle, w[0]);
        }
    }
    const std::vector<float> &clean() const { return clean_; }

private:
    std::vector<float> clean_;
};

/// Which cells the beams crossed, in logarithms of odds.
class Occupancy {
public:
    Occupancy() : odds_(kSide * kSide) {}
    void Mark(const Vec &from, const std::vector<float> &ranges, double yaw) {
        double c = std::cos(yaw), s = std::sin(yaw), tc = std::cos(2 * M_PI / Scanner::kColumns), ts = std::sin(2 * M_PI / Scanner::kColumns);
        const float *row = ranges.data() + 8 * Scanner::kColumns;
        for (int i = 0; i < Scanner::kColumns; ++i) {
            double x = from.x + kSide / 2, y = from.y + kSide / 2;
            int hops = int(row[i]);
            for (int k = 0; k < hops; ++k) {
                x += c;
                y += s;
                size_t at = size_t(std::clamp(int(y), 0, kSide - 1) * kSide + std::clamp(int(x), 0, kSide - 1));
                odds_[at] = std::max(-8.f, odds_[at] - 0.05f);
            }
            size_t at = size_t(std::clamp(int(y), 0, kSide - 1) * kSide + std::clamp(int(x), 0, kSide - 1));
            odds_[at] = std::min(8.f, odds_[at] + 0.8f);
            double next = c * tc - s * ts;
            s = s * tc + c * ts;
            c = next;
        }
    }
    double Sum() const {
        double sum = 0;
        for (float odd : odds_) sum += odd > 0;
        return sum;
    }

private:
    static constexpr int kSide = 256;
    std::vector<float> odds_;
};

/// A filter of 12 states.
class Filter {
public:
    static constexpr int kN = 12;
    Filter() {
        for (int i = 0; i < kN; ++i) p_[i][i] = 1;
    }
    void Predict() {
        double next[kN][kN];
        for (int i = 0; i < kN; ++i)
            for (int k = 0; k < kN; ++k) {
                double sum = i == k ? 0.001 : 0;
                for (int l = 0; l < kN; ++l) sum += F(i, l) * p_[l][k];
                next[i][k] = sum;
            }
        for (int i = 0; i < kN; ++i)
            for (int k = 0; k < kN; ++k) {
                double sum = 0;
                for (int l = 0; l < kN; ++l) sum += next[i][l] * F(k, l);
                p_[i][k] = std::clamp(sum, -10.0, 10.0);
            }
    }
    double Trace() const {
        double sum = 0;
        for (int i = 0; i < kN; ++i) sum += p_[i][i];
        return sum;
    }

private:
    static double F(int i, int k) { return i == k ? 0.99 : k == i + 3 ? 0.01 : 0; }
    double p_[kN][kN] = {};
};

/// Leaves in the wind, with drag.
class Leaves {
public:
    Leaves() : places_(4000), speeds_(4000) {
        std::mt19937 random(3);
        for (auto &place : places_) place = {double(random() % 100), double(random() % 100), double(random() % 20)};
    }
    void Blow(double t) {
        for (size_t i = 0; i < places_.size(); ++i) {
            Vec wind{1 + 0.3 * places_[i].y * 0.01, 0.2 * t, -0.3};
            Vec away = wind - speeds_[i];
            double drag = std::sqrt(away.Dot(away)) * 0.02;
            speeds_[i] = speeds_[i] + away * drag;
            places_[i] = places_[i] + speeds_[i] * 0.01;
            if (places_[i].z < 0) places_[i].z = 20;
        }
    }
    double First() const { return places_[0].x; }

private:
    std::vector<Vec> places_, speeds_;
};

} // namespace campanile

int main(int argc, char **argv) {
    using namespace campanile;
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : std::numeric_limits<long>::max();
    Ground ground;
    Scanner scanner(ground, slow);
    Smoother smoother;
    Occupancy occupancy;
    Filter filter;
    Leaves leaves;
    Attitude attitude;
    double sum = 0;
    for (long i = 0; i < steps; ++i) {
        attitude.yaw = double(i) * 0.003;
        attitude.pitch = 0.05 * std::sin(double(i) * 0.01);
        attitude.Update();
        Vec from{10 * std::sin(double(i) * 0.001), 10 * std::cos(double(i) * 0.001), 6};
        scanner.Sweep(from, attitude);
        smoother.Clean(scanner.ranges());
        occupancy.Mark(from, smoother.clean(), attitude.yaw);
        for (int k = 0; k < 20; ++k) filter.Predict();
        for (int k = 0; k < 4; ++k) leaves.Blow(std::sin(double(i) * 0.01));
        sum += filter.Trace() + leaves.First() + scanner.intensities()[100];
    }
    std::printf("%g %g\n", sum, occupancy.Sum());
}
