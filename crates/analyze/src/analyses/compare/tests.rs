use stepscope_model::{Capture, Counter, Counts, Event, MACHINE_SPEED, Machine, Value, Verdict};
use stepscope_stats::SplitMix64;

use super::*;
use crate::analyses::{gate, metrics};
use crate::columns::read::cells;
use crate::drawn::{self, Drawing};

const SECOND: u64 = 1_000_000_000;

/// Counts of samples by function, over ten seconds.
fn counted(text: &str) -> Capture {
    let event = Event { counts: Counts::Weight, ..Event::sampled("cpu-clock", "samples") };
    Drawing::new().window(0..10 * SECOND).folded(event, text).capture
}

fn evidence(capture: &Capture) -> Evidence {
    drawn::selected(capture, &[], |selection| Evidence::of(selection, Basis::of(selection)))
}

fn side(name: &str, captures: &[Capture]) -> Side {
    Side { name: name.to_owned(), runs: captures.iter().map(evidence).collect() }
}

fn compared(before: &[Capture], after: &[Capture]) -> Comparison {
    Comparison::of(&side("before", before), &side("after", after), &Options::default())
}

fn row<'a>(comparison: &'a Comparison, family: Family, name: &str) -> &'a Row {
    let named = |row: &&Row| &*row.identity().name == name;
    comparison.rows(family).iter().find(named).unwrap_or_else(|| panic!("no row {name}"))
}

/// 500 steps of 1 ms, each sampled at once: a sample every millisecond, of `f` with this probability and of `rest` else.
/// The run's luck shifts the probability by up to 2 %.
fn run_of(probability: f64, seed: u64) -> Capture {
    let mut random = SplitMix64::new(seed);
    let luck = 1.0 + (random.below(1_000) as f64 / 1_000.0 - 0.5) * 0.04;
    let mut samples = String::new();
    for step in 0..500 {
        for part in 0..20 {
            let chance = random.below(1_000_000) as f64 / 1e6;
            let leaf = if chance < probability * luck {
                "f"
            } else if chance < 0.5 {
                "g"
            } else {
                continue;
            };
            samples.push_str(&format!("@{} main;run;{leaf} 50000\n", step * 1_000_000 + part * 50_000));
        }
    }
    let drawing = Drawing::new().window(0..500_000_000).steps("main", 0, 1_000_000, 500, 500_000);
    drawing.folded(Event::sampled("cpu-clock", "ns"), samples.trim_end()).capture
}

fn runs(count: u64, probability: f64, seed: u64) -> Vec<Capture> {
    (0..count).map(|run| run_of(probability, seed * 1_000 + run)).collect()
}

/// DESIGN's golden cases: counts of samples of one run each, over equal durations.
#[test]
fn with_one_run_per_side_only_differences_beyond_sampling_noise_are_changes() {
    for (before, after, verdict) in [
        (401, 380, Verdict::Inconclusive),
        (714, 675, Verdict::Inconclusive),
        (675, 300, Verdict::Changed),
        (29, 120, Verdict::Changed),
    ] {
        let capture = |count| counted(&format!("main;run;f {count}\nmain;run;rest 5000"));
        let comparison = compared(&[capture(before)], &[capture(after)]);
        assert_eq!(comparison.noise, Noise::Sampling);
        assert!(comparison.notes[0].starts_with("Sampling noise only"), "{:?}", comparison.notes);
        let f = row(&comparison, Family::Own, "f");
        assert_eq!(f.assessment.verdict, verdict, "{before} -> {after}: {:?}", f.assessment);
        assert_eq!(f.assessment.counts, Some((before, after)));
        assert_eq!(f.assessment.more_runs.is_some(), verdict == Verdict::Inconclusive);
    }
}

/// Erratum 14: shares are compositional. Costs are not.
#[test]
fn when_one_function_shrinks_by_half_the_unchanged_ones_are_equivalent() {
    let before = counted("main;run;f 40000\nmain;run;g 30000\nmain;run;h 30000");
    let after = counted("main;run;f 20000\nmain;run;g 30010\nmain;run;h 29990");
    let comparison = compared(&[before], &[after]);
    let verdict = |name| row(&comparison, Family::Own, name).assessment.verdict;
    assert_eq!(
        [verdict("f"), verdict("g"), verdict("h")],
        [Verdict::Changed, Verdict::Equivalent, Verdict::Equivalent]
    );
    assert_eq!(&*comparison.rows(Family::Own)[0].identity().name, "f", "what changed comes first");
}

