//! What must hold of any capture: sums that add up, parts that are not larger than wholes, filters that partition.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use stepscope_analyze::hotspots::{self, Hotspots};
use stepscope_analyze::ownership::{Owned, Ownership};
use stepscope_analyze::qualified_name::own_name;
use stepscope_analyze::{
    Filter, Functions, Selection, ThreadPattern, TimeRange, Under, calltree, explain, rank, sched, tree, wall,
};
use stepscope_model::{CallTree, Capture, Event, Sample, Table, Thread, ThreadId, Value, Wait, WaitState};

const NAMES: [&str; 9] = [
    "main",
    "gz::Run",
    "void gz::Each<std::vector<int> >",
    "std::vector<gz::A>::push_back",
    "malloc",
    "dart::step",
    "[unknown]",
    "pthread_mutex_lock",
    "<gz::Pose as core::fmt::Display>::fmt",
];

/// Length of every drawn recording.
const END: u64 = 1_000;

/// A sample as drawn: thread, time, frames, weight.
type Drawn = (u8, u64, Vec<u8>, u64);

fn owned() -> Owned {
    Ownership { namespaces: vec!["gz::".into()], ..Ownership::default() }.compile().unwrap()
}

fn samples() -> impl Strategy<Value = Vec<Drawn>> {
    let frames = prop::collection::vec(0..NAMES.len() as u8, 0..7);
    prop::collection::vec((0_u8..4, 0..END, frames, 1_u64..1_000), 0..40)
}

/// Moments at which a thread is switched out and in, by turns, and what each wait is: whether it is blocked, the function
/// it is at, and how long it is runnable.
type DrawnLife = (Vec<u64>, Vec<(bool, Option<u8>, u64)>);

fn lives() -> impl Strategy<Value = Vec<DrawnLife>> {
    let cuts = prop::collection::btree_set(0..END, 0..12).prop_map(|cuts| cuts.into_iter().collect());
    let kinds = prop::collection::vec((any::<bool>(), prop::option::of(0..NAMES.len() as u8), 0..END), 6);
    prop::collection::vec((cuts, kinds), 4)
}

fn capture(samples: &[Drawn], lives: &[DrawnLife]) -> Capture {
    let mut capture = Capture::default();
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(END));
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    for tid in 0..4_u32 {
        // Two threads share a name.
        let name = format!("thread-{}", tid.min(2));
        let life = (Some(0), Some(END));
        capture.add_thread(Thread { tid, name, start_ns: life.0, end_ns: life.1, ..Thread::default() });
    }
    for (thread, time, frames, weight) in samples {
        let frames: Vec<_> = frames.iter().map(|name| capture.intern_function(NAMES[usize::from(*name)])).collect();
        let stack = capture.intern_stack(frames);
        let thread = ThreadId(u32::from(*thread));
        capture.samples.push(Sample { time_ns: Some(*time), thread, cpu: None, stack, event, weight: *weight });
    }
    for (thread, (cuts, kinds)) in lives.iter().enumerate() {
        for (cut, (blocked, leaf, runnable)) in cuts.chunks_exact(2).zip(kinds) {
            let frames: Vec<_> = leaf.iter().map(|leaf| capture.intern_function(NAMES[usize::from(*leaf)])).collect();
            let stack = capture.intern_stack(frames);
            let state = if *blocked { WaitState::Blocked } else { WaitState::Preempted };
            let length = cut[1] - cut[0];
            let runnable_ns = if *blocked { Some(runnable % (length + 1)) } else { Some(length) };
            capture.waits.push(Wait {
                start_ns: cut[0],
                end_ns: cut[1],
                thread: ThreadId::from_index(thread),
                stack,
                state,
                runnable_ns,
                cpu: None,
                waker: None,
                waker_stack: None,
                count: 1,
            });
        }
    }
    capture.check().unwrap();
    capture
}

fn is_owned(name: &str) -> bool {
    own_name(name).starts_with("gz::")
}

/// Self, inclusive and attributed by name, one sample at a time: slow and plainly right.
fn by_hand(samples: &[Drawn]) -> BTreeMap<&'static str, (u128, u128, u128)> {
    let mut sums: BTreeMap<&str, (u128, u128, u128)> = BTreeMap::new();
    for (_, _, frames, weight) in samples {
        let frames: Vec<&'static str> = frames.iter().map(|name| NAMES[usize::from(*name)]).collect();
        let weight = u128::from(*weight);
        if let Some(leaf) = frames.last() {
            sums.entry(leaf).or_default().0 += weight;
        }
        for name in frames.iter().copied().collect::<BTreeSet<_>>() {
            sums.entry(name).or_default().1 += weight;
        }
        if let Some(owner) = frames.iter().rev().find(|name| is_owned(name)) {
            sums.entry(owner).or_default().2 += weight;
        }
    }
    sums
}

