//! Functions whose calls are replayed, up to four at a time.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use object::{Object as _, ObjectSymbol as _};
use rustc_hash::FxHashMap;
use stepscope_replay::{Calls, Function, Interpreter, Limit, Memory, Ranges, Replays};
use stepscope_symbolize::{Entry, Options, entries, own_vdso};

use super::tracee::Tracee;
use super::{BREAKPOINTS, LONGEST_GROUP, ReplaySite};
use crate::proc::{self, Backing, Mapping, ProcError};

/// Instructions of the longest call that is replayed.
const MOST_INSTRUCTIONS: u64 = 40_000_000;

/// Calls of a function that are replayed at most.
const MOST_CALLS: usize = 400;

/// Calls that could not be replayed, one after the other, after which a function is left alone.
const MOST_FAILURES: usize = 8;

/// Repeated calls of a function that are enough.
const ENOUGH: usize = 8;

/// How long calls of one function are replayed.
const LONGEST: Duration = Duration::from_secs(2);

/// The same if some have repeated others.
const LONGEST_PROMISING: Duration = Duration::from_secs(6);

/// The functions that a replay does itself, by their addresses in a process.
fn library(mappings: &[Mapping]) -> FxHashMap<u64, Function> {
    let mut found = FxHashMap::default();
    // The names are in the files themselves.
    let options =
        Options { debug_directories: Vec::new(), build_id_caches: Vec::new(), debuginfod: false, ..Options::default() };
    let mut last: Option<(&Path, Vec<(u64, Function)>)> = None;
    for mapping in mappings.iter().filter(|one| one.access.execute) {
        if mapping.backing == Backing::Special("[vdso]".to_owned()) {
            found.extend(clocks().into_iter().map(|(address, function)| (mapping.start + address, function)));
        }
        let Some(path) = mapping.backing.path() else { continue };
        if last.as_ref().is_none_or(|(of, _)| *of != path) {
            let wanted = |_: &str, symbol: &str| Function::named(symbol).is_some();
            let found_there = entries(path, &options, wanted);
            let named = |one: Entry| Some((one.offset, Function::named(&one.symbol)?));
            last = Some((path, found_there.unwrap_or_default().into_iter().filter_map(named).collect()));
        }
        let Some((_, entries)) = &last else { continue };
        let here = entries.iter().filter_map(|(offset, function)| Some((mapping.address_of(*offset)?, *function)));
        found.extend(here);
    }
    found
}

/// Functions of the vdso, by their addresses in it: the pages that they read cannot be copied.
fn clocks() -> Vec<(u64, Function)> {
    let Some(bytes) = own_vdso() else { return Vec::new() };
    let Ok(elf) = object::File::parse(&*bytes) else { return Vec::new() };
    let symbols = elf.dynamic_symbols();
    symbols.filter_map(|one| Some((one.address(), Function::named(one.name().ok()?)?))).collect()
}

/// Where the functions of the mathematics library are.
fn mathematics(mappings: &[Mapping]) -> Vec<Range<u64>> {
    let is_one = |one: &&Mapping| {
        let name = one.backing.path().and_then(|path| path.file_name()?.to_str()).unwrap_or_default();
        one.access.execute && (name.starts_with("libm.so") || name.starts_with("libm-"))
    };
    mappings.iter().filter(is_one).map(|one| one.start..one.end).collect()
}

/// What a process can write.
fn writable(pid: u32) -> io::Result<Ranges> {
    let mappings = proc::maps(pid).map_err(other)?;
    Ok(Ranges::of(mappings.iter().filter(|one| one.access.write).map(|one| one.start..one.end)))
}

pub(super) fn replay_calls(pid: u32, sites: &[ReplaySite], stop: &AtomicBool) -> io::Result<Vec<Replays>> {
    let mappings = proc::maps(pid).map_err(other)?;
    let place = |site: &ReplaySite| {
        let of_module = |one: &&Mapping| one.access.execute && one.backing.path() == Some(&site.module);
        let found = mappings.iter().filter(of_module).find_map(|one| {
            let address = |offset: u64| one.start + offset.saturating_sub(one.offset);
            let inlined = site.inlined.iter().map(|range| address(range.start)..address(range.end)).collect();
            Some(Place { entry: one.address_of(site.offset)?, inlined })
        });
        found.unwrap_or_default()
    };
    let mut interpreter = Interpreter::new(library(&mappings))?.with_mathematics(mathematics(&mappings));
    let mut found = Vec::new();
    for group in sites.chunks(BREAKPOINTS) {
        let places: Vec<Place> = group.iter().map(place).collect();
        match replay_group(pid, places, &mut interpreter, stop) {
            Ok(replayed) => found.extend(replayed),
            Err(error) if found.is_empty() => return Err(error),
            // The process has ended: what was found before stays.
            Err(_) => break,
        }
    }
    Ok(found)
}