#[test]
fn weights_that_are_not_counted_are_shown_as_shares_and_not_tested() {
    let weighed = |text| Drawing::new().folded(Event::weighed("cycles", "cycles"), text).capture;
    let comparison = compared(&[weighed("main;f 30\nmain;g 10")], &[weighed("main;f 10\nmain;g 10")]);
    assert_eq!(comparison.basis, Basis::Share);
    assert!(comparison.notes[0].contains("no test of significance is possible"), "{:?}", comparison.notes);
    let f = row(&comparison, Family::Own, "f");
    assert_eq!((f.assessment.before, f.assessment.after, f.assessment.p, f.assessment.q), (75.0, 50.0, None, None));
    assert_eq!(f.assessment.verdict, Verdict::Inconclusive);
    let table = &tables(&comparison)[1];
    assert_eq!(table.get(0, "p"), Some(&Value::Missing));
    assert_eq!(table.get(0, "ratio_low"), Some(&Value::Missing));
}

#[test]
fn several_runs_per_side_are_compared_by_the_spread_between_runs() {
    let comparison = compared(&runs(8, 0.30, 1), &runs(8, 0.15, 2));
    assert_eq!((comparison.noise.clone(), comparison.basis), (Noise::Runs, Basis::PerStep));
    let f = &row(&comparison, Family::Own, "f").assessment;
    assert_eq!(f.verdict, Verdict::Changed);
    assert!((f.before - 300_000.0).abs() < 6_000.0, "{}", f.before);
    let ratio = f.ratio.unwrap();
    assert!(ratio.low < 0.5 && 0.5 < ratio.high && ratio.high - ratio.low < 0.06, "{ratio:?}");
    assert!(f.q.unwrap() < 0.001);
    assert_eq!(row(&comparison, Family::Inclusive, "run").assessment.verdict, Verdict::Equivalent);
}

#[test]
fn equal_sides_have_not_changed() {
    let comparison = compared(&runs(8, 0.30, 3), &runs(8, 0.30, 4));
    for family in Family::ALL {
        assert!(comparison.rows(family).iter().all(|row| !row.assessment.is_changed()), "{family:?}");
    }
    assert_eq!(row(&comparison, Family::Own, "f").assessment.verdict, Verdict::Equivalent);
}

#[test]
fn three_runs_per_side_never_show_a_change_and_a_note_says_so() {
    let comparison = compared(&runs(3, 0.30, 5), &runs(3, 0.10, 6));
    assert!(comparison.notes[0].starts_with("With 3 runs before and 3 runs after,"), "{:?}", comparison.notes);
    let f = &row(&comparison, Family::Own, "f").assessment;
    assert_eq!((f.verdict, f.p), (Verdict::Inconclusive, Some(0.1)));
    assert_eq!(f.more_runs, Some(2), "at the level that is adjusted for the rows");
}

#[test]
fn a_function_on_one_side_is_new_or_vanished_unless_it_was_renamed() {
    let before = counted("main;run;old 500\nmain;run;gz::v7::Step 300");
    let after = counted("main;run;new 600\nmain;run;gz::v8::Step 300");
    let comparison = compared(&[before], &[after]);
    let of = |name| {
        let row = row(&comparison, Family::Own, name);
        (row.presence(), row.assessment.verdict, row.assessment.ratio.is_some())
    };
    assert_eq!(of("old"), ("vanished", Verdict::Changed, false));
    assert_eq!(of("new"), ("new", Verdict::Changed, false));
    assert_eq!(of("gz::v8::Step").0, "both");
    let table = tables(&comparison).into_iter().find(|table| table.name == "compare_self").unwrap();
    let position = (0..3).find(|row| table.get(*row, "function") == Some(&Value::from("gz::v8::Step"))).unwrap();
    assert_eq!(
        table.get(position, "matched"),
        Some(&Value::from("a version in the name or module differs; was gz::v7::Step"))
    );
}

#[test]
fn rows_with_few_samples_are_not_tested_and_a_note_says_so() {
    let comparison = compared(&[counted("main;f 2\nmain;g 900")], &[counted("main;f 20\nmain;g 900")]);
    let f = &row(&comparison, Family::Own, "f").assessment;
    assert!(f.p.unwrap() < 0.001, "it would be a change");
    assert_eq!((f.q, f.verdict), (None, Verdict::Inconclusive));
    let table = tables(&comparison).into_iter().find(|table| table.name == "compare_self").unwrap();
    assert_eq!(table.notes[0], "0 of 1 tested function changed; 1 inconclusive.");
}

