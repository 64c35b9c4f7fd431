//! The heap of recorded programs: a library of ours is preloaded, and its tables are read.
//!
//! Each process has a table in shared memory (crate `stepscope-heap`), which outlives it. Tables are read ten times a second
//! at first, and later once a second; the differences go to the log, so that a killed recorder loses next to nothing. A table
//! is read *before* the kernel's records of the same time are taken: then all code that its addresses lie in is known.

mod bursts;
mod preload;
mod table;

use std::fs;
use std::time::{Duration, Instant};

use stepscope_assemble::{Assembler, Entry, Sink, Target};
use stepscope_model::DimensionStatus;

use preload::FOLDER;
pub use preload::Preload;
use table::Table;

use crate::clock;
use crate::marks::Ticks;

/// The shortest and the longest time between two readings of tables.
const SNAPSHOT_EVERY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// A reading comes after this part of the time recorded so far: short recordings have many intervals, long ones few more.
const SNAPSHOT_PART: u32 = 50;
/// Rounds after which the kernel's records of a reading's time were taken: a round takes those up to the round before.
const SETTLED_ROUNDS: u32 = 3;
/// How often sums are read, for the curve over time.
const SUMS_EVERY: Duration = Duration::from_millis(20);

/// The time to the next reading, by the time recorded so far.
fn interval(recorded: Duration) -> Duration {
    let [shortest, longest] = SNAPSHOT_EVERY;
    (recorded / SNAPSHOT_PART).clamp(shortest, longest)
}

/// The tables of all processes of a recording.
pub struct Heap {
    preload: Preload,
    tables: Vec<Table>,
    /// Of the times in tables.
    ticks: Ticks,
    /// When tables were first and last read.
    read: Option<[Instant; 2]>,
    /// Rounds of the recorder since then.
    rounds: u32,
    summed: Option<Instant>,
    /// Tables that cannot be read, with the first reason.
    unreadable: usize,
    problem: Option<String>,
    seen: usize,
    /// What tables of earlier logs lack.
    past: Vec<String>,
}

impl Heap {
    /// Reads the tables of programs that are launched with this library.
    pub fn new(preload: Preload) -> Self {
        Self {
            preload,
            tables: Vec::new(),
            ticks: Ticks::new(),
            read: None,
            rounds: 0,
            summed: None,
            unreadable: 0,
            problem: None,
            seen: 0,
            past: Vec::new(),
        }
    }

    /// Reads all tables, whose rows are written later.
    pub fn snapshot(&mut self) {
        self.read_by(Table::snapshot);
    }

    fn read_by(&mut self, read: fn(&mut Table)) {
        self.rounds = 0;
        let now = Instant::now();
        self.read = Some([self.read.map_or(now, |[first, _]| first), now]);
        self.find();
        self.tables.iter_mut().for_each(read);
        self.ticks.take_pair();
    }

    /// Whether it is time to read tables again, and the kernel's records of the last reading were taken.
    pub fn is_due(&self) -> bool {
        self.rounds >= SETTLED_ROUNDS && self.read.is_none_or(|[first, last]| last.elapsed() >= interval(last - first))
    }

    /// Reads the tables that do not rest.
    pub fn look(&mut self) {
        self.read_by(Table::look);
    }

    /// Writes the rows of the last snapshot. The kernel's records of its time must have been taken.
    pub fn write<W: Target>(&mut self, assembler: &mut Assembler<W>, sink: &mut impl Sink) {
        let every = self.read.map_or(SNAPSHOT_EVERY[0], |[first, last]| interval(last - first));
        self.tables.iter_mut().for_each(|table| table.write(every, &self.ticks, assembler, sink));
    }

    /// Writes the last rows of a log.
    pub fn finish<W: Target>(&mut self, assembler: &mut Assembler<W>, sink: &mut impl Sink) {
        for table in &mut self.tables {
            table.write_now(&self.ticks, assembler, sink);
        }
    }

    /// Starts the next log at this time.
    pub fn begin_log(&mut self, start_ns: u64) {
        let past = &mut self.past;
        self.tables.retain_mut(|table| {
            let goes_on = table.begin_log(start_ns);
            if !goes_on {
                past.extend(table.lacks());
            }
            goes_on
        });
    }

    /// Removes the library: no program starts any more. Its functions are named by the copy that the capture keeps.
    pub fn remove_library(&self) {
        self.preload.remove_library();
    }

    /// Reads live bytes and sums of calls, several times between two snapshots: in each round of the recorder.
    pub fn sums<W: Target>(&mut self, assembler: &Assembler<W>, sink: &mut impl Sink) {
        self.rounds += 1;
        if self.summed.is_some_and(|summed| summed.elapsed() < SUMS_EVERY) {
            return;
        }
        self.summed = Some(Instant::now());
        let time_ns = clock::now_ns();
        for table in &mut self.tables {
            let Some(process) = assembler.process_ref(table.pid()) else { continue };
            for (name, value) in table.sums().into_iter().flatten() {
                sink.take(Entry::Counter { time_ns, process, thread: None, name: name.to_owned(), value });
            }
        }
    }

    /// What became of the dimension.
    pub fn status(&self) -> DimensionStatus {
        let mut lacks = Vec::new();
        if self.seen == 0 {
            return DimensionStatus::Missing {
                reason:
                    "No process of the program loaded the library that counts allocations: a static program, one of \
                         another architecture, or one that runs with more rights than its user cannot load it."
                        .to_owned(),
                remedy: None,
            };
        }
        if let (1.., Some(problem)) = (self.unreadable, &self.problem) {
            lacks.push(format!("{} heap tables could not be read ({problem}).", self.unreadable));
        }
        lacks.extend(self.past.iter().cloned().chain(self.tables.iter().flat_map(Table::lacks)));
        lacks.sort();
        lacks.dedup();
        match lacks.is_empty() {
            true => DimensionStatus::Recorded,
            false => DimensionStatus::Partial { lacks },
        }
    }

    /// Opens tables that are new.
    fn find(&mut self) {
        let Ok(files) = fs::read_dir(FOLDER) else { return };
        for file in files.flatten() {
            let name = file.file_name();
            let is_ours = name.to_str().is_some_and(|name| name.starts_with(self.preload.table_prefix()));
            let path = file.path();
            if !is_ours || self.tables.iter().any(|table| table.is_at(&path)) {
                continue;
            }
            match Table::open(path) {
                Ok(Some(table)) => {
                    self.seen += 1;
                    self.tables.push(table);
                }
                Ok(None) => {}
                Err(error) => {
                    self.unreadable += 1;
                    self.problem.get_or_insert_with(|| error.to_string());
                }
            }
        }
        self.tables.sort_by_key(|table| (table.pid(), table.start_ns()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_frequent_at_first_and_then_once_a_second() {
        let at = |recorded_ms| interval(Duration::from_millis(recorded_ms)).as_millis();
        assert_eq!([0, 5_000, 10_000, 50_000, 600_000].map(at), [100, 100, 200, 1_000, 1_000]);
    }
}
