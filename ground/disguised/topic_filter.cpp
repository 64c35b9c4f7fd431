// defect: a bus compiles the pattern of a subscription for each message
// kinds: pattern-compiled-each-step
// guilty: sim::Bus::Matches
#include <regex>
#include <string>
#include "loop.hpp"

namespace sim {
class Bus {
public:
    explicit Bus(bool slow) : slow_(slow), compiled_("/robot_[0-9]+/(scan|odom)") {}
    bool Matches(const std::string &topic) {
        if (slow_) return std::regex_match(topic, std::regex("/robot_[0-9]+/(scan|odom)"));
        return std::regex_match(topic, compiled_);
    }

private:
    bool slow_;
    std::regex compiled_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Bus bus(sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    std::vector<std::string> topics = {"/robot_1/scan", "/robot_12/odom", "/clock"};
    sim::Run([&](long step) {
        bodies.Advance(12);
        sim::sink = bus.Matches(topics[step % topics.size()]);
    });
}