#[test]
fn metrics_are_compared_by_run_and_a_chain_has_every_variant() {
    let sides = [side("original", &runs(5, 0.3, 7)), side("cached", &runs(5, 0.2, 8)), side("tuned", &runs(5, 0.1, 9))];
    let compare = |a: usize, b: usize| Comparison::of(&sides[a], &sides[b], &Options::default());
    let (to_first, to_previous) = ([compare(0, 1), compare(0, 2)], [compare(0, 1), compare(1, 2)]);
    let cpu = to_first[0].metrics.iter().find(|row| row.name == "step.mean").unwrap();
    assert_eq!(cpu.runs, (5, 5));
    assert_eq!(cpu.assessment.ratio.map(|ratio| ratio.value), Some(1.0));
    let chain = chain::metrics_table(&sides, &to_first, &to_previous);
    let rows: Vec<_> = (0..3).map(|row| (chain.get(row, "metric"), chain.get(row, "variant"))).collect();
    assert_eq!(rows[2], (Some(&Value::from("rtf")), Some(&Value::from("tuned"))));
    assert_eq!(chain.get(0, "ratio_to_first"), Some(&Value::Missing));
    assert_eq!(chain.get(2, "verdict_to_previous"), Some(&Value::from("equivalent")));
}

#[test]
fn a_chain_has_each_thread_and_each_category_of_every_variant() {
    let side_of = |name: &str, folded: &str| side(name, &[counted(folded)]);
    let sides = [
        side_of("default", "main;f 700\nrecv;dds_read 130"),
        side_of("tuned", "main;f 690"),
        side_of("optimised", "main;f 300\nhelper;g 20"),
    ];
    let compare = |a: usize, b: usize| Comparison::of(&sides[a], &sides[b], &Options::default());
    let (to_first, to_previous) = ([compare(0, 1), compare(0, 2)], [compare(0, 1), compare(1, 2)]);
    let tables = chain::tables(&sides, &to_first, &to_previous);
    let threads = tables.iter().find(|table| table.name == "compare_chain_threads").unwrap();
    let rows = cells(threads, &["thread", "variant", "verdict_to_first", "verdict_to_previous"]);
    assert_eq!(
        rows,
        [
            "main | default | - | -",
            "main | tuned | inconclusive | inconclusive",
            "main | optimised | changed | changed",
            "recv | default | - | -",
            "recv | tuned | changed | changed",
            "recv | optimised | changed | -",
            "helper | default | - | -",
            "helper | tuned | - | -",
            "helper | optimised | inconclusive | inconclusive",
        ]
    );
    let categories = tables.iter().find(|table| table.name == "compare_chain_categories").unwrap();
    assert!(cells(categories, &["category", "variant"]).contains(&"DDS receive | default".to_owned()));
}

#[test]
fn equal_input_has_equal_output() {
    let tables = || tables(&compared(&runs(4, 0.3, 1), &runs(5, 0.2, 2)));
    assert_eq!(tables(), tables());
}

#[test]
fn own_metrics_are_compared_like_other_metrics_of_the_run() {
    let side = |latency: f64| -> Vec<Capture> {
        let with_latency = |(run, mut capture): (usize, Capture)| {
            let values = (0..50).map(|value| latency + f64::from(value) + run as f64).collect();
            let (name, unit, better) = ("rate".into(), "Hz".into(), metrics::Better::Higher);
            capture.info.own_metrics = vec![stepscope_model::OwnMetric { name, unit, better, values }];
            capture
        };
        runs(6, 0.2, 3).into_iter().enumerate().map(with_latency).collect()
    };
    let comparison = compared(&side(1_000.0), &side(500.0));
    let row = comparison.metrics.iter().find(|row| row.name == "metric.rate.p99").unwrap();
    assert_eq!((row.unit.as_str(), row.better, row.runs), ("Hz", metrics::Better::Higher, (6, 6)));
    assert_eq!((row.assessment.before, row.assessment.after), (1_051.5, 551.5));
    assert_eq!(row.assessment.verdict, Verdict::Changed);
    let table = &tables(&comparison)[0];
    assert_eq!(table.get(0, "metric"), Some(&"metric.rate.mean".into()), "a limit on rows does not hide it");
}

