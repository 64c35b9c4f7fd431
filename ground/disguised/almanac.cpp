// defect: the tide model reads its table of constants from text again for each tide
// kinds: text-parsed-each-step, values-through-text
// guilty: tide::Constants::Read, tide::Model::Level
// build: -O2 -g
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace tide {
class Constants {
public:
    __attribute__((noinline)) void Read(const std::string &text) {
        values_.clear();
        for (std::size_t at = 0; at < text.size();) {
            std::size_t is = text.find('=', at), end = text.find('\n', at);
            values_[text.substr(at, is - at)] = std::strtod(text.c_str() + is + 1, nullptr);
            at = end + 1;
        }
        phases_.clear();
        for (const auto &[name, value] : values_) phases_.push_back(value);
    }
    const std::vector<double> &phases() const { return phases_; }

private:
    std::map<std::string, double> values_;
    std::vector<double> phases_;
};

class Model {
public:
    explicit Model(bool again) : again_(again) {
        for (int i = 0; i < 120; ++i) text_ += "constituent." + std::to_string(i) + ".phase=" + std::to_string(i * 0.37) + "\n";
        constants_.Read(text_);
    }
    double Level(double t) {
        if (again_) constants_.Read(text_);
        return Sum(t);
    }
    __attribute__((noinline)) double Sum(double t) {
        double sum = 0;
        for (int hour = 0; hour < 24; ++hour)
            for (double phase : constants_.phases()) sum += std::cos(t + hour * 0.1 + phase);
        return sum;
    }

private:
    bool again_;
    std::string text_;
    Constants constants_;
};
} // namespace tide

int main(int argc, char **argv) {
    tide::Model model(argc > 1 && !std::strcmp(argv[1], "slow"));
    volatile double level = 0;
    for (long at = 0;; ++at) level = level + model.Level(at * 0.01);
}
