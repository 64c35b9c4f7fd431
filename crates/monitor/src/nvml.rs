//! NVIDIA GPUs, by their management library (NVML), which is part of the driver.
//!
//! The kernel tells nothing of these GPUs in `fdinfo`. The library is opened when the monitor starts, if it is there: nothing is
//! linked to it. Types and constants are those of `nvml.h`, [API reference](https://docs.nvidia.com/deploy/nvml-api/). The library
//! gives utilization in percent of each sample period; the time of a process is their mean over the time since the reading before.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;

use crate::gpu::GpuUse;
use crate::readings::Readings;

const LIBRARY: &CStr = c"libnvidia-ml.so.1";

const SUCCESS: Answer = 0;
const TOO_SMALL: Answer = 7;
const OF_THE_CHIP: c_uint = 0;

/// More processes than this on one GPU are left out.
const MOST_PROCESSES: usize = 4096;

type Answer = c_int;
type Device = *mut c_void;

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlProcessInfo_v2_t`, of the functions that end in `_v2` and `_v3`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct ProcessInfo {
    pid: c_uint,
    memory: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct ProcessSample {
    pid: c_uint,
    time_us: c_ulonglong,
    sm_percent: c_uint,
    memory_percent: c_uint,
    encoder_percent: c_uint,
    decoder_percent: c_uint,
}

type Simple = unsafe extern "C" fn() -> Answer;
type Count = unsafe extern "C" fn(*mut c_uint) -> Answer;
type ByIndex = unsafe extern "C" fn(c_uint, *mut Device) -> Answer;
type Name = unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Answer;
type GetUtilization = unsafe extern "C" fn(Device, *mut Utilization) -> Answer;
type GetMemory = unsafe extern "C" fn(Device, *mut Memory) -> Answer;
type GetTemperature = unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> Answer;
type GetPower = unsafe extern "C" fn(Device, *mut c_uint) -> Answer;
type GetProcesses = unsafe extern "C" fn(Device, *mut c_uint, *mut ProcessInfo) -> Answer;
type GetSamples = unsafe extern "C" fn(Device, *mut ProcessSample, *mut c_uint, c_ulonglong) -> Answer;

/// The open library. What it lacks is not read.
#[derive(Debug)]
struct Library {
    handle: *mut c_void,
    shutdown: Option<Simple>,
    utilization: Option<GetUtilization>,
    memory: Option<GetMemory>,
    temperature: Option<GetTemperature>,
    power: Option<GetPower>,
    compute_processes: Option<GetProcesses>,
    graphics_processes: Option<GetProcesses>,
    samples: Option<GetSamples>,
}

/// The NVIDIA GPUs of the machine.
#[derive(Debug)]
pub struct Nvml {
    library: Library,
    gpus: Vec<Gpu>,
    /// Time that the GPUs worked for each process so far.
    worked_ns: BTreeMap<u32, i64>,
    read_ns: Option<u64>,
}

#[derive(Debug)]
struct Gpu {
    device: Device,
    /// Its number and name, as readings name it.
    instance: String,
    /// The newest sample of processes.
    seen_us: c_ulonglong,
}

impl Nvml {
    /// The GPUs of the driver's library. `None` without the library or without GPUs.
    pub fn open() -> Option<Self> {
        Self::open_library(LIBRARY)
    }

    fn open_library(path: &CStr) -> Option<Self> {
        // SAFETY: the path ends in NUL. The library is that of the driver, or one of a test.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: these are the types of the functions in `nvml.h`.
        let (mut library, init, count, by_index, name) = unsafe {
            let library = Library {
                handle,
                shutdown: None,
                utilization: function(handle, c"nvmlDeviceGetUtilizationRates"),
                memory: function(handle, c"nvmlDeviceGetMemoryInfo"),
                temperature: function(handle, c"nvmlDeviceGetTemperature"),
                power: function(handle, c"nvmlDeviceGetPowerUsage"),
                compute_processes: function(handle, c"nvmlDeviceGetComputeRunningProcesses_v3")
                    .or_else(|| function(handle, c"nvmlDeviceGetComputeRunningProcesses_v2")),
                graphics_processes: function(handle, c"nvmlDeviceGetGraphicsRunningProcesses_v3")
                    .or_else(|| function(handle, c"nvmlDeviceGetGraphicsRunningProcesses_v2")),
                samples: function(handle, c"nvmlDeviceGetProcessUtilization"),
            };
            let init: Option<Simple> = function(handle, c"nvmlInit_v2");
            let count: Option<Count> = function(handle, c"nvmlDeviceGetCount_v2");
            let by_index: Option<ByIndex> = function(handle, c"nvmlDeviceGetHandleByIndex_v2");
            (library, init?, count?, by_index?, function::<Name>(handle, c"nvmlDeviceGetName"))
        };
        // SAFETY: as above; all arguments are valid for writes.
        unsafe {
            if init() != SUCCESS {
                return None;
            }
            library.shutdown = function(handle, c"nvmlShutdown");
            let mut gpus = 0;
            if count(&mut gpus) != SUCCESS {
                return None;
            }
            let gpu = |index| {
                let mut device = null_mut();
                (by_index(index, &mut device) == SUCCESS).then(|| Gpu {
                    device,
                    instance: name.map_or_else(|| index.to_string(), |name| instance(index, device, name)),
                    seen_us: 0,
                })
            };
            let gpus: Vec<Gpu> = (0..gpus).filter_map(gpu).collect();
            (!gpus.is_empty()).then(|| Self { library, gpus, worked_ns: BTreeMap::new(), read_ns: None })
        }
    }

    /// Reads all GPUs. Returns what each process uses of them.
    pub fn read(&mut self, now_ns: u64, readings: &mut Readings) -> BTreeMap<u32, GpuUse> {
        let elapsed_ns = self.read_ns.replace(now_ns).map_or(0, |before| now_ns.saturating_sub(before));
        let mut memory: BTreeMap<u32, i64> = BTreeMap::new();
        for gpu in &mut self.gpus {
            self.library.read_gpu(gpu, readings);
            for (pid, bytes) in self.library.memory_by_process(gpu.device) {
                let sum = memory.entry(pid).or_default();
                *sum = sum.saturating_add(bytes);
            }
            for (pid, percent) in self.library.use_since(gpu) {
                let worked_ns = (elapsed_ns as f64 * percent / 100.0) as i64;
                let sum = self.worked_ns.entry(pid).or_default();
                *sum = sum.saturating_add(worked_ns);
            }
        }
        // Of processes that no GPU knows any more, nothing is kept.
        self.worked_ns.retain(|pid, _| memory.contains_key(pid));
        let of_process =
            |(pid, memory_bytes)| (pid, GpuUse { ns: self.worked_ns.get(&pid).copied().unwrap_or(0), memory_bytes });
        memory.into_iter().map(of_process).collect()
    }
}

impl Library {
    fn read_gpu(&self, gpu: &Gpu, readings: &mut Readings) {
        let (mut utilization, mut memory) = (Utilization::default(), Memory::default());
        let (mut celsius, mut milliwatts) = (0, 0);
        let Gpu { device, instance, .. } = gpu;
        // SAFETY: the device is the library's own; the structures are those of `nvml.h`.
        unsafe {
            if self.utilization.is_some_and(|get| get(*device, &mut utilization) == SUCCESS) {
                readings.add("gpu_busy_percent", instance, i64::from(utilization.gpu));
            }
            if self.memory.is_some_and(|get| get(*device, &mut memory) == SUCCESS) {
                readings.add("gpu_memory_used_bytes", instance, signed(memory.used));
                readings.add("gpu_memory_total_bytes", instance, signed(memory.total));
            }
            if self.temperature.is_some_and(|get| get(*device, OF_THE_CHIP, &mut celsius) == SUCCESS) {
                readings.add("temperature_mc", &format!("gpu-{instance}"), i64::from(celsius) * 1000);
            }
            if self.power.is_some_and(|get| get(*device, &mut milliwatts) == SUCCESS) {
                readings.add("gpu_power_mw", instance, i64::from(milliwatts));
            }
        }
    }

    /// Memory of each process that computes or draws.
    fn memory_by_process(&self, device: Device) -> BTreeMap<u32, i64> {
        let mut memory = BTreeMap::new();
        for get in [self.compute_processes, self.graphics_processes].into_iter().flatten() {
            // SAFETY: the list has room for `count` elements of the type of `nvml.h`.
            let processes = listed(|count, list: *mut ProcessInfo| unsafe { get(device, count, list) });
            for ProcessInfo { pid, memory: bytes, .. } in processes {
                // All ones: the driver does not know. One that computes and draws is in both lists, with the same memory.
                let bytes = if bytes == c_ulonglong::MAX { 0 } else { signed(bytes) };
                let most = memory.entry(pid).or_insert(0);
                *most = bytes.max(*most);
            }
        }
        memory
    }

    /// The mean use by each process in the samples since the last call, in percent.
    fn use_since(&self, gpu: &mut Gpu) -> BTreeMap<u32, f64> {
        let Some(get) = self.samples else { return BTreeMap::new() };
        let (device, seen_us) = (gpu.device, gpu.seen_us);
        // SAFETY: the list has room for `count` elements of the type of `nvml.h`.
        let samples = listed(|count, list: *mut ProcessSample| unsafe { get(device, list, count, seen_us) });
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for sample in samples.into_iter().filter(|sample| sample.time_us > seen_us) {
            gpu.seen_us = gpu.seen_us.max(sample.time_us);
            let (sum, number) = sums.entry(sample.pid).or_default();
            *sum += f64::from(sample.sm_percent.min(100));
            *number += 1.0;
        }
        sums.into_iter().map(|(pid, (sum, number))| (pid, sum / number)).collect()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: after this, none of its functions is called.
        unsafe {
            if let Some(shutdown) = self.shutdown {
                shutdown();
            }
            libc::dlclose(self.handle);
        }
    }
}

/// A function of the library.
///
/// # Safety
/// It has the type `F`, a function pointer.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle is open, the name ends in NUL, and a function pointer is as large as a pointer.
    unsafe {
        let address = libc::dlsym(handle, name.as_ptr());
        (!address.is_null()).then(|| std::mem::transmute_copy(&address))
    }
}

/// The number and the name of a GPU.
fn instance(index: c_uint, device: Device, name: Name) -> String {
    let mut text = [0; 97];
    // SAFETY: the buffer is valid for its length, less the final NUL.
    let answer = unsafe { name(device, text.as_mut_ptr(), 96) };
    // SAFETY: the last byte is NUL whatever the library wrote.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
    let text = if answer == SUCCESS { text.trim() } else { "" };
    [&index.to_string(), text].join(" ").trim_end().replace(':', "-")
}

/// A list that the library writes. It says how many elements there are if the list is too short.
fn listed<T: Copy + Default>(mut get: impl FnMut(*mut c_uint, *mut T) -> Answer) -> Vec<T> {
    let mut list = vec![T::default(); 64];
    loop {
        let mut count = list.len() as c_uint;
        match get(&mut count, list.as_mut_ptr()) {
            SUCCESS => {
                list.truncate(count as usize);
                return list;
            }
            TOO_SMALL if (count as usize) > list.len() && list.len() < MOST_PROCESSES => {
                list.resize((count as usize).min(MOST_PROCESSES), T::default());
            }
            _ => return Vec::new(),
        }
    }
}

fn signed(value: c_ulonglong) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// A library with the functions of NVML, of one GPU that works for `pid`.
    pub(crate) fn stand_in(folder: &Path, pid: u32) -> Option<Nvml> {
        let library = folder.join("libnvidia-ml.so.1");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/nvml/stand_in.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", &format!("-DPID={pid}"), "-o"]).arg(&library).arg(source);
        if !compiler.status().is_ok_and(|status| status.success()) {
            println!("skipped: NVML: no C compiler");
            return None;
        }
        Nvml::open_library(&CString::new(library.as_os_str().as_bytes()).unwrap())
    }

    fn value(readings: &Readings, name: &str) -> Option<i64> {
        readings.iter().find(|(read, _)| &***read == name).map(|(_, value)| value)
    }

    #[test]
    fn a_gpu_and_its_processes_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut nvml) = stand_in(folder.path(), 4711) else { return };
        let mut readings = Readings::default();
        let first = nvml.read(1_000_000_000, &mut readings);
        assert_eq!(value(&readings, "gpu_busy_percent:0 Stand-in 1-2"), Some(40));
        assert_eq!(value(&readings, "gpu_memory_used_bytes:0 Stand-in 1-2"), Some(3 << 30));
        assert_eq!(value(&readings, "gpu_memory_total_bytes:0 Stand-in 1-2"), Some(8 << 30));
        assert_eq!(value(&readings, "temperature_mc:gpu-0 Stand-in 1-2"), Some(61_000));
        assert_eq!(value(&readings, "gpu_power_mw:0 Stand-in 1-2"), Some(75_000));
        // 4711 and 99 others, in a list that is longer than expected. Time counts from the first reading on.
        assert_eq!(first.len(), 100);
        assert_eq!(first[&4711], GpuUse { ns: 0, memory_bytes: 1 << 30 });
        // Two samples, 20 % and 40 %, in ten seconds.
        let second = nvml.read(11_000_000_000, &mut readings);
        assert_eq!(second[&4711], GpuUse { ns: 3_000_000_000, memory_bytes: 1 << 30 });
        // No newer samples.
        assert_eq!(nvml.read(12_000_000_000, &mut readings)[&4711].ns, 3_000_000_000);
    }

    #[test]
    fn without_the_library_there_is_nothing() {
        assert!(Nvml::open_library(c"/nonexistent/libnvidia-ml.so.1").is_none());
        // A library without these functions.
        assert!(Nvml::open_library(c"libc.so.6").is_none());
    }
}
