// Scopes that begin and end by calls, and nest by thread: what Gazebo's profilers give.
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

/// Scopes deeper than this are not kept.
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

/// The scope's number is kept where the caller keeps its hash, if it does.
inline void Begin(const char *name, uint32_t *hash) {
  Open &open = ThisThread();
  if (open.depth < kDepth) {
    stepscope_open begun = {0, 0};
    if (stepscope_is_recording_()) {
      uint32_t number = hash ? __atomic_load_n(hash, __ATOMIC_RELAXED) : 0;
      if (number == 0) {
        number = stepscope_name_v1_(name);
        if (hash) __atomic_store_n(hash, number, __ATOMIC_RELAXED);
      }
      // The first mark of all asks whether somebody records; it may be that nobody does.
      if (stepscope_is_recording_()) {
        begun.name = number;
        begun.start = stepscope_now_();
      }
    }
    open.scopes[open.depth] = begun;
  }
  open.depth++;
}

inline void End() {
  Open &open = ThisThread();
  // An end without a begin: the profiler was put in place in between.
  if (open.depth == 0) return;
  open.depth--;
  if (open.depth < kDepth) stepscope_end_(&open.scopes[open.depth]);
}

/// Names the thread as the system knows it, so that every view has the name. The main thread's is the program's.
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
