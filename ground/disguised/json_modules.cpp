// defect: the state goes from the dynamics to the controller as JSON text in each step, by nlohmann's library
// kinds: values-through-text, parsed-each-step
// guilty: Controller::Read, Dynamics::Write, Simulation::Step
// gain: 62 %
// needs: nlohmann_json
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

struct Dynamics {
    std::vector<double> joints = std::vector<double>(30, 0.1);
    void Move(double torque) {
        for (int k = 0; k < 40; ++k)
            for (double &joint : joints) joint += 1e-3 * std::sin(joint + torque);
    }
    std::string Write() const { return nlohmann::json{{"joints", joints}, {"count", joints.size()}}.dump(); }
};

struct Controller {
    double Read(const std::string &text) {
        auto state = nlohmann::json::parse(text);
        return Decide(state["joints"].get<std::vector<double>>());
    }
    double Decide(const std::vector<double> &joints) {
        double sum = 0;
        for (double joint : joints) sum += std::cos(joint);
        return sum / joints.size();
    }
};

struct Simulation {
    bool slow;
    Dynamics dynamics;
    Controller controller;
    void Step() {
        double torque = slow ? controller.Read(dynamics.Write()) : controller.Decide(dynamics.joints);
        dynamics.Move(torque);
    }
};

int main(int argc, char **argv) {
    Simulation simulation{argc > 1 && !std::strcmp(argv[1], "slow"), {}, {}};
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    for (long step = 0; step != steps; ++step) simulation.Step();
    std::printf("%g\n", simulation.dynamics.joints[0]);
}
