//! Events in the order of time, and the names in them.

use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::disk::DiskError;

use super::records::{MOST_IN_MEMORY, Record, Records};
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
#[derive(Debug, Clone, PartialEq)]
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
    records: Records,
    texts: Texts,
}

/// Texts of programs, each once.
#[derive(Default)]
struct Texts {
    numbers: FxHashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Texts {
    fn number(&mut self, text: Arc<str>) -> u64 {
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        });
        number.into()
    }
}

const KINDS: [Kind; 11] = [
    Kind::Switch,
    Kind::Waking,
    Kind::Fork,
    Kind::NewTask,
    Kind::Exec,
    Kind::Exit,
    Kind::Rename,
    Kind::Marker,
    Kind::FunctionEntry,
    Kind::FunctionExit,
    Kind::Frequency,
];

/// Two numbers of 32 bits in one.
fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn unpaired(pair: u64) -> (u32, u32) {
    ((pair >> 32) as u32, pair as u32)
}

impl Ordered {
    /// Events that are too many for memory go to a file in `folder`; without one, all stay in memory.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { records: Records::new(folder, MOST_IN_MEMORY), ..Self::default() }
    }

    pub fn add(&mut self, time_ns: u64, what: What) {
        let record = record(time_ns, what, &mut self.texts);
        self.records.add(record);
    }

    /// Gives all events by time. Those of one time keep their order.
    ///
    /// # Errors
    /// If events could not be written to the folder, or read back.
    fn each(self, mut take: impl FnMut(u64, What)) -> Result<(), DiskError> {
        let texts = self.texts.texts;
        self.records.each(|record| take(record[0], what(record, &texts)))
    }

    /// Gives all events to a trace, by time.
    ///
    /// # Errors
    /// If events could not be written to the folder, or read back.
    pub fn give(self, names: &Names, ftrace: &mut Ftrace<'_>) -> Result<(), DiskError> {
        self.each(|time_ns, what| {
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
        })
    }
}

/// An event as a record: its time, what it is with flags, and its numbers.
fn record(time_ns: u64, what: What, names: &mut Texts) -> Record {
    let whose = |caller: Caller| pair(caller.pid, caller.tid);
    match what {
        What::Kernel { kind, cpu, tid, in_interrupt, numbers, texts } => {
            let kind = KINDS.iter().position(|known| *known == kind).expect("all kinds are listed") as u64;
            let numbers_there = (0..NUMBERS).map(|at| u64::from(numbers[at].is_some()) << at).sum::<u64>();
            let texts_there = (0..TEXTS).map(|at| u64::from(texts[at].is_some()) << at).sum::<u64>();
            let flags = kind << 8 | u64::from(in_interrupt) << 16 | numbers_there << 24 | texts_there << 32;
            let [a, b, c] = numbers.map(|number| number.unwrap_or(0) as u64);
            let [first, second] = texts.map(|text| text.unwrap_or(0));
            [time_ns, flags, pair(cpu, tid), a, b, c, pair(first, second)]
        }
        What::Lost { cpu } => [time_ns, 1, pair(cpu, 0), 0, 0, 0, 0],
        What::Begin { caller, name } => [time_ns, 2, whose(caller), names.number(name), 0, 0, 0],
        What::End { caller } => [time_ns, 3, whose(caller), 0, 0, 0, 0],
        What::Slice { caller, name, end_ns } => [time_ns, 4, whose(caller), names.number(name), end_ns, 0, 0],
        What::Count { caller, name, value } => [time_ns, 5, whose(caller), names.number(name), value as u64, 0, 0],
        What::Measure { pid, name, value } => {
            let whose = pair(pid.is_some().into(), pid.unwrap_or(0));
            [time_ns, 6, whose, names.number(name), value as u64, 0, 0]
        }
    }
}

/// The event of a record.
fn what(record: Record, names: &[Arc<str>]) -> What {
    let [_, flags, whose, a, b, c, texts] = record;
    let (high, low) = unpaired(whose);
    let caller = Caller { pid: high, tid: low };
    let name = || names[a as usize].clone();
    match flags & 0xff {
        0 => {
            let (numbers, (first, second)) = ([a, b, c], unpaired(texts));
            let is_there = |first_bit: u32, at: usize| flags >> (first_bit as usize + at) & 1 == 1;
            What::Kernel {
                kind: KINDS[(flags >> 8 & 0xff) as usize],
                cpu: high,
                tid: low,
                in_interrupt: flags >> 16 & 1 == 1,
                numbers: std::array::from_fn(|at| is_there(24, at).then_some(numbers[at] as i64)),
                texts: std::array::from_fn(|at| is_there(32, at).then_some([first, second][at])),
            }
        }
        1 => What::Lost { cpu: high },
        2 => What::Begin { caller, name: name() },
        3 => What::End { caller },
        4 => What::Slice { caller, name: name(), end_ns: b },
        5 => What::Count { caller, name: name(), value: b as i64 },
        _ => What::Measure { pid: (high > 0).then_some(low), name: name(), value: b as i64 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events of all kinds, whose times jump back and are often equal.
    fn events() -> Vec<(u64, What)> {
        let caller = |at: u32| Caller { pid: at, tid: at + 1 };
        let name = |at: u32| -> Arc<str> { format!("name {}", at % 5).into() };
        let event = |at: u32| match at % 8 {
            0 => What::Lost { cpu: at },
            1 => What::Begin { caller: caller(at), name: name(at) },
            2 => What::End { caller: caller(at) },
            3 => What::Slice { caller: caller(at), name: name(at), end_ns: u64::MAX - u64::from(at) },
            4 => What::Count { caller: caller(at), name: name(at), value: -i64::from(at) },
            5 => What::Measure { pid: (at % 3 != 1).then_some(at), name: name(at), value: i64::from(at) },
            _ => What::Kernel {
                kind: KINDS[at as usize % KINDS.len()],
                cpu: at,
                tid: at + 2,
                in_interrupt: at % 16 > 8,
                numbers: [Some(-1), None, (at % 3 != 1).then_some(i64::MAX)],
                texts: [(at % 3 > 1).then_some(u32::MAX), Some(at)],
            },
        };
        (0..1_000).map(|at| (u64::from(at * 7 % 50), event(at))).collect()
    }

    fn ordered(most: usize, folder: Option<PathBuf>) -> Vec<(u64, What)> {
        let mut ordered = Ordered { records: Records::new(folder, most), ..Ordered::default() };
        events().into_iter().for_each(|(time_ns, what)| ordered.add(time_ns, what));
        let mut given = Vec::new();
        ordered.each(|time_ns, what| given.push((time_ns, what))).unwrap();
        given
    }

    #[test]
    fn events_are_given_by_time_from_memory_and_from_a_file() {
        let mut wanted = events();
        wanted.sort_by_key(|event| event.0);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ordered(1, None), wanted);
        for most in [1, 7, 300, 1_000, 5_000] {
            assert_eq!(ordered(most, Some(folder.path().to_owned())), wanted, "{most} in memory");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let mut ordered = Ordered { records: Records::new(Some("/no/such/folder".into()), 2), ..Ordered::default() };
        events().into_iter().for_each(|(time_ns, what)| ordered.add(time_ns, what));
        let error = ordered.each(|_, _| ()).unwrap_err().to_string();
        assert!(error.contains("/no/such/folder"), "{error}");
    }
}
