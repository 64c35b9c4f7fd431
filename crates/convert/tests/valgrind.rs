//! Files of cachegrind and callgrind as valgrind writes them here, compared with valgrind's own readers, function by function.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::Capture;

/// Counts of each event by file and function.
type Counts = BTreeMap<String, Vec<u64>>;

/// Runs `true` below a tool of valgrind, and reads its file with our importer and with `annotate`. `None` without the programs.
fn both(test: &str, tool: &[&str], annotate: &[&str]) -> Option<(Capture, Counts, Vec<String>)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out");
    let output = format!("--{}-out-file={}", tool[0], file.display());
    let ran =
        Command::new("valgrind").arg(format!("--tool={}", tool[0])).args(&tool[1..]).arg(output).arg("true").output();
    let annotated = Command::new(annotate[0]).args(&annotate[1..]).arg(&file).output();
    let (Ok(ran), Ok(annotated)) = (ran, annotated) else {
        println!("skipped: {test}: there is no valgrind");
        return None;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let capture = import(Source::open(&file).unwrap(), &ImportOptions::default()).unwrap();
    let text = String::from_utf8(annotated.stdout).unwrap();
    let events: Vec<String> = text
        .lines()
        .find_map(|line| line.strip_prefix("Events shown:"))
        .map(|names| names.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    let counts = table(&text, events.len());
    if counts.is_empty() {
        println!("skipped: {test}: the output of this version of {} is not known", annotate[0]);
        return None;
    }
    Some((capture, counts, events))
}

/// The rows below the heading `file:function`.
fn table(text: &str, events: usize) -> Counts {
    let mut rows = text.lines().skip_while(|line| !line.ends_with("file:function")).skip(2);
    let mut counts = Counts::new();
    for line in rows.by_ref().take_while(|line| !line.is_empty()) {
        let mut rest = line.trim_start();
        let mut row = Vec::new();
        while row.len() < events {
            let (number, after) = rest.split_once(' ').unwrap();
            row.push(if number == "." { 0 } else { number.replace(',', "").parse().unwrap() });
            rest = after.trim_start();
            if let Some((_, after)) = rest.strip_prefix('(').and_then(|share| share.split_once(')')) {
                rest = after.trim_start();
            }
        }
        counts.insert(rest.to_owned(), row);
    }
    counts
}

/// The same of a capture. `show` makes a row's name.
fn counts_of(capture: &Capture, events: &[String], show: impl Fn(&str, &str, Option<&str>) -> String) -> Counts {
    let mut counts = Counts::new();
    for sample in capture.samples.iter() {
        let frame = &capture.frames[capture.frames_of(sample.stack).next().unwrap().index()];
        let module = frame.module.map(|module| &*capture.modules[module.index()].path);
        let name = show(frame.file.as_deref().unwrap_or("???"), &frame.function, module);
        let row = counts.entry(name).or_insert_with(|| vec![0; events.len()]);
        let event = &capture.event(sample.event).name;
        row[events.iter().position(|name| name == event).unwrap()] += sample.weight;
    }
    counts
}

#[test]
fn cachegrind_has_the_table_of_cg_annotate() {
    let tool = ["cachegrind", "--cache-sim=yes", "--branch-sim=yes"];
    let annotate = ["cg_annotate", "--threshold=0", "--auto=no"];
    let Some((capture, expected, events)) = both("cachegrind_has_the_table_of_cg_annotate", &tool, &annotate) else {
        return;
    };
    assert_eq!(counts_of(&capture, &events, |file, function, _| format!("{file}:{function}")), expected);
    assert_eq!(capture.info.losses.malformed_records, 0, "{:?}", capture.info.notes);
    assert!(expected.len() > 50 && events.len() == 13);
}

#[test]
fn callgrind_has_the_own_costs_of_callgrind_annotate() {
    let tool = ["callgrind", "--cache-sim=yes", "--collect-jumps=yes", "--dump-instr=yes"];
    let annotate = ["callgrind_annotate", "--threshold=100", "--auto=no"];
    let test = "callgrind_has_the_own_costs_of_callgrind_annotate";
    let Some((capture, expected, events)) = both(test, &tool, &annotate) else { return };
    let named = |_: &str, function: &str, module: Option<&str>| format!("{function} [{}]", module.unwrap_or("???"));
    let mut found = counts_of(&capture, &events, named);
    // Its rows have files, too, and no object where it has the same name as the one before.
    let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let function = |name: &str| name.split(" [").next().unwrap().to_owned();
    for (name, row) in &expected {
        let place = name.split(" [").next().unwrap();
        let name = place.split_once(':').map_or(place, |(_, function)| function);
        let sum = sums.entry(name.to_owned()).or_insert_with(|| vec![0; row.len()]);
        sum.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
    }
    while let Some((name, row)) = found.pop_first() {
        let sum = all.entry(function(&name)).or_insert_with(|| vec![0; row.len()]);
        sum.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
    }
    for (name, row) in &sums {
        assert_eq!(all.get(name), Some(row), "{name}");
    }
    assert!(sums.len() > 50 && events.len() == 9);
    assert_eq!(capture.info.losses.malformed_records, 0, "{:?}", capture.info.notes);
    // Every sample has a root, and the file's totals agree, or there is a note.
    assert!(!capture.info.notes.join(" ").contains("its summary"), "{:?}", capture.info.notes);
    assert!(Path::new(&capture.modules[0].path).is_absolute());
}
