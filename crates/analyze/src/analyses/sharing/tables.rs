//! The tables of sharing: lines, and who accesses what of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use stepscope_model::{CACHE_LINE_BYTES, Columns, DataAccess, NoteValue, StackId, Table, ThreadId, note};

use super::lines::{Line, hitm, samples};
use crate::columns;
use crate::query::attributed_place::{function, place};
use crate::query::select::Selection;

/// Lines whose accesses are listed one by one.
const MOST_LISTED: usize = 50;

/// Functions and objects that are named for a line.
const MOST_NAMES: usize = 3;

/// The tables of the view.
pub(super) fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let lines = Line::all(selection);
    let mut table = lines_table(selection, &lines);
    add_notes(selection, &lines, &mut table);
    vec![table, accesses_table(selection, &lines)]
}

/// The columns of what is counted.
fn counts<'a, R: 'a>(
    sum: impl Fn(&R, &dyn Fn(&DataAccess) -> Option<u64>) -> Option<u64> + Copy + 'a,
) -> Columns<'a, R> {
    Columns::new()
        .count("reads", "accesses", "Sampled reads.", move |row: &R| sum(row, &|access| Some(access.reads)))
        .count("writes", "accesses", "Sampled writes. An atomic operation counts as both.", move |row| {
            sum(row, &|access| Some(access.writes))
        })
        .count(
            "local_hitm",
            "loads",
            "Sampled loads that found the line modified in another core's cache of the same socket; missing if the CPU did not sample them.",
            move |row| sum(row, &|access| access.local_hitm),
        )
        .count("remote_hitm", "loads", "The same, of another socket.", move |row| sum(row, &|access| access.remote_hitm))
}

fn line_name(line: &Line<'_>) -> String {
    format!("{:#x}", line.address)
}

