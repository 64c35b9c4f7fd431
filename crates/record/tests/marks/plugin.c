/* A library that marks, with a copy of the marks' state of its own. */
#include "stepscope.h"

int plugin_work(int times);

int plugin_work(int times) {
  int i;
  for (i = 0; i < times; i++) {
    STEPSCOPE_SCOPE("plugin");
  }
  return times;
}
