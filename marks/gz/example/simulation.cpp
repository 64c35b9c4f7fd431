// A simulation with Gazebo's profile scopes, as in every Gazebo library, recorded by Stepscope.
//
//     g++ -DSTEPSCOPE_MARKS=1 -DGZ_PROFILER_ENABLE=1 -I marks/c -I marks/gz marks/gz/example/simulation.cpp
//         $(pkg-config --cflags --libs gz-common7-profiler)          (or -I marks/gz/stand_in, without Gazebo)
//     stepscope record -- ./a.out
#include <gz/common/Profiler.hh>
#include <stepscope_gz_profiler.hh>

#include <thread>

static double sim_time_s = 0.0;

static void Physics() {
  GZ_PROFILE("Physics::Update");
  for (int i = 0; i < 2; i++) {
    GZ_PROFILE("Collide");
  }
}

static void Step() {
  GZ_PROFILE("SimulationRunner::Step");
  Physics();
  GZ_PROFILE_BEGIN("PostUpdate");
  GZ_PROFILE_END();
  sim_time_s += 0.001;
}

int main() {
  gz::common::Profiler::Instance()->SetImplementation(
      stepscope::MakeGzProfiler("SimulationRunner::Step", [] { return sim_time_s; }));
  std::thread sensors([] {
    GZ_PROFILE_THREAD_NAME("sensors");
    for (int i = 0; i < 30; i++) {
      GZ_PROFILE("RenderingSensor::Update");
    }
  });
  for (int i = 0; i <= 100; i++) Step();
  sensors.join();
  return gz::common::Profiler::Instance()->ImplementationName() == "stepscope" ? 0 : 1;
}