/// Where a function is in the process.
#[derive(Default)]
struct Place {
    /// Address of its first instruction; 0 if it is not there.
    entry: u64,
    /// Addresses of its code if it is inlined.
    inlined: Vec<Range<u64>>,
}

/// A place and its calls.
struct Watch {
    place: Place,
    calls: Calls,
    /// Time of replays.
    spent: Duration,
    /// Calls in a row that could not be replayed.
    failures: usize,
    is_open: bool,
}

impl Watch {
    fn new(place: Place) -> Self {
        let (calls, is_open) = (Calls::new(!place.inlined.is_empty()), place.entry != 0);
        Self { place, calls, spent: Duration::ZERO, failures: 0, is_open }
    }

    /// Whether calls repeat others, but not enough are known to.
    fn is_promising(&self) -> bool {
        self.is_open && (1..ENOUGH).contains(&self.calls.replays().repeated)
    }

    /// Whether enough is known, or no more will be.
    fn is_done(&self) -> bool {
        let long = if self.is_promising() { LONGEST_PROMISING } else { LONGEST };
        self.calls.replays().followed >= MOST_CALLS || self.failures >= MOST_FAILURES || self.spent >= long
    }
}

/// Replays calls at up to four places.
fn replay_group(
    pid: u32,
    places: Vec<Place>,
    interpreter: &mut Interpreter,
    stop: &AtomicBool,
) -> io::Result<Vec<Replays>> {
    /// How long one wait for a call lasts.
    const WAIT: Duration = Duration::from_millis(50);
    let addresses: Vec<u64> = places.iter().map(|place| place.entry).collect();
    let mut watches: Vec<Watch> = places.into_iter().map(Watch::new).collect();
    let mut tracee = Tracee::seize(pid, &addresses)?;
    let mut ranges = writable(pid)?;
    let begin = Instant::now();
    while watches.iter().any(|watch| watch.is_open) && !stop.load(Ordering::Relaxed) && !tracee.has_ended() {
        let longest = if watches.iter().any(Watch::is_promising) { LONGEST_GROUP } else { LONGEST_GROUP / 2 };
        if begin.elapsed() > longest {
            break;
        }
        let Some(hit) = tracee.next(WAIT) else { continue };
        let watch = &mut watches[hit.breakpoint];
        // A thread that has ended meanwhile has none.
        let Ok(general) = tracee.general(hit.tid) else { continue };
        if !watch.calls.wants(&general, &ranges) {
            continue;
        }
        let since = Instant::now();
        let Ok(now) = writable(pid) else { break };
        ranges = now;
        let Ok(mut registers) = tracee.registers(hit.tid) else { continue };
        let mut memory = Memory::new(&tracee, &ranges, registers.stack());
        let until = since + LONGEST_PROMISING;
        let limit = Limit { instructions: MOST_INSTRUCTIONS, until, inlined: &watch.place.inlined };
        match interpreter.run(&mut registers, &mut memory, &limit) {
            Ok(done) => {
                watch.failures = 0;
                let trial = watch.calls.add(done, memory);
                if let Some(trial) = trial {
                    let limit = Limit { instructions: trial.most_instructions(), ..limit };
                    for change in trial.changes() {
                        let Ok(mut registers) = tracee.registers(hit.tid) else { break };
                        let mut memory = Memory::new(&tracee, &ranges, registers.stack()).with(change);
                        let run = interpreter.run(&mut registers, &mut memory, &limit);
                        // A call that goes astray does so because of the change.
                        watch.calls.tried(run.map_or(true, |done| trial.differs(&done, memory)));
                    }
                }
            }
            Err(reason) => {
                watch.failures += 1;
                watch.calls.failed(&reason);
            }
        }
        watch.spent += since.elapsed();
        if watch.is_done() {
            watch.is_open = false;
            tracee.remove(hit.breakpoint);
        }
    }
    Ok(watches.into_iter().map(|watch| watch.calls.finish()).collect())
}

fn other(error: ProcError) -> io::Error {
    io::Error::other(error.to_string())
}