/// An assessment of runs before and after.
fn assessed(judge: &judge::Judge, before: &[f64], after: &[f64]) -> Assessment {
    let runs = |means: &[f64]| -> Vec<stepscope_stats::Run> {
        means.iter().map(|mean| stepscope_stats::Run { mean: *mean, residuals: Vec::new() }).collect()
    };
    judge.row(&runs(before), &runs(after), None, None)
}

#[test]
fn shown_intervals_agree_with_the_verdict_however_many_rows_there_are() {
    let options = Options::default();
    let judge = judge::Judge::of_shape(&[0; 6], &[0; 6], &options);
    // p is about 0.02: significant alone, but not among forty rows.
    let (before, after) = ([1.0, 1.1, 0.9, 1.2, 1.0, 0.95], [1.2, 1.15, 1.3, 1.05, 1.25, 1.2]);
    let verdict_among = |others: usize| {
        let mut rows = vec![assessed(&judge, &before, &after)];
        rows.resize(others + 1, assessed(&judge, &before, &[1.1, 0.9, 1.0, 1.2, 0.95, 1.0]));
        judge::decide(rows.iter_mut(), &options);
        rows.swap_remove(0)
    };
    let alone = verdict_among(0);
    assert_eq!(alone.verdict, Verdict::Changed);
    assert_eq!((alone.adjusted.difference, alone.adjusted.confidence), (alone.difference, 0.95));
    let among = verdict_among(39);
    assert_eq!(among.verdict, Verdict::Inconclusive);
    assert!((among.adjusted.confidence - (1.0 - 0.05 / 40.0)).abs() < 1e-12, "{among:?}");
    assert!(among.difference.excludes_zero() && !among.adjusted.difference.excludes_zero(), "{among:?}");
    let ratio = among.adjusted.ratio.unwrap();
    assert!(ratio.low <= 1.0 && 1.0 <= ratio.high && ratio.high > among.ratio.unwrap().high, "{among:?}");
}

#[test]
fn rows_that_are_zero_in_every_run_are_no_tests() {
    let options = Options::default();
    let judge = judge::Judge::of_shape(&[0; 6], &[0; 6], &options);
    let mut rows = vec![assessed(&judge, &[0.0; 6], &[0.0; 6]); 20];
    rows.push(assessed(&judge, &[1.0, 1.1, 0.9, 1.2, 1.0, 0.95], &[1.2, 1.15, 1.3, 1.05, 1.25, 1.2]));
    judge::decide(rows.iter_mut(), &options);
    assert_eq!((rows[0].verdict, rows[0].q), (Verdict::Equivalent, None));
    assert_eq!(rows[20].verdict, Verdict::Changed);
    assert_eq!(rows[20].q, rows[20].p);
}

#[test]
fn headline_metrics_are_adjusted_separately_from_other_metrics() {
    let comparison = compared(&runs(8, 0.30, 3), &runs(8, 0.28, 4));
    let of = |headline: bool| {
        let metrics = comparison.metrics.iter().filter(|row| metrics::is_headline(&row.name, true) == headline);
        metrics.filter_map(|row| row.assessment.q.map(|_| row.assessment.adjusted.confidence)).collect::<Vec<f64>>()
    };
    let unadjusted = |confidence: &f64| (*confidence - 0.95).abs() < 1e-12;
    let headlines = of(true);
    let tested = headlines.len() as f64;
    assert!(tested >= 2.0, "{:?}", comparison.metrics);
    let alone = |confidence: &f64| (*confidence - (1.0 - 0.05 / tested)).abs() < 1e-12;
    let significant = comparison.metrics.iter().any(|row| row.assessment.q.is_some_and(|q| q <= 0.05));
    assert!(significant || headlines.iter().all(|one| alone(one) || unadjusted(one)), "{headlines:?}");
}

#[test]
fn blocked_time_without_an_owned_caller_is_not_called_without_a_stack() {
    let capture = Drawing::new()
        .window(0..10 * SECOND)
        .folded(Event::sampled("cpu-clock", "ns"), "main;gz::Step 100")
        .blocked("main", 10..200, "pool;wait;futex")
        .blocked("main", 300..400, "gz::Step;futex")
        .blocked("main", 500..550, "")
        .capture;
    let evidence = drawn::selected(&capture, &["gz::"], |selection| Evidence::of(selection, Basis::of(selection)));
    let mut names: Vec<String> = evidence.rows(Family::Waits).keys().map(|row| row.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["(no owned caller)", "(no stack)", "gz::Step"]);
}

