// What tests open as NVML: functions and structures as in nvml.h, of one GPU. PID is a process that uses it.
#include <string.h>

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } process;
typedef struct { unsigned pid; unsigned long long time_us; unsigned sm, memory, encoder, decoder; } sample;

static int is_open, calls, gpu;

int nvmlInit_v2(void) { is_open = 1; return 0; }
int nvmlShutdown(void) { is_open = 0; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return is_open ? 0 : 1; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &gpu; return index == 0 ? 0 : 2; }
int nvmlDeviceGetName(void *device, char *name, unsigned length) { strncpy(name, "Stand-in 1:2", length); return device != &gpu; }
int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) { *rates = (utilization){40, 7}; return device != &gpu; }
int nvmlDeviceGetMemoryInfo(void *device, memory *info) { *info = (memory){8ull << 30, 5ull << 30, 3ull << 30}; return device != &gpu; }
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) { *celsius = 61; return device != &gpu || sensor != 0; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 75000; return device != &gpu; }

// 100 processes that compute; 7 is the answer for a list that is too short.
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *list) {
  if (*count < 100) { *count = 100; return 7; }
  for (unsigned i = 0; i < 100; ++i) list[i] = (process){i == 0 ? PID : 100000000 + i, 1ull << 30, -1u, -1u};
  *count = 100;
  return device != &gpu;
}
// PID draws, too; its memory is not known here.
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, process *list) {
  list[0] = (process){PID, -1ull, -1u, -1u};
  *count = 1;
  return device != &gpu;
}
int nvmlDeviceGetProcessUtilization(void *device, sample *list, unsigned *count, unsigned long long since_us) {
  if (++calls == 3) return 6;  // not found
  list[0] = (sample){PID, 1000 * calls + 1, 20, 0, 0, 0};
  list[1] = (sample){PID, 1000 * calls + 2, 40, 0, 0, 0};
  *count = 2;
  return device != &gpu || since_us > 2002;
}
