// defect: the part that an event belongs to is found by std::find_if through all parts, comparing identifiers, for each event
// kinds: list-search, full-scan-each-step, superlinear-lookup, text-compared-each-step
// guilty: registrar::Scene::Find, registrar::Scene::Apply, registrar::Scene::Step
// build: -O2 -g
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace registrar {
struct Part {
    std::string id;
    double mass = 1, heat = 20;
};
struct Event { std::string id; double energy; };

class Scene {
public:
    bool has_index = false;
    explicit Scene(int number) {
        std::mt19937_64 random(7);
        for (int i = 0; i < number; ++i) {
            char id[40];
            std::snprintf(id, sizeof id, "%016llx-%08x", (unsigned long long)random(), i);
            parts_.push_back(std::make_shared<Part>(Part{id}));
            index_[id] = parts_.back();
        }
    }
    std::shared_ptr<Part> Find(const std::string &id) const {
        auto found = std::find_if(parts_.begin(), parts_.end(), [&](const auto &part) { return part->id == id; });
        return found == parts_.end() ? nullptr : *found;
    }
    void Apply(const Event &event) {
        auto part = has_index ? index_.at(event.id) : Find(event.id);
        if (part) part->heat += event.energy / part->mass;
    }
    void Step(const std::vector<Event> &events, double dt) {
        for (auto &one : events) Apply(one);
        for (auto &part : parts_) {
            double loss = 0;
            for (int i = 0; i < 8; ++i) loss += std::pow(part->heat / 300, 4) * std::exp(-i);
            part->heat -= loss * dt;
        }
    }
    std::vector<Event> Events(int number) const {
        std::vector<Event> events;
        for (int i = 0; i < number; ++i) events.push_back({parts_[size_t(i) * 7919 % parts_.size()]->id, 0.1});
        return events;
    }
    double Heat() const { return parts_[0]->heat; }
private:
    std::vector<std::shared_ptr<Part>> parts_;
    std::unordered_map<std::string, std::shared_ptr<Part>> index_;
};
} // namespace registrar

int main(int argc, char **argv) {
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    registrar::Scene scene(3000);
    scene.has_index = !(argc > 1 && !std::strcmp(argv[1], "slow"));
    auto events = scene.Events(200);
    for (long step = 0; step != steps; ++step) scene.Step(events, 0.01);
    std::printf("%g\n", scene.Heat());
}
