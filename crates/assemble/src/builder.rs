//! From entries to a capture: names for addresses, stacks with inlined frames.
//!
//! The normal end of a recording and `recover` use the same code: read the log, name the code, build the capture. Importers
//! give their entries to a [`Builder`] directly.

mod growing;

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::path::Path;

use stepscope_model::command_line::quoted;
use stepscope_model::disk::DiskError;
use stepscope_model::{Capture, Counter, EventCount, Origin, Process, ProcessId, Thread, ThreadName};

use crate::clocks;
use crate::code_names::{Asked, CodeNames};
use crate::data_accesses::DataAccesses;
use crate::entry::{self, Entry, EventRef, Sink, ThreadRef};
use crate::kernel_account::{ExitUsage, KernelAccount, Readings};
use crate::machine_reading::MachineReading;
use crate::marks::MarkTables;
use crate::raw_log::{self, Ending, Kind, ReadError};
use crate::rows::RowSink;
use crate::running_time::RunningTimes;
use crate::sample_weights::SampleWeights;
use crate::switch_cost::{Rooms, Waited};
use crate::symbols::Symbols;

pub use growing::{Growing, Rows};

/// Further notes about modules are only counted.
const MAX_PROBLEM_NOTES: usize = 12;

/// The largest resident memory of a process, as the recorder names it.
const PEAK_RSS: &str = "peak_rss_bytes";

/// Reads a raw log and builds its capture, in memory.
///
/// A log that ends early gives a capture whose origin is [`Origin::Recovered`].
///
/// # Errors
/// [`ReadError`]
pub fn finish(log: impl Read, symbols: &mut impl Symbols) -> Result<Capture, ReadError> {
    let mut builder = Builder::default();
    let ending = raw_log::read(log, &mut builder)?;
    builder.note_damage(ending);
    let mut capture = builder.build(symbols);
    capture.info.build = symbols.build_of(&capture);
    Ok(capture)
}

/// Reads a raw log and builds its capture, whose long tables are written to `folder` and not kept in memory.
///
/// The log is read twice, because the names of functions decide about stacks, and samples and waits refer to these.
/// [`disk::write`](stepscope_model::disk::write) to the same folder completes the capture.
///
/// # Errors
/// [`ReadError`]
pub fn finish_in(folder: &Path, mut log: impl Read + Seek, symbols: &mut impl Symbols) -> Result<Capture, ReadError> {
    let mut builder = Builder { rows_come_later: true, ..Builder::default() };
    let ending = raw_log::read(&mut log, &mut builder)?;
    builder.note_damage(ending);
    // A recorder may still write to the log.
    let length = log.stream_position()?;
    log.rewind()?;
    let mut named = builder.with_names(symbols);
    named.rows.write_to(folder)?;
    raw_log::read(log.take(length), &mut named.rows)?;
    let mut capture = named.build()?;
    capture.info.build = symbols.build_of(&capture);
    Ok(capture)
}

/// Collects entries and makes a capture of them.
#[derive(Default)]
pub struct Builder {
    capture: Capture,
    code: CodeNames,
    /// Samples and waits as the log has them; their stacks become handles when stacks are built.
    samples: Vec<entry::Sample>,
    waits: Vec<entry::Wait>,
    /// Starts of steps, scopes and readings, which are added when all threads are known.
    others: Vec<Entry>,
    /// Whether rows of the long tables are read again when all else is known, and need not be kept.
    rows_come_later: bool,
    sample_count: u64,
    marks: MarkTables,
    data_accesses: DataAccesses,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    /// The whole machine at the start and the end of the window.
    machine: Option<(MachineReading, MachineReading)>,
    exit_usage: Option<ExitUsage>,
    peak_rss_bytes: Option<i64>,
    readings: Readings,
    rooms: Rooms,
    has_lost_waits: bool,
    running: RunningTimes,
    started: bool,
    ended: bool,
    /// Entries that refer to missing entries. Only damaged or hostile logs have any.
    malformed: u64,
}

