//! What follows from the findings.

use std::collections::BTreeMap;

use stepscope_model::{Dimension, Machine};

use super::{Ability, Findings, KernelNames, Lack, Outcome, Pmu, Tracefs};

/// What follows from the findings for each dimension.
pub fn judge(findings: &Findings, machine: &Machine) -> BTreeMap<Dimension, Ability> {
    let of = |dimension| match dimension {
        Dimension::Cpu => findings.cpu(),
        Dimension::Offcpu => findings.offcpu(),
        Dimension::Sched => findings.sched(),
        Dimension::Faults => findings.faults(),
        Dimension::Resources => Ability::Available,
        Dimension::Steps => findings.steps(),
        Dimension::Cache | Dimension::Sharing if findings.pmu != Pmu::Counts => findings.no_counters(machine),
        _ => Ability::Missing { reason: "This version of Stepscope does not record it.".to_owned(), remedy: None },
    };
    Dimension::ALL.into_iter().map(|dimension| (dimension, of(dimension))).collect()
}

impl Findings {
    fn cpu(&self) -> Ability {
        if let Some(missing) = self.nothing_works() {
            return missing;
        }
        let mut lacks = self.kernel_lacks();
        if self.machine_wide != Outcome::Works {
            let what = "Threads that live shorter than the time between samples are sampled too rarely: sampling \
                        all processors at once, which avoids it, is not permitted. Their exact CPU time is still \
                        known.";
            lacks.push(self.lack(what, Some(self.widest_rights())));
        }
        if self.ring_bytes < 1 << 20 {
            let what = format!(
                "Records may be lost in bursts, and stacks are copied less deep: only {} KiB of buffer are allowed \
                 for each processor.",
                self.ring_bytes >> 10
            );
            lacks.push(self.lack(what, Some("sudo sysctl kernel.perf_event_mlock_kb=9000".to_owned())));
        }
        lacks.extend(self.memory_lack());
        Ability::with(lacks)
    }

    fn offcpu(&self) -> Ability {
        if let Some(missing) = self.nothing_works() {
            return missing;
        }
        let mut lacks = Vec::new();
        if self.switch_stacks != Outcome::Works {
            let what = "Where threads block is missing, only for how long is known: the stacks at context switches \
                        are kernel events, which this user may not record.";
            lacks.push(self.lack(what, Some(self.kernel_rights())));
        }
        Ability::with(lacks)
    }

    fn sched(&self) -> Ability {
        if let Some(missing) = self.nothing_works() {
            return missing;
        }
        if self.waking == Outcome::Works {
            return Ability::Available;
        }
        let (why, remedy) = if self.machine_wide != Outcome::Works {
            ("they can only be seen for the whole machine, which is not permitted", self.widest_rights())
        } else if self.tracefs == Tracefs::NotMounted {
            ("tracefs is not mounted", "sudo mount -t tracefs tracefs /sys/kernel/tracing".to_owned())
        } else if self.tracefs == Tracefs::Unreadable {
            let remedy = if self.capabilities.has("cap_perfmon") {
                self.setcap()
            } else {
                "sudo mount -o remount,mode=755 /sys/kernel/tracing".to_owned()
            };
            ("tracefs, which names their tracepoint, is root's alone", remedy)
        } else {
            ("the tracepoint sched:sched_waking is refused", self.widest_rights())
        };
        let what = format!(
            "Who woke a thread, and for how long it then waited for a processor, is missing: {why}. Waits after \
             preemption, and each thread's total of waiting for a processor, are known."
        );
        Ability::with(vec![self.lack(what, Some(remedy))])
    }

    /// Steps by function. A program's own marks need no rights.
    fn steps(&self) -> Ability {
        if let Some(missing) = self.nothing_works() {
            return missing;
        }
        let reason = match (self.machine_wide, self.uprobes) {
            (_, Outcome::Works) => return Ability::Available,
            (Outcome::Works, refused) => {
                format!("Calls of the function that is a step (uprobes) cannot be seen ({refused}): root may.")
            }
            _ => "Calls of the function that is a step (uprobes) can only be seen for the whole machine, which is not \
                  permitted: root may."
                .to_owned(),
        };
        let reason = format!("{reason} Steps and scopes that the program marks itself (docs/marks.md) need no rights.");
        let remedy = Some("record as root: sudo stepscope record ...".to_owned());
        Ability::with(vec![self.lack(reason, remedy)])
    }

