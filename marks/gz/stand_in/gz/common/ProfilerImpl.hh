// A stand-in of gz-common's interface for profilers, for tests where Gazebo is not installed: the same members.
#ifndef STEPSCOPE_STAND_IN_GZ_COMMON_PROFILERIMPL_HH
#define STEPSCOPE_STAND_IN_GZ_COMMON_PROFILERIMPL_HH

#include <cstdint>
#include <string>

namespace gz {
namespace common {

class ProfilerImpl {
 public:
  virtual ~ProfilerImpl() = default;
  virtual std::string Name() const = 0;
  virtual void SetThreadName(const char *name) = 0;
  virtual void LogText(const char *text) = 0;
  virtual void BeginSample(const char *name, uint32_t *hash) = 0;
  virtual void EndSample() = 0;
};

}  // namespace common
}  // namespace gz

#endif
