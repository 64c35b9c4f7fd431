//! Suggests step functions of a program: those called at a steady rate from one loop, or the loop itself.
//!
//! 1. The stacks of a short recording give the functions that could be steps ([`step_stacks`]), and the loops of those that
//!    have most of the time: compilers inline the step into the loop, and many programs have the loop in `main`.
//! 2. Their calls and rounds are counted for a second or two ([`stepscope_record::calls`]).
//! 3. Those with a steady rate and much time in them are suggested, best first ([`stepscope_analyze::step_candidates`]).
//!
//! Without the right to count calls, functions are ranked by stacks alone.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use stepscope_analyze::functions::{FunctionId, Functions};
use stepscope_analyze::ownership::Owned;
use stepscope_analyze::qualified_name::{own_name, python_function};
use stepscope_analyze::step_candidates::{Call, Calls, LEAST_CALLS, StepCandidate, Unlikely};
use stepscope_analyze::step_stacks::{self, FunctionCode, StackFunction};
use stepscope_analyze::{Filter, Selection, TimeRange, step_loop};
use stepscope_assemble::StepPoint;
use stepscope_model::{Capture, Column, Columns, FrameKind, Kind, Note, NoteValue, StackId, SymbolSource, Table, note};
use stepscope_record::calls::{CallCounts, CallSite, SiteCalls};
use stepscope_symbolize::starts_of;

use super::python::Stubs;
use super::{StepFunction, loops};

/// Functions whose calls are counted, at most. Each costs the program some microseconds per call.
const MOST_SITES: usize = 32;

/// With fewer samples in the later half of the recording, all of it counts.
const LEAST_SAMPLES: usize = 50;

/// Loops of a function whose rounds are counted, at most: the outermost ones.
const MOST_LOOPS: usize = 3;

/// Loops with less of the time are not the program's main loop.
const LEAST_LOOP_SHARE: f64 = 0.5;

/// Names that a note lists.
const MOST_NAMES: usize = 5;

/// Stacks and call counts of a program's candidate step functions.
#[derive(Debug, Clone)]
pub struct Suggestion {
    rows: Vec<Row>,
    /// Share of the time, 0 to 1, in the functions that the best one's loop calls once per iteration.
    loop_share: f64,
    /// Files without names of functions.
    stripped: BTreeSet<String>,
    lost: u64,
    /// Why no calls were counted.
    refused: Option<String>,
}

/// A function on many stacks.
#[derive(Debug, Clone)]
struct Row {
    id: FunctionId,
    /// Its name, or that of the loop in it.
    function: String,
    module: PathBuf,
    owned: Option<bool>,
    thread: String,
    tid: u32,
    share: f64,
    cpu_share: f64,
    depth: usize,
    /// File offset of the first instruction, of a call or of a round.
    offset: Option<u64>,
    /// Ids of the threads that run it.
    threads: Vec<u32>,
    finding: Finding,
}

/// The result of counting the calls of a function.
#[derive(Debug, Clone, PartialEq)]
enum Finding {
    Likely(StepCandidate),
    Unlikely(Unlikely),
    TooOften { per_second: f64 },
    Refused(String),
    Inlined { into: String },
    Interpreted,
    NotCounted,
}

