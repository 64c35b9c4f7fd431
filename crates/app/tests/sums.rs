//! Sums over the page's columns equal the figures of the analyses, whole and added up.
//!
//! Captures are those of the command line's tests, the folded samples in `STEPSCOPE_SAMPLES`, and any in `STEPSCOPE_CAPTURES`
//! (folders, with colons between).

mod columns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stepscope_analyze::calltree::{self, Grouping, Order};
use stepscope_analyze::{Functions, Owned, Ownership, Selection, hotspots, wall};
use stepscope_app::{Limits, ParquetTable, Profile};
use stepscope_convert::{ImportOptions, Source};
use stepscope_model::{Capture, Table, Value, disk};

use self::columns::Columns;

/// Self, inclusive and attributed weight.
type Cost = [u128; 3];

fn captures() -> Vec<(PathBuf, Capture)> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/schema_1/project");
    let mut folders = vec![project.join("folded.capture"), project.join("steps.capture")];
    if let Some(more) = std::env::var_os("STEPSCOPE_CAPTURES") {
        folders.extend(std::env::split_paths(&more));
    }
    let mut captures: Vec<(PathBuf, Capture)> =
        folders.into_iter().map(|folder| (folder.clone(), disk::read(&folder).unwrap())).collect();
    let samples = std::env::var_os("STEPSCOPE_SAMPLES").map(|folder| Path::new(&folder).join("gazebo"));
    for file in samples.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path())
    {
        if file.extension().is_some_and(|extension| extension == "folded") {
            let source = Source::open(&file).unwrap();
            captures.push((file, stepscope_convert::import(source, &ImportOptions::default()).unwrap()));
        }
    }
    captures
}

fn owned() -> Owned {
    let namespaces = ["gz::", "ground::", "drive", "main"].map(str::to_owned).to_vec();
    Ownership { namespaces, ..Ownership::default() }.compile().unwrap()
}

