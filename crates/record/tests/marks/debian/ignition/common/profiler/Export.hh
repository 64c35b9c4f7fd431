// What Debian's libignition-common-core-dev 4.5.1 includes and does not bring.
#pragma once
#define IGNITION_COMMON_PROFILER_VISIBLE __attribute__((visibility("default")))