impl Suggestion {
    /// Suggests step functions from the later half of a recording. `count` counts the calls of functions, until the second
    /// argument says that their numbers are enough.
    pub fn of(
        capture: &Capture,
        owned: &Owned,
        count: impl FnOnce(&[CallSite], &dyn Fn(&[usize]) -> bool) -> io::Result<CallCounts>,
    ) -> Self {
        let functions = Functions::of(capture, owned);
        let selection = later_half(capture, &functions);
        let found = step_stacks::functions(&selection);
        let mut rows: Vec<Row> = found.iter().map(|one| row(&selection, one)).collect();
        locate(&mut rows, &found, &selection);
        rows.extend(loop_rows(&selection, &rows, &found));
        let sites: Vec<(usize, CallSite)> = sites(&rows);
        let asked: Vec<CallSite> = sites.iter().map(|(_, site)| site.clone()).collect();
        let (mut lost, mut refused) = (0, None);
        if asked.is_empty() {
            refused = Some("no function on these stacks has an entry in a file".to_owned());
        } else {
            let shares: Vec<f64> = sites.iter().map(|(index, _)| rows[*index].cpu_share).collect();
            match count(&asked, &|calls| are_enough(calls, &shares)) {
                Ok(counts) => {
                    lost = counts.lost;
                    for ((index, _), calls) in sites.iter().zip(&counts.sites) {
                        rows[*index].finding = finding(&rows[*index], calls);
                    }
                }
                Err(error) => refused = Some(why_refused(&error)),
            }
        }
        let nameless = |row: &&Row| !row.is_loop() && row.function.contains("+0x");
        let is_stripped = |name: &str| {
            let module = capture.modules.iter().find(|module| module.path == name);
            module.is_some_and(|module| matches!(module.symbols, SymbolSource::None | SymbolSource::DynamicSymbols))
        };
        let modules = rows.iter().filter(nameless).map(|row| row.module.display().to_string());
        let stripped = modules.filter(|module| is_stripped(module)).collect();
        rows.sort_by(Row::compare);
        prefer_informative_name(&mut rows);
        let loop_share = loop_share(&selection, &rows);
        Self { rows, loop_share, stripped, lost, refused }
    }

    /// The best step function, found by `resolve`.
    ///
    /// It has the shortest name that means this function alone, with the module if the program and its libraries do not have it.
    pub fn best(&self, resolve: impl Fn(&StepFunction) -> Option<StepPoint>) -> Option<StepFunction> {
        let best = self.rows.first().filter(|row| self.refused.is_some() || row.likely().is_some())?;
        let offset = best.offset?;
        let own = own_name(&best.function).into_owned();
        let named = |name: &str, module: Option<&Path>| StepFunction {
            name: name.to_owned(),
            module: module.map(Path::to_owned),
            time: None,
        };
        let module = Some(best.module.as_path());
        if python_function(&best.function).is_some() {
            // It is found by its name when the program calls it.
            return Some(named(&own, None));
        }
        if let Some(address) = step_loop::address_in(&best.function) {
            return Some(named(address, None));
        }
        let forms = [named(&own, None), named(&own, module), named(&best.function, module)];
        forms.into_iter().find(|form| {
            resolve(form).is_some_and(|point| point.offset == offset && same_file(&point.module, &best.module))
        })
    }

    /// The best step function that is called at a steady rate, and can be observed for at most this share of the time, if
    /// its loop has most of the time.
    ///
    /// Of functions that one loop calls once per iteration, one that is cheap to observe will do. A loop in `main`, or one that
    /// the compiler inlined, calls the parts of its step one after the other: together they have the time of the loop.
    pub fn clear_step(&self, most_cost: f64) -> Option<StepPoint> {
        const LEAST_SHARE: f64 = 0.5;
        const LEAST_REGULARITY: f64 = 0.5;
        let best = self.rows.first()?.likely().filter(|_| self.loop_share >= LEAST_SHARE)?;
        let mut clear = self.rows.iter().filter_map(|row| {
            let likely = row.likely().filter(|likely| likely.is_called_with(best))?;
            if likely.regularity < LEAST_REGULARITY {
                return None;
            }
            let (function, module, offset) = (row.function.clone(), row.module.clone(), row.offset?);
            let step = StepPoint { function, module, offset, time: None };
            (likely.rate * entry_cost_s(&step.module, step.offset) <= most_cost).then_some(step)
        });
        clear.next()
    }

