//! The abilities that follow from the findings.

use std::collections::BTreeMap;

use stepscope_model::{Dimension, Machine};

use crate::launch::Launch;
use crate::session::{ADDRESSES_OF_CODE, SAMPLES_ADDRESSES};

use super::{Ability, Findings, KernelNames, Lack, Outcome, Pmu, Tracefs};

/// The command that allows kernel events of the user's own processes: the smallest change.
const KERNEL_RIGHTS: &str = "sudo sysctl kernel.perf_event_paranoid=1";

/// What shows cache misses without counters.
const SIMULATE: &str = "stepscope record --with cache-sim -- COMMAND";

/// The ability to record each dimension, by the findings.
pub fn judge(findings: &Findings, machine: &Machine) -> BTreeMap<Dimension, Ability> {
    let nothing_works = findings.nothing_works();
    let ability = |dimension| match (dimension, &nothing_works) {
        (Dimension::Cpu | Dimension::Offcpu | Dimension::Sched | Dimension::Faults | Dimension::Steps, Some(why)) => {
            why.clone()
        }
        (Dimension::Cpu, _) => findings.cpu(),
        (Dimension::Offcpu, _) => findings.offcpu(),
        (Dimension::Sched, _) => findings.sched(),
        (Dimension::Faults, _) => findings.faults(),
        (Dimension::Syscalls, _) => findings.system_calls(),
        (Dimension::Resources, _) => Ability::Available,
        (Dimension::Heap, _) => heap(),
        (Dimension::Memcheck, _) => memcheck(),
        (Dimension::Asan | Dimension::Ubsan | Dimension::Tsan, _) => Ability::Available,
        (Dimension::Steps, _) => findings.steps(),
        (Dimension::Cache, _) if findings.pmu != Pmu::Counts => findings.no_counters(machine, Some(SIMULATE)),
        (Dimension::Sharing, _) => findings.sharing(machine),
        (Dimension::Cache, _) => Ability::with(findings.kernel_lacks()),
        _ => Ability::Missing {
            reason: "This version of Stepscope does not record this dimension.".to_owned(),
            remedy: None,
        },
    };
    Dimension::ALL.into_iter().map(|dimension| (dimension, ability(dimension))).collect()
}

/// The heap needs no rights: programs load a library of ours.
fn heap() -> Ability {
    match stepscope_heap::LIBRARY {
        Some(_) => Ability::Available,
        None => Ability::Missing { reason: "The heap is recorded on x86-64 only.".to_owned(), remedy: None },
    }
}

/// valgrind is a program of its own. Sanitizers are in the program.
fn memcheck() -> Ability {
    match Launch::new(["valgrind"]).program() {
        Ok(_) => Ability::Available,
        Err(_) => Ability::Missing {
            reason: "valgrind is not installed.".to_owned(),
            remedy: Some("sudo apt install valgrind".to_owned()),
        },
    }
}

impl Findings {
    fn cpu(&self) -> Ability {
        let mut lacks = self.kernel_lacks();
        if self.machine_wide != Outcome::Works {
            let what = "Threads shorter than the sampling period are sampled too rarely: this user may not sample all \
                        CPUs at once. Their CPU time is still exact.";
            lacks.push(lack(what, Some(self.setcap())));
        }
        if self.ring_bytes < 1 << 20 {
            let what = format!(
                "Bursts of records may be lost, and less of each stack is copied: this user may lock only {} KiB of \
                 ring buffer per CPU.",
                self.ring_bytes >> 10
            );
            lacks.push(lack(what, Some("sudo sysctl kernel.perf_event_mlock_kb=9000".to_owned())));
        }
        lacks.extend(self.memory_lack());
        Ability::with(lacks)
    }

    fn offcpu(&self) -> Ability {
        let mut lacks = Vec::new();
        if self.switch_stacks != Outcome::Works {
            let what = match self.read_memory {
                Outcome::Works => {
                    "Stacks of blocked time come from looks at blocked threads, 20 a second: this user may not record \
                     kernel events."
                }
                _ => {
                    "Stacks of blocked time are not recorded, only its duration: this user may not record kernel \
                     events."
                }
            };
            lacks.push(lack(what, Some(KERNEL_RIGHTS.to_owned())));
        }
        Ability::with(lacks)
    }

