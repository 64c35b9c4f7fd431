/* Stepscope marks for C11, C++11 and later, on Linux: one header, nothing to link (before glibc 2.34: -pthread).
 *
 *     STEPSCOPE_STEP(sim_time_s);               once per iteration of the simulation loop: ends a step, starts the next
 *     STEPSCOPE_SCOPE("physics");               until the end of the block
 *     STEPSCOPE_COUNTER("contacts", n);         a reading of an integer, with its unit in the name
 *     STEPSCOPE_FRAME_MARK("render");           once per iteration of another periodic loop
 *     STEPSCOPE_FLOW_BEGIN("scan", id);         a message is published: its topic, and an integer that names it there
 *     STEPSCOPE_FLOW_STEP("scan", id);          it passes here, on any thread of any process
 *     STEPSCOPE_FLOW_END("scan", id);           it has arrived; once for each subscriber
 *
 *     stepscope_open open;                      without a block:
 *     STEPSCOPE_BEGIN(open, "load"); ... STEPSCOPE_END(open);
 *
 * Compile with -DSTEPSCOPE_MARKS=1; otherwise marks compile to nothing. While not recording, a scope costs a load and a
 * branch. Names are string literals (else see STEPSCOPE_SCOPE_NAMED). Signal handlers must not mark. Other marks of a
 * step: STEPSCOPE_STEP_NS(sim_time_ns) with an integer, and STEPSCOPE_STEP_UNTIMED() without simulated time.
 *
 * docs/marks.md is the guide, docs/marks-format.md the format.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef STEPSCOPE_STEPSCOPE_H
#define STEPSCOPE_STEPSCOPE_H

/* Hides warnings that a program enables for its own code. Our tests enable them for this header. */
#ifndef STEPSCOPE_SHOW_WARNINGS
#pragma GCC system_header
#endif

#ifndef STEPSCOPE_MARKS
#define STEPSCOPE_MARKS 0
#endif

#if !STEPSCOPE_MARKS || !defined(__linux__)

typedef struct {
  char nothing;
} stepscope_open;

/* sizeof marks a variable as used without evaluating it. */
#define STEPSCOPE_STEP(sim_time_s) ((void)sizeof(sim_time_s))
#define STEPSCOPE_STEP_NS(sim_time_ns) ((void)sizeof(sim_time_ns))
#define STEPSCOPE_STEP_UNTIMED() ((void)0)
#define STEPSCOPE_SCOPE(name) ((void)0)
#define STEPSCOPE_SCOPE_NAMED(name) ((void)sizeof(name))
#define STEPSCOPE_BEGIN(open, name) ((void)sizeof(open))
#define STEPSCOPE_END(open) ((void)sizeof(open))
#define STEPSCOPE_COUNTER(name, value) ((void)sizeof(value))
#define STEPSCOPE_FRAME_MARK(name) ((void)0)
#define STEPSCOPE_FLOW_BEGIN(topic, id) ((void)sizeof(id))
#define STEPSCOPE_FLOW_STEP(topic, id) ((void)sizeof(id))
#define STEPSCOPE_FLOW_END(topic, id) ((void)sizeof(id))

