// defect: drones are tested for collisions by FCL's manager without a tree, which asks every pair
// kinds: slow-setting, full-scan-each-step
// guilty: fcl::NaiveCollisionManager::collide, fcl::detail::NaiveCollisionManager::collide, Swarm::Check
// gain: 89 %
// needs: fcl
// build: -O2 -g -std=c++17 -I/usr/include/eigen3
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcl/fcl.h>
#include <memory>
#include <vector>

struct Swarm {
    std::unique_ptr<fcl::BroadPhaseCollisionManagerd> manager;
    std::vector<std::unique_ptr<fcl::CollisionObjectd>> drones;

    explicit Swarm(bool slow) {
        if (slow) manager = std::make_unique<fcl::NaiveCollisionManagerd>();
        else manager = std::make_unique<fcl::DynamicAABBTreeCollisionManagerd>();
        auto shape = std::make_shared<fcl::Sphered>(0.3);
        for (int i = 0; i < 800; ++i) {
            drones.push_back(std::make_unique<fcl::CollisionObjectd>(shape));
            manager->registerObject(drones.back().get());
        }
        manager->setup();
    }
    void Move(long step) {
        for (size_t i = 0; i < drones.size(); ++i) {
            fcl::Vector3d at(1.5 * (i % 28) + std::sin(0.01 * step + i), 1.5 * (i / 28), std::cos(0.02 * step));
            drones[i]->setTranslation(at);
            drones[i]->computeAABB();
        }
        manager->update();
    }
    int Check() {
        int near = 0;
        manager->collide(&near, [](fcl::CollisionObjectd *, fcl::CollisionObjectd *, void *data) {
            ++*static_cast<int *>(data);
            return false;
        });
        return near;
    }
};

int main(int argc, char **argv) {
    Swarm swarm(argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1, near = 0;
    for (long step = 0; step != steps; ++step) {
        swarm.Move(step);
        near += swarm.Check();
    }
    std::printf("%ld\n", near);
}
