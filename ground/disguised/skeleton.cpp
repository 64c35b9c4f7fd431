// defect: the world transform of each bone is computed through all bones above it again, by recursion, for each attached mesh
// kinds: chain-climbed-each-time
// guilty: skeleton::Bone::WorldTransform, skeleton::Skeleton::Attach, skeleton::Skeleton::Update, skeleton::Matrix::operator*, skeleton::operator*
// build: -O2 -g
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace skeleton {
struct Matrix {
    std::array<double, 16> m{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    static Matrix Turn(double angle, double length) {
        Matrix one;
        one.m[0] = one.m[5] = std::cos(angle);
        one.m[1] = -(one.m[4] = std::sin(angle));
        one.m[3] = length;
        return one;
    }
};
Matrix operator*(const Matrix &a, const Matrix &b) {
    Matrix c;
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            double sum = 0;
            for (int k = 0; k < 4; ++k) sum += a.m[size_t(4 * i + k)] * b.m[size_t(4 * k + j)];
            c.m[size_t(4 * i + j)] = sum;
        }
    return c;
}

class Bone {
public:
    Bone(const Bone *parent, double length) : parent_(parent), length_(length) {}
    void Turn(double angle) { local_ = Matrix::Turn(angle, length_); }
    Matrix WorldTransform() const {
        if (!parent_) return local_;
        return parent_->WorldTransform() * local_;
    }
    const Bone *Parent() const { return parent_; }
    const Matrix &Local() const { return local_; }
    Matrix world;
private:
    const Bone *parent_;
    double length_;
    Matrix local_;
};

class Skeleton {
public:
    explicit Skeleton(size_t bones) {
        for (size_t i = 0; i < bones; ++i) bones_.push_back(std::make_unique<Bone>(i % 24 ? bones_[i - 1].get() : nullptr, 0.1));
    }
    void Update(double time, bool climb) {
        for (size_t i = 0; i < bones_.size(); ++i) bones_[i]->Turn(0.02 * std::sin(time + double(i)));
        for (auto &bone : bones_) {
            if (climb) bone->world = bone->WorldTransform();
            else bone->world = bone->Parent() ? bone->Parent()->world * bone->Local() : bone->Local();
        }
        for (auto &bone : bones_) Skin(*bone);
    }
    double sum = 0;
private:
    void Skin(const Bone &bone) {
        for (int i = 0; i < 60; ++i) sum += bone.world.m[0] * i + bone.world.m[3] * std::sqrt(double(i));
    }
    std::vector<std::unique_ptr<Bone>> bones_;
};
} // namespace skeleton

int main(int argc, char **argv) {
    bool slow = argc > 1 && !std::strcmp(argv[1], "slow");
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    skeleton::Skeleton one(24 * 100);
    for (long step = 0; step != steps; ++step) one.Update(double(step) * 0.01, slow);
    std::printf("%g\n", one.sum);
}
