//! Events in the order of time, and the names in them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::import::ftrace::{EventHead, Fields, Ftrace, Kind, NUMBERS, TEXTS};
use crate::import::trace::Caller;

/// The key of slices, which end with the innermost one.
const SLICE: u64 = u64::MAX - 2;

/// Names of threads and texts of kernel events, each once.
#[derive(Default)]
pub struct Names {
    numbers: FxHashMap<Vec<u8>, u32>,
    names: Vec<Vec<u8>>,
}

impl Names {
    pub fn add(&mut self, name: Vec<u8>) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    fn get(&self, number: Option<u32>) -> Option<&[u8]> {
        self.names.get(number? as usize).map(Vec::as_slice)
    }
}

/// What happened.
#[derive(Debug, Clone)]
pub enum What {
    Kernel {
        kind: Kind,
        cpu: u32,
        tid: u32,
        in_interrupt: bool,
        numbers: [Option<i64>; NUMBERS],
        texts: [Option<u32>; TEXTS],
    },
    /// The buffer of a CPU lost events before.
    Lost {
        cpu: u32,
    },
    Begin {
        caller: Caller,
        name: Arc<str>,
    },
    End {
        caller: Caller,
    },
    Slice {
        caller: Caller,
        name: Arc<str>,
        end_ns: u64,
    },
    Count {
        caller: Caller,
        name: Arc<str>,
        value: i64,
    },
    Measure {
        pid: Option<u32>,
        name: Arc<str>,
        value: i64,
    },
}

/// All events, until they are put in order.
#[derive(Default)]
pub struct Ordered {
    events: Vec<(u64, What)>,
}

impl Ordered {
    pub fn add(&mut self, time_ns: u64, what: What) {
        self.events.push((time_ns, what));
    }

    /// Gives all events to a trace, by time.
    pub fn give(mut self, names: &Names, ftrace: &mut Ftrace<'_>) {
        self.events.sort_by_key(|event| event.0);
        for (time_ns, what) in self.events {
            let trace = &mut ftrace.trace;
            trace.at(time_ns);
            match what {
                What::Kernel { kind, cpu, tid, in_interrupt, numbers, texts } => {
                    let head = EventHead { time_ns, cpu: Some(cpu), tid, in_interrupt };
                    let texts = texts.map(|text| names.get(text).filter(|text| !text.is_empty()));
                    ftrace.event(kind, head, &Fields { numbers, texts });
                }
                What::Lost { cpu } => trace.lose(cpu, time_ns),
                What::Begin { caller, name } => {
                    trace.saw(caller, None, time_ns);
                    trace.begin(caller, SLICE, name, time_ns);
                }
                What::End { caller } => {
                    trace.saw(caller, None, time_ns);
                    trace.end(caller, Some(SLICE), time_ns);
                }
                What::Slice { caller, name, end_ns } => {
                    trace.saw(caller, None, time_ns);
                    trace.scope(caller, name, time_ns, end_ns);
                }
                What::Count { caller, name, value } => {
                    trace.saw(caller, None, time_ns);
                    trace.count(caller, name, time_ns, value);
                }
                What::Measure { pid, name, value } => trace.measure(pid, &name, time_ns, value),
            }
        }
    }
}
