//! Events of the kernel: one message each, or columns of switches and wake-ups (`CompactSched`).

use rustc_hash::FxHashMap;

use super::order::{Names, Ordered, What};
use super::proto::{CompactSched, FtraceEvent, FtraceEventBundle};
use crate::import::ftrace::{IN_INTERRUPT, Kind};

/// What runs on each CPU: columns have only the next thread of a switch.
#[derive(Default)]
pub struct Sched {
    running: FxHashMap<u32, (u32, Option<u32>)>,
}

/// An event that is about to be stored.
struct KernelEvent {
    kind: Kind,
    tid: u32,
    flags: u32,
    numbers: [Option<i64>; 3],
    texts: [Option<u32>; 2],
}

impl Sched {
    /// Takes the events of a CPU.
    pub fn bundle(&mut self, bundle: FtraceEventBundle, names: &mut Names, ordered: &mut Ordered) {
        // Times of a clock other than the boot clock come with a moment on both.
        let offset_ns = match bundle.ftrace_timestamp {
            0 => 0,
            ftrace_ns => bundle.boot_timestamp.saturating_sub(ftrace_ns),
        };
        let cpu = bundle.cpu;
        let first_of_columns = bundle.compact_sched.as_ref().and_then(|columns| {
            columns.switch_timestamp.first().into_iter().chain(columns.waking_timestamp.first()).min().copied()
        });
        if bundle.lost_events {
            self.running.remove(&cpu);
            let first = bundle.events.iter().map(|event| event.timestamp).chain(first_of_columns).min();
            if let Some(first) = first {
                ordered.add(first.saturating_add_signed(offset_ns), What::Lost { cpu });
            }
        }
        let mut add = |timestamp: u64, event: KernelEvent| {
            let KernelEvent { kind, tid, flags, numbers, texts } = event;
            let in_interrupt = i64::from(flags) & IN_INTERRUPT != 0;
            let what = What::Kernel { kind, cpu, tid, in_interrupt, numbers, texts };
            ordered.add(timestamp.saturating_add_signed(offset_ns), what);
        };
        for event in bundle.events {
            let timestamp = event.timestamp;
            if let Some(made) = made(event, names) {
                if made.kind == Kind::Switch {
                    let next = made.numbers[2].and_then(|tid| u32::try_from(tid).ok());
                    next.map(|next| self.running.insert(cpu, (next, made.texts[1])));
                }
                add(timestamp, made);
            }
        }
        if let Some(columns) = bundle.compact_sched {
            self.columns(cpu, columns, names, add);
        }
    }

    fn columns(&mut self, cpu: u32, columns: CompactSched, names: &mut Names, mut add: impl FnMut(u64, KernelEvent)) {
        let table: Vec<u32> = columns.intern_table.into_iter().map(|name| names.add(name)).collect();
        let name = |index: Option<&u32>| table.get(*index? as usize).copied();
        let mut timestamp = 0u64;
        for (at, (delta, &next)) in columns.switch_timestamp.iter().zip(&columns.switch_next_pid).enumerate() {
            timestamp = timestamp.saturating_add(*delta);
            let next_name = name(columns.switch_next_comm_index.get(at));
            let next_tid = u32::try_from(next).unwrap_or(0);
            let (before, before_name) = self.running.insert(cpu, (next_tid, next_name)).unwrap_or((0, None));
            let state = columns.switch_prev_state.get(at).copied();
            let numbers = [Some(before.into()), state, Some(next_tid.into())];
            add(
                timestamp,
                KernelEvent { kind: Kind::Switch, tid: before, flags: 0, numbers, texts: [before_name, next_name] },
            );
        }
        timestamp = 0;
        for (at, (delta, &tid)) in columns.waking_timestamp.iter().zip(&columns.waking_pid).enumerate() {
            timestamp = timestamp.saturating_add(*delta);
            let flags = columns.waking_common_flags.get(at).copied().unwrap_or(0);
            let texts = [name(columns.waking_comm_index.get(at)), None];
            let numbers = [Some(tid.into()), None, None];
            add(timestamp, KernelEvent { kind: Kind::Waking, tid: 0, flags, numbers, texts });
        }
    }
}

/// An event with a meaning.
fn made(event: FtraceEvent, names: &mut Names) -> Option<KernelEvent> {
    let (tid, flags) = (event.tid, event.flags);
    let mut with = |kind, numbers: [Option<i64>; 3], first: Vec<u8>, second: Option<Vec<u8>>| {
        let texts = [Some(names.add(first)), second.map(|name| names.add(name))];
        Some(KernelEvent { kind, tid, flags, numbers, texts })
    };
    if let Some(it) = event.switch {
        let numbers = [Some(it.prev_pid.into()), Some(it.prev_state), Some(it.next_pid.into())];
        return with(Kind::Switch, numbers, it.prev_comm, Some(it.next_comm));
    }
    let named = [
        (Kind::Waking, event.waking),
        (Kind::Waking, event.wakeup),
        (Kind::Waking, event.wakeup_new),
        (Kind::Exec, event.exec),
        (Kind::Exit, event.exit),
    ];
    if let Some((kind, it)) = named.into_iter().find_map(|(kind, it)| Some((kind, it?))) {
        return with(kind, [Some(it.tid.into()), None, None], it.name, None);
    }
    if let Some(it) = event.new_task {
        return with(Kind::NewTask, [Some(it.tid.into()), Some(it.clone_flags as i64), None], it.name, None);
    }
    if let Some(it) = event.fork {
        return with(Kind::Fork, [Some(it.tid.into()), None, None], it.name, None);
    }
    if let Some(it) = event.rename {
        return with(Kind::Rename, [Some(it.tid.into()), None, None], it.name, None);
    }
    if let Some(it) = event.print {
        return with(Kind::Marker, [None; 3], it.text, None);
    }
    let it = event.frequency?;
    with(Kind::Frequency, [Some(it.cpu.into()), Some(it.khz.into()), None], Vec::new(), None)
}
