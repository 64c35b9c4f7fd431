// defect: the filter's matrices have sizes that are known at run time only, so each product allocates
// kinds: allocations-each-step
// guilty: Filter<6>::Update, Filter<-1>::Update, Filter::Update, main
// gain: 72 %
// needs: eigen3
#include <Eigen/Dense>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

struct Tracker {
    virtual ~Tracker() = default;
    virtual double Update(double x, double y) = 0;
};

template <int N>
struct Filter : Tracker {
    using State = Eigen::Matrix<double, N, 1>;
    using Square = Eigen::Matrix<double, N, N>;
    State x = State::Zero(6, 1);
    Square P = Square::Identity(6, 6), F = Square::Identity(6, 6), Q = 0.01 * Square::Identity(6, 6);
    Eigen::Matrix<double, 2, N> H = Eigen::Matrix<double, 2, N>::Identity(2, 6);

    Filter() {
        for (int i = 0; i < 4; ++i) F(i, i + 2) = 0.01;
    }

    double Update(double px, double py) override {
        x = F * x;
        P = F * P * F.transpose() + Q;
        Eigen::Vector2d z(px, py);
        Eigen::Vector2d y = z - H * x;
        Eigen::Matrix2d S = H * P * H.transpose() + 0.1 * Eigen::Matrix2d::Identity();
        Eigen::Matrix<double, N, 2> K = P * H.transpose() * S.inverse();
        x = x + K * y;
        P = (Square::Identity(6, 6) - K * H) * P;
        return x(0);
    }
};

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    std::vector<std::unique_ptr<Tracker>> trackers;
    for (int i = 0; i < 100; ++i) {
        if (slow) trackers.push_back(std::make_unique<Filter<Eigen::Dynamic>>());
        else trackers.push_back(std::make_unique<Filter<6>>());
    }
    double sum = 0;
    for (long step = 0; step != steps; ++step)
        for (size_t i = 0; i < trackers.size(); ++i) sum += trackers[i]->Update(std::sin(0.01 * step + i), std::cos(0.01 * step));
    std::printf("%g\n", sum);
}
