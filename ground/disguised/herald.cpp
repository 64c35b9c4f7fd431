// defect: the world's tree of values is copied deeply for the observers of each step, who only read it
// kinds: copies-each-step, allocations-each-step
// guilty: herald::World::State, herald::Value::Value, herald::Observer::Notify, herald::World::Publish, herald::World::Step
// build: -O2 -g -Wno-maybe-uninitialized
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace herald {
class Value {
public:
    using Object = std::map<std::string, Value>;
    using Array = std::vector<Value>;
    Value() = default;
    Value(double number) : data_(number) {}
    Value(std::string text) : data_(std::move(text)) {}
    Value(Object object) : data_(std::move(object)) {}
    Value(Array array) : data_(std::move(array)) {}
    Value &operator[](const std::string &key) { return std::get<Object>(data_)[key]; }
    Value &At(size_t index) { return std::get<Array>(data_)[index]; }
    double Sum() const {
        if (auto *number = std::get_if<double>(&data_)) return *number;
        double sum = 0;
        if (auto *array = std::get_if<Array>(&data_)) for (auto &one : *array) sum += one.Sum();
        if (auto *object = std::get_if<Object>(&data_)) for (auto &[key, one] : *object) sum += one.Sum();
        return sum;
    }
    double Number() const { return std::get<double>(data_); }
private:
    std::variant<std::monostate, double, std::string, Object, Array> data_;
};

struct Observer {
    double seen = 0;
    void Notify(const Value &state) { seen += state.Sum(); }
};

class World {
public:
    bool copies = false;
    World() {
        Value::Array robots;
        for (int i = 0; i < 150; ++i) {
            Value::Object joints;
            for (const char *name : {"shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_joint"})
                joints[name] = Value(Value::Object{{"position", 0.1 * i}, {"velocity", 0.5}});
            robots.push_back(Value(Value::Object{{"name", std::string("robot_number_") + std::to_string(i)}, {"joints", Value(joints)}}));
        }
        state_ = Value(Value::Object{{"robots", Value(robots)}, {"time", 0.0}});
    }
    Value State() const { return state_; }
    void Publish(std::vector<Observer> &observers) {
        for (auto &one : observers) {
            if (copies) one.Notify(State());
            else one.Notify(state_);
        }
    }
    void Step(double time) {
        state_["time"] = Value(time);
        auto &robots = state_["robots"];
        for (size_t i = 0; i < 150; ++i) {
            double angle = 0;
            for (int k = 0; k < 60; ++k) angle += std::sin(time + k * 0.1) * std::cos(angle);
            robots.At(i)["joints"]["elbow_joint"]["position"] = Value(angle);
        }
    }
private:
    Value state_;
};
} // namespace herald

int main(int argc, char **argv) {
    herald::World world;
    world.copies = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<herald::Observer> observers(3);
    double time = 0;
    auto next = std::chrono::steady_clock::now();
    for (long step = 0; step != steps; ++step, time += 0.01) {
        world.Step(time);
        world.Publish(observers);
        next += std::chrono::milliseconds(5);
        if (steps < 0) std::this_thread::sleep_until(next);
    }
    std::printf("%g\n", observers[0].seen);
}