    fn sched(&self) -> Ability {
        if self.waking == Outcome::Works {
            return Ability::Available;
        }
        let (why, remedy) = if self.machine_wide != Outcome::Works {
            ("this user may not record the whole machine", self.setcap())
        } else if self.tracefs == Tracefs::NotMounted {
            ("tracefs is not mounted", "sudo mount -t tracefs tracefs /sys/kernel/tracing".to_owned())
        } else if self.tracefs == Tracefs::Unreadable {
            let remedy = if self.capabilities.has("cap_perfmon") {
                self.setcap()
            } else {
                "sudo mount -o remount,mode=755 /sys/kernel/tracing".to_owned()
            };
            ("only root may read tracefs", remedy)
        } else {
            ("the kernel refuses the tracepoint sched:sched_waking", self.setcap())
        };
        let what = format!(
            "Wakers, and the time from wake-up to running, are not recorded: {why}. Waits after preemption and each \
             thread's total run-queue delay are recorded."
        );
        Ability::with(vec![lack(what, Some(remedy))])
    }

    fn system_calls(&self) -> Ability {
        let why = match (self.machine_wide, self.system_calls) {
            (Outcome::Works, Outcome::Works) => return Ability::Available,
            (Outcome::Works, refused) => format!(
                "The kernel refuses the BPF programs that add up system calls ({refused}). They need CAP_BPF and the \
                 first pid namespace."
            ),
            _ => "System calls are added up by BPF programs: this user may not load any.".to_owned(),
        };
        Ability::Missing { reason: why, remedy: Some("sudo stepscope record ...".to_owned()) }
    }

    /// Steps by calls of a function. A program's own marks need no rights.
    fn steps(&self) -> Ability {
        let reason = match (self.machine_wide, self.uprobes) {
            (_, Outcome::Works) => return Ability::Available,
            (Outcome::Works, refused) => {
                format!("Steps by calls of a function are not recorded: the kernel refuses uprobes ({refused}).")
            }
            _ => {
                "Steps by calls of a function are not recorded: this user may not record the whole machine.".to_owned()
            }
        };
        let reason = format!("{reason} Steps and scopes from marks (docs/marks.md) need no rights.");
        let remedy = Some("sudo stepscope record ...".to_owned());
        Ability::with(vec![lack(reason, remedy)])
    }

    fn faults(&self) -> Ability {
        match self.faults {
            Outcome::Works => {
                let in_kernel = "Page faults in the kernel are not recorded: this user may record user space only.";
                let lack = (self.kernel != Outcome::Works).then(|| lack(in_kernel, Some(KERNEL_RIGHTS.to_owned())));
                Ability::with(lack.into_iter().collect())
            }
            refused => {
                Ability::Missing { reason: format!("The page-fault events do not work ({refused})."), remedy: None }
            }
        }
    }

    /// Why no event works at all, if none does.
    fn nothing_works(&self) -> Option<Ability> {
        let failed = [self.follow, self.cpu_clock].into_iter().find(|outcome| *outcome != Outcome::Works)?;
        let errno = match failed {
            Outcome::Refused(errno) => errno,
            _ => 0,
        };
        let is_permission = matches!(errno, libc::EPERM | libc::EACCES);
        let (reason, remedy) = match self.paranoid {
            None => ("This kernel was built without perf events (CONFIG_PERF_EVENTS).".to_owned(), None),
            _ if errno == libc::ENOSYS => ("The kernel has no system call perf_event_open.".to_owned(), None),
            Some(level @ 3..) if is_permission => (
                format!("Only root may use perf events on this system (kernel.perf_event_paranoid is {level})."),
                Some(KERNEL_RIGHTS.to_owned()),
            ),
            _ if is_permission && (self.seccomp_filter || self.container.is_some()) => (
                format!(
                    "The container{} forbids perf_event_open. Start it with the rights to use it.",
                    self.container.as_ref().map(|name| format!(" ({name})")).unwrap_or_default()
                ),
                Some(
                    "docker run --security-opt seccomp=unconfined --cap-add PERFMON --cap-add SYS_PTRACE ..."
                        .to_owned(),
                ),
            ),
            _ => (format!("perf_event_open does not work ({failed})."), None),
        };
        Some(Ability::Missing { reason, remedy })
    }