/// Calls `check` with each capture's selection.
fn each(check: impl Fn(&str, &Selection<'_>)) {
    for (path, capture) in captures() {
        let functions = Functions::of(&capture, &owned());
        check(&path.display().to_string(), &Selection::all(&capture, &functions));
    }
}

fn small() -> Limits {
    Limits { samples: 40, waits: 10, ..Limits::default() }
}

fn columns(profile: &Profile<'_>, name: &str) -> Columns {
    profile.table(name).as_ref().map(columns::decoded).unwrap_or_default()
}

/// The costs of each function by name and module, from the columns alone.
fn costs(profile: &Profile<'_>) -> BTreeMap<(String, String), Cost> {
    let [frames, stacks, samples, modules] =
        ["frames", "stacks", "samples", "modules"].map(|name| columns(profile, name));
    let selected = profile.selection().event_id().map_or(-1, |event| event.index() as i32);
    let name_of = |frame: usize| {
        let module = usize::try_from(frames.integers("module")[frame]).ok();
        (
            frames.texts("function")[frame].clone(),
            module.map_or(String::new(), |row| modules.texts("name")[row].clone()),
        )
    };
    let mut costs: BTreeMap<(String, String), Cost> = BTreeMap::new();
    for row in (0..samples.rows()).filter(|row| samples.integers("event")[*row] == selected) {
        let weight = samples.numbers("weight")[row] as u128;
        let (mut node, mut seen, mut attributed) = (samples.integers("stack")[row], Vec::new(), false);
        if node < 0 {
            let cost = costs.entry(("(no stack)".to_owned(), String::new())).or_default();
            cost[0] += weight;
            cost[1] += weight;
        }
        while let Ok(index) = usize::try_from(node) {
            let frame = stacks.integers("frame")[index] as usize;
            let cost = costs.entry(name_of(frame)).or_default();
            cost[0] += if seen.is_empty() { weight } else { 0 };
            let identity = frames.integers("identity")[frame];
            cost[1] += if seen.contains(&identity) { 0 } else { weight };
            seen.push(identity);
            if frames.integers("owned")[frame] == 1 && !attributed {
                attributed = true;
                cost[2] += weight;
            }
            node = stacks.integers("parent")[index];
        }
    }
    costs
}

fn weight(table: &Table, row: usize, column: &str) -> u128 {
    match table.get(row, column) {
        Some(Value::Int(value)) => *value as u128,
        _ => 0,
    }
}

fn text(table: &Table, row: usize, column: &str) -> String {
    match table.get(row, column) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

#[test]
fn costs_of_functions_are_those_of_the_view_hotspots() {
    each(|path, selection| {
        let table = hotspots::table(selection);
        let row = |row: usize| {
            let cost = ["self", "inclusive", "attributed"].map(|column| weight(&table, row, column));
            ((text(&table, row, "function"), text(&table, row, "module")), cost)
        };
        let expected: BTreeMap<_, _> =
            (0..table.rows.len()).map(row).filter(|((name, _), _)| name != "(no owned caller)").collect();
        for limits in [Limits::default(), small()] {
            let found = costs(&Profile::new(selection.clone(), limits));
            let of_event = |(_, cost): &(&(String, String), &Cost)| **cost != [0; 3];
            let (found, expected) = (found.iter().filter(of_event), expected.iter().filter(of_event));
            assert!(found.eq(expected), "{path}, {limits:?}");
        }
    });
}

#[test]
fn times_of_waits_are_those_of_the_view_wall() {
    each(|path, selection| {
        let table = wall::table(selection, wall::Grouping::Thread);
        let states = stepscope_app::profile::states();
        for limits in [Limits::default(), small()] {
            let profile = Profile::new(selection.clone(), limits);
            let (threads, waits) = (columns(&profile, "threads"), columns(&profile, "waits"));
            for row in 0..table.rows.len() {
                let tid = weight(&table, row, "tid") as i32;
                let is_of = |wait: &usize| threads.integers("tid")[waits.integers("thread")[*wait] as usize] == tid;
                let of_thread: Vec<usize> = (0..waits.rows()).filter(is_of).collect();
                let runnable: f64 = of_thread.iter().map(|wait| waits.numbers("runnable")[*wait]).sum();
                assert_eq!(runnable as u128, weight(&table, row, "runnable"), "{path} {tid}");
                for (state, name) in states.iter().enumerate().skip(1) {
                    let of_state = of_thread.iter().filter(|wait| waits.integers("state")[**wait] == state as i32);
                    let [start, end, runnable] = ["start", "end", "runnable"].map(|name| waits.numbers(name));
                    let blocked: f64 = of_state.map(|wait| end[*wait] - start[*wait] - runnable[*wait]).sum();
                    assert_eq!(blocked as u128, weight(&table, row, name), "{path} {tid} {name}");
                }
            }
        }
    });
}

#[test]
fn blocked_time_is_that_of_the_off_cpu_flame_graph() {
    each(|path, selection| {
        let options = calltree::Options { order: Order::CallersFirst, grouping: Grouping::None };
        let whole = calltree::off_cpu(selection, &options).nodes[0].total;
        let waits = columns(&Profile::new(selection.clone(), Limits::default()), "waits");
        let blocked = (0..waits.rows()).filter(|wait| waits.integers("state")[*wait] > 0);
        let time =
            |wait: usize| waits.numbers("end")[wait] - waits.numbers("start")[wait] - waits.numbers("runnable")[wait];
        assert_eq!(blocked.map(time).sum::<f64>() as u64, whole, "{path}");
    });
}

#[test]
fn sums_of_many_samples_are_those_of_the_samples() {
    let (_, mut capture) = captures().swap_remove(1);
    let few = capture.samples.to_vec();
    assert!(
        Profile::new(Selection::all(&capture, &Functions::of(&capture, &owned())), Limits::default())
            .table("sums")
            .is_none()
    );
    while capture.samples.len() < 600_000 {
        capture.samples.extend(few.iter().copied());
    }
    let functions = Functions::of(&capture, &owned());
    let profile = Profile::new(Selection::all(&capture, &functions), Limits::default());
    let by_stack = |name: &str| {
        let (table, mut sums) = (columns(&profile, name), BTreeMap::<(i32, i32), f64>::new());
        for row in 0..table.rows() {
            let key = (table.integers("event")[row], table.integers("stack")[row]);
            *sums.entry(key).or_default() += table.numbers("weight")[row];
        }
        (table.rows(), sums)
    };
    let ((rows, sums), (_, of_samples)) = (by_stack("sums"), by_stack("samples"));
    assert_eq!(rows, sums.len(), "a row for each event and stack");
    assert_eq!(sums, of_samples);
}

#[test]
fn merged_stacks_keep_the_sum_and_are_as_few_as_asked_for() {
    each(|path, selection| {
        let of = |limits| {
            let profile = Profile::new(selection.clone(), limits);
            let self_weight = costs(&profile).values().map(|cost| cost[0]).sum::<u128>();
            (self_weight, profile.table("stacks").map_or(0, |table: ParquetTable| table.rows()))
        };
        let (whole, nodes) = of(Limits::default());
        let most = nodes / 3 + 2;
        let (merged, left) = of(Limits { stacks: most, ..Limits::default() });
        assert_eq!(merged, whole, "{path}");
        assert!(left <= most && left > 0 || nodes == 0, "{path}: {left} of {nodes}, {most} asked for");
    });
}

#[test]
fn stacks_with_one_caller_follow_each_other() {
    each(|path, selection| {
        for limits in [Limits::default(), Limits { stacks: 20, ..Limits::default() }] {
            let stacks = columns(&Profile::new(selection.clone(), limits), "stacks");
            let parents = stacks.integers("parent");
            assert!(parents.is_sorted(), "{path}: {parents:?}");
            assert!(parents.iter().enumerate().all(|(row, parent)| *parent < row as i32), "{path}: {parents:?}");
        }
    });
}
