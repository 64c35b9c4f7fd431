// defect: while the tracks are projected, the text with the sheet's scale and origin is read through a stream again for each point
// kinds: values-through-text, text-parsed-each-step, parsed-each-step
// guilty: portolan::Sheet::Frame, portolan::Number, portolan::Convert, portolan::Sheet::Project
// seconds: 20
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace portolan {
struct Point { double east, north, depth; };
struct Track { std::vector<Point> points; double length = 0; };

// Reads soundings from lines of text, once.
std::vector<Track> Load(int tracks, int each) {
    std::vector<Track> all(tracks);
    char line[80];
    for (int t = 0; t < tracks; ++t) {
        for (int i = 0; i < each; ++i) {
            std::snprintf(line, sizeof line, "%.5f %.5f %.2f", 3 + std::sin(t + i * 1e-3), 54 + std::cos(t - i * 1e-3), 20 + 5 * std::sin(i * 0.02));
            char *at = line;
            double east = std::strtod(at, &at), north = std::strtod(at, &at), depth = std::strtod(at, &at);
            all[t].points.push_back({east, north, depth});
        }
    }
    return all;
}

double Number(const std::string &text, int index) {
    std::istringstream in(text);
    double value = 0;
    for (int i = 0; i <= index; ++i) in >> value;
    return value;
}

class Sheet {
public:
    Sheet(std::string frame, bool again) : frame_(std::move(frame)), again_(again) { scale_ = Frame(0), east_ = Frame(1), north_ = Frame(2); }
    double Frame(int index) const { return Number(frame_, index); }
    Point Project(const Point &point) const {
        double scale = again_ ? Frame(0) : scale_, east = again_ ? Frame(1) : east_, north = again_ ? Frame(2) : north_;
        double phi = point.north * M_PI / 180, lambda = (point.east - east) * M_PI / 180;
        double conformal = std::asinh(std::tan(phi) - 0.0818 * std::sin(phi) * std::atanh(0.0818 * std::sin(phi)));
        return {scale * std::atan2(std::sinh(lambda), std::cosh(conformal)), scale * (conformal - north * M_PI / 180), point.depth};
    }
private:
    std::string frame_;
    bool again_;
    double scale_, east_, north_;
};

void Convert(const Sheet &sheet, std::vector<Track> &tracks) {
    for (Track &track : tracks) {
        for (Point &point : track.points) point = sheet.Project(point);
        for (size_t i = 1; i < track.points.size(); ++i) {
            track.length += std::hypot(track.points[i].east - track.points[i - 1].east, track.points[i].north - track.points[i - 1].north);
        }
    }
}

// A depth model of the area: each cell from the soundings of a track, relaxed.
double Model(const std::vector<Track> &tracks, int rounds) {
    const int n = 300;
    std::vector<double> cells(n * n, 20), next = cells;
    for (const Track &track : tracks) {
        for (const Point &point : track.points) {
            int x = int(std::fabs(point.east) * 1e3) % n, y = int(std::fabs(point.north) * 1e3) % n;
            cells[y * n + x] = 0.5 * (cells[y * n + x] + point.depth);
        }
    }
    for (int round = 0; round < rounds; ++round) {
        for (int y = 1; y < n - 1; ++y) {
            for (int x = 1; x < n - 1; ++x) {
                double *cell = &cells[y * n + x];
                next[y * n + x] = *cell + 0.2 * std::tanh(cell[-1] + cell[1] + cell[-n] + cell[n] - 4 * *cell);
            }
        }
        cells.swap(next);
    }
    return *std::max_element(cells.begin(), cells.end());
}
} // namespace portolan

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    auto tracks = portolan::Load(60, 8000);
    portolan::Sheet sheet("6371000.0 3.25 53.75", slow);
    for (size_t i = 0; i < tracks.size(); ++i) {
        if (i % 2) tracks[i].points.resize(tracks[i].points.size() / 2);
    }
    portolan::Convert(sheet, tracks);
    double deepest = portolan::Model(tracks, 450), length = 0;
    for (const auto &track : tracks) length += track.length;
    std::printf("%.1f km, %.2f m\n", length / 1000, deepest);
}
