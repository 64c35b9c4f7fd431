// defect: the thread of the servo bus keeps the lock of the joint states while it waits for the answers of the servos, so that the control cycle waits for the bus
// kinds: lock-wait
// guilty: hexapod::ServoBus::run, hexapod::ServoBus::exchange, hexapod::JointStates::latest
// gain: 48w
//
// A six-legged robot: a control cycle (gait, footholds, inverse kinematics, attitude, terrain map) in the main thread, and
// a thread that talks to the servos over a serial line (here: a socket pair to an emulated bus).
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace hexapod {

constexpr int kLegs = 6, kJoints = 18;
using Joints = std::array<double, kJoints>;

struct Request { uint8_t leg, kind; int16_t goal[3]; };
struct Answer { uint8_t leg, flags; int16_t position[3]; int16_t current[3]; };

// The other end of the line: three servos answer some time after the request, as 1 Mbaud and their return delay allow.
class EmulatedBus {
public:
    explicit EmulatedBus(int fd) : fd_(fd), thread_([this] { run(); }) {}
    ~EmulatedBus() { thread_.join(); }

private:
    void run() {
        Request q;
        while (read(fd_, &q, sizeof q) == ssize_t(sizeof q)) {
            std::this_thread::sleep_for(std::chrono::microseconds(420));
            Answer a{q.leg, 0, {}, {}};
            for (int k = 0; k < 3; ++k) {
                a.position[k] = q.goal[k];
                a.current[k] = int16_t(40 + (q.goal[k] & 31));
            }
            if (write(fd_, &a, sizeof a) < 0) return;
        }
    }
    int fd_;
    std::thread thread_;
};

class JointStates {
public:
    struct Snapshot { Joints position{}, current{}; uint64_t cycle = 0; };

    Snapshot latest() {
        std::lock_guard<std::mutex> guard(mutex);
        return states;
    }
    void command(const Joints& goals) {
        std::lock_guard<std::mutex> guard(goalMutex);
        goals_ = goals;
    }
    Joints goals() {
        std::lock_guard<std::mutex> guard(goalMutex);
        return goals_;
    }

    std::mutex mutex, goalMutex;
    Snapshot states;

private:
    Joints goals_{};
};

class ServoBus {
public:
    ServoBus(int fd, JointStates& joints, bool shortLock)
        : fd_(fd), joints_(joints), shortLock_(shortLock), thread_([this] { run(); }) {}
    ~ServoBus() {
        stop_ = true;
        thread_.join();
        shutdown(fd_, SHUT_RDWR);
    }

private:
    void exchange(const Joints& goals, JointStates::Snapshot& into) {
        for (int leg = 0; leg < kLegs; ++leg) {
            Request q{uint8_t(leg), 1, {}};
            for (int k = 0; k < 3; ++k) q.goal[k] = int16_t(goals[3 * leg + k] * 1000);
            Answer a;
            if (write(fd_, &q, sizeof q) < 0 || read(fd_, &a, sizeof a) != ssize_t(sizeof a)) return;
            for (int k = 0; k < 3; ++k) {
                into.position[3 * leg + k] = a.position[k] * 1e-3;
                into.current[3 * leg + k] = a.current[k];
            }
        }
        ++into.cycle;
    }

    void run() {
        auto next = std::chrono::steady_clock::now();
        JointStates::Snapshot fresh;
        while (!stop_) {
            const Joints goals = joints_.goals();
            if (shortLock_) {
                exchange(goals, fresh);
                std::lock_guard<std::mutex> guard(joints_.mutex);
                joints_.states = fresh;
            } else {
                std::lock_guard<std::mutex> guard(joints_.mutex);
                exchange(goals, joints_.states);
            }
            next += std::chrono::milliseconds(4);
            const auto now = std::chrono::steady_clock::now();
            if (next < now) next = now + std::chrono::milliseconds(1);
            std::this_thread::sleep_until(next);
        }
    }

    int fd_;
    JointStates& joints_;
    bool shortLock_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

// Height map around the robot, filtered again as it walks.
class Terrain {
public:
    Terrain() : cells_(kSide * kSide), next_(cells_) {
        for (int i = 0; i < kSide * kSide; ++i) cells_[i] = 0.05f * std::sin(0.7f * float(i % kSide)) * std::cos(0.3f * float(i / kSide));
    }
    void relax() {
        for (int y = 1; y + 1 < kSide; ++y)
            for (int x = 1; x + 1 < kSide; ++x) {
                const float* c = &cells_[y * kSide + x];
                next_[y * kSide + x] = 0.999f * c[0] + 0.00025f * (c[-1] + c[1] + c[-kSide] + c[kSide]);
            }
        cells_.swap(next_);
    }
    float at(double x, double y) const {
        int i = int(std::floor(x * 20)) & (kSide - 1), j = int(std::floor(y * 20)) & (kSide - 1);
        return cells_[j * kSide + i];
    }

private:
    static constexpr int kSide = 256;
    std::vector<float> cells_, next_;
};

struct Foot { double x, y, z; };

static Foot gait(int leg, double t, double speed) {
    double phase = std::fmod(t * 1.6 + (leg % 2) * 0.5, 1.0), swing = phase < 0.5 ? 2 * phase : 0;
    double along = phase < 0.5 ? -0.06 + 0.24 * phase : 0.06 - 0.24 * (phase - 0.5);
    return {0.12 * (leg / 2 - 1) + along * speed, leg % 2 ? 0.14 : -0.14, -0.1 + 0.04 * std::sin(3.14159 * swing)};
}

// Damped least squares for the three joints of a leg.
static void inverseKinematics(const Foot& f, double* q) {
    for (int k = 0; k < 120; ++k) {
        double r = 0.05 + 0.08 * std::cos(q[1]) + 0.11 * std::cos(q[1] + q[2]);
        double ex = f.x - r * std::sin(q[0]), ey = std::fabs(f.y) - r * std::cos(q[0]);
        double ez = f.z - (0.08 * std::sin(q[1]) + 0.11 * std::sin(q[1] + q[2]));
        double jr1 = -0.08 * std::sin(q[1]) - 0.11 * std::sin(q[1] + q[2]), jr2 = -0.11 * std::sin(q[1] + q[2]);
        double er = ex * std::sin(q[0]) + ey * std::cos(q[0]);
        q[0] += 0.8 * (ex * std::cos(q[0]) - ey * std::sin(q[0])) / (r + 0.02);
        q[1] += 2.0 * (jr1 * er + 0.08 * ez * std::cos(q[1]));
        q[2] += 2.0 * (jr2 * er + 0.11 * ez * std::cos(q[1] + q[2]));
    }
}

static double stability(const std::array<Foot, kLegs>& feet, const Terrain& ground, double walked) {
    double worst = 1;
    for (int a = 0; a < 720; ++a) {
        double c = std::cos(a * 0.00872665), s = std::sin(a * 0.00872665), support = 0;
        for (const Foot& f : feet)
            if (f.z < -0.08 + ground.at(f.x + walked, f.y) * 0.1) support = std::max(support, c * f.x + s * f.y);
        worst = std::min(worst, support);
    }
    return worst;
}

// The best place for a foot near the one that the gait wants: level ground, not far away.
static Foot foothold(const Foot& wanted, const Terrain& ground, double walked) {
    Foot best = wanted;
    double least = 1e9;
    for (int i = -8; i <= 8; ++i)
        for (int j = -8; j <= 8; ++j) {
            const double x = wanted.x + 0.004 * i, y = wanted.y + 0.004 * j, h = ground.at(x + walked, y);
            double rough = 0;
            for (auto [dx, dy] : {std::pair{0.05, 0.0}, {-0.05, 0.0}, {0.0, 0.05}, {0.0, -0.05}}) rough += std::fabs(ground.at(x + walked + dx, y + dy) - h);
            const double cost = rough + 2e-4 * (i * i + j * j);
            if (cost < least) {
                least = cost;
                best = {x, y, wanted.z + 0.2 * h};
            }
        }
    return best;
}

// Attitude and its rates with biases: propagation of mean and covariance for each sample of the inertial unit.
class Attitude {
public:
    void sample(double t) {
        constexpr double dt = 0.00025;
        for (int k = 0; k < 4; ++k) {
            x_[k] += dt * x_[k + 4];
            x_[k + 4] += dt * (2 * std::sin(t + k) - x_[k] - x_[k + 8]);
        }
        for (int i = 0; i < 12; ++i)
            for (int j = 0; j < 12; ++j) p_[i][j] += dt * ((i < 8 ? p_[i + 4][j] : 0) + (j < 8 ? p_[i][j + 4] : 0)) + (i == j ? 1e-6 : 0);
        const double gain = 1 / (p_[0][0] + 0.01), off = 0.01 * std::cos(t) - x_[0];
        std::array<double, 12> column;
        for (int i = 0; i < 12; ++i) column[i] = p_[i][0];
        for (int i = 0; i < 12; ++i) {
            x_[i] += gain * column[i] * off;
            for (int j = 0; j < 12; ++j) p_[i][j] -= gain * column[i] * column[j];
        }
    }
    double roll() const { return x_[0]; }

private:
    std::array<double, 12> x_{};
    std::array<std::array<double, 12>, 12> p_{};
};

}  // namespace hexapod

int main(int argc, char** argv) {
    using namespace hexapod;
    if (argc < 2) {
        std::fprintf(stderr, "usage: servobus slow|fast [cycles]\n");
        return 1;
    }
    const bool shortLock = std::string(argv[1]) == "fast";
    const long cycles = argc > 2 ? std::atol(argv[2]) : -1;
    int line[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line) != 0) return 1;
    EmulatedBus emulated(line[1]);
    JointStates joints;
    ServoBus bus(line[0], joints, shortLock);
    Terrain ground;
    Attitude attitude;
    Joints q{}, smooth{};
    double walked = 0, margin = 0, effort = 0;
    for (long n = 0; n != cycles; ++n) {
        const double t = 0.005 * double(n);
        const JointStates::Snapshot measured = joints.latest();
        for (double c : measured.current) effort = 0.999 * effort + 0.001 * c;
        std::array<Foot, kLegs> feet;
        for (int leg = 0; leg < kLegs; ++leg) {
            feet[leg] = foothold(gait(leg, t, effort > 1e6 ? 0 : 1), ground, walked);      // an overloaded robot stands still
            inverseKinematics(feet[leg], &q[3 * leg]);
        }
        for (int k = 0; k < kJoints; ++k) smooth[k] += 0.3 * (q[k] - smooth[k]);
        joints.command(smooth);
        for (int k = 0; k < 3; ++k) ground.relax();
        for (int k = 0; k < 20; ++k) attitude.sample(t + 0.00025 * k);
        margin += stability(feet, ground, walked) + 0.1 * attitude.roll();
        walked += 0.0012;
    }
    double sum = 0;
    for (double s : smooth) sum += s;
    std::printf("%.9f %.9f\n", margin, sum);
}
