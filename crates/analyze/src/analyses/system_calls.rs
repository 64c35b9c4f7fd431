//! System calls: how often, how long, on which files, and which functions make them.
//!
//! The rows are those of [`SystemCalls`](stepscope_model::SystemCalls): calls of one thread from one place to one file, added up until their next record. A
//! row belongs to the selection if its last call ended within it. Costs go to the function to which those of the calls'
//! stacks are [attributed](crate::query::functions::Functions::attributed).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::quantity::grouped;
use stepscope_model::{Columns, Dimension, Note, NoteValue, StackId, Table, note};

use crate::analysis::{Analysis, ReportSection, View};
use crate::query::functions::{Caller, NO_STACK};
use crate::query::select::Selection;
use crate::query::system_calls::{CallSum as Sum, FileNames, SelectedCalls as Calls, is_of_recorder};

/// The columns of a sum.
pub(super) fn columns<'t, R: 't>(calls: &Calls<'_>, sum: impl Fn(&R) -> &Sum + Copy + 't) -> Columns<'t, R> {
    let steps = calls.steps.filter(|&steps| steps > 0);
    let rate = move |of_steps: u64| steps.map(|steps| of_steps as f64 / steps as f64);
    let columns = Columns::new()
        .count("count", "calls", "Number of calls. It is exact.", move |row| sum(row).count)
        .duration("total", "Time within them, waits included.", move |row| sum(row).total_ns);
    let columns = match steps {
        Some(_) => columns
            .number("calls_per_step", "calls", "Calls within steps, by number of steps.", move |row| {
                rate(sum(row).in_steps.count)
            })
            .number("errors_per_step", "calls", "Calls within steps that failed, by number of steps.", move |row| {
                rate(sum(row).in_steps.errors)
            })
            .duration(
                "time_per_step",
                "Time within calls in steps, by number of steps. Calls that wait for others (`futex`, `poll`) do not count.",
                move |row| rate(sum(row).in_steps.busy_ns),
            )
            .detail("errors_per_step time_per_step"),
        None => columns,
    };
    columns
        .duration("mean", "Their mean time.", move |row| sum(row).mean_ns())
        .duration(
            "p99",
            "99th percentile of all calls, within 1.6 %. Of a selected time or without `syscall_times`: of the calls that have a \
             record.",
            move |row| sum(row).p99_ns(),
        )
        .duration("longest", "The longest call.", move |row| sum(row).longest_ns)
        .count("errors", "calls", "Calls that failed.", move |row| sum(row).errors)
        .bytes("bytes", "Bytes that they read or wrote.", move |row| Some(sum(row).bytes).filter(|&bytes| bytes > 0))
        .essential("count")
        .essential("total")
        .detail("mean")
}

/// The tables `syscalls`, `syscall_files` and `syscall_functions`.
pub fn tables(selection: &Selection<'_>) -> Vec<Table> {
    let calls = Calls::of(selection);
    let mut by_call = by_call(&calls);
    by_call.notes.extend(loss_notes(selection, &calls));
    vec![by_call, by_file(selection, &calls), by_function(selection, &calls)]
}

/// What lost records leave open. The calls themselves are counted in the kernel.
fn loss_notes(selection: &Selection<'_>, calls: &Calls<'_>) -> Vec<Note> {
    let losses = &selection.capture().info.losses;
    let mut notes = Vec::new();
    if let Some(lost) = losses.lost_calls.filter(|&lost| lost > 0) {
        let lost = NoteValue::plural(lost as usize, "call");
        notes.push(note!(Loss, "{} are not in the tables: the records that introduce their threads were lost.", lost));
    }
    if losses.lost_records == 0 {
        return notes;
    }
    let with_files: BTreeSet<&str> =
        calls.rows.iter().filter(|(row, _)| row.file.is_some()).map(|(row, _)| &*row.call).collect();
    // A row without a last call is what the kernel had at the end.
    let rest = || calls.rows.iter().map(|(row, _)| row).filter(|row| row.last_ns.is_none());
    let no_stack: u64 = rest().filter(|row| row.stack.is_none()).map(|row| row.count).sum();
    let no_file: u64 =
        rest().filter(|row| row.file.is_none() && with_files.contains(&*row.call)).map(|row| row.count).sum();
    if no_stack + no_file > 0 {
        notes.push(note!(
            Loss,
            "The kernel dropped {}: {} have no stack, and {} no file. They are counted.",
            NoteValue::plural(losses.lost_records as usize, "record"),
            NoteValue::plural(no_stack as usize, "call"),
            NoteValue::plural(no_file as usize, "call")
        ));
    }
    notes
}

