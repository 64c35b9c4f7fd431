// A stand-in of gz-common's profiler, for tests where Gazebo is not installed: what programs use of it.
#ifndef STEPSCOPE_STAND_IN_GZ_COMMON_PROFILER_HH
#define STEPSCOPE_STAND_IN_GZ_COMMON_PROFILER_HH

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gz/common/ProfilerImpl.hh>

namespace gz {
namespace common {

class Profiler {
 public:
  static Profiler *Instance() {
    static Profiler profiler;
    return &profiler;
  }

  bool SetImplementation(std::unique_ptr<ProfilerImpl> implementation) {
    if (impl_) return false;
    impl_ = std::move(implementation);
    return true;
  }

  void SetThreadName(const char *name) {
    if (impl_) impl_->SetThreadName(name);
  }

  void BeginSample(const char *name, uint32_t *hash = nullptr) {
    if (impl_) impl_->BeginSample(name, hash);
  }

  void EndSample() {
    if (impl_) impl_->EndSample();
  }

  std::string ImplementationName() const { return impl_ ? impl_->Name() : "disabled"; }

 private:
  std::unique_ptr<ProfilerImpl> impl_;
};

class ScopedProfile {
 public:
  ScopedProfile(const char *name, uint32_t *hash) { Profiler::Instance()->BeginSample(name, hash); }
  ~ScopedProfile() { Profiler::Instance()->EndSample(); }
};

}  // namespace common
}  // namespace gz

#define GZ_PROFILE_THREAD_NAME(name) gz::common::Profiler::Instance()->SetThreadName(name)
#define GZ_PROFILE_BEGIN(name) gz::common::Profiler::Instance()->BeginSample(name)
#define GZ_PROFILE_END() gz::common::Profiler::Instance()->EndSample()
#define GZ_PROFILE_AT_LINE(name, line)            \
  static uint32_t profile_hash_##line = 0;        \
  gz::common::ScopedProfile profile_##line(name, &profile_hash_##line)
#define GZ_PROFILE_LINE(name, line) GZ_PROFILE_AT_LINE(name, line)
#define GZ_PROFILE(name) GZ_PROFILE_LINE(name, __LINE__)

#endif
