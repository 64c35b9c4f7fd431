//! Events of the kernel's scheduler, as LTTng's modules write them.

use stepscope_ctf::{Event, FieldPlace, Schema, Value};

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

/// The places of the fields that the most frequent events have: their names are looked up once.
#[derive(Debug)]
pub(super) struct Places {
    cpu: Option<FieldPlace>,
    /// The thread that is woken.
    woken: Thread,
    before: Thread,
    state: Option<FieldPlace>,
    next: Thread,
    /// The thread that made the event, and its process.
    tid: Option<FieldPlace>,
    pid: Option<FieldPlace>,
}

#[derive(Debug)]
struct Thread {
    tid: Option<FieldPlace>,
    name: Option<FieldPlace>,
}

impl Places {
    /// Those of a class of events.
    pub fn of(schema: &Schema, class: usize) -> Self {
        let thread = |tid, name| Thread { tid: schema.field(class, tid), name: schema.field(class, name) };
        Self {
            cpu: schema.context_field(class, "cpu_id"),
            woken: thread("tid", "comm"),
            before: thread("prev_tid", "prev_comm"),
            state: schema.field(class, "prev_state"),
            next: thread("next_tid", "next_comm"),
            tid: schema.context_field(class, "tid"),
            pid: schema.context_field(class, "pid"),
        }
    }
}

impl Thread {
    #[inline]
    fn of<'a>(&self, event: &Event<'a>) -> Option<Named<'a>> {
        let name = self.name.and_then(|name| match event.value(name)? {
            Value::Text(name) => Some(name),
            _ => None,
        });
        Some(Named { tid: number(event, self.tid)?, name })
    }
}

#[inline]
fn number(event: &Event<'_>, place: Option<FieldPlace>) -> Option<u32> {
    u32::try_from(event.number(place?)?).ok()
}

/// Gives an event of the kernel to the trace.
pub(super) fn take(kind: Kind, places: &Places, event: &Event<'_>, time_ns: u64, trace: &mut Trace) {
    let cpu = number(event, places.cpu);
    match kind {
        Kind::Switch => switch(places, event, cpu, time_ns, trace),
        Kind::WakeUp => {
            let Some(woken) = places.woken.of(event) else { return };
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

fn switch(places: &Places, event: &Event<'_>, cpu: Option<u32>, time_ns: u64, trace: &mut Trace) {
    let (Some(before), Some(next)) = (places.before.of(event), places.next.of(event)) else { return };
    let state = places.state.and_then(|state| event.value(state)?.as_i64()).unwrap_or(0);
    trace.switch(Switch { time_ns, cpu, before, preempted: can_run(state), next });
    // The kernel's context may name the process of the thread that made the event.
    let context = |place| number(event, place).filter(|&id| id != 0);
    if let (Some(tid), Some(pid)) = (context(places.tid), context(places.pid)) {
        trace.describe(tid, Some(pid), b"");
    }
}