#else

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#ifdef __cplusplus
#include <type_traits>
extern "C" {
#else
/* With -std=c11 the C library hides other functions, unless this is defined before its first header. */
extern long syscall(long number, ...);
#ifndef __USE_POSIX199309
extern int clock_gettime(int clock, struct timespec *time);
#endif
#endif

/* Everything from here to the macros is private and hidden: every program and library has its own copy. */
#define STEPSCOPE_SHARED_ __attribute__((weak, visibility("hidden")))
#define STEPSCOPE_SLOW_ __attribute__((weak, visibility("hidden"), noinline, cold))
#define STEPSCOPE_LIKELY_(condition) __builtin_expect(!!(condition), 1)

enum {
  STEPSCOPE_HEADER_BYTES_ = 4096,
  /* Offsets of mappings are multiples of 64 KiB, the largest page size. */
  STEPSCOPE_NAMES_BYTES_ = (1 << 20) - STEPSCOPE_HEADER_BYTES_,
  STEPSCOPE_NAMES_STEP_ = 16 << 10,
  STEPSCOPE_NAMES_MAX_ = 16384,
  STEPSCOPE_NAME_BYTES_MAX_ = 511,
  STEPSCOPE_RINGS_MAX_ = 8192,
  STEPSCOPE_ENTRY_BYTES_ = 128,
  STEPSCOPE_RECORD_WORDS_ = 3,
  STEPSCOPE_RING_RECORDS_ = 32768,
  STEPSCOPE_RING_BYTES_ = STEPSCOPE_RING_RECORDS_ * STEPSCOPE_RECORD_WORDS_ * 8,
  /* Memory of a ring is allocated in pieces of this many records (24 KiB) on first use. */
  STEPSCOPE_PIECE_RECORDS_ = 1024,
  STEPSCOPE_DIRECTORY_AT_ = STEPSCOPE_HEADER_BYTES_ + STEPSCOPE_NAMES_BYTES_,
  STEPSCOPE_RINGS_AT_ = STEPSCOPE_DIRECTORY_AT_ + STEPSCOPE_RINGS_MAX_ * STEPSCOPE_ENTRY_BYTES_,
  /* Dropped records between checks whether the recorder is alive. */
  STEPSCOPE_DROPS_A_LOOK_ = 65536,
  /* Dropped records between checks whether there is memory again. */
  STEPSCOPE_DROPS_A_PIECE_ = 1024
};

enum stepscope_kind_ {
  STEPSCOPE_KIND_SCOPE_ = 1,
  STEPSCOPE_KIND_STEP_ = 2,
  STEPSCOPE_KIND_COUNTER_ = 3,
  STEPSCOPE_KIND_FRAME_ = 4,
  STEPSCOPE_KIND_THREAD_ = 5,
  STEPSCOPE_KIND_FLOW_BEGIN_ = 6,
  STEPSCOPE_KIND_FLOW_STEP_ = 7,
  STEPSCOPE_KIND_FLOW_END_ = 8
};

enum stepscope_clock_ {
  STEPSCOPE_CLOCK_MONOTONIC_ = 0,
  STEPSCOPE_CLOCK_TSC_ = 1,
  STEPSCOPE_CLOCK_CNTVCT_ = 2
};

struct stepscope_header_ {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t pid;
  uint32_t clock;
  uint64_t process_start_ticks;
  uint64_t pid_namespace;
  uint64_t created_ticks;
  uint64_t created_ns;
  uint64_t reserved0;
  /* The recorder's line, at 64. */
  uint32_t recording;
  uint32_t recorder_pid;
  uint64_t recorder_start_ticks;
  uint64_t recorder_token;
  uint64_t beat_ns;
  uint64_t reserved1[4];
  /* The program's line, at 128. */
  uint32_t ended;
  uint32_t ring_count;
  uint64_t names_end;
  uint64_t names_lost;
  uint64_t marks_lost;
  uint64_t reserved2[4];
  /* The layout, at 192. */
  uint64_t names_at;
  uint64_t names_bytes;
  uint64_t directory_at;
  uint64_t rings_max;
  uint64_t rings_at;
  uint64_t ring_stride;
  uint64_t ring_records;
};

/* A ring's entry in the directory: one cache line written by the program, one by the recorder. */
struct stepscope_entry_ {
  uint64_t head;
  uint64_t dropped;
  uint32_t tid;
  uint32_t state;
  uint64_t reserved[5];
  uint64_t tail;
  uint64_t tail_again;
  uint64_t reserved_tail[6];
};

/* The writing end of a thread. All zero before its first record. */
struct stepscope_thread_ {
  uint64_t *records;
  struct stepscope_entry_ *entry;
  uint64_t at;
  uint64_t limit;
  uint32_t ring;
  uint32_t drops;
};

/* A ring in this process. */
struct stepscope_ring_ {
  uint64_t *records;
  uint32_t committed;
  uint32_t next_ended;
};

/* Private to the process; a child of fork inherits it. */
struct stepscope_tables_ {
  uint32_t name_slots[2 * STEPSCOPE_NAMES_MAX_];
  uint32_t name_at[STEPSCOPE_NAMES_MAX_ + 1];
  struct stepscope_ring_ rings[STEPSCOPE_RINGS_MAX_];
};

struct stepscope_state_ {
  struct stepscope_header_ *segment;
  struct stepscope_header_ *inherited;
  struct stepscope_tables_ *tables;
  pthread_mutex_t lock;
  pthread_key_t key;
  uint32_t has_key;
  uint32_t refused;
  uint32_t names;
  uint32_t names_used;
  uint32_t names_committed;
  uint32_t rings;
  uint32_t first_ended;
  uint32_t last_ended;
  char path[64];
};

#ifndef STEPSCOPE_TLS_
#define STEPSCOPE_TLS_ __thread
#endif

/* Whether a recorder records: 1 before the first mark, then the segment's word. */
STEPSCOPE_SHARED_ uint32_t stepscope_unopened_v1_ = 1;
STEPSCOPE_SHARED_ uint32_t stepscope_closed_v1_ = 0;
STEPSCOPE_SHARED_ uint32_t *stepscope_recording_v1_ = &stepscope_unopened_v1_;
STEPSCOPE_SHARED_ uint32_t stepscope_clock_v1_ = STEPSCOPE_CLOCK_MONOTONIC_;
STEPSCOPE_SHARED_ struct stepscope_state_ stepscope_state_v1_ = {
    NULL, NULL, NULL, PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}};
STEPSCOPE_SHARED_ STEPSCOPE_TLS_ struct stepscope_thread_ stepscope_thread_v1_ = {NULL, NULL, 0, 0, 0, 0};

/* --- Times ----------------------------------------------------------------------------------------------------- */

static inline uint64_t stepscope_monotonic_ns_(void) {
  struct timespec time;
  clock_gettime(1 /* CLOCK_MONOTONIC */, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The time in ticks, never 0. */
static inline uint64_t stepscope_now_(void) {
#if defined(__x86_64__)
  if (STEPSCOPE_LIKELY_(stepscope_clock_v1_ == STEPSCOPE_CLOCK_TSC_)) return __rdtsc() | 1u;
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks | 1u;
#endif
  return stepscope_monotonic_ns_() | 1u;
}

static inline uint32_t stepscope_choose_clock_(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (__get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8))) return STEPSCOPE_CLOCK_TSC_;
#elif defined(__aarch64__)
  return STEPSCOPE_CLOCK_CNTVCT_;
#endif
  return STEPSCOPE_CLOCK_MONOTONIC_;
}

/* --- System calls, by number: the declarations of the C library depend on feature macros -------------------------- */

static inline int stepscope_open_file_(const char *path, int flags) {
  return (int)syscall(SYS_openat, -100 /* AT_FDCWD */, path, flags | 02000000 /* O_CLOEXEC */, 0600);
}

/* Reads a small file. Returns its length without the terminating zero. */
static inline size_t stepscope_read_file_(const char *path, char *into, size_t room) {
  int fd = stepscope_open_file_(path, 0);
  long length = 0;
  if (fd >= 0) {
    length = syscall(SYS_read, fd, into, room - 1);
    syscall(SYS_close, fd);
  }
  if (length < 0) length = 0;
  into[length] = 0;
  return (size_t)length;
}

