// defect: a controller reads its parameter file in each step
// kinds: file-opened-each-time, values-through-text
// guilty: sim::Parameters::Load
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>
#include "loop.hpp"

namespace sim {
class Parameters {
public:
    Parameters() : path_("disguised-parameters-" + std::to_string(getpid())) {
        std::ofstream out(path_);
        for (int i = 0; i < 12; ++i) out << "gain_" << i << " = " << i * 0.25 << "\n";
        out.close();
        Load();
        keep_ = std::fopen(path_.c_str(), "r");
    }
    void Load() {
        std::FILE *file = std::fopen(path_.c_str(), "r");
        if (!file) return;
        char name[32];
        double value;
        for (int i = 0; std::fscanf(file, "%31s = %lf", name, &value) == 2; ++i) values_[i] = value;
        std::fclose(file);
    }
    double gain(int i) const { return values_[i]; }
    const std::string &path() const { return path_; }

private:
    std::string path_;
    std::FILE *keep_;
    double values_[12] = {};
};
} // namespace sim

int main(int argc, char **argv) {
    bool slow = sim::IsSlow(argc, argv);
    sim::Parameters parameters;
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        if (slow) parameters.Load();
        bodies.Advance(6);
        sim::sink = parameters.gain(step % 12);
    });
}