    fn faults(&self) -> Ability {
        if let Some(missing) = self.nothing_works() {
            return missing;
        }
        match self.faults {
            Outcome::Works => {
                let in_kernel = "Faults that the kernel meets while it works for the program are missing: this user \
                                 may record user space only.";
                let lack = (self.kernel != Outcome::Works).then(|| self.lack(in_kernel, Some(self.kernel_rights())));
                Ability::with(lack.into_iter().collect())
            }
            refused => {
                Ability::Missing { reason: format!("The page-fault events do not work ({refused})."), remedy: None }
            }
        }
    }

    /// No event works at all: whose fault it is.
    fn nothing_works(&self) -> Option<Ability> {
        let failed = [self.follow, self.cpu_clock].into_iter().find(|outcome| *outcome != Outcome::Works)?;
        let errno = match failed {
            Outcome::Refused(errno) => errno,
            _ => 0,
        };
        let is_permission = matches!(errno, libc::EPERM | libc::EACCES);
        let (reason, remedy) = match self.paranoid {
            None => ("This kernel was built without perf events (CONFIG_PERF_EVENTS).".to_owned(), None),
            _ if errno == libc::ENOSYS => ("The system call perf_event_open is not there.".to_owned(), None),
            Some(level @ 3..) if is_permission => (
                format!("This system allows perf events to root only (kernel.perf_event_paranoid is {level})."),
                Some("sudo sysctl kernel.perf_event_paranoid=1".to_owned()),
            ),
            _ if is_permission && (self.seccomp_filter || self.container.is_some()) => (
                format!(
                    "The container{} forbids perf_event_open; a container must be started with the right to it.",
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
            let what = "The kernel's part of stacks and of CPU time is missing: this user may record user space only.";
            return vec![self.lack(what, Some(self.kernel_rights()))];
        }
        let remedy = match (self.kernel_names, self.kptr_restrict) {
            (KernelNames::Readable, _) => return Vec::new(),
            // With 2 not even root sees addresses; with 1 those with CAP_SYSLOG do, with 0 whoever may profile.
            (_, Some(2..)) => "sudo sysctl kernel.kptr_restrict=0".to_owned(),
            _ if self.paranoid.is_some_and(|level| level > 1) => self.setcap(),
            _ => "sudo sysctl kernel.kptr_restrict=0".to_owned(),
        };
        vec![self.lack("Kernel functions have no names: their addresses are hidden from this user.", Some(remedy))]
    }

    /// Stacks that are deeper than what is copied are continued by reading the program's memory.
    fn memory_lack(&self) -> Option<Lack> {
        if self.read_memory != Outcome::Works {
            let what = "Very deep stacks are cut short: the memory of a launched program may not be read.";
            return Some(self.lack(what, None));
        }
        let restricted = self.ptrace_scope.is_some_and(|scope| scope > 0) && !self.capabilities.has("cap_sys_ptrace");
        restricted.then(|| {
            let what = "Very deep stacks are cut short when attaching to a running process (not when launching): its \
                        memory may not be read.";
            self.lack(what, Some("sudo sysctl kernel.yama.ptrace_scope=0".to_owned()))
        })
    }

    fn no_counters(&self, machine: &Machine) -> Ability {
        let reason = match self.pmu {
            Pmu::Refused(_) => "This user may not use hardware counters.".to_owned(),
            Pmu::Stuck => {
                "The hardware counters stand still: the virtual machine passes them through by half.".to_owned()
            }
            _ if machine.virtualization.is_some() => {
                "This virtual machine has no hardware counters (PMU): its host would have to give it some.".to_owned()
            }
            _ => "This machine has no hardware counters (PMU).".to_owned(),
        };
        let remedy = matches!(self.pmu, Pmu::Refused(_)).then(|| self.kernel_rights());
        Ability::Missing { reason, remedy }
    }

    fn lack(&self, what: impl Into<String>, remedy: Option<String>) -> Lack {
        Lack { what: what.into(), remedy }
    }

    /// What gives kernel events of one's own processes: the mildest change.
    fn kernel_rights(&self) -> String {
        "sudo sysctl kernel.perf_event_paranoid=1".to_owned()
    }

    /// What gives the whole machine: rights for this program alone, rather than for everybody.
    fn widest_rights(&self) -> String {
        self.setcap()
    }

    fn setcap(&self) -> String {
        let program = if self.executable.is_empty() { "stepscope" } else { &self.executable };
        format!("sudo setcap cap_perfmon,cap_ipc_lock,cap_dac_read_search,cap_syslog,cap_sys_ptrace+ep {program}")
    }
}
