// Turns every GZ_PROFILE scope of a program into a Stepscope scope: a gz::common::ProfilerImpl in one header.
//
//     #include <gz/common/Profiler.hh>
//     #include <stepscope_gz_profiler.hh>
//
//     int main() {
//       gz::common::Profiler::Instance()->SetImplementation(stepscope::MakeGzProfiler());
//       ...
//
// Compile with -DSTEPSCOPE_MARKS=1, and the profiled code with -DGZ_PROFILER_ENABLE=1 as usual. gz-common must be built
// with -DGZ_PROFILER_REMOTERY=OFF, or it keeps its own profiler. Otherwise, and for versions without SetImplementation
// (ignition-common), use stepscope_gz_preload.cpp, which needs no change of the program.
//
// Name the scope whose starts are steps, for the recorder:
//
//     stepscope record --step-scope SimulationRunner::Step -- ...
//
// or here, with simulated time: MakeGzProfiler("SimulationRunner::Step", [&] { return time_s; }). The function is
// called at each start of that scope, on its thread.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef STEPSCOPE_GZ_PROFILER_HH
#define STEPSCOPE_GZ_PROFILER_HH

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gz/common/ProfilerImpl.hh>

#include "stepscope_gz_scopes.hh"

namespace stepscope {

/// Passes scopes to Stepscope. Scopes of a thread end in the reverse order of their starts, as Gazebo's do.
class GzProfiler final : public gz::common::ProfilerImpl {
 public:
  /// `step_scope` is the scope whose starts are steps, if any; `sim_time_s` returns the simulated time at its start.
  explicit GzProfiler(std::string step_scope = "", std::function<double()> sim_time_s = nullptr)
      : step_scope_(std::move(step_scope)), sim_time_s_(std::move(sim_time_s)) {}

  std::string Name() const override { return "stepscope"; }

  void SetThreadName(const char *name) override { gz_scopes::NameThread(name); }

  /// Captures have no text.
  void LogText(const char *) override {}

  void BeginSample(const char *name, uint32_t *hash) override {
    if (!step_scope_.empty() && gz_scopes::IsRecording() && step_scope_ == name) MarkStep();
    gz_scopes::Begin(name, hash);
  }

  void EndSample() override { gz_scopes::End(); }

 private:
  void MarkStep() const {
    if (sim_time_s_) {
      STEPSCOPE_STEP(sim_time_s_());
    } else {
      STEPSCOPE_STEP_UNTIMED();
    }
  }

  const std::string step_scope_;
  const std::function<double()> sim_time_s_;
};

/// For Profiler::SetImplementation.
inline std::unique_ptr<gz::common::ProfilerImpl> MakeGzProfiler(std::string step_scope = "",
                                                                std::function<double()> sim_time_s = nullptr) {
  return std::unique_ptr<gz::common::ProfilerImpl>(new GzProfiler(std::move(step_scope), std::move(sim_time_s)));
}

}  // namespace stepscope

#endif  // STEPSCOPE_GZ_PROFILER_HH
