// Scopes that start and end by calls and nest per thread, as Gazebo's profilers call them.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef STEPSCOPE_GZ_SCOPES_HH
#define STEPSCOPE_GZ_SCOPES_HH

#include "stepscope.h"

#include <cstdint>

#if STEPSCOPE_MARKS
#include <cstring>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace stepscope {
namespace gz_scopes {

#if STEPSCOPE_MARKS

/// Deeper scopes are dropped.
enum { kDepth = 256 };

/// The open scopes of a thread.
struct Open {
  stepscope_open scopes[kDepth];
  int depth;
};

inline Open &ThisThread() {
  static thread_local Open open = {};
  return open;
}

inline bool IsRecording() { return stepscope_is_recording_(); }

/// Starts a scope. The name's number is stored in the caller's hash, if there is one.
inline void Begin(const char *name, uint32_t *hash) {
  Open &open = ThisThread();
  if (open.depth < kDepth) {
    stepscope_open scope = {0, 0};
    if (stepscope_is_recording_()) {
      uint32_t number = hash ? __atomic_load_n(hash, __ATOMIC_RELAXED) : 0;
      if (number == 0) {
        number = stepscope_name_v1_(name);
        if (hash) __atomic_store_n(hash, number, __ATOMIC_RELAXED);
      }
      // The first mark opens the segment; there may be no recorder.
      if (stepscope_is_recording_()) {
        scope.name = number;
        scope.start = stepscope_now_();
      }
    }
    open.scopes[open.depth] = scope;
  }
  open.depth++;
}

inline void End() {
  Open &open = ThisThread();
  // An end without a start: the profiler was installed in between.
  if (open.depth == 0) return;
  open.depth--;
  if (open.depth < kDepth) stepscope_end_(&open.scopes[open.depth]);
}

/// Sets the system's thread name, so that every view shows it. The name of the main thread is that of the program.
inline void NameThread(const char *name) {
  if (!name || syscall(SYS_gettid) == getpid()) return;
  char cut[16] = {};
  std::strncpy(cut, name, sizeof cut - 1);
  pthread_setname_np(pthread_self(), cut);
}

#else

inline bool IsRecording() { return false; }
inline void Begin(const char *, uint32_t *) {}
inline void End() {}
inline void NameThread(const char *) {}

#endif

}  // namespace gz_scopes
}  // namespace stepscope

#endif  // STEPSCOPE_GZ_SCOPES_HH
