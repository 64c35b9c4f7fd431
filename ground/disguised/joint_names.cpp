// defect: joints are looked up by their names in a map in each step
// kinds: text-keys-each-step
// guilty: sim::Robot::Position, sim::Controller::Update
#include <map>
#include <string>
#include <string_view>
#include "loop.hpp"

namespace sim {
class Robot {
public:
    explicit Robot(int joints) {
        for (int i = 0; i < joints; ++i) positions_["robot/arm_" + std::to_string(i / 7) + "/joint_" + std::to_string(i % 7)] = i;
    }
    double &Position(std::string_view name) { return positions_.find(name)->second; }
    std::vector<std::string> Names() const {
        std::vector<std::string> names;
        for (auto &[name, position] : positions_) names.push_back(name);
        return names;
    }

private:
    std::map<std::string, double, std::less<>> positions_;
};

class Controller {
public:
    Controller(Robot &robot, bool slow) : robot_(robot), names_(robot.Names()), slow_(slow) {
        for (auto &name : names_) positions_.push_back(&robot.Position(name));
    }
    void Update(double time) {
        for (std::size_t i = 0; i < names_.size(); ++i) {
            double &position = slow_ ? robot_.Position(names_[i]) : *positions_[i];
            position += 0.1 * (std::sin(time + i) - position);
        }
    }

private:
    Robot &robot_;
    std::vector<std::string> names_;
    std::vector<double *> positions_;
    bool slow_;
};
} // namespace sim

int main(int argc, char **argv) {
    sim::Robot robot(700);
    sim::Controller controller(robot, sim::IsSlow(argc, argv));
    sim::Bodies bodies(2000);
    sim::Run([&](long step) {
        controller.Update(step * 0.001);
        bodies.Advance(10);
    });
}
