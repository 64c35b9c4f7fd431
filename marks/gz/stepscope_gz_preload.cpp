// Turns every GZ_PROFILE and IGN_PROFILE scope of an unchanged program into a Stepscope scope: a library to preload,
// for all versions of gz-common and ignition-common on Linux.
//
//     g++ -O2 -shared -fPIC -DSTEPSCOPE_MARKS=1 -I marks/c marks/gz/stepscope_gz_preload.cpp -o stepscope_gz_preload.so
//     LD_PRELOAD=./stepscope_gz_preload.so stepscope record --step-scope SimulationRunner::Step -- gz sim -s -r world.sdf
//
// It replaces the two functions that begin and end a sample, by name; Gazebo's own profiler (Remotery) then gets
// nothing. Libraries built without GZ_PROFILER_ENABLE have no scopes.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stepscope_gz_scopes.hh"

#define STEPSCOPE_INSTEAD_OF(symbol) __asm__(symbol) __attribute__((visibility("default"), used))

extern "C" {

void stepscope_gz_begin(void *, const char *name, uint32_t *hash)
    STEPSCOPE_INSTEAD_OF("_ZN2gz6common8Profiler11BeginSampleEPKcPj");
void stepscope_gz_end(void *) STEPSCOPE_INSTEAD_OF("_ZN2gz6common8Profiler9EndSampleEv");
void stepscope_gz_thread(void *, const char *name)
    STEPSCOPE_INSTEAD_OF("_ZN2gz6common8Profiler13SetThreadNameEPKc");
void stepscope_ign_begin(void *, const char *name, uint32_t *hash)
    STEPSCOPE_INSTEAD_OF("_ZN8ignition6common8Profiler11BeginSampleEPKcPj");
void stepscope_ign_end(void *) STEPSCOPE_INSTEAD_OF("_ZN8ignition6common8Profiler9EndSampleEv");
void stepscope_ign_thread(void *, const char *name)
    STEPSCOPE_INSTEAD_OF("_ZN8ignition6common8Profiler13SetThreadNameEPKc");

void stepscope_gz_begin(void *, const char *name, uint32_t *hash) { stepscope::gz_scopes::Begin(name, hash); }
void stepscope_gz_end(void *) { stepscope::gz_scopes::End(); }
void stepscope_gz_thread(void *, const char *name) { stepscope::gz_scopes::NameThread(name); }
void stepscope_ign_begin(void *, const char *name, uint32_t *hash) { stepscope::gz_scopes::Begin(name, hash); }
void stepscope_ign_end(void *) { stepscope::gz_scopes::End(); }
void stepscope_ign_thread(void *, const char *name) { stepscope::gz_scopes::NameThread(name); }

}  // extern "C"