    /// The table of functions, best first. `command` is that of the best one.
    pub fn table(&self, command: Option<&str>) -> Table {
        let best = self.rows.first().and_then(Row::likely);
        let percent = |name: &str, doc: &str| Column::new(name, Kind::Percent, "percent", doc);
        let text = |name: &str, doc: &str| Column::new(name, Kind::Text, "", doc);
        let columns: Columns<'_, Row> = Columns::new()
            .with(text("function", "Full name of the function.").essential(), |row: &Row| row.function.as_str().into())
            .with(
                Column::new("rate", Kind::Number, "calls/s", "Calls per second; missing where calls were not counted.")
                    .essential(),
                |row| row.likely().map(|likely| likely.rate).into(),
            )
            .with(
                percent("regularity", "Share of time in intervals between calls of half to twice the median length.")
                    .essential(),
                |row| row.likely().map(|likely| 100.0 * likely.regularity).into(),
            )
            .with(
                percent("share", "Share of its thread's time, on a CPU or blocked, that it is on the stack.")
                    .essential(),
                |row| (100.0 * row.share).into(),
            )
            .with(text("thread", "Thread that calls it.").essential(), |row| row.thread.as_str().into())
            .with(
                Column::new("why", Kind::Prose, "", "Why it looks like a step, or why not.").essential(),
                move |row| self.why(row, best).into(),
            )
            .with(percent("cpu_share", "Share of the recorded CPU time that it is on the stack.").detail(), |row| {
                (100.0 * row.cpu_share).into()
            })
            .with(Column::new("calls", Kind::Count, "calls", "Number of calls counted.").detail(), |row| {
                row.likely().map(|likely| likely.calls as u64).into()
            })
            .with(text("module", "File that holds it.").detail(), |row| row.module.display().to_string().into())
            .with(Column::new("tid", Kind::Number, "", "Id of the thread.").detail(), |row| row.tid.into())
            .with(
                Column::new("owned", Kind::Flag, "", "Whether it is code that the user's team can change.").detail(),
                |row| row.owned.into(),
            );
        let mut table = columns.table("step_candidates", "Functions that look like steps", &self.rows);
        table.add_notes(self.notes(command));
        table
    }

    fn why(&self, row: &Row, best: Option<&StepCandidate>) -> String {
        let own = |name: &str| own_name(name).into_owned();
        match &row.finding {
            Finding::Unlikely(Unlikely::NotCalled) if row.is_loop() => "no round while counting".to_owned(),
            Finding::Likely(likely) => match best {
                Some(best) if best.function == likely.function => self.why_best(best).to_owned(),
                Some(best) => beside(likely, best),
                None => String::new(),
            },
            Finding::Unlikely(Unlikely::NotCalled) => {
                "not called while counting: it contains the loop, or runs seldom".to_owned()
            }
            Finding::Unlikely(Unlikely::FewCalls(calls)) => format!("called only {calls} times"),
            Finding::Unlikely(Unlikely::SeveralThreads) => "called by several threads".to_owned(),
            Finding::Unlikely(Unlikely::Bursts) => "called in bursts".to_owned(),
            Finding::Unlikely(Unlikely::PartOfTime) => "called during a part of the time only".to_owned(),
            Finding::TooOften { per_second } => {
                format!("called more than {} times per second, too often to be counted", rounded(*per_second))
            }
            Finding::Refused(reason) => format!("not counted: {reason}"),
            Finding::Inlined { into } => format!("inlined into `{}`, so its calls cannot be counted", own(into)),
            Finding::Interpreted => "not counted: it has no code in a file (interpreted or generated)".to_owned(),
            Finding::NotCounted if self.refused.is_some() => "by stacks only".to_owned(),
            Finding::NotCounted => "not counted: little time, or unknown start address".to_owned(),
        }
    }