/* Start of a process in clock ticks since boot; 0 if there is none. */
static inline uint64_t stepscope_start_ticks_(uint32_t pid) {
  char path[40], text[1024];
  const char *at;
  int field;
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  if (stepscope_read_file_(path, text, sizeof text) == 0) return 0;
  at = strrchr(text, ')'); /* The name before it may contain anything. */
  for (field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  return at ? strtoull(at, NULL, 10) : 0;
}

static inline uint64_t stepscope_pid_namespace_(void) {
  char link[64];
  const char *number;
  long length = syscall(SYS_readlinkat, -100, "/proc/self/ns/pid", link, sizeof link - 1);
  if (length <= 0) return 0;
  link[length] = 0;
  number = strchr(link, '[');
  return number ? strtoull(number + 1, NULL, 10) : 0;
}

static inline int stepscope_is_dead_(uint32_t pid) {
  return syscall(SYS_kill, (long)pid, 0L) < 0 && errno == ESRCH;
}

/* Allocates the file up to here. Writing to a part without memory kills the program if /dev/shm is full. */
static inline int stepscope_commit_(int fd, uint64_t from, uint64_t bytes) {
  struct rlimit limit;
  /* Beyond this limit, the program would get a signal. */
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && from + bytes > (uint64_t)limit.rlim_cur) return 0;
  return syscall(SYS_fallocate, fd, 0, (long)from, (long)bytes) == 0;
}

/* --- The segment -------------------------------------------------------------------------------------------------- */