/// The table `syscalls`: a row for each call.
fn by_call(calls: &Calls<'_>) -> Table {
    let rows = calls.by(|calls| Some(calls.call.clone()));
    let (count, total_ns) = rows.iter().fold((0, 0), |(count, ns), (_, sum)| (count + sum.count, ns + sum.total_ns));
    let without_time: u64 = rows.iter().map(|(_, sum)| sum.without_time()).sum();
    let mut table = Columns::<(Arc<str>, Sum)>::new()
        .text("call", "Name of the system call.", |(call, _)| (&**call).into())
        .essential("call")
        .with_all(columns(calls, |row: &(Arc<str>, Sum)| &row.1))
        .table("syscalls", "System calls", rows);
    table.note(note!(Fact, "{} took {}.", NoteValue::plural(count as usize, "call"), NoteValue::ns(total_ns)));
    if without_time > 0 {
        table.note(note!(
            Loss,
            "{} had no room among the times: p99 is without them.",
            NoteValue::plural(without_time as usize, "call")
        ));
    }
    table
}

/// The calls to one file.
pub(super) struct OfFile<'a> {
    pub(super) file: Cow<'a, str>,
    files: usize,
    pub(super) sum: Sum,
    calls: Vec<(&'a str, u64)>,
    place: Option<String>,
}

impl OfFile<'_> {
    /// The calls in the order in which they began, with the number of each.
    pub(super) fn described(&self) -> String {
        let most = self.calls.iter().map(|(_, count)| *count).max().unwrap_or(0);
        // A few calls more are those before the loop and after it.
        let repeats = |count: u64| most > 1 && most - count <= 2 + most / 50 && count > 1;
        let (repeated, others): (Vec<_>, Vec<_>) = self.calls.iter().partition(|(_, count)| repeats(*count));
        let least = repeated.iter().map(|(_, count)| *count).min().unwrap_or(0);
        let names: Vec<&str> = repeated.iter().map(|(name, _)| *name).collect();
        let repeated = (!names.is_empty()).then(|| format!("{} × {}", names.join("-"), grouped(least.into())));
        let others = others.iter().map(|(name, count)| format!("{name} × {}", grouped((*count).into())));
        repeated.into_iter().chain(others).collect::<Vec<_>>().join(", ")
    }
}

/// A row for each file and socket by its [name](FileNames), without those of the [recorder](is_of_recorder).
pub(super) fn of_files<'a>(selection: &Selection<'a>, calls: &Calls<'a>) -> Vec<OfFile<'a>> {
    #[derive(Default)]
    struct Uses<'a> {
        calls: Vec<(&'a str, u64, u64)>,
        places: BTreeMap<String, u64>,
        paths: BTreeSet<&'a str>,
    }
    let names = FileNames::of(calls.rows.iter().filter_map(|(row, _)| row.file.as_deref()));
    let mut uses: FxHashMap<Cow<'_, str>, Uses<'_>> = FxHashMap::default();
    for &(row, _) in &calls.rows {
        let Some(file) = row.file.as_deref().filter(|file| !is_of_recorder(file)) else { continue };
        let of_file = uses.entry(names.name(file)).or_default();
        match of_file.calls.iter_mut().find(|(name, ..)| *name == &*row.call) {
            Some((_, count, first_ns)) => (*count, *first_ns) = (*count + row.count, row.start_ns.min(*first_ns)),
            None => of_file.calls.push((&row.call, row.count, row.start_ns)),
        }
        *of_file.places.entry(place(selection, row.stack)).or_default() += row.total_ns;
        of_file.paths.insert(file);
    }
    let of_file = |file: Option<&'a str>| file.filter(|file| !is_of_recorder(file)).map(|file| names.name(file));
    let rows = calls.by(|calls| of_file(calls.file)).into_iter().map(|(file, sum)| {
        let Uses { mut calls, places, paths } = uses.remove(&file).unwrap_or_default();
        // What is opened first may be closed at once, before the loop: then its `close` came before other calls.
        calls.sort_by_key(|(name, _, first_ns)| (*name == "close", *first_ns));
        let place = places.into_iter().max_by_key(|(_, ns)| *ns).map(|(name, _)| name);
        let calls = calls.into_iter().map(|(name, count, _)| (name, count)).collect();
        OfFile { file, files: paths.len(), sum, calls, place }
    });
    rows.collect()
}

