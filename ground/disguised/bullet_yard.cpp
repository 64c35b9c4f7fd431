// defect: the broad phase of Bullet is btSimpleBroadphase, which tests every pair of crates; btDbvtBroadphase has a tree
// kinds: slow-setting, full-scan-each-step
// guilty: btSimpleBroadphase::calculateOverlappingPairs, main
// gain: 79 %
// needs: bullet
#include <btBulletDynamicsCommon.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

struct Yard {
    btDefaultCollisionConfiguration configuration;
    btCollisionDispatcher dispatcher{&configuration};
    btSequentialImpulseConstraintSolver solver;
    std::unique_ptr<btBroadphaseInterface> broadphase;
    std::unique_ptr<btDiscreteDynamicsWorld> world;
    btBoxShape crate{btVector3(0.3, 0.3, 0.3)}, ground{btVector3(100, 100, 1)};
    std::vector<std::unique_ptr<btRigidBody>> bodies;

    explicit Yard(bool slow) {
        if (slow) broadphase = std::make_unique<btSimpleBroadphase>();
        else broadphase = std::make_unique<btDbvtBroadphase>();
        world = std::make_unique<btDiscreteDynamicsWorld>(&dispatcher, broadphase.get(), &solver, &configuration);
        world->setGravity(btVector3(0, 0, -9.81));
        add(ground, 0, btVector3(0, 0, -1));
        for (int i = 0; i < 900; ++i) add(crate, 10, btVector3(1.2 * (i % 30), 1.2 * (i / 30), 0.32 + 0.01 * (i % 5)));
    }

    void add(btCollisionShape &shape, double mass, const btVector3 &at) {
        btVector3 inertia(0, 0, 0);
        if (mass > 0) shape.calculateLocalInertia(mass, inertia);
        bodies.push_back(std::make_unique<btRigidBody>(mass, nullptr, &shape, inertia));
        bodies.back()->setWorldTransform(btTransform(btQuaternion::getIdentity(), at));
        bodies.back()->setActivationState(DISABLE_DEACTIVATION);
        world->addRigidBody(bodies.back().get());
    }
};

int main(int argc, char **argv) {
    Yard yard(argc > 1 && !std::strcmp(argv[1], "slow"));
    long steps = argc > 2 ? std::atol(argv[2]) : -1;
    double height = 0;
    for (long step = 0; step != steps; ++step) {
        yard.world->stepSimulation(1.0 / 100, 1, 1.0 / 100);
        for (auto &body : yard.bodies) height += body->getCenterOfMassPosition().z();
    }
    std::printf("%g\n", height);
}