/// Runs on a machine that is slower in some by up to a third, as its readings say; every tenth step has one.
fn runs_on_a_noisy_machine(count: u64, probability: f64, seed: u64) -> Vec<Capture> {
    let mut random = SplitMix64::new(seed);
    let mut slowed = |mut capture: Capture| {
        let slowness = 1.0 + random.below(1_000) as f64 / 3_000.0;
        capture.samples.iter_mut().for_each(|sample| sample.weight = (sample.weight as f64 * slowness) as u64);
        let (thread, name) = (capture.steps.first().map(|step| step.thread), capture.intern_text(MACHINE_SPEED[0]));
        let value = (50_000.0 / slowness) as i64;
        for step in 0..50 {
            let (time_ns, name) = (step * 10_000_000 + 1, name.clone());
            capture.counters.push(Counter { time_ns, process: None, thread, name, value });
        }
        capture
    };
    runs(count, probability, seed).into_iter().map(&mut slowed).collect()
}

#[test]
fn costs_are_adjusted_for_the_speed_of_the_machine_and_a_note_says_so() {
    let sides =
        [side("before", &runs_on_a_noisy_machine(8, 0.30, 1)), side("after", &runs_on_a_noisy_machine(8, 0.28, 2))];
    let compare = |options: &Options| Comparison::of(&sides[0], &sides[1], options);
    let (adjusted, raw) =
        (compare(&Options::default()), compare(&Options { adjust_for_speed: false, ..Options::default() }));
    let width = |comparison: &Comparison| {
        let ratio = row(comparison, Family::Own, "f").assessment.ratio.unwrap();
        assert!(ratio.low < 0.28 / 0.30 && 0.28 / 0.30 < ratio.high, "{ratio:?}");
        (ratio.high / ratio.low).ln()
    };
    assert!(width(&adjusted) < 0.5 * width(&raw), "{} {}", width(&adjusted), width(&raw));
    let by = row(&adjusted, Family::Own, "f").assessment.speed.unwrap();
    assert!((by.coefficient - 1.0).abs() < 0.3 && by.width_share < 0.5, "{by:?}");
    assert!(
        adjusted.notes.iter().any(|note| note.starts_with("Adjusted for the machine's speed")),
        "{:?}",
        adjusted.notes
    );
    assert!(raw.notes.is_empty() && row(&raw, Family::Own, "f").assessment.speed.is_none());
    // Counts do not depend on it.
    let faults = adjusted.metrics.iter().filter(|row| !row.unit.starts_with("ns") && row.name != "rtf");
    assert!(faults.map(|row| &row.assessment.speed).all(Option::is_none));
}

#[test]
fn one_run_without_readings_leaves_all_costs_as_measured() {
    let mut before = runs_on_a_noisy_machine(8, 0.30, 1);
    before[3].counters.clear();
    let comparison = compared(&before, &runs_on_a_noisy_machine(8, 0.30, 2));
    assert_eq!(row(&comparison, Family::Own, "f").assessment.speed, None);
    assert_eq!(comparison.notes, [] as [Note; 0]);
}

#[test]
fn runs_on_two_levels_are_named() {
    let on_two_levels = |seed: u64| -> Vec<Capture> {
        let slowed = |(run, mut capture): (usize, Capture)| {
            let percent = if run % 2 == 0 { 140 } else { 100 };
            capture.samples.iter_mut().for_each(|sample| sample.weight = sample.weight * percent / 100);
            capture
        };
        runs(8, 0.3, seed).into_iter().enumerate().map(slowed).collect()
    };
    let comparison = compared(&on_two_levels(1), &on_two_levels(2));
    let [note] = &comparison.notes[..] else { panic!("{:?}", comparison.notes) };
    assert!(note.starts_with("The runs lie on two levels of cpu"), "{note}");
    assert!(note.contains("4 of 8 runs of before are at") && note.contains("1.01 (lower) and 0.99 (upper)"), "{note}");
    assert!(compared(&runs(8, 0.3, 1), &runs(8, 0.3, 2)).notes.is_empty());
}

