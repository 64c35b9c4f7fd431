//! [`READINGS`]: the quantities that recorders read over time, which are the names in the table `counters`.

/// Process id of the row that stands for the machine: no process has it.
pub const SYSTEM_PID: u32 = 0;

/// What the row that stands for the machine is called.
pub const SYSTEM: &str = "(system)";

/// A quantity that recorders read over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingKind {
    /// Its name, which ends in its unit. A part after a colon distinguishes several of a kind, as in `disk_read_bytes:sda`.
    pub name: &'static str,
    /// Whether it counts from the start of the process or the machine, so that differences are of interest.
    pub is_total: bool,
    /// What it is.
    pub doc: &'static str,
}

const fn total(name: &'static str, doc: &'static str) -> ReadingKind {
    ReadingKind { name, is_total: true, doc }
}

const fn level(name: &'static str, doc: &'static str) -> ReadingKind {
    ReadingKind { name, is_total: false, doc }
}

/// The quantities of processes, then those of the machine, of network namespaces and of control groups.
pub const READINGS: &[ReadingKind] = &[
    total("cpu_user_ns", "CPU time in user mode, in steps of 10 ms."),
    total("cpu_system_ns", "CPU time in the kernel, in steps of 10 ms."),
    level("state", "State of the main thread: the code of the kernel's letter, such as 82 for R (running)."),
    level("threads", "Threads."),
    level("rss_bytes", "Resident memory."),
    level("peak_rss_bytes", "Largest resident memory so far."),
    level("pss_bytes", "Resident memory, with shared pages divided by the number of processes that share them."),
    level("swap_bytes", "Memory that was swapped out."),
    total("minor_faults", "Page faults without reading from storage."),
    total("major_faults", "Page faults that read from storage."),
    total("io_read_bytes", "Bytes fetched from storage."),
    total("io_write_bytes", "Bytes to be sent to storage."),
    total("io_read_call_bytes", "Bytes that read calls returned, of files, pipes and terminals."),
    total("io_write_call_bytes", "Bytes given to write calls."),
    level("fds", "Open file descriptors."),
    level("sockets", "Open file descriptors that are sockets."),
    total("context_switches_voluntary", "Times that threads gave up a CPU."),
    total("context_switches_involuntary", "Times that threads were preempted."),
    total("run_queue_delay_ns", "Time that threads waited for a CPU."),
    total("thread_cpu_ns", "CPU time of a thread, exact."),
    total("gpu_ns", "Time that the GPU worked for the process, of all engines."),
    level("gpu_memory_bytes", "GPU memory of the process."),
    total("heap_calls", "Allocations."),
    total("heap_bytes", "Allocated bytes."),
    total("system_cpu_user_ns", "Time of all CPUs in user mode."),
    total("system_cpu_system_ns", "Time of all CPUs in the kernel, with interrupts."),
    total("system_cpu_iowait_ns", "Idle time of all CPUs while a thread waited for storage."),
    total("system_cpu_stolen_ns", "Time that a hypervisor gave to other machines."),
    total("core_busy_ns", "Busy time of one CPU."),
    level("core_frequency_khz", "Clock frequency of one CPU."),
    level("temperature_mc", "Temperature of a thermal zone or a GPU, in thousandths of a degree Celsius."),
    level("gpu_busy_percent", "Share of time in which a GPU worked, by its driver (NVIDIA)."),
    level("gpu_memory_used_bytes", "Memory of a GPU in use (NVIDIA)."),
    level("gpu_memory_total_bytes", "Memory of a GPU (NVIDIA)."),
    level("gpu_power_mw", "Power that a GPU draws, in milliwatts (NVIDIA)."),
    level("memory_available_bytes", "Memory that can be used without swapping."),
    level("memory_cached_bytes", "Memory of the page cache."),
    level("swap_used_bytes", "Swap in use."),
    total("pressure_cpu_some_ns", "Time in which some thread waited for a CPU."),
    total("pressure_memory_some_ns", "Time in which some thread waited for memory."),
    total("pressure_memory_full_ns", "Time in which all threads waited for memory."),
    total("pressure_io_some_ns", "Time in which some thread waited for storage."),
    total("pressure_io_full_ns", "Time in which all threads waited for storage."),
    total("disk_read_bytes", "Bytes read from a disk."),
    total("disk_write_bytes", "Bytes written to a disk."),
    total("disk_busy_ns", "Time in which a disk had requests."),
    total("net_received_bytes", "Bytes that a network interface received."),
    total("net_sent_bytes", "Bytes that a network interface sent."),
    total("net_dropped_packets", "Packets that a network interface dropped, received or to be sent."),
    level("net_tcp_sockets", "TCP sockets in use in a network namespace."),
    level("net_udp_sockets", "UDP sockets in use in a network namespace."),
    total("net_udp_overflows", "UDP datagrams that were dropped because the buffer of their socket was full."),
    total("cgroup_cpu_ns", "CPU time of a control group."),
    total("cgroup_throttled_ns", "Time in which a control group was stopped by its CPU limit."),
    total("cgroup_throttled_periods", "Periods in which a control group reached its CPU limit."),
    level("cgroup_cpu_limit_millicores", "CPU limit of a control group, in thousandths of a core."),
    level("cgroup_memory_bytes", "Memory of a control group, with its page cache."),
    level("cgroup_memory_limit_bytes", "Memory limit of a control group."),
    total("cgroup_oom_kills", "Processes of a control group that were killed at its memory limit."),
];

/// The kind of a reading with this name, with or without the part after the colon. `None` for names that programs chose.
pub fn reading_kind(name: &str) -> Option<&'static ReadingKind> {
    let base = name.split(':').next().unwrap_or(name);
    READINGS.iter().find(|kind| kind.name == base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_with_and_without_an_instance() {
        for kind in READINGS {
            assert_eq!(reading_kind(kind.name), Some(kind), "{}", kind.name);
            assert_eq!(reading_kind(&format!("{}:a:b", kind.name)), Some(kind));
            assert!(kind.doc.ends_with('.'));
        }
        assert_eq!(reading_kind("contacts"), None);
    }

    #[test]
    fn each_is_documented_with_the_captures() {
        let page = include_str!("../../../docs/captures.md");
        for ReadingKind { name, is_total, doc } in READINGS {
            let kind = if *is_total { "total" } else { "level" };
            let row = format!("| `{name}` | {kind} | {doc} |");
            assert!(page.contains(&row), "docs/captures.md lacks: {row}");
        }
    }
}
