// defect: publishers find their topic in a hash table of names for each message
// kinds: text-keys-each-step
// guilty: sim::Bus::Publish, sim::Bus::Find
#include <string>
#include <unordered_map>
#include "loop.hpp"

namespace sim {
struct Topic {
    long messages = 0;
    double last = 0;
};

class Bus {
public:
    Topic *Find(const std::string &name) {
        auto found = topics_.find(name);
        return found == topics_.end() ? &topics_[name] : &found->second;
    }
    void Publish(const std::string &name, double value) { Publish(Find(name), value); }
    static void Publish(Topic *topic, double value) {
        ++topic->messages;
        topic->last = value;
    }

private:
    std::unordered_map<std::string, Topic> topics_;
};
} // namespace sim

int main(int argc, char **argv) {
    bool slow = sim::IsSlow(argc, argv);
    sim::Bus bus;
    sim::Bodies bodies(2000);
    std::vector<std::string> names;
    std::vector<sim::Topic *> topics;
    for (int i = 0; i < 500; ++i) {
        names.push_back("/fleet/vehicle_" + std::to_string(i) + "/sensors/odometry/filtered");
        topics.push_back(bus.Find(names.back()));
    }
    sim::Run([&](long) {
        bodies.Advance(8);
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (slow) bus.Publish(names[i], bodies.at(i));
            else sim::Bus::Publish(topics[i], bodies.at(i));
        }
    });
}