/// A run in which `gz::Find` makes `calls` allocations and system calls in each of 100 steps.
fn run_with_calls(calls: u64) -> Capture {
    let drawing = Drawing::new().window(0..1_000).process(7, "/usr/bin/sim").steps("main", 0, 10, 100, 1);
    let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), "@5 main;gz::Find 10").capture;
    let allocations = format!("main;gz::Find;malloc {} {} {} 0 0", 99 * calls, 990 * calls, 99 * calls);
    drawn::allocations(&mut capture, 10..1_000, &allocations);
    for step in 0..100 {
        drawn::system_calls(&mut capture, 10 * step + 5, "main;gz::Find;write", "write", calls);
    }
    capture
}

#[test]
fn allocations_and_system_calls_are_compared_per_step_and_per_function() {
    let sides = |calls| (0..6).map(|_| run_with_calls(calls)).collect::<Vec<_>>();
    let comparison = compared(&sides(40), &sides(10));
    let metric = |name| comparison.metrics.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"));
    for (name, before, after) in [
        ("heap.allocations", 40.0, 10.0),
        ("heap.temporary", 40.0, 10.0),
        ("heap.allocated", 400.0, 100.0),
        ("syscalls.count", 40.0, 10.0),
        ("syscalls.time", 400.0, 100.0),
    ] {
        let one = &metric(name).assessment;
        assert_eq!((one.before, one.after, one.verdict), (before, after, Verdict::Changed), "{name}");
    }
    for (family, before) in [
        (Family::Allocations, 40.0),
        (Family::TemporaryAllocations, 40.0),
        (Family::AllocatedBytes, 400.0),
        (Family::SystemCalls, 40.0),
        (Family::SystemCallTime, 400.0),
    ] {
        let one = &row(&comparison, family, "gz::Find").assessment;
        assert!((one.before - before).abs() < 1e-9 && one.is_changed(), "{family:?}: {one:?}");
    }
    let limit = |family| gate::Limit {
        of: gate::Limited::Function(family, "gz::*".parse().unwrap()),
        allowed: gate::Allowed::Percent(5.0),
        text: "+5%".to_owned(),
    };
    let limits = [limit(Family::Allocations), limit(Family::SystemCalls)];
    let judged = |comparison| -> Vec<(String, String, gate::Outcome)> {
        let judged = gate::judge(comparison, &limits).into_iter();
        judged.map(|one| (one.metric, one.unit, one.outcome)).collect()
    };
    let with = |outcome| {
        let row = |what: &str, unit: &str| (format!("{what} gz::Find"), format!("{unit}/step"), outcome);
        vec![row("allocations of", "allocations"), row("system calls of", "calls")]
    };
    assert_eq!(judged(&comparison), with(gate::Outcome::Pass));
    assert_eq!(judged(&compared(&sides(10), &sides(40))), with(gate::Outcome::Regression));
    let one_run = compared(&sides(40)[..1], &sides(10)[..1]);
    let tables = tables(&one_run);
    let table = tables.iter().find(|table| table.name == "compare_allocations").unwrap();
    assert!(table.notes.iter().any(|note| note.contains("Allocations are exact, not sampled.")), "{:?}", table.notes);
}

/// Runs of two machines, half of them on each; the second takes half as long again for `f`.
fn on_two_machines(probability: f64, seed: u64) -> Vec<Capture> {
    let on = |host: &str, probability: f64, seed: u64| -> Vec<Capture> {
        let machine = Machine { host: host.to_owned(), ..Machine::default() };
        let mut captures = runs(4, probability, seed);
        captures.iter_mut().for_each(|capture| capture.info.machine = Some(machine.clone()));
        captures
    };
    [on("one", probability, seed), on("two", 1.5 * probability, seed + 1)].concat()
}

#[test]
fn differences_between_machines_are_taken_out_where_each_ran_both_sides() {
    let (before, after) = (on_two_machines(0.30, 1), on_two_machines(0.27, 3));
    let comparison = compared(&before, &after);
    let f = &row(&comparison, Family::Own, "f").assessment;
    assert_eq!(f.verdict, Verdict::Changed, "{f:?}");
    let ratio = f.ratio.unwrap();
    assert!(ratio.low < 0.9 && 0.9 < ratio.high && ratio.high - ratio.low < 0.08, "{ratio:?}");
    let taken_out = "Recorded on 2 machines, each with both sides. Differences between machines are taken out";
    assert!(comparison.notes.iter().any(|note| note.starts_with(taken_out)), "{:?}", comparison.notes);
    let comparison = compared(&before[..6], &after[..4]);
    assert!(comparison.notes.iter().any(|note| note.contains("a machine lacks one side")), "{:?}", comparison.notes);
}