fn lines_table(selection: &Selection<'_>, lines: &[Line<'_>]) -> Table {
    let capture = selection.capture();
    let label = selection.clone();
    Columns::<Line<'_>>::new()
        .text("line", "Address of the cache line's first byte.", |line| line_name(line).into())
        .text("object", "Global variables in it; missing for the heap and stacks.", |line| objects(line).into())
        .with(columns::process(capture), move |line| {
            line.process.map_or("[kernel]".into(), |process| label.process_label(process).into())
        })
        .text("verdict", "`false sharing`: threads use different bytes; `true sharing`: the same ones; `both`; missing with too few samples.", |line| {
            line.verdict().map(|verdict| verdict.words()).into()
        })
        .count("thread_count", "threads", "Threads that accessed it.", |line| line.threads().len())
        .prose("offsets", "Which thread writes (w) and reads (r) at which offset in the line.", |line| {
            offsets(selection, line).into()
        })
        .text("functions", "The functions that access it, the most sampled first.", |line| {
            functions(selection, line).into()
        })
        .with_all(counts(|line: &Line<'_>, of| line.known_sum(of)))
        .count(
            "shared_accesses",
            "accesses",
            "For each thread its sampled accesses, at most as many as the other threads' sampled writes; added up.",
            |line| line.shared,
        )
        .percentage("true_share", "When a thread accesses the line: the part of the others' writes that are to the same bytes.", |line| {
            line.true_share.map(|share| 100.0 * share)
        })
        .number("latency", "cycles", "Mean latency of the sampled accesses; missing if the CPU did not sample them.", |line| {
            let total = line.known_sum(|access| access.latency_cycles).filter(|total| *total > 0)?;
            Some(total as f64 / line.sum(samples).max(1) as f64)
        })
        .essential("line object verdict offsets functions reads writes local_hitm remote_hitm")
        .detail("true_share latency")
        .table("sharing", "Cache lines that several threads use", lines)
}

/// Global variables of a line, without offsets.
pub(crate) fn objects(line: &Line<'_>) -> Option<String> {
    let name = |object: &str| object.rsplit_once("+0x").map_or(object, |(name, _)| name).to_owned();
    let names: BTreeSet<String> =
        line.accesses.iter().filter_map(|access| Some(name(access.object.as_ref()?))).collect();
    (!names.is_empty()).then(|| listed(names.iter().map(String::as_str), names.len()))
}

fn listed<'n>(names: impl Iterator<Item = &'n str>, count: usize) -> String {
    let mut text = names.take(MOST_NAMES).collect::<Vec<_>>().join(", ");
    if count > MOST_NAMES {
        text.push_str(&format!(" and {} more", count - MOST_NAMES));
    }
    text
}

/// `0 w: worker/0, 8 rw: worker/1`.
pub(crate) fn offsets(selection: &Selection<'_>, line: &Line<'_>) -> String {
    const MOST_OFFSETS: usize = 8;
    let mut by_offset: BTreeMap<(u64, ThreadId), (bool, bool)> = BTreeMap::new();
    for access in &line.accesses {
        let done = by_offset.entry((access.address % CACHE_LINE_BYTES, access.thread)).or_default();
        done.0 |= access.reads > 0;
        done.1 |= access.writes > 0;
    }
    let name = |thread: ThreadId| selection.capture().threads[thread.index()].name.as_str();
    let users = line.threads();
    // Their numbers tell threads of one name apart.
    let full_name = |thread: ThreadId| match users.iter().filter(|other| name(**other) == name(thread)).count() {
        1 => name(thread).to_owned(),
        _ => format!("{} {}", name(thread), selection.capture().threads[thread.index()].tid),
    };
    let mut of_offset: BTreeMap<(u64, &str), Vec<ThreadId>> = BTreeMap::new();
    for ((offset, thread), done) in by_offset {
        let done = match done {
            (true, true) => "rw",
            (false, true) => "w",
            _ => "r",
        };
        of_offset.entry((offset, done)).or_default().push(thread);
    }
    let parts: Vec<String> = of_offset
        .iter()
        .map(|((offset, done), threads)| {
            let names: BTreeMap<&str, (usize, ThreadId)> = threads.iter().fold(BTreeMap::new(), |mut names, thread| {
                names.entry(name(*thread)).or_insert((0, *thread)).0 += 1;
                names
            });
            let named: Vec<String> = names
                .iter()
                .take(MOST_NAMES)
                .map(|(name, (count, one))| if *count > 1 { format!("{count} × {name}") } else { full_name(*one) })
                .collect();
            let more = if names.len() > MOST_NAMES { ", ..." } else { "" };
            format!("{offset} {done}: {}{more}", named.join(", "))
        })
        .collect();
    let more =
        if parts.len() > MOST_OFFSETS { format!("; {} more", parts.len() - MOST_OFFSETS) } else { String::new() };
    parts.into_iter().take(MOST_OFFSETS).collect::<Vec<_>>().join("; ") + &more
}

/// The functions that access a line, the most sampled first.
pub(crate) fn functions(selection: &Selection<'_>, line: &Line<'_>) -> String {
    let mut by_function: FxHashMap<String, u64> = FxHashMap::default();
    for access in &line.accesses {
        *by_function.entry(function(selection, access.stack)).or_default() += samples(access);
    }
    let mut functions: Vec<(String, u64)> = by_function.into_iter().collect();
    functions.sort_by(|(one, a), (other, b)| (b, one).cmp(&(a, other)));
    listed(functions.iter().map(|(name, _)| name.as_str()), functions.len())
}

/// Accesses of a thread in a function to an offset.
struct Accesses<'l, 'a> {
    line: &'l Line<'a>,
    first: &'a DataAccess,
    function: String,
    place: Option<String>,
    all: Vec<&'a DataAccess>,
}

impl Accesses<'_, '_> {
    fn sum(&self, of: &dyn Fn(&DataAccess) -> Option<u64>) -> Option<u64> {
        self.all.iter().filter_map(|access| of(access)).reduce(u64::saturating_add)
    }
}

fn accesses_table(selection: &Selection<'_>, lines: &[Line<'_>]) -> Table {
    let mut rows: Vec<Accesses<'_, '_>> = Vec::new();
    for line in lines.iter().take(MOST_LISTED) {
        let mut of_line: BTreeMap<_, Accesses<'_, '_>> = BTreeMap::new();
        for access in &line.accesses {
            let (function, place) = (function(selection, access.stack), place(selection, access.stack));
            let key = (access.address, access.bytes, access.thread, function.clone(), place.clone());
            let row = || Accesses { line, first: access, function, place, all: Vec::new() };
            of_line.entry(key).or_insert_with(row).all.push(access);
        }
        rows.extend(of_line.into_values());
    }
    Columns::<Accesses<'_, '_>>::new()
        .text("line", "Address of the cache line's first byte.", |row| line_name(row.line).into())
        .number("offset", "bytes", "Offset of the accessed bytes in it.", |row| row.first.address % CACHE_LINE_BYTES)
        .number("size", "bytes", "Number of accessed bytes; missing if the CPU did not say.", |row| row.first.bytes)
        .text("object", "The global variable at this address, with the offset in it.", |row| {
            row.first.object.as_deref().into()
        })
        .with_all(columns::thread(selection).on(|row: &Accesses<'_, '_>| &row.first.thread))
        .text("function", "The function that it is attributed to: the nearest owned one on the stack.", |row| {
            row.function.as_str().into()
        })
        .text("access_place", "File and line in that function.", |row| row.place.as_deref().into())
        .with_all(counts(|row: &Accesses<'_, '_>, of| row.sum(of)))
        .essential("line offset size thread function access_place reads writes local_hitm remote_hitm")
        .detail("object")
        .table("sharing_accesses", "Who accesses what of these lines", rows)
}