    fn why_best(&self, best: &StepCandidate) -> &'static str {
        if step_loop::address_in(&best.function).is_some() {
            return "the loop's rounds have this rate";
        }
        let functions = self.rows.iter().filter(|row| !row.is_loop());
        let is_outermost = functions
            .filter_map(Row::likely)
            .filter(|other| other.has_rate_of(best))
            .all(|other| other.share <= best.share);
        if is_outermost {
            "outermost function called at this rate"
        } else {
            "called at the loop's rate; has the clearest name"
        }
    }

    fn notes(&self, command: Option<&str>) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(note!(
                Loss,
                "{} were lost: they came faster than they could be read.",
                NoteValue::plural(self.lost as usize, "call")
            ));
        }
        if let Some(reason) = &self.refused {
            notes.push(note!(Limit, "Calls were not counted, so the order rests on stacks alone: {}.", reason));
        }
        if self.refused.is_none() {
            notes.push(note!(Fact, "Counting slows the program: steps per second are lower than without it."));
        }
        for module in &self.stripped {
            notes.push(note!(
                Limit,
                "{} has no symbols: its functions are named by address. Install its debug symbols for names.",
                module
            ));
        }
        let inlined: Vec<String> = self.rows.iter().filter_map(Row::inlined).collect();
        if !inlined.is_empty() {
            let more = inlined.len().saturating_sub(MOST_NAMES);
            let more = if more > 0 { format!(", {more} more") } else { String::new() };
            let names = inlined.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
            notes.push(note!(
                Limit,
                "Calls of inlined functions cannot be counted: {}{}. A loop around them, or a function that runs once in each of them, marks the same steps.",
                names,
                more
            ));
        }
        notes.extend(self.slow_step());
        notes.push(match (command, self.rows.first().and_then(Row::likely)) {
            (Some(command), _) => note!(Hint, "Record with the first one as the step: {}", command),
            (None, Some(_)) => note!(Hint, "Name the first one with --step and --step-module."),
            (None, None) => note!(
                Hint,
                "No function was called at a steady rate. Count longer (--duration 10s), start later (--after 20s), or mark steps in the program (docs/marks.md)."
            ),
        });
        notes
    }
}

impl Suggestion {
    /// A note on a function with far more time than the suggested one that had too few calls for a rate.
    fn slow_step(&self) -> Option<Note> {
        let best = self.rows.first().filter(|row| row.likely().is_some()).map_or(0.0, |row| row.cpu_share);
        let seldom = |row: &&Row| matches!(row.finding, Finding::Unlikely(Unlikely::FewCalls(_)));
        let slow = self.rows.iter().filter(seldom).filter(|row| row.cpu_share > 2.0 * best);
        let slow = slow.max_by(|one, other| one.cpu_share.total_cmp(&other.cpu_share))?;
        Some(note!(
            Limit,
            "`{}` has {} of the CPU time but was called too seldom for a rate. If it is the step, count longer (--duration 10s) or name it with --step.",
            own_name(&slow.function),
            NoteValue::percent(100.0 * slow.cpu_share)
        ))
    }
}

impl Row {
    fn is_loop(&self) -> bool {
        step_loop::address_in(&self.function).is_some()
    }

    fn likely(&self) -> Option<&StepCandidate> {
        match &self.finding {
            Finding::Likely(likely) => Some(likely),
            _ => None,
        }
    }

    fn inlined(&self) -> Option<String> {
        match &self.finding {
            Finding::Inlined { into } => Some(format!("`{}` (into `{}`)", own_name(&self.function), own_name(into))),
            _ => None,
        }
    }

    /// Likely steps first; then, by stacks, the innermost function that still has most of the time.
    fn compare(&self, other: &Self) -> Ordering {
        const MOST_OF_THE_TIME: f64 = 0.8;
        let by_stacks = |row: &Self| (row.offset.is_some(), row.cpu_share > MOST_OF_THE_TIME);
        // Owned code before other code, if ownership is known.
        let owned = |row: &Self| row.owned == Some(true);
        match (self.likely(), other.likely()) {
            (Some(_), Some(_)) if owned(self) != owned(other) => owned(other).cmp(&owned(self)),
            (Some(one), Some(other)) => one.compare(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) if by_stacks(self) != by_stacks(other) => by_stacks(other).cmp(&by_stacks(self)),
            (None, None) if by_stacks(self).1 => other.depth.cmp(&self.depth),
            (None, None) => other.cpu_share.total_cmp(&self.cpu_share),
        }
    }
}

