// defect: the same model is parsed from SDF text for each spawned robot; it can be parsed once and copied
// kinds: parsed-each-step
// guilty: Spawner::Spawn, main
// gain: 82 %
// needs: sdformat12
// build: -O2 -g -std=c++17
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

#include <sdf/sdf.hh>

static std::string Text() {
    std::string text = "<?xml version='1.0'?><sdf version='1.9'><model name='robot'>";
    for (int i = 0; i < 4; ++i) {
        std::string name = "link_" + std::to_string(i);
        text += "<link name='" + name + "'><pose>" + std::to_string(i) + " 0 0 0 0 0</pose><inertial><mass>2</mass></inertial>"
                "<collision name='c'><geometry><box><size>1 1 1</size></box></geometry></collision></link>";
    }
    return text + "</model></sdf>";
}

class Spawner {
public:
    explicit Spawner(bool slow) : slow_(slow), text_(Text()) {
        root_.LoadSdfString(text_);
    }
    sdf::Model Spawn(int number) {
        sdf::Model model;
        if (slow_) {
            sdf::Root root;
            sdf::Errors errors = root.LoadSdfString(text_);
            if (!errors.empty()) std::exit(1);
            model = *root.Model();
        } else {
            model = *root_.Model();
        }
        model.SetName("robot_" + std::to_string(number));
        return model;
    }
private:
    bool slow_;
    std::string text_;
    sdf::Root root_;
};

static double Drive(const sdf::Model &model, int step) {
    double way = 0;
    for (uint64_t i = 0; i < model.LinkCount(); ++i) {
        auto pose = model.LinkByIndex(i)->RawPose();
        for (int k = 0; k < 15000; ++k) way += std::sin(pose.Pos().X() + 0.001 * k * step);
    }
    return way;
}

int main(int argc, char **argv) {
    Spawner spawner(argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::deque<sdf::Model> robots;
    double way = 0;
    for (long step = 0; step != steps; ++step) {
        robots.push_back(spawner.Spawn(step));
        if (robots.size() > 8) robots.pop_front();
        for (const auto &robot : robots) way += Drive(robot, step);
    }
    std::printf("%g\n", way);
}