    fn kernel_lacks(&self) -> Vec<Lack> {
        if self.kernel != Outcome::Works {
            let what =
                "Kernel stacks and CPU time in the kernel are not recorded: this user may record user space only.";
            return vec![lack(what, Some(KERNEL_RIGHTS.to_owned()))];
        }
        let remedy = match (self.kernel_names, self.kptr_restrict) {
            (KernelNames::Readable, _) => return Vec::new(),
            // 2 hides addresses even from root, 1 shows them to CAP_SYSLOG, and 0 to every user who may profile.
            (_, Some(2..)) => "sudo sysctl kernel.kptr_restrict=0".to_owned(),
            _ if self.paranoid.is_some_and(|level| level > 1) => self.setcap(),
            _ => "sudo sysctl kernel.kptr_restrict=0".to_owned(),
        };
        vec![lack("Kernel functions have no names: the kernel hides their addresses from this user.", Some(remedy))]
    }

    fn sharing(&self, machine: &Machine) -> Ability {
        if self.memory_sampling && self.pmu == Pmu::Counts {
            return Ability::with(self.kernel_lacks());
        }
        if !SAMPLES_ADDRESSES || self.cpu_clock != Outcome::Works {
            return self.no_counters(machine, None);
        }
        let what = format!("Costs are not recorded: the CPU samples no memory accesses here. {ADDRESSES_OF_CODE}");
        let remedy = match self.pmu {
            Pmu::Refused(_) => Some(KERNEL_RIGHTS.to_owned()),
            _ => None,
        };
        Ability::with(vec![lack(what, remedy)])
    }

    /// Stacks that are deeper than their copy are continued by reading the program's memory.
    fn memory_lack(&self) -> Option<Lack> {
        if self.read_memory != Outcome::Works {
            let what = "Very deep stacks are truncated: this user may not read the memory of a launched program.";
            return Some(lack(what, None));
        }
        let restricted = self.ptrace_scope.is_some_and(|scope| scope > 0) && !self.capabilities.has("cap_sys_ptrace");
        restricted.then(|| {
            let what = "Very deep stacks are truncated when attaching to a running process (not when launching one): \
                        this user may not read its memory.";
            lack(what, Some("sudo sysctl kernel.yama.ptrace_scope=0".to_owned()))
        })
    }

    fn no_counters(&self, machine: &Machine, instead: Option<&str>) -> Ability {
        let reason = match self.pmu {
            Pmu::Refused(_) => "This user may not use hardware counters.".to_owned(),
            Pmu::Stuck => {
                "The hardware counters do not count: the virtual machine passes them through only partly.".to_owned()
            }
            _ if machine.virtualization.is_some() => {
                "This virtual machine has no hardware counters (PMU); its host would have to provide them.".to_owned()
            }
            _ => "This machine has no hardware counters (PMU).".to_owned(),
        };
        let remedy = if let Pmu::Refused(_) = self.pmu { Some(KERNEL_RIGHTS) } else { instead };
        Ability::Missing { reason, remedy: remedy.map(str::to_owned) }
    }

    /// The command that allows recording the whole machine, to this program alone.
    fn setcap(&self) -> String {
        let program = if self.executable.is_empty() { "stepscope" } else { &self.executable };
        format!("sudo setcap cap_perfmon,cap_ipc_lock,cap_dac_read_search,cap_syslog,cap_sys_ptrace+ep {program}")
    }
}

fn lack(what: impl Into<String>, remedy: Option<String>) -> Lack {
    Lack { what: what.into(), remedy }
}
