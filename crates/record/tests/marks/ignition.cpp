// A program with the profile scopes of ignition-common, as Debian's Gazebo libraries have them.
#include <ignition/common/Profiler.hh>

static void Update() { IGN_PROFILE("Update"); }

int main() {
  for (int i = 0; i <= 10; i++) {
    IGN_PROFILE("Step");
    Update();
    Update();
  }
  return 0;
}