fn why_refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ESRCH) => "the program ended before; sample it for a shorter time (--duration 1s)".to_owned(),
        _ => format!("{error}; it needs uprobes (root, or CAP_PERFMON)"),
    }
}

/// Puts the function with the clearest name first, among those that the best one's loop calls once per iteration and that take
/// about as much time. Wrappers of interpreters and functions without names surround the step.
fn prefer_informative_name(rows: &mut [Row]) {
    const MOST_OF_ITS_SHARE: f64 = 0.8;
    let Some((best, owned)) = rows.first().and_then(|row| Some((row.likely()?.clone(), row.owned))) else { return };
    let is_same = |row: &Row| {
        let likely = row.likely().filter(|likely| likely.has_rate_of(&best));
        likely.is_some_and(|likely| likely.share >= MOST_OF_ITS_SHARE * best.share) && row.owned == owned
    };
    let clarity = |row: &Row| {
        let name = own_name(&row.function).to_lowercase();
        let last = name.rsplit("::").next().unwrap_or_default();
        (
            !row.is_loop() && !row.function.contains("+0x") && !is_interpreter(&row.module) && !name.starts_with('_'),
            ["step", "tick", "iterat"].iter().any(|word| last.contains(word)),
        )
    };
    let alike: Vec<usize> = (0..rows.len()).filter(|&index| is_same(&rows[index])).collect();
    // Of equals, the first.
    let Some(&chosen) = alike.iter().rev().max_by_key(|&&index| clarity(&rows[index])) else { return };
    rows[..=chosen].rotate_right(1);
}

/// The part of the recording after start-up, most likely.
fn later_half<'a>(capture: &'a Capture, functions: &'a Functions) -> Selection<'a> {
    let all = Selection::all(capture, functions);
    let Some(window) = all.window() else { return all };
    let time = Some(TimeRange { from_ns: (window.end - window.start) / 2, to_ns: None });
    match Selection::new(capture, functions, &Filter { time, ..Filter::default() }) {
        Ok(half) if half.samples().count() >= LEAST_SAMPLES => half,
        _ => all,
    }
}

/// The share of the time in functions that are called once per iteration by the loop of the first one.
fn loop_share(selection: &Selection<'_>, rows: &[Row]) -> f64 {
    let Some(best) = rows.first().and_then(Row::likely) else { return 0.0 };
    let is_called = |row: &&Row| row.likely().is_some_and(|likely| likely.is_called_with(best));
    let called: Vec<&Row> = rows.iter().filter(is_called).collect();
    if let Some(around) = called.iter().find(|row| row.is_loop()) {
        return shares_together(around.share, around.cpu_share);
    }
    let called: BTreeSet<FunctionId> = called.iter().map(|row| row.id).collect();
    let is_one = |node| called.contains(&selection.functions().of_node(selection.capture(), node));
    let (time, cpu) = step_stacks::shares_of_any(selection, best.tid, is_one);
    shares_together(time, cpu).max(cpu)
}

/// CPU time finds the program's main loop. A loop that mostly waits still has all of its own thread's time.
fn shares_together(of_thread: f64, of_cpu: f64) -> f64 {
    (of_thread + of_cpu) / 2.0
}

fn row(selection: &Selection<'_>, one: &StackFunction) -> Row {
    let (capture, functions) = (selection.capture(), selection.functions());
    let function = functions.get(one.function);
    let thread = &capture.threads[one.threads[0].index()];
    Row {
        id: one.function,
        function: function.name.to_string(),
        module: PathBuf::from(&*function.module),
        owned: functions.ownership_known().then_some(function.owned),
        thread: thread.name.clone(),
        tid: thread.tid,
        share: one.share,
        cpu_share: one.cpu_share,
        depth: one.depth,
        offset: None,
        threads: one.threads.iter().map(|thread| capture.threads[thread.index()].tid).collect(),
        finding: match one.code {
            FunctionCode::Inlined { into, .. } => Finding::Inlined { into: functions.get(into).name.to_string() },
            FunctionCode::Interpreted => Finding::Interpreted,
            FunctionCode::Own(_) => Finding::NotCounted,
        },
    }
}