fn total(selection: &Selection<'_>) -> u128 {
    selection.samples().map(|sample| u128::from(sample.weight)).sum()
}

fn off_cpu(selection: &Selection<'_>) -> u64 {
    selection.waits().map(|wait| wait.end_ns - wait.start_ns).sum()
}

fn column_sum(table: &Table, column: &str) -> i128 {
    let values = (0..table.rows.len()).map(|row| match table.get(row, column) {
        Some(Value::Int(value)) => *value,
        // Where nothing of a kind was recorded, it is not known, and adds nothing.
        Some(Value::Missing) => 0,
        other => panic!("{column} of row {row} is {other:?}"),
    });
    values.sum()
}

fn assert_adds_up(tree: &CallTree, whole: u128) {
    assert_eq!(u128::from(tree.nodes[0].total), whole);
    let mut below = vec![0_u64; tree.nodes.len()];
    for (index, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            assert!((parent as usize) < index, "a parent comes before its children");
            below[parent as usize] += node.total;
        }
    }
    for (node, below) in tree.nodes.iter().zip(below) {
        assert_eq!(node.total, node.own + below, "{}", node.name);
    }
}

proptest! {
    #[test]
    fn hotspots_agree_with_adding_up_by_hand(samples in samples()) {
        let capture = capture(&samples, &[]);
        let functions = Functions::of(&capture, &owned());
        let hotspots = Hotspots::of(&Selection::all(&capture, &functions));
        let by_hand = by_hand(&samples);
        let found: BTreeMap<&str, (u128, u128, u128)> = hotspots
            .costs
            .iter()
            .filter_map(|cost| Some((&*functions.get(cost.function?).name, (cost.own.weight, cost.inclusive.weight, cost.attributed.weight))))
            .collect();
        prop_assert_eq!(found, by_hand);
    }

    #[test]
    fn shares_add_up_and_parts_are_within_wholes(samples in samples()) {
        let capture = capture(&samples, &[]);
        let functions = Functions::of(&capture, &owned());
        let selection = Selection::all(&capture, &functions);
        let hotspots = Hotspots::of(&selection);
        let total = hotspots.total.weight;
        prop_assert_eq!(total, samples.iter().map(|(.., weight)| u128::from(*weight)).sum::<u128>());
        prop_assert_eq!(hotspots.costs.iter().map(|cost| cost.own.weight).sum::<u128>(), total);
        for cost in &hotspots.costs {
            prop_assert!(cost.own <= cost.inclusive && cost.attributed <= cost.inclusive && cost.inclusive.weight <= total);
        }
        let not_owned: u128 = samples
            .iter()
            .filter(|(_, _, frames, _)| !frames.iter().any(|name| is_owned(NAMES[usize::from(*name)])))
            .map(|(.., weight)| u128::from(*weight))
            .sum();
        let attributed: u128 = hotspots.costs.iter().map(|cost| cost.attributed.weight).sum();
        prop_assert_eq!(attributed + not_owned, total);
        prop_assert_eq!(column_sum(&hotspots::edges(&selection), "weight") as u128, attributed);
    }

    #[test]
    fn running_runnable_blocked_and_unaccounted_add_up_to_each_lifetime(lives in lives(), from in 0..END - 1, length in 1..END) {
        let capture = capture(&[], &lives);
        let functions = Functions::of(&capture, &owned());
        let time = TimeRange { from_ns: from, to_ns: Some(from + length) };
        let filter = Filter { time: Some(time), ..Filter::default() };
        let selection = Selection::new(&capture, &functions, &filter).unwrap();
        // Where no thread was ever switched out, nothing says that switches were recorded, and nothing adds up.
        prop_assume!(selection.has_switches());
        for grouping in [wall::Grouping::Thread, wall::Grouping::ThreadName] {
            let table = wall::table(&selection, grouping);
            let sum = |columns: &[&str]| columns.iter().map(|column| column_sum(&table, column)).sum::<i128>();
            prop_assert_eq!(sum(&["running", "runnable", "blocked", "unaccounted"]), sum(&["lifetime"]));
            prop_assert_eq!(sum(&["unaccounted"]), 0);
            prop_assert_eq!(
                sum(&["lock", "condition", "sleep", "file", "network", "page_fault", "other", "no_stack"]),
                sum(&["blocked"])
            );
            prop_assert_eq!(column_sum(&wall::callers(&selection), "blocked"), sum(&["blocked"]));
            prop_assert_eq!(column_sum(&sched::table(&selection), "delay"), sum(&["runnable"]));
        }
        assert_adds_up(
            &calltree::off_cpu(&selection, &calltree::Options::default()),
            column_sum(&wall::table(&selection, wall::Grouping::Thread), "blocked") as u128,
        );
    }

    #[test]
    fn filters_partition(samples in samples(), lives in lives(), at in 1..END - 1) {
        let capture = capture(&samples, &lives);
        let functions = Functions::of(&capture, &owned());
        let parts = |filters: Vec<Filter>| {
            let selected = filters.into_iter().map(|filter| Selection::new(&capture, &functions, &filter).unwrap());
            selected.fold((0, 0), |sums, part| (sums.0 + total(&part), sums.1 + off_cpu(&part)))
        };
        let all = Selection::all(&capture, &functions);
        let whole = (total(&all), off_cpu(&all));
        let thread = |name: &str| Filter { threads: vec![name.parse::<ThreadPattern>().unwrap()], ..Filter::default() };
        prop_assert_eq!(parts(vec![thread("thread-0"), thread("thread-1"), thread("thread-2")]), whole);
        prop_assert_eq!(parts((0..4).map(|tid| thread(&tid.to_string())).collect()), whole);
        let side = |side| Filter { ownership: Some(side), ..Filter::default() };
        prop_assert_eq!(parts(vec![side(Under::Owned), side(Under::NotOwned)]), whole);
        let range = |from_ns, to_ns| Filter { time: Some(TimeRange { from_ns, to_ns }), ..Filter::default() };
        prop_assert_eq!(parts(vec![range(0, Some(at)), range(at, None)]), whole);
    }

    #[test]
    fn every_call_tree_adds_up(samples in samples()) {
        let capture = capture(&samples, &[]);
        let functions = Functions::of(&capture, &owned());
        let selection = Selection::all(&capture, &functions);
        let whole = total(&selection);
        for order in [calltree::Order::CallersFirst, calltree::Order::LeavesFirst] {
            for grouping in [calltree::Grouping::None, calltree::Grouping::Thread, calltree::Grouping::ThreadName] {
                assert_adds_up(&calltree::of_samples(&selection, &calltree::Options { order, grouping }), whole);
            }
        }
    }

    #[test]
    fn the_rows_of_a_text_tree_add_up_whatever_is_left_out(samples in samples(), least in 0.0..60.0_f64, deepest in 0_usize..6) {
        let capture = capture(&samples, &[]);
        let functions = Functions::of(&capture, &owned());
        let selection = Selection::all(&capture, &functions);
        let options = tree::Options { least_percent: least, deepest, ..tree::Options::default() };
        let table = tree::table(&selection, &options);
        let value = |row: usize, column: &str| match table.get(row, column) {
            Some(Value::Int(value)) => *value,
            _ => 0,
        };
        for row in 0..table.rows.len() {
            let depth = value(row, "depth");
            let below = (row + 1..table.rows.len()).take_while(|&next| value(next, "depth") > depth);
            let children: i128 = below.filter(|&next| value(next, "depth") == depth + 1).map(|next| value(next, "inclusive")).sum();
            let is_sum = table.get(row, "self") == Some(&Value::Missing);
            prop_assert!(is_sum || value(row, "inclusive") == value(row, "self") + children);
        }
    }

    #[test]
    fn ranked_costs_add_up_to_what_is_under_owned_code(samples in samples()) {
        let capture = capture(&samples, &[]);
        let functions = Functions::of(&capture, &owned());
        let selection = Selection::all(&capture, &functions);
        let under_owned = Hotspots::of(&selection).under_owned.weight as f64;
        let table = rank::table(&[selection], &rank::Options::default());
        let costs = (0..table.rows.len()).map(|row| match table.get(row, "cost") {
            Some(Value::Float(cost)) => *cost,
            other => panic!("cost is {other:?}"),
        });
        // In ns per second of a recording of 1000 ns.
        let sum = costs.sum::<f64>() * END as f64 / 1e9;
        prop_assert!((sum - under_owned).abs() < 1e-6 * under_owned.max(1.0), "{sum} {under_owned}");
    }

    #[test]
    fn callers_and_callees_of_a_function_both_add_up_to_its_inclusive_weight(samples in samples(), asked in 0..NAMES.len()) {
        let capture = capture(&samples, &[]);
        let functions = Functions::of(&capture, &owned());
        let selection = Selection::all(&capture, &functions);
        let Ok(tables) = explain::tables(&[selection], NAMES[asked], &rank::Options::default()) else { return Ok(()) };
        let sum = |name: &str, column: &str| {
            tables.iter().find(|table| table.name == name).map_or(0, |table| column_sum(table, column))
        };
        prop_assert_eq!(sum("explain_callers", "weight"), sum("explain_costs", "inclusive"));
        prop_assert_eq!(sum("explain_callees", "weight"), sum("explain_costs", "inclusive"));
        prop_assert_eq!(sum("explain_threads", "weight"), sum("explain_costs", "inclusive"));
        prop_assert_eq!(sum("explain_paths", "weight"), sum("explain_costs", "inclusive"));
        prop_assert_eq!(sum("explain_leaves", "weight"), sum("explain_costs", "attributed"));
    }
}
