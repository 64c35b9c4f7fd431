//! Recordings made here and now by the installed perf, printed by `perf script` in many ways, against what
//! inferno-collapse-perf makes of the same text. Skipped by name where perf is missing or may not record.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use stepscope_convert::export::{self, Evidence, ExportOptions, Format, ThreadLabels};
use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::{Capture, EventId};

/// A program that everyone has, busy for some tenths of a second in itself, in the C library and in the kernel.
const WORK: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/dev/null bs=64k count=16000";

/// Records [`WORK`] in `folder`, or says why not.
fn record(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut perf = Command::new("perf");
    perf.current_dir(folder).args(["record", "-q", "-o", "perf.data"]).args(arguments).args(["--", "sh", "-c", WORK]);
    let output = perf.output().map_err(|error| format!("perf: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said.lines().next().unwrap_or("perf record failed").to_owned()) }
}

/// What `perf script` prints; `None` if this perf does not know the arguments or the recording lacks the field.
fn script(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut perf = Command::new("perf");
    let output = perf.current_dir(folder).args(["script", "-i", "perf.data"]).args(arguments).output().ok()?;
    (output.status.success() && !output.stdout.is_empty()).then_some(output.stdout)
}

fn read(text: &[u8]) -> Capture {
    let capture = import(Source::stream("script.txt", text), &ImportOptions::default()).unwrap();
    assert_eq!(capture.info.losses.malformed_records, 0, "{:?}", capture.info.notes);
    capture
}

type Folded = BTreeMap<String, u128>;

fn folded(lines: &[u8]) -> Folded {
    let mut folded = Folded::new();
    for line in std::str::from_utf8(lines).unwrap().lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        *folded.entry(stack.to_owned()).or_default() += count.parse::<u128>().unwrap();
    }
    folded
}

/// What inferno makes of the samples of one event. It loses the period of an event whose name perf pads to the length
/// of a longer one, so the padding is taken out.
fn by_inferno(text: &[u8], event: &str) -> Folded {
    let text = String::from_utf8_lossy(text).replace(&format!("   {event}:"), &format!(" {event}:"));
    let mut options = Options::default();
    options.event_filter = Some(event.to_owned());
    options.nthreads = 1;
    let mut lines = Vec::new();
    Folder::from(options).collapse(text.as_bytes(), &mut lines).unwrap();
    folded(&lines)
}

/// What we make of them, with names changed as inferno changes them: cut at `(`, spaces of threads' names replaced,
/// modules that have brackets put into brackets.
fn by_us(capture: &Capture, event: usize) -> Folded {
    let evidence = Some(Evidence::Event(EventId::from_index(event)));
    let options = ExportOptions { evidence, threads: ThreadLabels::Name, ..ExportOptions::default() };
    let mut lines = Vec::new();
    export::write(capture, Format::Folded, &mut lines, &options).unwrap();
    let mut tidied = Folded::new();
    for (stack, weight) in folded(&lines) {
        let tidy = |(depth, name): (usize, &str)| match name.find('(') {
            _ if depth == 0 => name.replace(' ', "_"),
            Some(at) if !name[at..].starts_with("(anonymous namespace)") => name[..at].to_owned(),
            _ => name.to_owned(),
        };
        *tidied.entry(stack.split(';').enumerate().map(tidy).collect::<Vec<_>>().join(";")).or_default() += weight;
    }
    tidied
}

/// Stacks without their threads' names: a capture has the last name of each, and what a forked child did before it
/// executed another program is printed under the name it had then. inferno leaves out samples without a stack.
fn comparable(folded: Folded) -> Folded {
    let mut stacks = Folded::new();
    for (stack, weight) in folded {
        let Some((_, functions)) = stack.split_once(';') else { continue };
        *stacks.entry(functions.replace("[[", "[").replace("]]", "]")).or_default() += weight;
    }
    stacks
}

fn agrees_with_inferno(text: &[u8], arguments: &[&str]) {
    let capture = read(text);
    assert!(capture.samples.len() > 20, "{arguments:?}: {} samples", capture.samples.len());
    for (index, event) in capture.info.events.iter().enumerate() {
        let (ours, theirs) = (comparable(by_us(&capture, index)), comparable(by_inferno(text, &event.name)));
        for (stack, weight) in &theirs {
            assert_eq!(ours.get(stack), Some(weight), "{arguments:?} {}: {stack}", event.name);
        }
        let left: Vec<_> = ours.keys().filter(|stack| !theirs.contains_key(*stack)).collect();
        assert_eq!(left, [""; 0], "{arguments:?} {}", event.name);
    }
}

#[test]
fn call_chains_of_several_events_fold_to_what_inferno_folds_them_to() {
    let test = "call_chains_of_several_events_fold_to_what_inferno_folds_them_to";
    let folder = tempfile::tempdir().unwrap();
    if let Err(reason) = record(folder.path(), &["-g", "-F", "4000", "-e", "cpu-clock,page-faults", "--sample-cpu"]) {
        return println!("skipped: {test}: {reason}");
    }
    let shapes: [&[&str]; 7] = [
        &[],
        &["--header"],
        &["--show-kernel-path"],
        &["--ns"],
        &["-F", "comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso"],
        &["-F", "comm,tid,time,event,ip,sym,dso"],
        &["-F", "comm,pid,tid,cpu,time,event,ip,sym,dso,period"],
    ];
    for arguments in shapes {
        let text = script(folder.path(), arguments).unwrap();
        agrees_with_inferno(&text, arguments);
    }
    // inferno takes records between samples for frames.
    let records = ["--show-task-events", "--show-mmap-events", "--show-switch-events"];
    let with_records = read(&script(folder.path(), &records).unwrap());
    assert_eq!(with_records.samples, read(&script(folder.path(), &[]).unwrap()).samples);
}

#[test]
fn samples_are_counted_one_by_one_in_whatever_way_they_are_printed() {
    let test = "samples_are_counted_one_by_one_in_whatever_way_they_are_printed";
    let folder = tempfile::tempdir().unwrap();
    if let Err(reason) = record(folder.path(), &["-g", "-F", "4000", "-e", "cpu-clock,page-faults"]) {
        return println!("skipped: {test}: {reason}");
    }
    // Without call chains perf prints a line a sample.
    let lines = script(folder.path(), &["-G", "-F", "event,period"]).unwrap();
    let mut expected: BTreeMap<String, (usize, u128)> = BTreeMap::new();
    for line in std::str::from_utf8(&lines).unwrap().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let samples = expected.entry(words[1].trim_end_matches(':').to_owned()).or_default();
        samples.0 += 1;
        samples.1 += words[0].parse::<u128>().unwrap();
    }
    let shapes: [&[&str]; 5] =
        [&[], &["-G"], &["-F", "comm,pid,tid,period,event,ip,sym"], &["-F", "+srcline"], &["-F", "period,event,ip"]];
    for arguments in shapes {
        let capture = read(&script(folder.path(), arguments).unwrap());
        let mut found: BTreeMap<String, (usize, u128)> = BTreeMap::new();
        for sample in &capture.samples {
            let samples = found.entry(capture.event(sample.event).name.clone()).or_default();
            samples.0 += 1;
            samples.1 += u128::from(sample.weight);
        }
        assert_eq!(found, expected, "{arguments:?}");
    }
    let timed = read(&script(folder.path(), &[]).unwrap());
    assert!(timed.samples.is_sorted_by_key(|sample| sample.time_ns) && timed.samples[0].time_ns.is_some());
    let timeless = read(&script(folder.path(), &["-F", "comm,tid,ip,sym"]).unwrap());
    assert_eq!(timeless.samples.len(), timed.samples.len());
}

#[test]
fn inlined_frames_and_source_lines_of_dwarf_stacks_are_read() {
    let test = "inlined_frames_and_source_lines_of_dwarf_stacks_are_read";
    let folder = tempfile::tempdir().unwrap();
    if let Err(reason) = record(folder.path(), &["--call-graph", "dwarf,4096", "-F", "500", "-e", "cpu-clock"]) {
        return println!("skipped: {test}: {reason}");
    }
    let text = script(folder.path(), &[]).unwrap();
    agrees_with_inferno(&text, &["dwarf"]);
    let capture = read(&text);
    for node in &capture.stacks {
        let frame = &capture.frames[node.frame.index()];
        assert!(!frame.function.contains("inlined"), "{frame:?}");
        if let Some(parent) = node.parent.filter(|_| frame.inlined) {
            let around = &capture.frames[capture.stacks[parent.index()].frame.index()];
            assert_eq!(frame.module, around.module, "{frame:?} in {around:?}");
        }
    }
    if capture.frames.iter().all(|frame| !frame.inlined) {
        println!("skipped: {test}: this perf printed no inlined frame");
    }
}
