//! Events of the kernel's scheduler, as LTTng's modules write them.

use stepscope_ctf::Event;

use super::{small, text};
use crate::import::trace::{Forked, Named, Switch, Trace, Waking, can_run};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    WakeUp,
    Fork,
    Exec,
    Exit,
    Stated,
    InterruptEntry,
    InterruptExit,
}

impl Kind {
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "sched_switch" => Kind::Switch,
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => Kind::WakeUp,
            "sched_process_fork" => Kind::Fork,
            "sched_process_exec" => Kind::Exec,
            "sched_process_exit" => Kind::Exit,
            "lttng_statedump_process_state" => Kind::Stated,
            "irq_handler_entry"
            | "softirq_entry"
            | "irq_softirq_entry"
            | "hrtimer_expire_entry"
            | "timer_hrtimer_expire_entry" => Kind::InterruptEntry,
            "irq_handler_exit"
            | "softirq_exit"
            | "irq_softirq_exit"
            | "hrtimer_expire_exit"
            | "timer_hrtimer_expire_exit" => Kind::InterruptExit,
            _ => return None,
        })
    }
}

/// Gives an event of the kernel to the trace.
pub(super) fn take(kind: Kind, event: &Event<'_>, time_ns: u64, trace: &mut Trace) {
    let cpu = event.packet_context().get("cpu_id").and_then(|cpu| u32::try_from(cpu.as_u64()?).ok());
    match kind {
        Kind::Switch => switch(event, cpu, time_ns, trace),
        Kind::WakeUp => {
            let Some(tid) = small(event, "tid") else { return };
            let woken = Named { tid, name: text(event, "comm") };
            trace.wake_up(Waking { time_ns, cpu, woken, by_interrupt: false });
        }
        Kind::Fork => {
            let Some(tid) = small(event, "child_tid") else { return };
            let name = text(event, "child_comm").unwrap_or_default();
            let (parent_pid, pid) = (small(event, "parent_pid"), small(event, "child_pid"));
            if let Some(parent_tid) = small(event, "parent_tid") {
                trace.describe(parent_tid, parent_pid, text(event, "parent_comm").unwrap_or_default());
            }
            trace.fork(Forked { parent_pid, pid, tid, name }, time_ns);
        }
        Kind::Exec => {
            let Some(tid) = small(event, "tid") else { return };
            trace.exec(tid, text(event, "filename").unwrap_or_default());
        }
        Kind::Exit => {
            let Some(tid) = small(event, "tid") else { return };
            trace.exits(tid, time_ns);
        }
        Kind::Stated => {
            let Some(tid) = small(event, "tid").filter(|&tid| tid != 0) else { return };
            trace.describe(tid, small(event, "pid"), text(event, "name").unwrap_or_default());
        }
        Kind::InterruptEntry => trace.enter_interrupt(cpu),
        Kind::InterruptExit => trace.leave_interrupt(cpu),
    }
}

fn switch(event: &Event<'_>, cpu: Option<u32>, time_ns: u64, trace: &mut Trace) {
    let (Some(before), Some(next)) = (small(event, "prev_tid"), small(event, "next_tid")) else { return };
    let state = event.field("prev_state").and_then(|state| state.as_i64()).unwrap_or(0);
    trace.switch(Switch {
        time_ns,
        cpu,
        before: Named { tid: before, name: text(event, "prev_comm") },
        preempted: can_run(state),
        next: Named { tid: next, name: text(event, "next_comm") },
    });
    // The kernel's context may name the process of the thread that made the event.
    if let (Some(tid), Some(pid)) = (context(event, "tid"), context(event, "pid")) {
        trace.describe(tid, Some(pid), b"");
    }
}

fn context(event: &Event<'_>, name: &str) -> Option<u32> {
    let value = event.stream_context().get(name).or_else(|| event.event_context().get(name))?;
    u32::try_from(value.as_u64()?).ok().filter(|&id| id != 0)
}
