// N shapes in a DART world with ODE's collision detector, as gz-physics sets it up.
//
//   dart_shapes N [STEPS] [static|dynamic]
//
// STEPS of 0 (the default) runs until SIGINT or SIGTERM. Prints `dart_shapes: ready` after the first step.

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <dart/collision/CollisionResult.hpp>
#include <dart/collision/ode/OdeCollisionDetector.hpp>
#include <dart/constraint/ConstraintSolver.hpp>
#include <dart/dynamics/BoxShape.hpp>
#include <dart/dynamics/CylinderShape.hpp>
#include <dart/dynamics/FreeJoint.hpp>
#include <dart/dynamics/Skeleton.hpp>
#include <dart/dynamics/SphereShape.hpp>
#include <dart/simulation/World.hpp>

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t stopped = 0;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

dart::dynamics::ShapePtr shape_of(int index) {
  switch (index % 3) {
    case 0:
      return std::make_shared<dart::dynamics::BoxShape>(Eigen::Vector3d::Ones());
    case 1:
      return std::make_shared<dart::dynamics::CylinderShape>(0.5, 1.0);
    default:
      return std::make_shared<dart::dynamics::SphereShape>(0.5);
  }
}

dart::dynamics::SkeletonPtr model(const std::string& name, const dart::dynamics::ShapePtr& shape,
                                  const Eigen::Vector3d& at, bool is_static) {
  auto skeleton = dart::dynamics::Skeleton::create(name);
  auto* body = skeleton->createJointAndBodyNodePair<dart::dynamics::FreeJoint>().second;
  body->createShapeNodeWith<dart::dynamics::CollisionAspect, dart::dynamics::DynamicsAspect>(shape);
  Eigen::Isometry3d pose = Eigen::Isometry3d::Identity();
  pose.translation() = at;
  dart::dynamics::FreeJoint::setTransformOf(body, pose);
  skeleton->setMobile(!is_static);
  return skeleton;
}

dart::simulation::WorldPtr shapes_world(int n, bool is_static) {
  auto world = dart::simulation::World::create("shapes");
  world->setTimeStep(0.001);
  world->getConstraintSolver()->setCollisionDetector(dart::collision::OdeCollisionDetector::create());
  const auto floor = std::make_shared<dart::dynamics::BoxShape>(Eigen::Vector3d(1000, 1000, 1));
  world->addSkeleton(model("ground_plane", floor, {0, 0, -0.5}, true));
  const int edge = static_cast<int>(std::ceil(std::sqrt(n)));
  for (int index = 0; index < n; ++index) {
    const Eigen::Vector3d at(2.0 * (index % edge), 2.0 * (index / edge), 0.5);
    world->addSkeleton(model("shape_" + std::to_string(index), shape_of(index), at, is_static));
  }
  return world;
}

}  // namespace

volatile std::uint64_t steps_done = 0;

// One step; the marker for `step = { function = ... }`. Counting here, after the call, keeps this function on the stack
// during the step, and lets it begin with a push, at which a probe costs a tenth of what it costs elsewhere.
extern "C" __attribute__((noinline)) void dart_shapes_step(std::uint64_t step, dart::simulation::World* world) {
  world->step();
  steps_done = step + 1;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::uint64_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const bool is_static = argc <= 3 || std::strcmp(argv[3], "static") == 0;
  if (n <= 0) {
    std::fprintf(stderr, "usage: dart_shapes N [STEPS] [static|dynamic]\n");
    return 2;
  }
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stopped = 1; });

  const auto began = Clock::now();
  const auto world = shapes_world(n, is_static);
  dart_shapes_step(0, world.get());
  std::printf("dart_shapes: ready n=%d load_s=%.3f\n", n, seconds_since(began));
  std::fflush(stdout);

  const auto running = Clock::now();
  std::uint64_t step = 1;
  for (; (steps == 0 || step < steps) && !stopped; ++step) dart_shapes_step(step, world.get());
  const double wall = seconds_since(running);
  std::printf("dart_shapes: done steps=%llu wall_s=%.3f rtf=%.3f contacts=%zu\n",
              static_cast<unsigned long long>(step), wall, (step - 1) * world->getTimeStep() / wall,
              world->getLastCollisionResult().getNumContacts());
}