/// The table `syscall_files`: a row for each file and socket.
fn by_file(selection: &Selection<'_>, calls: &Calls<'_>) -> Table {
    let mut table = Columns::<OfFile<'_>>::new()
        .text(
            "file",
            "Path of the file, or the name of a socket or pipe. Calls by path have the path that was given. `[pid]` stands for \
             any process, `socket:[any]` for all sockets where there are many.",
            |row| (&*row.file).into(),
        )
        .prose(
            "sequence",
            "Which calls, in the order in which they began. Calls that come equally often are one sequence.",
            |row| row.described().into(),
        )
        .text("function", "The function with most of their time, as costs are attributed.", |row| {
            row.place.as_deref().into()
        })
        .count("files", "files", "Number of different files: more than one if `[pid]` or `[any]` stands for several.", |row| row.files)
        .essential("file")
        .essential("sequence")
        .detail("files")
        .with_all(columns(calls, |row: &OfFile<'_>| &row.sum))
        .table("syscall_files", "System calls by file", of_files(selection, calls));
    let own = || calls.rows.iter().map(|(row, _)| row).filter(|row| row.file.as_deref().is_some_and(is_of_recorder));
    let files = own().filter_map(|row| row.file.as_deref()).collect::<BTreeSet<_>>().len();
    if files > 0 {
        table.note(note!(
            Fact,
            "{} to {} of Stepscope's own libraries have no row. The other tables count them.",
            NoteValue::plural(own().map(|row| row.count).sum::<u64>() as usize, "call"),
            NoteValue::plural(files, "file"),
        ));
    }
    table
}

/// The table `syscall_functions`: a row for each function and call.
fn by_function(selection: &Selection<'_>, calls: &Calls<'_>) -> Table {
    let rows = calls.by(|calls| Some((place(selection, calls.stack), calls.call.clone())));
    Columns::<((String, Arc<str>), Sum)>::new()
        .text("function", "The function that its time is attributed to: the nearest owned one on the stack.", |row| {
            row.0.0.as_str().into()
        })
        .text("call", "Name of the system call.", |row| (&*row.0.1).into())
        .essential("function")
        .essential("call")
        .with_all(columns(calls, |row: &((String, Arc<str>), Sum)| &row.1))
        .table("syscall_functions", "System calls by function", rows)
}

/// The name of the function that calls are attributed to.
fn place(selection: &Selection<'_>, stack: Option<StackId>) -> String {
    let functions = selection.functions();
    match functions.caller(stack) {
        Caller::Function(id) => functions.get(id).name.to_string(),
        Caller::NotOwned => functions.no_owner().to_owned(),
        Caller::NoStack => NO_STACK.to_owned(),
    }
}

/// System calls.
pub const ANALYSIS: Analysis = Analysis {
    title: "System calls",
    views: &[View {
        name: "syscalls",
        question: "Which system calls are made, on which files, and by which functions?",
        tables: |selection, _| tables(selection),
    }],
    needs: &[Dimension::Syscalls],
    report: |selection| ReportSection::of_rows("System calls", tables(selection)).into_iter().collect(),
    ..Analysis::NONE
};

#[cfg(test)]
mod tests {
    use stepscope_model::{CallTimes, Capture, SystemCalls, ThreadId};

    use super::*;
    use crate::columns::read::cells;
    use crate::drawn;

    /// Calls with their ends, counts, errors and files.
    fn with(calls: &[(&str, u64, u64, u64, Option<&str>)]) -> Capture {
        let mut capture = drawn::folded("main;sim::Save;write 1\nmain;sim::Look;stat 1");
        for &(call, end_ns, count, errors, file) in calls {
            let stack = if call == "newfstatat" { capture.samples[1].stack } else { capture.samples[0].stack };
            capture.system_calls.push(SystemCalls {
                start_ns: end_ns - 10,
                end_ns,
                thread: ThreadId(0),
                call: call.into(),
                stack,
                file: file.map(Into::into),
                count,
                errors,
                total_ns: count * 10,
                longest_ns: 10,
                bytes: if call == "write" { count * 64 } else { 0 },
                last_ns: Some(10),
            });
        }
        capture
    }

    #[test]
    fn sums_of_a_call_are_those_of_its_rows() {
        let capture =
            with(&[("write", 20, 1, 0, Some("/o")), ("write", 40, 99, 2, Some("/p")), ("close", 50, 7, 0, None)]);
        let table = drawn::selected(&capture, &["sim::"], tables).swap_remove(0);
        let columns = ["call", "count", "errors", "total", "mean", "longest", "bytes"];
        assert_eq!(
            cells(&table, &columns),
            ["write | 100 | 2 | 1000 | 10 | 10 | 6400", "close | 7 | 0 | 70 | 10 | 10 | -"]
        );
        assert_eq!(table.notes, ["107 calls took 1.07 µs."]);
    }

    /// Times of calls of the first thread, by bucket: start, end, number.
    fn add_times(capture: &mut Capture, call: &str, file: Option<&str>, buckets: &[(u64, u64, u64)]) {
        let stack = capture.samples[0].stack;
        capture.call_times.extend(buckets.iter().map(|&(from_ns, until_ns, count)| CallTimes {
            thread: ThreadId(0),
            call: call.into(),
            stack,
            file: file.map(Into::into),
            from_ns,
            until_ns,
            count,
        }));
    }

    #[test]
    fn p99_is_the_middle_of_the_bucket_that_holds_it_and_never_above_the_longest() {
        let mut capture =
            with(&[("write", 20, 1, 0, Some("/o")), ("write", 40, 299, 0, Some("/p")), ("close", 50, 9, 0, None)]);
        capture.system_calls.iter_mut().for_each(|row| row.longest_ns = 5_010);
        add_times(&mut capture, "write", Some("/o"), &[(5_000, 5_128, 1)]);
        add_times(&mut capture, "write", Some("/p"), &[(10, 11, 290), (200, 204, 6), (3_000, 3_064, 1)]);
        let p99 = |analysis: fn(&Selection<'_>) -> Vec<Table>, at: usize| {
            drawn::selected(&capture, &["sim::"], |selection| cells(&analysis(selection)[at], &["p99"]))
        };
        // Of 298 counted calls, the 296th. Calls without times have that of their records.
        assert_eq!(p99(tables, 0), ["201", "10"]);
        // The only one is the longest. Of 297, the 295th.
        assert_eq!(p99(tables, 1), ["201", "5010"]);
        let table = drawn::selected(&capture, &["sim::"], tables).swap_remove(0);
        assert_eq!(table.notes[1], "2 calls had no room among the times: p99 is without them.");
    }

    #[test]
    fn notes_say_what_lost_records_leave_open() {
        let mut capture =
            with(&[("close", 20, 1, 0, Some("/o")), ("close", 40, 5, 0, None), ("getppid", 50, 3, 0, None)]);
        capture.system_calls.iter_mut().skip(1).for_each(|row| (row.last_ns, row.stack) = (None, None));
        let notes = |capture: &Capture| drawn::selected(capture, &["sim::"], tables).swap_remove(0).notes[1..].to_vec();
        assert!(notes(&capture).is_empty(), "no record was lost");
        capture.info.losses.lost_records = 2;
        capture.info.losses.lost_calls = Some(4);
        assert_eq!(
            notes(&capture),
            [
                "4 calls are not in the tables: the records that introduce their threads were lost.",
                "The kernel dropped 2 records: 8 calls have no stack, and 5 calls no file. They are counted."
            ]
        );
    }

    #[test]
    fn calls_that_come_equally_often_to_a_file_are_one_sequence() {
        let capture = with(&[
            ("close", 25, 1000, 0, Some("/o")),
            ("write", 30, 1000, 0, Some("/o")),
            ("openat", 20, 1001, 0, Some("/o")),
            ("newfstatat", 60, 10, 10, Some("/missing")),
        ]);
        let table = drawn::selected(&capture, &["sim::"], tables).swap_remove(1);
        assert_eq!(
            cells(&table, &["file", "sequence", "function", "errors"]),
            ["/o | openat-write-close × 1,000 | sim::Save | 0", "/missing | newfstatat × 10 | sim::Look | 10"]
        );
    }

    #[test]
    fn a_file_of_each_process_is_one_row() {
        let capture = with(&[
            ("read", 20, 3, 0, Some("/proc/12/net/tcp")),
            ("read", 30, 4, 0, Some("/proc/345/net/tcp")),
            ("read", 40, 1, 0, Some("/proc/self/net/tcp")),
        ]);
        let table = drawn::selected(&capture, &["sim::"], tables).swap_remove(1);
        assert_eq!(
            cells(&table, &["file", "sequence", "files"]),
            ["/proc/[pid]/net/tcp | read × 7 | 2", "/proc/self/net/tcp | read × 1 | 1"]
        );
    }

    #[test]
    fn many_sockets_are_one_row_and_a_few_have_their_own() {
        let rows = |sockets: u64| {
            let files: Vec<String> = (0..sockets).map(|inode| format!("socket:[{inode}]")).collect();
            let calls: Vec<_> = files.iter().map(|file| ("sendto", 20, 2, 0, Some(file.as_str()))).collect();
            let table = drawn::selected(&with(&calls), &["sim::"], tables).swap_remove(1);
            cells(&table, &["file", "sequence", "files"])
        };
        assert_eq!(rows(17), ["socket:[any] | sendto × 34 | 17"]);
        assert_eq!((rows(16).len(), rows(16)[0].as_str()), (16, "socket:[0] | sendto × 2 | 1"));
    }

    #[test]
    fn files_of_the_recorder_are_a_note() {
        let capture = with(&[
            ("write", 20, 3, 0, Some("/tmp/stepscope-python-12.map")),
            ("write", 25, 2, 0, Some("/tmp/stepscope-python-12.map")),
            ("openat", 30, 1, 0, Some("/dev/shm/stepscope-heap-7-a-12-0")),
            ("openat", 40, 1, 0, Some("/tmp/of-the-program")),
        ]);
        let tables = drawn::selected(&capture, &["sim::"], tables);
        assert_eq!(cells(&tables[1], &["file"]), ["/tmp/of-the-program"]);
        assert_eq!(
            tables[1].notes,
            ["6 calls to 2 files of Stepscope's own libraries have no row. The other tables count them."]
        );
        assert_eq!(cells(&tables[0], &["call", "count"]), ["write | 5", "openat | 2"]);
    }

    #[test]
    fn calls_are_attributed_to_the_nearest_owned_function() {
        let capture = with(&[("write", 20, 3, 0, None), ("newfstatat", 30, 2, 2, None)]);
        let table = drawn::selected(&capture, &["sim::"], tables).swap_remove(2);
        assert_eq!(
            cells(&table, &["function", "call", "count"]),
            ["sim::Save | write | 3", "sim::Look | newfstatat | 2"]
        );
    }
}