impl Sink for Builder {
    fn take(&mut self, entry: Entry) {
        if self.accept(entry).is_none() {
            self.malformed += 1;
        }
    }
}

impl Builder {
    /// Adds an entry. `None` if it refers to a missing entry.
    fn accept(&mut self, entry: Entry) -> Option<()> {
        let capture = &mut self.capture;
        match entry {
            // Later entries refer to the events of the first.
            Entry::Start(_) if self.started => return None,
            Entry::Start(info) => (capture.info, self.started) = (*info, true),
            Entry::WindowStart { time_ns } => capture.info.start_ns = Some(time_ns),
            Entry::Program { command, working_directory, environment } => {
                let info = &mut capture.info;
                (info.command, info.working_directory, info.environment) = (command, working_directory, environment);
            }
            Entry::Event(event) => {
                if event.unit == "ns" {
                    self.running.event.get_or_insert(EventRef(capture.info.events.len() as u32));
                }
                capture.add_event(event);
            }
            Entry::Process { pid, parent_pid, start_ns } => {
                capture.add_process(Process { pid, parent_pid, start_ns, ..Process::default() });
            }
            Entry::Image { process, executable, command_line } => {
                let process = capture.processes.get_mut(process.0 as usize)?;
                process.executable = executable;
                process.command_line = quoted(&command_line);
            }
            Entry::WorkingDirectory { process, path } => {
                capture.processes.get_mut(process.0 as usize)?.working_directory = Some(path);
            }
            Entry::ProcessEnd { process, time_ns } => {
                capture.processes.get_mut(process.0 as usize)?.end_ns = Some(time_ns);
                self.last_ns = self.last_ns.max(Some(time_ns));
            }
            Entry::ExitStatus { pid, status } => {
                capture.processes.iter_mut().rev().find(|process| process.pid == pid)?.exit_status = Some(status);
            }
            Entry::ExitUsage { pid, cpu_ns, peak_rss_bytes } => {
                self.exit_usage = Some(ExitUsage { pid, cpu_ns });
                self.add_peak_rss(pid, peak_rss_bytes);
            }
            Entry::Thread { tid, process, start_ns, name } => {
                let process = ((process.0 as usize) < capture.processes.len()).then_some(ProcessId(process.0))?;
                capture.add_thread(Thread { tid, process: Some(process), name, start_ns, ..Thread::default() });
                self.running.add_thread(start_ns);
            }
            Entry::ThreadName { thread, time_ns, name } => {
                rename(capture.threads.get_mut(thread.0 as usize)?, time_ns, name);
            }
            Entry::ThreadEnd { thread, time_ns, cpu_ns, runnable_ns } => {
                self.running.end_thread(thread, time_ns);
                let thread = capture.threads.get_mut(thread.0 as usize)?;
                (thread.end_ns, thread.cpu_ns, thread.runnable_ns) = (time_ns, cpu_ns, runnable_ns);
                self.last_ns = self.last_ns.max(time_ns);
            }
            Entry::Module(module) => self.code.add_module(module),
            Entry::Frame { module, offset } => self.code.add_frame(module, offset)?,
            Entry::Stack { parent, frame } => self.code.add_stack(parent, frame)?,
            Entry::Sample(sample) => {
                let fits = (sample.thread.0 as usize) < self.capture.threads.len()
                    && (sample.event.0 as usize) < self.capture.info.events.len()
                    && self.code.has_stack(sample.stack);
                fits.then_some(())?;
                self.last_ns = self.last_ns.max(sample.time_ns);
                self.note_first(sample.time_ns);
                self.sample_count += 1;
                self.running.add_sample(&sample);
                if !self.rows_come_later {
                    self.samples.push(sample);
                }
            }
            Entry::Wait(wait) => {
                let has_thread = |thread: ThreadRef| (thread.0 as usize) < self.capture.threads.len();
                let fits = has_thread(wait.thread)
                    && wait.waker.is_none_or(has_thread)
                    && self.code.has_stack(wait.stack)
                    && self.code.has_stack(wait.waker_stack);
                fits.then_some(())?;
                self.last_ns = self.last_ns.max(Some(wait.end_ns));
                self.rooms.add(Waited::new(wait.start_ns..wait.end_ns, wait.runnable_ns, wait.count));
                self.note_first(Some(wait.start_ns));
                self.running.add_wait(&wait);
                if !self.rows_come_later {
                    self.waits.push(wait);
                }
            }
            Entry::StepStart { time_ns, thread, .. } => {
                ((thread.0 as usize) < capture.threads.len()).then_some(())?;
                self.last_ns = self.last_ns.max(Some(time_ns));
                self.keep(entry);
            }
            Entry::StepMark { thread, time_ns, .. } => {
                self.marks.has_thread(thread).then_some(())?;
                self.last_ns = self.last_ns.max(Some(time_ns));
                self.keep(entry);
            }
            Entry::SystemCalls(ref calls) => {
                let fits = (calls.thread.0 as usize) < capture.threads.len() && self.code.has_stack(calls.stack);
                fits.then_some(())?;
                self.last_ns = self.last_ns.max(Some(calls.end_ns));
                self.keep(entry);
            }
            Entry::DataAccess(access) => {
                let thread = capture.threads.get(access.thread.0 as usize)?;
                let has_module = access.object.is_none_or(|(module, _)| self.code.module(module).is_some());
                (self.code.has_stack(access.stack) && has_module).then_some(())?;
                self.data_accesses.add(&access, thread.process.map(|process| process.0));
            }
            Entry::Counter { time_ns, process, thread, ref name, value } => {
                let known = |thread: ThreadRef| (thread.0 as usize) < capture.threads.len();
                let fits = (process.0 as usize) < capture.processes.len() && thread.is_none_or(known);
                fits.then_some(())?;
                self.readings.add(time_ns, thread, name, value);
                if name == PEAK_RSS {
                    self.peak_rss_bytes = Some(value);
                }
                self.last_ns = self.last_ns.max(Some(time_ns));
                self.keep(entry);
            }
            Entry::Allocations(ref allocations) => {
                let fits = (allocations.process.0 as usize) < capture.processes.len()
                    && allocations.thread.is_none_or(|thread| (thread.0 as usize) < capture.threads.len())
                    && self.code.has_stack(allocations.stack)
                    && allocations.start_ns <= allocations.end_ns;
                fits.then_some(())?;
                self.last_ns = self.last_ns.max(Some(allocations.end_ns));
                self.keep(entry);
            }
            Entry::AllocationBurst(burst) => {
                let fits = (burst.process.0 as usize) < capture.processes.len()
                    && burst.thread.is_none_or(|thread| (thread.0 as usize) < capture.threads.len())
                    && self.code.has_stack(burst.stack)
                    && burst.start_ns <= burst.end_ns;
                fits.then_some(())?;
                self.last_ns = self.last_ns.max(Some(burst.end_ns));
                self.keep(entry);
            }
            Entry::MarkName { .. }
            | Entry::MarkThread { .. }
            | Entry::Scope { .. }
            | Entry::FrameMark { .. }
            | Entry::MarkedCounter { .. }
            | Entry::FlowMark { .. }
            | Entry::MarksLost { .. } => {
                self.marks.accept(&entry)?;
                self.last_ns = self.last_ns.max(self.marks.last_ns());
                if !matches!(entry, Entry::MarkName { .. } | Entry::MarkThread { .. } | Entry::MarksLost { .. }) {
                    self.keep(entry);
                }
            }
            Entry::ClockPeer(peer) => clocks::add_peer(capture.info.clocks.get_or_insert_default(), *peer),
            Entry::Losses(losses) => capture.info.losses = *losses,
            Entry::RecordingEnd(end) => {
                self.ended = true;
                let info = &mut capture.info;
                info.end_ns = end.end_ns.or(info.end_ns);
                info.recording_cost = end.cost;
                self.machine = end.machine;
                info.notes.extend(end.notes);
                info.found_step = end.found_step;
                if let Some(wall) = end.wall {
                    info.clocks.get_or_insert_default().wall.push(wall);
                }
                info.dimensions.extend(end.dimensions);
                let window = (info.start_ns, info.end_ns.filter(|end| Some(*end) >= info.start_ns));
                for counted in end.counted {
                    let row = event_count(counted, window, capture);
                    capture.event_counts.push(row);
                }
            }
        }
        Some(())
    }