/* Removes segments of dead processes without a recorder. */
STEPSCOPE_SLOW_ void stepscope_sweep_v1_(uint64_t pid_namespace) {
  static const char prefix[] = "stepscope-marks-";
  char entries[4096];
  long length;
  int folder = stepscope_open_file_("/dev/shm", 0200000 /* O_DIRECTORY */);
  if (folder < 0) return;
  while ((length = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
    long at = 0;
    while (at < length) {
      const char *name = entries + at + 19;
      uint16_t entry_bytes;
      struct stepscope_header_ header;
      uint32_t pid;
      int fd;
      memcpy(&entry_bytes, entries + at + 16, sizeof entry_bytes);
      at += entry_bytes;
      if (strncmp(name, prefix, sizeof prefix - 1) != 0) continue;
      pid = (uint32_t)strtoul(name + sizeof prefix - 1, NULL, 10);
      if (pid == 0 || !stepscope_is_dead_(pid)) continue;
      fd = (int)syscall(SYS_openat, folder, name, 02000000 | 0400000 /* O_CLOEXEC | O_NOFOLLOW */, 0);
      if (fd < 0) continue;
      memset(&header, 0, sizeof header);
      if (syscall(SYS_pread64, fd, &header, sizeof header, 0L) == (long)sizeof header &&
          header.pid_namespace == pid_namespace &&
          (header.recording == 0 || stepscope_is_dead_(header.recorder_pid)) &&
          syscall(SYS_flock, fd, 6L /* LOCK_EX | LOCK_NB */) == 0) {
        syscall(SYS_unlinkat, folder, name, 0L);
      }
      syscall(SYS_close, fd);
    }
  }
  syscall(SYS_close, folder);
}

/* Reads the recorder that launched this program from the environment. It loses no marks before it finds the segment. */
static inline void stepscope_greet_recorder_(struct stepscope_header_ *header) {
  const char *text = getenv("STEPSCOPE_RECORDER");
  char *rest;
  uint32_t pid;
  uint64_t start_ticks;
  if (!text) return;
  pid = (uint32_t)strtoul(text, &rest, 10);
  if (*rest != ':') return;
  start_ticks = strtoull(rest + 1, &rest, 10);
  if (*rest != ':' || pid == 0 || stepscope_start_ticks_(pid) != start_ticks) return;
  header->recorder_pid = pid;
  header->recorder_start_ticks = start_ticks;
  header->recorder_token = strtoull(rest + 1, NULL, 16);
  header->beat_ns = stepscope_monotonic_ns_();
  header->recording = 1;
}

static inline char *stepscope_names_(struct stepscope_header_ *header) {
  return (char *)header + STEPSCOPE_HEADER_BYTES_;
}

/* Before fork: takes the lock, so that the child finds consistent tables. */
STEPSCOPE_SLOW_ void stepscope_before_fork_v1_(void) { pthread_mutex_lock(&stepscope_state_v1_.lock); }

STEPSCOPE_SLOW_ void stepscope_parent_v1_(void) { pthread_mutex_unlock(&stepscope_state_v1_.lock); }

/* In the child: it creates its own segment at its first mark. Names keep their numbers. */
STEPSCOPE_SLOW_ void stepscope_child_v1_(void) {
  struct stepscope_state_ *state = &stepscope_state_v1_;
  static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  state->lock = unlocked;
  memset(&stepscope_thread_v1_, 0, sizeof stepscope_thread_v1_);
  if (state->segment) state->inherited = state->segment;
  state->segment = NULL;
  state->refused = 0;
  state->path[0] = 0;
  if (stepscope_recording_v1_ != &stepscope_closed_v1_ || state->inherited) {
    __atomic_store_n(&stepscope_recording_v1_, &stepscope_unopened_v1_, __ATOMIC_RELAXED);
  }
}

/* A thread ends and releases its ring, for others to use once it is drained. */
STEPSCOPE_SLOW_ void stepscope_thread_ends_v1_(void *argument) {
  struct stepscope_state_ *state = &stepscope_state_v1_;
  struct stepscope_thread_ *thread = (struct stepscope_thread_ *)argument;
  pthread_mutex_lock(&state->lock);
  if (thread->records && state->segment) {
    struct stepscope_ring_ *rings = state->tables->rings;
    __atomic_store_n(&thread->entry->state, 2u, __ATOMIC_RELEASE);
    rings[thread->ring].next_ended = 0;
    if (state->last_ended) rings[state->last_ended - 1].next_ended = thread->ring + 1;
    else state->first_ended = thread->ring + 1;
    state->last_ended = thread->ring + 1;
  }
  memset(thread, 0, sizeof *thread);
  pthread_mutex_unlock(&state->lock);
}

/* Forgets the parent's segment. */
static inline void stepscope_disinherit_(struct stepscope_state_ *state, struct stepscope_header_ *heir) {
  struct stepscope_ring_ *rings = state->tables->rings;
  uint32_t ring;
  memcpy(stepscope_names_(heir), stepscope_names_(state->inherited), state->names_used);
  heir->names_end = state->names_used;
  heir->names_lost = state->inherited->names_lost;
  for (ring = 0; ring < state->rings; ring++) {
    if (rings[ring].records) munmap(rings[ring].records, STEPSCOPE_RING_BYTES_);
  }
  memset(rings, 0, state->rings * sizeof *rings);
  state->rings = state->first_ended = state->last_ended = 0;
  munmap(state->inherited, STEPSCOPE_RINGS_AT_);
  state->inherited = NULL;
}

static inline int stepscope_make_segment_(struct stepscope_state_ *state) {
  uint32_t pid = (uint32_t)syscall(SYS_getpid);
  uint64_t nonce = (stepscope_monotonic_ns_() * 0x9E3779B97F4A7C15u) ^ (uint64_t)(uintptr_t)state ^ ((uint64_t)pid << 40);
  uint64_t pid_namespace = stepscope_pid_namespace_();
  uint32_t names_committed = state->inherited ? state->names_committed : (uint32_t)STEPSCOPE_NAMES_STEP_;
  struct stepscope_header_ *header;
  void *memory;
  int fd, fits;
  stepscope_sweep_v1_(pid_namespace);
  snprintf(state->path, sizeof state->path, "/dev/shm/stepscope-marks-%u-%016llx", pid, (unsigned long long)nonce);
  fd = stepscope_open_file_(state->path, 02 | 0100 | 0200 | 0400000 /* O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW */);
  if (fd < 0) {
    state->path[0] = 0;
    return 0;
  }
  fits = stepscope_commit_(fd, 0, STEPSCOPE_HEADER_BYTES_ + names_committed) &&
         syscall(SYS_ftruncate, fd, (long)STEPSCOPE_RINGS_AT_) == 0;
  memory = fits ? mmap(NULL, STEPSCOPE_RINGS_AT_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  syscall(SYS_close, fd);
  if (memory == MAP_FAILED) {
    syscall(SYS_unlinkat, -100, state->path, 0L);
    state->path[0] = 0;
    return 0;
  }
  header = (struct stepscope_header_ *)memory;
  header->version = 1;
  header->header_bytes = STEPSCOPE_HEADER_BYTES_;
  header->pid = pid;
  header->clock = stepscope_clock_v1_ = stepscope_choose_clock_();
  header->process_start_ticks = stepscope_start_ticks_(pid);
  header->pid_namespace = pid_namespace;
  header->created_ns = stepscope_monotonic_ns_();
  header->created_ticks = stepscope_now_();
  header->names_at = STEPSCOPE_HEADER_BYTES_;
  header->names_bytes = STEPSCOPE_NAMES_BYTES_;
  header->directory_at = STEPSCOPE_DIRECTORY_AT_;
  header->rings_max = STEPSCOPE_RINGS_MAX_;
  header->rings_at = STEPSCOPE_RINGS_AT_;
  header->ring_stride = STEPSCOPE_RING_BYTES_;
  header->ring_records = STEPSCOPE_RING_RECORDS_;
  if (state->inherited) stepscope_disinherit_(state, header);
  state->names_committed = names_committed;
  stepscope_greet_recorder_(header);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(header->magic, "STEPMARK", 8);
  state->segment = header;
  return 1;
}

static inline int stepscope_prepare_process_(struct stepscope_state_ *state) {
  const char *wanted = getenv("STEPSCOPE_MARKS");
  void *memory;
  if (wanted && wanted[0] == '0' && wanted[1] == 0) return 0;
  if (!state->tables) {
    memory = mmap(NULL, sizeof *state->tables, PROT_READ | PROT_WRITE, MAP_PRIVATE | 0x20 /* MAP_ANONYMOUS */, -1, 0);
    if (memory == MAP_FAILED) return 0;
    state->tables = (struct stepscope_tables_ *)memory;
  }
  if (!state->has_key) {
    if (pthread_key_create(&state->key, stepscope_thread_ends_v1_) != 0) return 0;
    state->has_key = 1;
    pthread_atfork(stepscope_before_fork_v1_, stepscope_parent_v1_, stepscope_child_v1_);
  }
  return 1;
}

/* Creates the segment once. Returns whether a recorder records. */
STEPSCOPE_SLOW_ int stepscope_opened_v1_(void) {
  struct stepscope_state_ *state = &stepscope_state_v1_;
  int saved = errno;
  uint32_t recording;
  pthread_mutex_lock(&state->lock);
  if (!state->segment && !state->refused && stepscope_recording_v1_ == &stepscope_unopened_v1_) {
    if (stepscope_prepare_process_(state) && stepscope_make_segment_(state)) {
      __atomic_store_n(&stepscope_recording_v1_, &state->segment->recording, __ATOMIC_RELEASE);
    } else {
      state->refused = 1;
      __atomic_store_n(&stepscope_recording_v1_, &stepscope_closed_v1_, __ATOMIC_RELEASE);
    }
  }
  recording = state->segment ? __atomic_load_n(&state->segment->recording, __ATOMIC_RELAXED) : 0;
  pthread_mutex_unlock(&state->lock);
  errno = saved;
  return recording != 0;
}

/* Runs when the program ends or the library with this copy is unloaded. Other threads may still mark, so their memory
 * stays mapped. */
__attribute__((destructor)) STEPSCOPE_SLOW_ void stepscope_close_v1_(void) {
  struct stepscope_state_ *state = &stepscope_state_v1_;
  struct stepscope_header_ *segment;
  int saved = errno;
  pthread_mutex_lock(&state->lock);
  segment = state->segment;
  __atomic_store_n(&stepscope_recording_v1_, &stepscope_closed_v1_, __ATOMIC_RELAXED);
  if (segment && !segment->ended) {
    segment->ended = 1;
    if (__atomic_load_n(&segment->recording, __ATOMIC_RELAXED) == 0) syscall(SYS_unlinkat, -100, state->path, 0L);
  }
  if (state->has_key) pthread_key_delete(state->key);
  state->has_key = 0;
  pthread_mutex_unlock(&state->lock);
  errno = saved;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static inline size_t stepscope_name_bytes_(const char *name) {
  size_t bytes = 0;
  while (bytes <= STEPSCOPE_NAME_BYTES_MAX_ && name[bytes]) bytes++;
  if (bytes <= STEPSCOPE_NAME_BYTES_MAX_) return bytes;
  bytes = STEPSCOPE_NAME_BYTES_MAX_;
  while (bytes > 0 && ((unsigned char)name[bytes] & 0xC0u) == 0x80u) bytes--; /* Not within a character. */
  return bytes;
}

/* Adds a name and returns its number; 0 if the table is full. */
static inline uint32_t stepscope_add_name_(struct stepscope_state_ *state, const char *name, uint16_t bytes) {
  uint32_t end = state->names_used + 2u + bytes;
  char *names = stepscope_names_(state->segment);
  if (state->names == STEPSCOPE_NAMES_MAX_ || end > (uint32_t)STEPSCOPE_NAMES_BYTES_) return 0;
  if (end > state->names_committed) {
    int fd = stepscope_open_file_(state->path, 02);
    int fits = fd >= 0 && stepscope_commit_(fd, STEPSCOPE_HEADER_BYTES_ + (uint64_t)state->names_committed, STEPSCOPE_NAMES_STEP_);
    if (fd >= 0) syscall(SYS_close, fd);
    if (!fits) return 0;
    state->names_committed += STEPSCOPE_NAMES_STEP_;
  }
  memcpy(names + state->names_used, &bytes, 2);
  memcpy(names + state->names_used + 2, name, bytes);
  state->names++;
  state->tables->name_at[state->names] = state->names_used;
  state->names_used = end;
  __atomic_store_n(&state->segment->names_end, (uint64_t)end, __ATOMIC_RELEASE);
  return state->names;
}

/* The number of a name, equal for equal names. */
static inline uint32_t stepscope_intern_locked_(struct stepscope_state_ *state, const char *name) {
  uint16_t bytes = (uint16_t)stepscope_name_bytes_(name), known_bytes;
  uint32_t hash = 2166136261u, slots = 2u * STEPSCOPE_NAMES_MAX_, id, i;
  for (i = 0; i < bytes; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
  for (i = hash % slots;; i = (i + 1) % slots) {
    const char *known;
    id = state->tables->name_slots[i];
    if (id == 0) break;
    known = stepscope_names_(state->segment) + state->tables->name_at[id];
    memcpy(&known_bytes, known, 2);
    if (known_bytes == bytes && memcmp(known + 2, name, bytes) == 0) return id;
  }
  id = stepscope_add_name_(state, name, bytes);
  if (id == 0) state->segment->names_lost++;
  state->tables->name_slots[i] = id;
  return id;
}

/* The number of a name known at run time; 0 while not recording. */
STEPSCOPE_SLOW_ uint32_t stepscope_name_v1_(const char *name) {
  struct stepscope_state_ *state = &stepscope_state_v1_;
  uint32_t id = 0;
  int saved = errno;
  if (!state->segment && !stepscope_opened_v1_()) return 0;
  pthread_mutex_lock(&state->lock);
  if (state->segment) id = stepscope_intern_locked_(state, name);
  pthread_mutex_unlock(&state->lock);
  errno = saved;
  return id;
}

/* Identifies the copy that a number belongs to: a call site in an inline function is shared by several libraries. */
static inline uint32_t stepscope_tag_(void) { return ((uint32_t)(uintptr_t)&stepscope_state_v1_ >> 3) | 1u; }

/* Stores a name's number at its call site. Returns whether a recorder records. */
STEPSCOPE_SLOW_ int stepscope_name_site_v1_(uint64_t *site, const char *name) {
  uint32_t id;
  if (!stepscope_opened_v1_()) return 0;
  id = stepscope_name_v1_(name);
  __atomic_store_n(site, (uint64_t)stepscope_tag_() << 32 | id, __ATOMIC_RELAXED);
  return 1;
}

/* --- Rings -------------------------------------------------------------------------------------------------------- */

/* The recorder's position; an invalid one counts as 0. */
static inline uint64_t stepscope_tail_(const struct stepscope_entry_ *entry, uint64_t head) {
  int tries;
  for (tries = 0; tries < 64; tries++) {
    uint64_t tail = __atomic_load_n(&entry->tail, __ATOMIC_ACQUIRE);
    /* The recorder writes both; if they differ, the write is incomplete. */
    if (tail == __atomic_load_n(&entry->tail_again, __ATOMIC_ACQUIRE) && tail <= head &&
        head - tail <= STEPSCOPE_RING_RECORDS_) {
      return tail;
    }
  }
  return head < STEPSCOPE_RING_RECORDS_ ? 0 : head - STEPSCOPE_RING_RECORDS_;
}

/* Populates pages at once, if the kernel can (5.14); otherwise does nothing. */
static inline void stepscope_populate_(void *from, uint64_t bytes) {
  syscall(SYS_madvise, from, bytes, 23L /* MADV_POPULATE_WRITE */);
}

/* Allocates the next piece of a ring. */
static inline int stepscope_commit_piece_(struct stepscope_state_ *state, uint32_t ring) {
  struct stepscope_ring_ *known = &state->tables->rings[ring];
  uint64_t piece_bytes = STEPSCOPE_PIECE_RECORDS_ * STEPSCOPE_RECORD_WORDS_ * 8u;
  uint64_t from = (uint64_t)known->committed * STEPSCOPE_RECORD_WORDS_ * 8u;
  int fd = stepscope_open_file_(state->path, 02);
  int fits = fd >= 0 &&
             stepscope_commit_(fd, STEPSCOPE_RINGS_AT_ + (uint64_t)ring * STEPSCOPE_RING_BYTES_ + from, piece_bytes);
  if (fd >= 0) syscall(SYS_close, fd);
  if (!fits) return 0;
  known->committed += STEPSCOPE_PIECE_RECORDS_;
  if (known->records) stepscope_populate_((char *)known->records + from, piece_bytes);
  return 1;
}

static inline int stepscope_add_ring_(struct stepscope_state_ *state) {
  struct stepscope_ring_ *known = &state->tables->rings[state->rings];
  uint64_t at = STEPSCOPE_RINGS_AT_ + (uint64_t)state->rings * STEPSCOPE_RING_BYTES_;
  int fd, fits;
  void *memory;
  if (state->rings == STEPSCOPE_RINGS_MAX_ || (fd = stepscope_open_file_(state->path, 02)) < 0) return 0;
  known->committed = 0;
  known->records = NULL;
  fits = stepscope_commit_(fd, STEPSCOPE_DIRECTORY_AT_ + (uint64_t)state->rings * STEPSCOPE_ENTRY_BYTES_,
                           STEPSCOPE_ENTRY_BYTES_) &&
         stepscope_commit_piece_(state, state->rings) &&
         syscall(SYS_ftruncate, fd, (long)(at + STEPSCOPE_RING_BYTES_)) == 0;
  memory = fits ? mmap(NULL, STEPSCOPE_RING_BYTES_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (long)at) : MAP_FAILED;
  syscall(SYS_close, fd);
  if (memory == MAP_FAILED) return 0;
  known->records = (uint64_t *)memory;
  stepscope_populate_(memory, STEPSCOPE_PIECE_RECORDS_ * STEPSCOPE_RECORD_WORDS_ * 8u);
  state->rings++;
  __atomic_store_n(&state->segment->ring_count, state->rings, __ATOMIC_RELEASE);
  return 1;
}

/* A drained ring of an ended thread, else a new one. Returns its number plus one, or 0 if there is none. */
static inline uint32_t stepscope_find_ring_(struct stepscope_state_ *state, struct stepscope_entry_ *entries) {
  uint32_t first = state->first_ended;
  if (first && stepscope_tail_(&entries[first - 1], entries[first - 1].head) == entries[first - 1].head) {
    state->first_ended = state->tables->rings[first - 1].next_ended;
    if (!state->first_ended) state->last_ended = 0;
    return first;
  }
  return stepscope_add_ring_(state) ? state->rings : 0;
}

static inline int stepscope_take_ring_(struct stepscope_state_ *state, struct stepscope_thread_ *thread) {
  struct stepscope_entry_ *entries = (struct stepscope_entry_ *)((char *)state->segment + STEPSCOPE_DIRECTORY_AT_);
  uint32_t tid = (uint32_t)syscall(SYS_gettid), found = stepscope_find_ring_(state, entries);
  if (!found || pthread_setspecific(state->key, thread) != 0) return 0;
  thread->ring = found - 1;
  thread->entry = &entries[found - 1];
  thread->records = state->tables->rings[found - 1].records;
  thread->at = thread->limit = thread->entry->head;
  __atomic_store_n(&thread->entry->tid, tid, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->entry->state, 1u, __ATOMIC_RELEASE);
  return 1;
}

/* The position up to which the thread may write without checks. */
static inline uint64_t stepscope_limit_(struct stepscope_state_ *state, struct stepscope_thread_ *thread) {
  uint32_t committed = state->tables->rings[thread->ring].committed;
  uint64_t limit = stepscope_tail_(thread->entry, thread->at) + STEPSCOPE_RING_RECORDS_;
  /* There may be memory later. Checking takes microseconds, so it is not done on each mark. */
  if (thread->at == committed && committed < STEPSCOPE_RING_RECORDS_ && thread->drops % STEPSCOPE_DROPS_A_PIECE_ == 0) {
    pthread_mutex_lock(&state->lock);
    if (state->segment && stepscope_commit_piece_(state, thread->ring)) thread->drops = 0;
    pthread_mutex_unlock(&state->lock);
    committed = state->tables->rings[thread->ring].committed;
  }
  return committed < STEPSCOPE_RING_RECORDS_ && committed < limit ? committed : limit;
}

/* Clears the flag of a killed recorder. */
static inline void stepscope_look_for_recorder_(struct stepscope_header_ *segment) {
  uint64_t beat_ns = __atomic_load_n(&segment->beat_ns, __ATOMIC_RELAXED), now_ns = stepscope_monotonic_ns_();
  if (now_ns > beat_ns && now_ns - beat_ns > 10000000000u) {
    __atomic_store_n(&segment->recording, 0u, __ATOMIC_RELAXED);
  }
}

static inline void stepscope_put_(struct stepscope_thread_ *thread, uint64_t payload, uint64_t time, uint64_t what) {
  uint64_t at = thread->at;
  uint64_t *record = thread->records + (at % STEPSCOPE_RING_RECORDS_) * STEPSCOPE_RECORD_WORDS_;
  record[0] = payload;
  record[1] = time;
  record[2] = what | at << 40;
  thread->at = at + 1;
  __atomic_store_n(&thread->entry->head, at + 1, __ATOMIC_RELEASE);
}

/* Makes room for one more record of this thread, or counts a dropped one. */
STEPSCOPE_SLOW_ int stepscope_make_room_v1_(struct stepscope_thread_ *thread) {
  struct stepscope_state_ *state = &stepscope_state_v1_;
  int saved = errno, taken = 1;
  if (!thread->records) {
    /* A child of fork may end a scope of its parent before it starts one. */
    if (!state->segment) stepscope_opened_v1_();
    /* There may be room for a ring later. Checking takes microseconds, so it is not done on each mark. */
    if ((taken = thread->drops % STEPSCOPE_DROPS_A_PIECE_ == 0) != 0) {
      pthread_mutex_lock(&state->lock);
      taken = state->segment && stepscope_take_ring_(state, thread);
      pthread_mutex_unlock(&state->lock);
    }
    thread->drops = taken ? 0 : thread->drops + 1;
    if (!taken && state->segment) __atomic_fetch_add(&state->segment->marks_lost, 1u, __ATOMIC_RELAXED);
    if (taken && (thread->limit = stepscope_limit_(state, thread)) > thread->at) {
      uint64_t tid = thread->entry->tid;
      stepscope_put_(thread, tid, stepscope_now_(), (uint64_t)STEPSCOPE_KIND_THREAD_ << 32);
    }
  }
  if (taken) {
    if (thread->at >= thread->limit) thread->limit = stepscope_limit_(state, thread);
    if (thread->at >= thread->limit) {
      taken = 0;
      __atomic_store_n(&thread->entry->dropped, thread->entry->dropped + 1, __ATOMIC_RELAXED);
      if (++thread->drops % STEPSCOPE_DROPS_A_LOOK_ == 0 && state->segment) stepscope_look_for_recorder_(state->segment);
    }
  }
  errno = saved;
  return taken;
}

static inline void stepscope_write_(uint64_t payload, uint64_t time, uint32_t kind, uint32_t name) {
  struct stepscope_thread_ *thread = &stepscope_thread_v1_;
  if (STEPSCOPE_LIKELY_(thread->at != thread->limit) || stepscope_make_room_v1_(thread)) {
    stepscope_put_(thread, payload, time, (uint64_t)kind << 32 | name);
  }
}

/* --- Marks -------------------------------------------------------------------------------------------------------- */

/* An open scope. Zero if not recording at its start. */
typedef struct {
  uint64_t start;
  uint32_t name;
} stepscope_open;

static inline int stepscope_is_recording_(void) {
  const uint32_t *word = __atomic_load_n(&stepscope_recording_v1_, __ATOMIC_RELAXED);
  return __builtin_expect(__atomic_load_n(word, __ATOMIC_RELAXED) != 0, 0);
}

/* Whether the name of a call site has a number in this copy. Assigns one while recording. */
static inline int stepscope_site_(uint64_t *site, const char *name) {
  uint64_t known = __atomic_load_n(site, __ATOMIC_RELAXED);
  return STEPSCOPE_LIKELY_(known >> 32 == stepscope_tag_()) || stepscope_name_site_v1_(site, name);
}

static inline stepscope_open stepscope_begin_(uint64_t *site, const char *name) {
  stepscope_open open = {0, 0};
  if (stepscope_is_recording_() && stepscope_site_(site, name)) {
    open.name = (uint32_t)__atomic_load_n(site, __ATOMIC_RELAXED);
    open.start = stepscope_now_();
  }
  return open;
}

static inline stepscope_open stepscope_begin_named_(const char *name) {
  stepscope_open open = {0, 0};
  if (stepscope_is_recording_() && (stepscope_state_v1_.segment || stepscope_opened_v1_())) {
    open.name = stepscope_name_v1_(name);
    open.start = stepscope_now_();
  }
  return open;
}

static inline void stepscope_end_(stepscope_open *open) {
  if (__builtin_expect(open->start != 0, 0)) {
    stepscope_write_(open->start, stepscope_now_(), STEPSCOPE_KIND_SCOPE_, open->name);
    open->start = 0;
  }
}

static inline void stepscope_step_(int64_t sim_time_ns) {
  if (stepscope_is_recording_() && (stepscope_state_v1_.segment || stepscope_opened_v1_())) {
    stepscope_write_((uint64_t)sim_time_ns, stepscope_now_(), STEPSCOPE_KIND_STEP_, 0);
  }
}

/* Simulated time is unknown beyond 292 years and for NaN. */
static inline int64_t stepscope_sim_ns_(double sim_time_s) {
  if (!(sim_time_s > -9.2e9 && sim_time_s < 9.2e9)) return INT64_MIN;
  return (int64_t)(sim_time_s * 1e9 + (sim_time_s < 0 ? -0.5 : 0.5));
}

static inline void stepscope_mark_(uint64_t *site, const char *name, uint32_t kind, int64_t value) {
  if (stepscope_is_recording_() && stepscope_site_(site, name)) {
    stepscope_write_((uint64_t)value, stepscope_now_(), kind, (uint32_t)__atomic_load_n(site, __ATOMIC_RELAXED));
  }
}

#ifdef __cplusplus
} /* extern "C" */

#define STEPSCOPE_INTEGERS_ONLY_ "a counter is an integer: scale it, and name its unit, as in height_um"

/* Ends a scope with its block. */
class stepscope_guard_ {
 public:
  explicit stepscope_guard_(stepscope_open scope) : open(scope) {}
  ~stepscope_guard_() { stepscope_end_(&open); }
  stepscope_guard_(const stepscope_guard_ &) = delete;
  stepscope_guard_ &operator=(const stepscope_guard_ &) = delete;

 private:
  stepscope_open open;
};

template <typename Number>
inline int64_t stepscope_integer_(Number value) {
  static_assert(!std::is_floating_point<Number>::value, STEPSCOPE_INTEGERS_ONLY_);
  return static_cast<int64_t>(value);
}

#define STEPSCOPE_GUARD_(variable, scope) const stepscope_guard_ variable(scope)
#define STEPSCOPE_INTEGER_(value) stepscope_integer_(value)
#else
#define STEPSCOPE_GUARD_(variable, scope) \
  __attribute__((cleanup(stepscope_end_), unused)) stepscope_open variable = (scope)
#define STEPSCOPE_INTEGER_(value)                                                                                \
  ((int64_t)(value) + 0 * (int64_t)sizeof(struct {                                                               \
     _Static_assert(_Generic((value), float : 0, double : 0, long double : 0, default : 1),                      \
                    "a counter is an integer: scale it, and name its unit, as in height_um");                    \
     int nothing;                                                                                                \
   }))
#endif

/* Numbered instead of named by line, so that one line may have several, as in a user's macro. */
#define STEPSCOPE_SCOPE_NUMBERED_2_(name, number) \
  static uint64_t stepscope_site_##number;        \
  STEPSCOPE_GUARD_(stepscope_scope_##number, stepscope_begin_(&stepscope_site_##number, "" name ""))
#define STEPSCOPE_SCOPE_NUMBERED_(name, number) STEPSCOPE_SCOPE_NUMBERED_2_(name, number)
#define STEPSCOPE_NAMED_NUMBERED_2_(name, number) \
  STEPSCOPE_GUARD_(stepscope_scope_##number, stepscope_begin_named_(name))
#define STEPSCOPE_NAMED_NUMBERED_(name, number) STEPSCOPE_NAMED_NUMBERED_2_(name, number)

/* A scope until the end of the block. */
#define STEPSCOPE_SCOPE(name) STEPSCOPE_SCOPE_NUMBERED_(name, __COUNTER__)
/* A scope with a name known only at run time. Each call takes a lock and looks the name up. */
#define STEPSCOPE_SCOPE_NAMED(name) STEPSCOPE_NAMED_NUMBERED_(name, __COUNTER__)
/* A scope until STEPSCOPE_END of the same variable, on any thread; it belongs to the thread that ends it. */
#define STEPSCOPE_BEGIN(open, name)                               \
  do {                                                            \
    static uint64_t stepscope_site_here;                          \
    (open) = stepscope_begin_(&stepscope_site_here, "" name "");  \
  } while (0)
#define STEPSCOPE_END(open) stepscope_end_(&(open))
/* Ends a step and starts the next, at this simulated time. */
#define STEPSCOPE_STEP(sim_time_s) stepscope_step_(stepscope_sim_ns_(sim_time_s))
#define STEPSCOPE_STEP_NS(sim_time_ns) stepscope_step_((int64_t)(sim_time_ns))
#define STEPSCOPE_STEP_UNTIMED() stepscope_step_(INT64_MIN)
/* A reading of an integer. */
#define STEPSCOPE_COUNTER(name, value)                                                                     \
  do {                                                                                                     \
    static uint64_t stepscope_site_here;                                                                   \
    stepscope_mark_(&stepscope_site_here, "" name "", STEPSCOPE_KIND_COUNTER_, STEPSCOPE_INTEGER_(value)); \
  } while (0)
/* Ends an iteration of another periodic loop and starts the next. */
#define STEPSCOPE_FRAME_MARK(name)                                                     \
  do {                                                                                 \
    static uint64_t stepscope_site_here;                                               \
    stepscope_mark_(&stepscope_site_here, "" name "", STEPSCOPE_KIND_FRAME_, 0);       \
  } while (0)
/* The way of one message: published, passing, arrived. Topic and id together name it in all recorded processes. */
#define STEPSCOPE_FLOW_(topic, id, kind)                                                         \
  do {                                                                                           \
    static uint64_t stepscope_site_here;                                                         \
    stepscope_mark_(&stepscope_site_here, "" topic "", (kind), STEPSCOPE_INTEGER_(id));          \
  } while (0)
#define STEPSCOPE_FLOW_BEGIN(topic, id) STEPSCOPE_FLOW_(topic, id, STEPSCOPE_KIND_FLOW_BEGIN_)
#define STEPSCOPE_FLOW_STEP(topic, id) STEPSCOPE_FLOW_(topic, id, STEPSCOPE_KIND_FLOW_STEP_)
#define STEPSCOPE_FLOW_END(topic, id) STEPSCOPE_FLOW_(topic, id, STEPSCOPE_KIND_FLOW_END_)

#endif /* STEPSCOPE_MARKS */
#endif /* STEPSCOPE_STEPSCOPE_H */