/// Finds the entry of each function that has one.
fn locate(rows: &mut [Row], found: &[StackFunction], selection: &Selection<'_>) {
    let entries = entries(found, selection.capture()).into_iter().zip(python_entries(found, selection));
    for (row, (native, python)) in rows.iter_mut().zip(entries) {
        if let Some(entry) = python.or(native) {
            (row.module, row.offset) = (entry.module, entry.offset);
        }
    }
}

/// The file that holds a function.
pub(crate) struct FunctionFile {
    pub module: PathBuf,
    /// File offset of its first instruction, if it is known.
    pub offset: Option<u64>,
}

/// The files that hold functions; `None` for those without code of their own in a file.
pub(crate) fn entries(found: &[StackFunction], capture: &Capture) -> Vec<Option<FunctionFile>> {
    let mut entries: Vec<Option<FunctionFile>> = found.iter().map(|_| None).collect();
    let mut by_module: BTreeMap<PathBuf, Vec<(usize, u64)>> = BTreeMap::new();
    for (index, one) in found.iter().enumerate() {
        let FunctionCode::Own(frame) = one.code else { continue };
        let (module, address) = (capture.module_of(frame), capture.frames[frame.index()].address);
        if let (Some(module), Some(address)) = (module, address) {
            by_module.entry(PathBuf::from(&module.path)).or_default().push((index, address));
        }
    }
    for (module, functions) in by_module {
        let addresses: Vec<u64> = functions.iter().map(|(_, address)| *address).collect();
        let offsets = starts_of(&module, &addresses).unwrap_or_default();
        for ((index, _), offset) in functions.iter().zip(offsets) {
            entries[*index] = Some(FunctionFile { module: module.clone(), offset });
        }
    }
    entries
}

/// The stubs of the Python functions among these, of processes that still run.
fn python_entries(found: &[StackFunction], selection: &Selection<'_>) -> Vec<Option<FunctionFile>> {
    let capture = selection.capture();
    let mut stubs: BTreeMap<u32, Stubs> = BTreeMap::new();
    let entry = |one: &StackFunction| {
        let FunctionCode::Own(frame) = one.code else { return None };
        if selection.functions().get(one.function).kind != FrameKind::Python {
            return None;
        }
        let process = capture.threads[one.threads[0].index()].process?;
        let pid = capture.processes[process.index()].pid;
        let stubs = stubs.entry(pid).or_insert_with(|| Stubs::of_process(pid));
        let (module, offset) = stubs.place_of(capture.frames[frame.index()].address?)?;
        Some(FunctionFile { module, offset: Some(offset) })
    };
    found.iter().map(entry).collect()
}

/// The functions whose calls are counted, and the loops whose rounds are, by index.
fn sites(rows: &[Row]) -> Vec<(usize, CallSite)> {
    let site = |(index, row): (usize, &Row)| {
        let offset = row.offset.filter(|_| !is_interpreter(&row.module))?;
        Some((index, CallSite { module: row.module.clone(), offset, threads: row.threads.clone() }))
    };
    let (loops, functions): (Vec<_>, Vec<_>) = rows.iter().enumerate().partition(|(_, row)| row.is_loop());
    let functions = functions.into_iter().filter_map(site).take(MOST_SITES);
    functions.chain(loops.into_iter().filter_map(site)).collect()
}