    /// Adds the largest resident memory at the end of the only process. Of several, the kernel does not say whose it was.
    fn add_peak_rss(&mut self, pid: u32, peak_rss_bytes: Option<u64>) {
        let capture = &mut self.capture;
        let [process] = &capture.processes[..] else { return };
        let Some(bytes) = peak_rss_bytes.and_then(|bytes| i64::try_from(bytes).ok()).filter(|_| process.pid == pid)
        else {
            return;
        };
        let Some(time_ns) = process.end_ns.or(self.last_ns) else { return };
        if self.peak_rss_bytes.is_none_or(|before| before < bytes) {
            let (process, name) = (Some(ProcessId(0)), capture.intern_text(PEAK_RSS));
            capture.counters.push(Counter { time_ns, process, thread: None, name, value: bytes });
        }
    }

    fn note_first(&mut self, time_ns: Option<u64>) {
        self.first_ns = self.first_ns.into_iter().chain(time_ns).min();
    }

    fn keep(&mut self, entry: Entry) {
        if !self.rows_come_later {
            self.others.push(entry);
        }
    }

    /// The description of the recording. Importers complete it.
    pub fn info_mut(&mut self) -> &mut stepscope_model::CaptureInfo {
        &mut self.capture.info
    }

    /// Processes and threads so far.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    fn note_damage(&mut self, ending: Ending) {
        if let Ending::Damaged(damage) = ending {
            self.capture.info.notes.push(damage.to_string());
            self.has_lost_waits = damage.lost[Kind::Wait] > 0;
            let info = &mut self.capture.info;
            // If the start of the log is lost, the recording starts with its first sample or wait.
            info.start_ns = info.start_ns.or(self.first_ns);
            info.losses.lost_samples = (damage.places > 0).then_some(damage.lost[Kind::Sample]);
        }
    }

    /// Names the code, and builds the capture.
    pub fn build(mut self, symbols: &mut impl Symbols) -> Capture {
        let (samples, waits) = (std::mem::take(&mut self.samples), std::mem::take(&mut self.waits));
        let others = std::mem::take(&mut self.others);
        let mut named = self.with_names(symbols);
        samples.iter().for_each(|sample| named.rows.add_sample(sample));
        drop(samples);
        waits.iter().for_each(|wait| named.rows.add_wait(wait));
        drop(waits);
        others.into_iter().for_each(|entry| named.rows.take(entry));
        named.build().expect("rows in memory are not written")
    }

    /// Completes all tables but the long ones.
    fn with_names(mut self, symbols: &mut impl Symbols) -> Named {
        self.end_early();
        self.code.name(&mut self.capture, Asked::Everything, symbols);
        let losses = &mut self.capture.info.losses;
        if let Some([private, dropped]) = self.data_accesses.keep_shared() {
            (losses.private_accesses, losses.dropped_accesses) = (Some(private), Some(dropped));
        }
        let objects = self.code.name_objects(self.data_accesses.objects(), symbols);
        let (nodes, problems) = self.code.finish();
        let node = |stack: Option<entry::StackRef>| stack.and_then(|stack| nodes[stack.0 as usize]);
        self.data_accesses.add_rows(&mut self.capture, node, |place| objects.get(&place).cloned());
        note_problems(&mut self.capture, problems);
        let mut capture = self.capture;
        let marks = self.marks.resolve(&mut capture);
        let malformed = &mut capture.info.losses.malformed_records;
        *malformed = malformed.saturating_add(self.malformed);
        let switch_cost_ns = self.exit_usage.and_then(|exit| self.rooms.cost_in_ns(&capture, exit)).unwrap_or(0);
        // The cost is that of all waits, so it is unknown if some are lost.
        let switch_cost_ns = if self.has_lost_waits { 0 } else { switch_cost_ns };
        // Without some waits, running time is not exact.
        let running = if self.has_lost_waits { RunningTimes::default() } else { self.running };
        let weights = SampleWeights::of(&capture, running, switch_cost_ns);
        let account = KernelAccount::of(&capture, &self.readings);
        let rows = RowSink::new(capture, nodes, account, weights);
        Named {
            rows: rows.with_marks(marks).with_switch_cost(switch_cost_ns),
            machine: self.machine,
            exit_usage: self.exit_usage,
            has_lost_waits: self.has_lost_waits,
        }
    }

    /// Ends the threads of a recorder that was killed.
    fn end_early(&mut self) {
        if self.ended || self.capture.info.origin != Origin::Recorded {
            return;
        }
        let info = &mut self.capture.info;
        info.origin = Origin::Recovered;
        info.end_ns = info.end_ns.or(self.last_ns);
        info.notes.push(
            "The recorder was stopped before it could finish: the last moments are missing, and exact thread times of \
             threads that still ran are unknown."
                .to_owned(),
        );
        info.losses.samples = info.losses.samples.max(self.sample_count);
        let end_ns = info.end_ns;
        for thread in self.capture.threads.iter_mut().filter(|thread| thread.end_ns.is_none()) {
            thread.end_ns = end_ns;
        }
    }
}

