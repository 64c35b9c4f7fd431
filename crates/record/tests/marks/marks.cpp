// A program of many cases that marks what it does, and says how much that was.
#include "stepscope.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

static void pause_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0) {
  }
}

// Three levels, ten times; the innermost twice each.
static int nested() {
  for (int i = 0; i < 10; i++) {
    STEPSCOPE_SCOPE("outer");
    {
      STEPSCOPE_SCOPE("middle");
      for (int k = 0; k < 2; k++) {
        STEPSCOPE_SCOPE("inner");
      }
    }
    stepscope_open open;
    STEPSCOPE_BEGIN(open, "explicit");
    STEPSCOPE_END(open);
    STEPSCOPE_SCOPE_NAMED(i % 2 ? "odd" : "even");
  }
  return 0;
}

// A hundred and one marks: a hundred steps of a millisecond of simulated time.
static int steps() {
  for (int i = 0; i <= 100; i++) {
    STEPSCOPE_STEP(i * 0.001);
    STEPSCOPE_SCOPE("Runner::Step");
    STEPSCOPE_COUNTER("contacts", i * 3 - 7);
    if (i % 10 == 0) STEPSCOPE_FRAME_MARK("render");
    usleep(200);
  }
  return 0;
}

static int forever() {
  for (int i = 0;; i++) {
    STEPSCOPE_STEP_NS(i * 1000000LL);
    {
      STEPSCOPE_SCOPE("work");
      usleep(1000);
    }
  }
}

// Two thousand threads that live for a moment, sixteen at a time, with three scopes each.
static int crowd() {
  for (int round = 0; round < 125; round++) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; i++) {
      threads.emplace_back([] {
        for (int k = 0; k < 3; k++) {
          STEPSCOPE_SCOPE("brief");
        }
      });
    }
    for (auto &thread : threads) thread.join();
  }
  return 0;
}

static int forks() {
  { STEPSCOPE_SCOPE("before"); }
  STEPSCOPE_SCOPE("around");
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (child == 0) {
      for (int k = 0; k < 5; k++) {
        STEPSCOPE_SCOPE("child");
      }
      for (int k = 0; k < 2; k++) {
        STEPSCOPE_SCOPE("before");
      }
      fflush(stdout);
      // With the ends of a process, and, for one of them, without.
      if (i == 0) _exit(0);
      exit(0);
    }
    waitpid(child, nullptr, 0);
    { STEPSCOPE_SCOPE("parent"); }
  }
  return 0;
}

static int plugins(char **paths) {
  STEPSCOPE_SCOPE("host");
  for (; *paths; paths++) {
    void *plugin = dlopen(*paths, RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*work)(int) = reinterpret_cast<int (*)(int)>(dlsym(plugin, "plugin_work"));
    std::thread other([work] { work(4); });
    other.join();
    work(3);
    dlclose(plugin);
  }
  return 0;
}

// Dies in the middle, after having said how many scopes each thread has finished.
static int killed() {
  static std::atomic<int> finished[4];
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([i] {
      for (int k = 0; k < 5000; k++) {
        { STEPSCOPE_SCOPE("finished"); }
        finished[i].store(k + 1);
        if (k % 100 == 0) usleep(500);
      }
      pause();
    });
  }
  STEPSCOPE_SCOPE("never finished");
  while (finished[0] < 5000 || finished[1] < 5000 || finished[2] < 5000 || finished[3] < 5000) usleep(100);
  printf("finished %d\n", finished[0] + finished[1] + finished[2] + finished[3]);
  fflush(stdout);
  kill(getpid(), SIGKILL);
  return 1;
}

// Many more than a ring holds, faster than anybody reads.
static int flood() {
  for (int i = 0; i < 3000000; i++) {
    STEPSCOPE_SCOPE("drop");
  }
  puts("made 3000000");
  return 0;
}

static int many_names(int count) {
  std::vector<char> name(2000, 'x');
  for (int i = 0; i < count; i++) {
    snprintf(name.data(), name.size(), "entity %d", i);
    STEPSCOPE_SCOPE_NAMED(name.data());
  }
  memset(name.data(), 'y', name.size() - 1);
  STEPSCOPE_SCOPE_NAMED(name.data());
  return 0;
}

static int executes(const char *self) {
  { STEPSCOPE_SCOPE("before exec"); }
  execl(self, self, "nested", nullptr);
  return 1;
}

static long long now_ns() {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

struct message {
  long long id, sent_ns;
};

// Two processes: one publishes through a pipe, the other receives all but every tenth, and says how long each took.
static int flows() {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    close(ends[1]);
    for (struct message m; read(ends[0], &m, sizeof m) == sizeof m;) {
      STEPSCOPE_FLOW_STEP("/scan", m.id);
      if (m.id % 10 == 3) continue;
      long long received_ns = now_ns();
      STEPSCOPE_FLOW_END("/scan", m.id);
      printf("latency %lld %lld\n", m.id, received_ns - m.sent_ns);
    }
    fflush(stdout);
    exit(0);
  }
  close(ends[0]);
  for (long long id = 0; id < 300; id++) {
    struct message m = {id, now_ns()};
    STEPSCOPE_FLOW_BEGIN("/scan", id);
    if (write(ends[1], &m, sizeof m) != sizeof m) return 1;
    usleep(1000);
  }
  close(ends[1]);
  wait(NULL);
  return 0;
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "";
  if (!strcmp(what, "nested")) return nested();
  if (!strcmp(what, "steps")) return steps();
  if (!strcmp(what, "flows")) return flows();
  if (!strcmp(what, "forever")) return forever();
  if (!strcmp(what, "crowd")) return crowd();
  if (!strcmp(what, "forks")) return forks();
  if (!strcmp(what, "plugins")) return plugins(arguments + 2);
  if (!strcmp(what, "killed")) return killed();
  if (!strcmp(what, "flood")) return flood();
  if (!strcmp(what, "names")) return many_names(atoi(arguments[2]));
  if (!strcmp(what, "executes")) return executes(arguments[0]);
  if (!strcmp(what, "later")) return pause_ms(300), nested();
  return 2;
}