/// The outermost loops of functions that have most of the time, as far as they have it, too.
fn loop_rows(selection: &Selection<'_>, rows: &[Row], found: &[StackFunction]) -> Vec<Row> {
    let has_most = |row: &Row| shares_together(row.share, row.cpu_share) >= LEAST_LOOP_SHARE;
    let mut made = Vec::new();
    for (row, one) in rows.iter().zip(found) {
        let is_native =
            matches!(one.code, FunctionCode::Own(_)) && row.offset.is_some() && !is_interpreter(&row.module);
        if is_native && has_most(row) {
            let mut loops = loops::of_function(selection, row.id, &row.module);
            loops.truncate(MOST_LOOPS);
            for (head, frames) in loops {
                let is_in = |node: StackId| frames.contains(&selection.capture().stacks[node.index()].frame);
                let (share, cpu_share) = step_stacks::shares_of_any(selection, row.tid, is_in);
                if shares_together(share, cpu_share) < LEAST_LOOP_SHARE {
                    continue;
                }
                // A name costs more than all before: debug information is read.
                let function = loops::name(&row.module, head);
                let depth = row.depth + 1;
                made.push(Row { function, share, cpu_share, depth, offset: Some(head.offset), ..row.clone() });
            }
        }
    }
    made
}

/// Whether a file is CPython itself: its functions run every Python function, and none of them is a step.
fn is_interpreter(module: &Path) -> bool {
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("python") || name.starts_with("libpython")
}

/// Whether a function with much of the time has enough calls for a rate. If only small ones have, the step may be slow.
fn are_enough(calls: &[usize], cpu_shares: &[f64]) -> bool {
    let most = cpu_shares.iter().copied().fold(0.0, f64::max);
    calls.iter().zip(cpu_shares).any(|(calls, share)| *calls >= LEAST_CALLS && *share >= most / 2.0)
}

fn finding(row: &Row, calls: &SiteCalls) -> Finding {
    let (counted, window) = match calls {
        SiteCalls::TooOften { per_second, .. } => return Finding::TooOften { per_second: *per_second },
        SiteCalls::Refused(reason) => return Finding::Refused(reason.clone()),
        SiteCalls::Counted { calls, window } => (calls, window),
    };
    let calls = counted.iter().map(|call| Call { time_ns: call.time_ns, tid: call.tid, cpu_ns: call.cpu_ns }).collect();
    let calls = Calls { function: row.function.clone(), share: shares_together(row.share, row.cpu_share), calls };
    StepCandidate::of(&calls, window).map_or_else(Finding::Unlikely, Finding::Likely)
}

/// What the kernel needs to observe one call of a function, in seconds.
///
/// It emulates some first instructions, among them the `push` of most functions, and lets the CPU take a single step over all
/// others, which costs a virtual machine an exit (measured by `benches/steps/run`).
fn entry_cost_s(module: &Path, offset: u64) -> f64 {
    let mut first = [0; 2];
    let read = File::open(module).and_then(|file| file.read_exact_at(&mut first, offset));
    match (read, first) {
        (Ok(()), [0x50..=0x57 | 0x90, _] | [0x41, 0x50..=0x57] | [0x0f, 0x1f]) => 6e-6,
        _ => 29e-6,
    }
}

/// The rate of a function compared with that of the best one.
fn beside(one: &StepCandidate, best: &StepCandidate) -> String {
    /// Above it, every ratio is near a whole number.
    const MOST_EXACT: f64 = 10.0;
    let is_loop = step_loop::address_in(&best.function).is_some();
    let name = if is_loop { "round of the loop".to_owned() } else { format!("`{}`", own_name(&best.function)) };
    if one.has_rate_of(best) {
        return format!("called once per {name}");
    }
    if one.rate < best.rate {
        return match is_loop {
            true => format!("called once in {:.0} rounds of the loop", best.rate / one.rate),
            false => format!("called once in {:.0} calls of {name}", best.rate / one.rate),
        };
    }
    let ratio = one.rate / best.rate;
    match (ratio / ratio.round() - 1.0).abs() < 0.05 && ratio < MOST_EXACT {
        true => format!("called {ratio:.0} times per {name}"),
        false => format!("called some {ratio:.0} times per {name}"),
    }
}

/// A rate to two digits, because counting slows the program.
fn rounded(rate: f64) -> u64 {
    let unit = 10_f64.powf(rate.max(1.0).log10().floor() - 1.0);
    ((rate / unit).floor() * unit) as u64
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

#[cfg(test)]
mod tests;
