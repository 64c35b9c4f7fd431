// A plugin: loaded, used, closed before the program ends.
#include "work.h"

// Stripped of its name in the library, as statics are.
static NOINLINE void plugin_hidden(std::int64_t ns) {
  BURN(ns);
  KEEP_FRAME();
}

extern "C" NOINLINE void plugin_work(std::int64_t ns) {
  plugin_hidden(ns);
  KEEP_FRAME();
}