/// A capture without its long tables, and what is needed once their rows are added.
struct Named {
    rows: RowSink,
    machine: Option<(MachineReading, MachineReading)>,
    exit_usage: Option<ExitUsage>,
    has_lost_waits: bool,
}

impl Named {
    /// Completes the capture.
    fn build(self) -> Result<Capture, DiskError> {
        let (mut capture, account, coverage) = self.rows.finish()?;
        let stolen_ns = self.machine.as_ref().and_then(|(start, end)| end.stolen_ns?.checked_sub(start.stolen_ns?));
        match self.has_lost_waits {
            true => account.count_lost_waits(&mut capture),
            false => account.reconcile(&mut capture, self.exit_usage, stolen_ns.unwrap_or(0)),
        }
        coverage.note(&mut capture);
        if let Some((start, end)) = &self.machine {
            let losses = &capture.info.losses;
            let recorded_ns = losses.cpu_time_ns.or(losses.sampled_ns);
            capture.info.conditions = Some(start.conditions_until(Some(end), recorded_ns));
        }
        Ok(capture)
    }
}

/// The row of what was counted in a window of time.
fn event_count(
    counted: entry::CountedEvent,
    (start_ns, end_ns): (Option<u64>, Option<u64>),
    capture: &mut Capture,
) -> EventCount {
    EventCount {
        start_ns,
        end_ns,
        thread: None,
        place: None,
        event: capture.intern_text(&counted.event),
        unit: capture.intern_text(&counted.unit),
        count: counted.count,
        enabled_ns: Some(counted.enabled_ns),
        running_ns: Some(counted.running_ns),
    }
}

/// Notes why code lacks names.
fn note_problems(capture: &mut Capture, problems: BTreeSet<String>) {
    let count = problems.len();
    let notes = &mut capture.info.notes;
    notes.extend(problems.into_iter().take(MAX_PROBLEM_NOTES));
    if count > MAX_PROBLEM_NOTES {
        notes.push(format!("{} more modules lack names for similar reasons.", count - MAX_PROBLEM_NOTES));
    }
}

/// A thread took a name; the one it had becomes one of its earlier names.
fn rename(thread: &mut Thread, time_ns: u64, name: String) {
    let old = std::mem::replace(&mut thread.name, name.clone());
    // Neither a name from before the recording nor a synthetic name is a change.
    if time_ns == 0 {
        return;
    }
    if thread.names.is_empty() {
        thread.names.push(ThreadName { time_ns: thread.start_ns.unwrap_or(0), name: old });
    }
    thread.names.push(ThreadName { time_ns, name });
}
