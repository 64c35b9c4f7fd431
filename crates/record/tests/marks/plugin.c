/* A library that marks, with a copy of the marks' state of its own. */
#include "stepscope.h"

int plugin_work(int times);

int plugin_work(int times) {
  int i;
  for (i = 0; i < times; i++) {
    /* On one line with another, as a macro of the user's may have it. */
    { STEPSCOPE_SCOPE("plugin"); } (void)i; { STEPSCOPE_SCOPE_NAMED("plugin, named"); }
  }
  return times;
}