fn add_notes(selection: &Selection<'_>, lines: &[Line<'_>], table: &mut Table) {
    let capture = selection.capture();
    let losses = &capture.info.losses;
    if !capture.data_accesses.is_empty() && capture.data_accesses.iter().all(|access| access.local_hitm.is_none()) {
        table.note(note!(
            Limit,
            "Addresses were sampled in software: the table shows which lines several threads write, not what that costs.",
        ));
    }
    if selection.filters_time() {
        table.note(note!(Limit, "Accesses have no times: they are of the whole recording."));
    }
    if let Some(private) = losses.private_accesses.filter(|count| *count > 0) {
        let shared: u64 = capture.data_accesses.iter().map(samples).sum();
        table.note(note!(
            Fact,
            "{} of {} sampled accesses are to lines that one thread alone used.",
            NoteValue::number(private),
            NoteValue::number(private.saturating_add(shared)),
        ));
    }
    if let Some(dropped) = losses.dropped_accesses.filter(|count| *count > 0) {
        table.note(note!(Loss, "{} sampled accesses had no room and are not counted.", NoteValue::number(dropped)));
    }
    let unclear = lines.iter().filter(|line| line.verdict().is_none()).count();
    if unclear > 0 {
        table.note(note!(Fact, "Too few samples for a verdict: {}.", NoteValue::plural(unclear, "line")));
    }
}

/// A line that a function accesses.
pub(crate) struct LineOfFunction {
    pub line: String,
    pub object: Option<String>,
    pub verdict: Option<&'static str>,
    pub samples: u64,
    pub hitm: Option<u64>,
}

impl LineOfFunction {
    /// The lines that are accessed at stacks that `is_under` accepts, the most contended first.
    pub fn all(selection: &Selection<'_>, is_under: impl Fn(Option<StackId>) -> bool) -> Vec<Self> {
        let rows = Line::all(selection).into_iter().filter_map(|line| {
            let own: Vec<&&DataAccess> = line.accesses.iter().filter(|access| is_under(access.stack)).collect();
            (!own.is_empty()).then(|| Self {
                line: line_name(&line),
                object: objects(&line),
                verdict: line.verdict().map(|verdict| verdict.words()),
                samples: own.iter().map(|access| samples(access)).sum(),
                hitm: own.iter().filter_map(|access| hitm(access)).reduce(u64::saturating_add),
            })
        });
        let mut rows: Vec<Self> = rows.collect();
        rows.sort_by_key(|row| Reverse((row.hitm, row.samples)));
        rows
    }
}
