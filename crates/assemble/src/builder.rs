//! From entries to a capture: names for addresses, stacks with inlined frames.
//!
//! The normal end of a recording and `recover` use the same code: read the log, name the code, build the capture. Importers
//! give their entries to a [`Builder`] directly.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stepscope_model::disk::DiskError;
use stepscope_model::{
    Capture, Counter, Frame, FrameId, Language, ModuleId, Origin, Process, ProcessId, StackId, Thread, ThreadName,
};
use stepscope_symbolize::{Code, NamedBy, Place};

use crate::entry::{self, Entry, EventRef, FrameRef, ModuleKind, ModuleRef, Sink, StackMark, StackRef, ThreadRef};
use crate::kernel_account::{ExitUsage, KernelAccount, Readings};
use crate::machine_reading::MachineReading;
use crate::marks::MarkTables;
use crate::raw_log::{self, Ending, Kind, ReadError};
use crate::rows::RowSink;
use crate::running_time::RunningTimes;
use crate::sample_weights::SampleWeights;
use crate::switch_cost::Rooms;
use crate::symbols::Symbols;

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
    modules: Vec<entry::Module>,
    frames: Vec<(Option<ModuleRef>, u64)>,
    stacks: Vec<(Option<StackRef>, FrameRef)>,
    /// Samples and waits as the log has them; their stacks become handles when stacks are built.
    samples: Vec<entry::Sample>,
    waits: Vec<entry::Wait>,
    /// Starts of steps, scopes and readings, which are added when all threads are known.
    others: Vec<Entry>,
    /// Whether rows of the long tables are read again when all else is known, and need not be kept.
    rows_come_later: bool,
    sample_count: u64,
    marks: MarkTables,
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
            Entry::Module(module) => self.modules.push(module),
            Entry::Frame { module, offset } => {
                if module.is_some_and(|module| module.0 as usize >= self.modules.len()) {
                    return None;
                }
                self.frames.push((module, offset));
            }
            Entry::Stack { parent, frame } => {
                let known = |stack: StackRef| (stack.0 as usize) < self.stacks.len();
                if frame.0 as usize >= self.frames.len() || !parent.is_none_or(known) {
                    return None;
                }
                self.stacks.push((parent, frame));
            }
            Entry::Sample(sample) => {
                let fits = (sample.thread.0 as usize) < self.capture.threads.len()
                    && (sample.event.0 as usize) < self.capture.info.events.len()
                    && self.has_stack(sample.stack);
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
                    && self.has_stack(wait.stack)
                    && self.has_stack(wait.waker_stack);
                fits.then_some(())?;
                self.last_ns = self.last_ns.max(Some(wait.end_ns));
                self.rooms.add(wait.start_ns, wait.end_ns, wait.runnable_ns);
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
            Entry::MarkName { .. }
            | Entry::MarkThread { .. }
            | Entry::Scope { .. }
            | Entry::FrameMark { .. }
            | Entry::MarkedCounter { .. }
            | Entry::MarksLost { .. } => {
                self.marks.accept(&entry)?;
                self.last_ns = self.last_ns.max(self.marks.last_ns());
                if matches!(entry, Entry::Scope { .. } | Entry::FrameMark { .. } | Entry::MarkedCounter { .. }) {
                    self.keep(entry);
                }
            }
            Entry::Losses(losses) => capture.info.losses = *losses,
            Entry::RecordingEnd(end) => {
                self.ended = true;
                let info = &mut capture.info;
                info.end_ns = end.end_ns.or(info.end_ns);
                info.recording_cost = end.cost;
                self.machine = end.machine;
                info.notes.extend(end.notes);
                info.dimensions.extend(end.dimensions);
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

    fn has_stack(&self, stack: Option<StackRef>) -> bool {
        stack.is_none_or(|stack| (stack.0 as usize) < self.stacks.len())
    }

    /// The description of the recording. Importers complete it.
    pub fn info_mut(&mut self) -> &mut stepscope_model::CaptureInfo {
        &mut self.capture.info
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
        let named = self.name_frames(symbols);
        let nodes = self.build_stacks(&named);
        let mut capture = self.capture;
        let marks = self.marks.resolve(&mut capture);
        let malformed = &mut capture.info.losses.malformed_records;
        *malformed = malformed.saturating_add(self.malformed);
        let switch_cost_ns = self.exit_usage.and_then(|exit| switch_cost_ns(&capture, exit, &self.rooms)).unwrap_or(0);
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

    /// The frames of the capture for each frame of the log, outermost first: inlined frames have the same address.
    fn name_frames(&mut self, symbols: &mut impl Symbols) -> Vec<Vec<FrameId>> {
        let mut by_module: HashMap<Option<ModuleRef>, Vec<usize>> = HashMap::new();
        for (index, (module, _)) in self.frames.iter().enumerate() {
            by_module.entry(*module).or_default().push(index);
        }
        let mut named = vec![Vec::new(); self.frames.len()];
        let mut problems = BTreeSet::new();
        let mut modules: HashMap<(String, Option<String>), ModuleId> = HashMap::new();
        for module in &self.modules {
            if let ModuleKind::JitDump(pid) = module.kind {
                symbols.add_jit_dump(pid, module.path.as_ref());
            }
        }
        for index in 0..self.modules.len() {
            let frames = by_module.remove(&Some(ModuleRef(index as u32))).unwrap_or_default();
            let offsets: Vec<u64> = frames.iter().map(|&frame| self.frames[frame].1).collect();
            let module = self.modules[index].clone();
            if module.kind == ModuleKind::StackMarks {
                for (&frame, &offset) in frames.iter().zip(&offsets) {
                    named[frame] = vec![self.capture.intern_frame(Frame::named(StackMark::name(offset)))];
                }
                continue;
            }
            if matches!(module.kind, ModuleKind::JitDump(_)) {
                continue;
            }
            let names = symbols.name(&code(&module), &offsets);
            problems.extend(names.problems.iter().map(ToString::to_string));
            let build_id = names.build_id.or_else(|| module.build_id.as_deref().map(hexadecimal));
            let id = *modules.entry((module.path.clone(), build_id.clone())).or_insert_with(|| {
                self.capture.add_module(stepscope_model::Module {
                    path: module.path.clone(),
                    build_id,
                    symbols: names.symbols,
                    package: names.package.clone(),
                })
            });
            let language = if module.kind == ModuleKind::Kernel { Language::Kernel } else { Language::Native };
            for (&frame, place) in frames.iter().zip(&names.places) {
                named[frame] = self.add_place(place, id, language);
            }
        }
        for frame in by_module.remove(&None).unwrap_or_default() {
            let function: Arc<str> = format!("[unmapped {:#x}]", self.frames[frame].1).into();
            let unnamed = &mut self.capture.info.losses.unnamed_addresses;
            *unnamed = unnamed.saturating_add(1);
            named[frame] = vec![self.capture.intern_frame(Frame::named(function))];
        }
        self.note_problems(problems);
        named
    }

    fn add_place(&mut self, place: &Place, module: ModuleId, language: Language) -> Vec<FrameId> {
        if matches!(place.named_by, NamedBy::Nothing | NamedBy::FunctionStart) {
            let unnamed = &mut self.capture.info.losses.unnamed_addresses;
            *unnamed = unnamed.saturating_add(1);
        }
        let capture = &mut self.capture;
        let frames = place.frames.iter().map(|frame| {
            capture.intern_frame(Frame {
                function: frame.function.clone(),
                module: Some(module),
                file: frame.file.clone(),
                line: frame.line,
                inlined: frame.inlined,
                address: place.address,
                language,
            })
        });
        frames.collect()
    }

    fn note_problems(&mut self, problems: BTreeSet<String>) {
        let notes = &mut self.capture.info.notes;
        let count = problems.len();
        notes.extend(problems.into_iter().take(MAX_PROBLEM_NOTES));
        if count > MAX_PROBLEM_NOTES {
            notes.push(format!("{} more modules lack names for similar reasons.", count - MAX_PROBLEM_NOTES));
        }
    }

    /// The capture's stack node for each node of the log.
    fn build_stacks(&mut self, named: &[Vec<FrameId>]) -> Vec<Option<StackId>> {
        let mut nodes: Vec<Option<StackId>> = Vec::with_capacity(self.stacks.len());
        for (parent, frame) in &self.stacks {
            let parent = parent.and_then(|parent| nodes[parent.0 as usize]);
            let frames = &named[frame.0 as usize];
            let add = |parent, &frame: &FrameId| Some(self.capture.intern_stack_node(parent, frame));
            nodes.push(frames.iter().fold(parent, add));
        }
        nodes
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

/// What the kernel charges a launched program for a switch before its record, if nothing was lost.
fn switch_cost_ns(capture: &Capture, exit: ExitUsage, rooms: &Rooms) -> Option<u64> {
    let losses = &capture.info.losses;
    let is_whole = losses.lost_records == 0 && losses.unknown_cpu_ns.is_none_or(|ns| ns == 0);
    capture.processes.first().filter(|process| is_whole && process.pid == exit.pid)?;
    let by_switches_ns = capture.threads.iter().try_fold(0_u64, |sum, thread| sum.checked_add(thread.cpu_ns?))?;
    rooms.cost_ns(by_switches_ns, exit.cpu_ns)
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

fn code(module: &entry::Module) -> Code {
    match module.kind {
        ModuleKind::File => Code::File { path: PathBuf::from(&module.path), build_id: module.build_id.clone() },
        ModuleKind::Kernel => Code::Kernel,
        ModuleKind::Vdso => Code::Vdso,
        ModuleKind::Jit(pid) => Code::Jit { pid },
        ModuleKind::StackMarks | ModuleKind::JitDump(_) => unreachable!("they have no code"),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Arguments joined as a shell would quote them.
fn quoted(arguments: &[String]) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_-+=./:,@%^".contains(character);
    let quote = |argument: &String| match !argument.is_empty() && argument.chars().all(plain) {
        true => argument.clone(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    arguments.iter().map(quote).collect::<Vec<_>>().join(" ")
}
