//! Tests of the rank.

use stepscope_model::{Capture, Conditions, Event, Machine, Module, Note, Origin};

use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing, owned_by};
use crate::query::functions::Functions;

fn cycles() -> Event {
    Event::weighed("cycles", "cycles")
}

fn cpu_clock() -> Event {
    Event::sampled("cpu-clock", "ns")
}

fn misses() -> Event {
    Event::weighed("cache-misses", "misses")
}

/// A capture of a scenario's steady phase.
fn of_scenario(scenario: &str, drawing: Drawing) -> Capture {
    let mut capture = drawing.capture;
    capture.info.scenario = Some(scenario.to_owned());
    capture.info.phase = Some(Phase::Steady);
    capture
}

fn sampled(scenario: &str, text: &str) -> Capture {
    of_scenario(scenario, Drawing::new().folded(cycles(), text))
}

fn rank_of(captures: &[&Capture], options: &Options) -> Table {
    let functions: Vec<Functions> =
        captures.iter().map(|capture| Functions::of(capture, &owned_by(&["gz::"]))).collect();
    let selections: Vec<Selection<'_>> =
        captures.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
    table(&selections, options)
}

fn by_cost(captures: &[&Capture]) -> Table {
    rank_of(captures, &Options::default())
}

fn by_score(captures: &[&Capture]) -> Table {
    rank_of(captures, &Options { by: Order::Score, ..Options::default() })
}

/// Errata 2 and 13.
#[test]
fn wrappers_and_leaves_do_not_lead_and_rows_add_up_to_the_cost_under_owned_code() {
    let capture = sampled(
        "static",
        "
        main;gz::Run;gz::Step;gz::EntityMatches;find 28
        main;gz::Run;gz::Step;gz::Write;find 7
        main;gz::Run;gz::Step 1
        main;idle 64
        ",
    );
    let table = by_cost(&[&capture]);
    assert_eq!(
        cells(&table, &["rank", "function", "cost", "share", "inclusive_share", "worst_scenario", "scenarios"]),
        [
            "1 | gz::EntityMatches | 28 | 28 | 28 | static | 1",
            "2 | gz::Write | 7 | 7 | 7 | static | 1",
            "3 | gz::Step | 1 | 1 | 36 | static | 1",
        ]
    );
    assert_eq!(table.notes[0], "static: 36.00 % of the weight is in the functions listed.");
}

#[test]
fn costs_are_per_step_of_the_time_that_steps_span() {
    let of = |scenario: &str, text: &str, length| {
        let drawing = Drawing::new().window(0..1_000).folded(cpu_clock(), text).steps("main", 100, length, 4, 1);
        of_scenario(scenario, drawing)
    };
    let small = of("small", "@50 main;gz::Load 999\n@150 main;gz::Each 20\n@250 main;gz::Write 60", 100);
    let large = of("large", "@150 main;gz::Each 200\n@899 main;gz::Each 400\n@900 main;idle 1", 200);
    let table = by_cost(&[&small, &large]);
    assert_eq!(
        cells(&table, &["function", "cost", "worst_scenario", "scenarios", "cost_min", "cost_max", "share"]),
        ["gz::Each | 77.5 | large | 2 | 5 | 150 | 100", "gz::Write | 7.5 | small | 1 | 15 | 15 | 75",]
    );
    assert_eq!(table.columns[table.column("cost").unwrap()].unit, "ns/step");
    assert_eq!(
        table.notes,
        [
            "small: 20 ns per step (4 steps), all of it in the functions listed.",
            "large: 150 ns per step (4 steps), all of it in the functions listed.",
        ]
    );
}

/// A step probe fires as soon as the first steps run, before the program is seen to be ready.
#[test]
fn loading_is_ranked_by_all_of_its_time_and_not_by_the_steps_within_it() {
    let loading = |scenario: &str| {
        let text = "@100 main;gz::Clone 900000000\n@999999999 main;gz::ForwardStep 7000000\n@1000000500 main;gz::Write 1000000";
        let drawing = Drawing::new().window(0..1_000_001_000).folded(cpu_clock(), text);
        let mut capture = of_scenario(scenario, drawing.steps("main", 999_999_000, 1_000, 2, 1));
        capture.info.phase = Some(Phase::Loading);
        capture
    };
    let (one, two) = (loading("one"), loading("two"));
    let table = by_cost(&[&one, &two]);
    assert_eq!(
        cells(&table, &["function", "share"]),
        ["gz::Clone | 99.118943", "gz::ForwardStep | 0.770925", "gz::Write | 0.110132"]
    );
    assert_eq!(table.columns[table.column("cost").unwrap()].unit, "ns/s");
    let note = "one: All of the loading phase counts, also outside its 2 steps. See `show --view steps`.";
    assert!(table.notes.iter().any(|one| one == note), "{:?}", table.notes);
    assert!(!table.notes.iter().any(|note| note.to_string().contains("no steps")), "{:?}", table.notes);
    // The same capture of the steady phase is ranked by its steps.
    let steady = of_scenario("one", Drawing { capture: one });
    assert_eq!(cells(&by_cost(&[&steady]), &["function"]), ["gz::ForwardStep", "gz::Write"]);
}

#[test]
fn without_steps_costs_are_per_second_of_wall_time() {
    let capture =
        of_scenario("a", Drawing::new().window(0..2_000_000_000).folded(cpu_clock(), "main;gz::Each 500000000"));
    let table = by_cost(&[&capture]);
    assert_eq!(cells(&table, &["cost"]), ["250000000"]);
    assert_eq!(table.columns[table.column("cost").unwrap()].unit, "ns/s");
    assert!(
        table.notes.iter().any(|note| note == "Costs are per second of wall time: a has no steps."),
        "{:?}",
        table.notes
    );
}

/// Erratum 3.
#[test]
fn shares_of_low_coverage_are_not_turned_into_time() {
    let drawing = Drawing::new().window(0..26_000).lived("main", 0..26_000, 26_000);
    let capture = of_scenario("static", drawing.folded(cpu_clock(), "main;gz::Load 400").steps("main", 0, 100, 10, 1));
    let table = by_cost(&[&capture]);
    assert_eq!(table.columns[table.column("cost").unwrap()].unit, "percent");
    assert_eq!(table.notes[1], "Costs are shares of samples: coverage is below 50.00 % in static.");
}

#[test]
fn units_are_not_mixed() {
    let a = of_scenario("a", Drawing::new().window(0..10).folded(cpu_clock(), "main;gz::Each 5"));
    let b = sampled("b", "main;gz::Each 5000");
    let table = by_cost(&[&a, &b]);
    assert_eq!(cells(&table, &["cost"]), ["100"]);
    assert!(table.notes[2].starts_with("Costs are shares: the scenarios have different units (cycles, ns)"));
}

/// Erratum 9.
#[test]
fn the_worst_scenario_is_the_one_with_the_largest_cost_and_not_the_first_with_the_best_score() {
    let dynamic = sampled("dynamic", "main;gz::Recreate 108\nmain;idle 892");
    let stationary = sampled("static", "main;gz::Recreate 450\nmain;idle 550");
    let table = by_score(&[&dynamic, &stationary]);
    assert_eq!(
        cells(&table, &["function", "score", "worst_scenario", "share", "cost_min", "cost_max", "cost"]),
        ["gz::Recreate | 40 | static | 45 | 10.8 | 45 | 27.9"]
    );
}

#[test]
fn samples_that_do_not_count_the_same_are_not_added_up() {
    let cpu = sampled("static", "main;gz::Each 20\nmain;gz::Write 80");
    let of =
        |event: Event| of_scenario("static", Drawing::new().folded(event, "main;gz::Each 900\nmain;gz::Write 100"));
    let simulated = of(Event::weighed("Ir", "instructions"));
    let unknown = of(Event::weighed("weight", "weight"));
    let columns = ["function", "share"];
    for captures in [[&cpu, &simulated, &unknown], [&unknown, &simulated, &cpu]] {
        let table = by_cost(&captures);
        assert_eq!(cells(&table, &columns), ["gz::Write | 80", "gz::Each | 20"]);
        let is_named =
            |note: &Note| *note == "static/steady: Left out: samples of `weight`, which do not add up with the others.";
        assert!(table.notes.iter().any(is_named), "{:?}", table.notes);
    }
    // Alone, instructions are the cost.
    assert_eq!(cells(&by_cost(&[&simulated]), &columns), ["gz::Each | 90", "gz::Write | 10"]);
}

/// Erratum 4.
#[test]
fn cache_misses_are_joined_only_with_the_same_scenario_phase_and_command() {
    let cpu = sampled("static", "main;gz::Each 20\nmain;gz::Write 80");
    let with_misses = |scenario: &str, phase, command: &str| {
        let mut capture = of_scenario(scenario, Drawing::new().folded(misses(), "main;gz::Each 60\nmain;gz::Write 40"));
        capture.info.phase = Some(phase);
        capture.info.command = vec![command.to_owned()];
        capture
    };
    let mut cpu = cpu;
    cpu.info.command = vec!["gz".to_owned()];
    let ratios = |other: &Capture| {
        let table = by_cost(&[&cpu, other]);
        (cells(&table, &["function", "cache_ratio", "score_max"]), table.notes[1..].to_vec())
    };
    let same = with_misses("static", Phase::Steady, "gz");
    assert_eq!(ratios(&same).0, ["gz::Write | 0.5 | 60", "gz::Each | 3 | 60"]);

    let unpaired = ["gz::Write | - | 40", "gz::Each | - | 40"];
    let (rows, notes) = ratios(&with_misses("static", Phase::Loading, "gz"));
    assert_eq!(rows, unpaired);
    assert_eq!(notes[0], "Not ranked here: 1 capture of the loading phase; see `--phase loading`.");

    let (rows, notes) = ratios(&with_misses("dynamic", Phase::Steady, "gz"));
    assert_eq!(rows, unpaired);
    assert_eq!(notes[0], "dynamic: Not used: no CPU samples, and no capture of the same scenario that has some.");

    let (rows, notes) = ratios(&with_misses("static", Phase::Steady, "gz2"));
    assert_eq!(rows, unpaired);
    assert!(notes.iter().any(|note| note
        == "static: A capture is ranked apart from the others of its scenario: their commands differ (`gz`, `gz2`)."));
}

/// Erratum 4.
#[test]
fn another_build_of_a_module_is_not_the_same_program() {
    let build = |id: &str, event: Event| {
        let mut capture = of_scenario("static", Drawing::new().folded(event, "main;gz::Each 20"));
        capture.add_module(Module {
            path: "/usr/lib/libgz.so".to_owned(),
            build_id: Some(id.to_owned()),
            ..Module::default()
        });
        capture
    };
    let (cpu, rebuilt) = (build("aa", cycles()), build("bb", misses()));
    let table = by_cost(&[&cpu, &rebuilt]);
    assert_eq!(cells(&table, &["cache_ratio"]), ["-"]);
    assert!(table.notes.iter().any(|note| note
        == "static: A capture is ranked apart from the others of its scenario: their builds of libgz.so differ."));
    assert_eq!(cells(&by_cost(&[&cpu, &build("aa", misses())]), &["cache_ratio"]), ["1"]);
}

#[test]
fn captures_that_name_no_scenario_are_scenarios_of_their_own() {
    let imported = |file: &str, event| {
        let mut capture = Drawing::new().folded(event, "main;gz::Each 20").capture;
        capture.info.origin = Origin::Imported { format: "folded".to_owned(), file: file.to_owned() };
        capture
    };
    let (a, b) = (imported("static.cpu.folded", cycles()), imported("static.cache-misses.folded", misses()));
    let table = by_cost(&[&a, &b]);
    assert_eq!(cells(&table, &["worst_scenario", "cache_ratio"]), ["static.cpu.folded | -"]);
}

/// Erratum 5.
#[test]
fn functions_are_joined_by_their_whole_names() {
    let cpu = sampled("jetty", "main;gz::RenderUtil::Update 50\nmain;gz::RenderUtil::UpdateFromECM 50");
    let cache =
        of_scenario("jetty", Drawing::new().folded(misses(), "main;gz::RenderUtil::UpdateFromECM 10\nmain;x 90"));
    let table = by_cost(&[&cpu, &cache]);
    assert_eq!(
        cells(&table, &["function", "cache_ratio", "evidence"]),
        [
            "gz::RenderUtil::Update | - | cpu 40/40, cache 0/20",
            "gz::RenderUtil::UpdateFromECM | 0.2 | cpu 40/40, cache 0/20",
        ]
    );
}

/// Erratum 10.
#[test]
fn scheduler_delay_is_attributed_only_to_functions_on_the_delayed_thread() {
    const MS: u64 = 1_000_000;
    let drawing = Drawing::new()
        .window(0..100 * MS)
        .lived("main", 0..100 * MS, 90 * MS)
        .lived("worker", 0..100 * MS, 90 * MS)
        .folded(
            cpu_clock(),
            "main;gz::Step 45000000\nmain;gz::Both 40000000\nworker;gz::Work 45000000\nworker;gz::Both 40000000",
        )
        .preempted("worker", 0..10 * MS, "gz::Work");
    let table = by_score(&[&of_scenario("a", drawing)]);
    assert_eq!(
        cells(&table, &["function", "delayed", "score", "evidence"]),
        [
            "gz::Both | true | 50 | cpu 40/40, offcpu 0/15, sched 10/10",
            "gz::Work | true | 50 | cpu 40/40, offcpu 0/15, sched 10/10",
            "gz::Step | false | 40 | cpu 40/40, offcpu 0/15, sched 0/10",
        ]
    );
}

#[test]
fn delays_that_other_programs_cause_give_no_points() {
    const MS: u64 = 1_000_000;
    let drawing = |holder: &str| {
        let mut drawing = Drawing::new().window(0..100 * MS).process(1, "sim");
        for name in ["main", "hog"] {
            drawing = drawing.lived(name, 0..100 * MS, 50 * MS);
        }
        drawing = drawing
            .folded(cpu_clock(), "main;gz::Step 90000000")
            .blocked(holder, 0..MS, "")
            .on(3)
            .preempted("main", 10 * MS..20 * MS, "gz::Step")
            .on(3);
        cells(&by_score(&[&of_scenario("a", drawing)]), &["function", "delayed", "score"])
    };
    assert_eq!(drawing("hog"), ["gz::Step | true | 50"], "a recorded thread has the CPU");
    // `main` itself was on CPU 3 before, and then another program was.
    assert_eq!(drawing("main"), ["gz::Step | false | 40"]);
}

#[test]
fn where_cpus_are_unknown_delays_on_a_busy_machine_give_no_points() {
    const MS: u64 = 1_000_000;
    let scored = |others_cpu_ns: u64| {
        let drawing = Drawing::new()
            .window(0..100 * MS)
            .lived("main", 0..100 * MS, 90 * MS)
            .folded(cpu_clock(), "main;gz::Step 90000000")
            .preempted("main", 10 * MS..20 * MS, "gz::Step");
        let mut capture = of_scenario("a", drawing);
        capture.info.machine = Some(Machine { cores: 2, ..Machine::default() });
        capture.info.conditions = Some(Conditions { others_cpu_ns: Some(others_cpu_ns), ..Conditions::default() });
        cells(&by_score(&[&capture]), &["delayed", "score"])
    };
    assert_eq!(scored(5 * MS), ["true | 50"], "2.5 % of the CPUs");
    assert_eq!(scored(50 * MS), ["false | 40"], "25 % of the CPUs");
}

/// Erratum 11.
#[test]
fn blockers_are_the_nearest_owned_callers_of_waits() {
    let mut drawing = Drawing::new().window(0..150_000).folded(cpu_clock(), "main;gz::Step 100");
    for caller in 1..=12_u64 {
        let when = caller * 10_000..caller * 10_000 + 1_000 - caller;
        drawing = drawing.blocked("main", when, &format!("gz::Run;gz::B{caller:02};pthread_cond_wait;futex"));
    }
    let table = by_score(&[&of_scenario("a", drawing)]);
    let rows = cells(&table, &["function", "offcpu_place", "blocked", "score", "cost"]);
    assert_eq!(rows[0].split(" | ").next(), Some("gz::Step"));
    assert_eq!(rows[1..3], ["gz::B01 | 1 | 999 | 15 | 0", "gz::B02 | 2 | 998 | 15 | 0"]);
    assert_eq!(rows[6], "gz::B06 | 6 | 994 | 8 | 0");
    assert_eq!(rows.len(), 11, "the eleventh and twelfth blockers neither cost nor score");
}

/// Erratum 16.
#[test]
fn ties_are_broken_by_the_other_figure_and_then_by_name() {
    let capture = sampled("a", "main;gz::c 20\nmain;gz::b 20\nmain;gz::a 2\nmain;gz::d 3\nmain;x 55");
    assert_eq!(
        cells(&by_score(&[&capture]), &["function", "score"]),
        ["gz::b | 40", "gz::c | 40", "gz::d | 10", "gz::a | 10",]
    );
}

#[test]
fn several_captures_of_one_scenario_are_added_up() {
    let first = sampled("a", "main;gz::Each 10\nmain;x 90");
    let second = sampled("a", "main;gz::Each 30\nmain;x 70");
    let table = by_cost(&[&first, &second]);
    assert_eq!(cells(&table, &["function", "cost", "scenarios"]), ["gz::Each | 20 | 1"]);
}

#[test]
fn a_phase_can_be_chosen() {
    let steady = sampled("a", "main;gz::Step 10");
    let mut loading = sampled("a", "main;gz::Load 10");
    loading.info.phase = Some(Phase::Loading);
    let table = rank_of(&[&steady, &loading], &Options { phase: Some(Phase::Loading), ..Options::default() });
    assert_eq!(cells(&table, &["function"]), ["gz::Load"]);
    assert_eq!(table.title, "Rank by cost, loading phase");
    assert_eq!(cells(&by_cost(&[&steady, &loading]), &["function"]), ["gz::Step"]);
}

#[test]
fn where_nothing_is_owned_the_programs_own_functions_are_ranked() {
    let capture = sampled("a", "main;World::Step;std::find 10\nmain;malloc 2");
    let functions = Functions::of(&capture, &owned_by(&[]));
    let table = table(&[Selection::all(&capture, &functions)], &Options::default());
    assert_eq!(cells(&table, &["function", "share"]), ["World::Step | 83.333333"]);
    assert!(table.notes.last().unwrap().starts_with("No code is marked as owned"));
}

#[test]
fn nothing_to_rank_is_an_empty_table() {
    assert!(by_cost(&[]).rows.is_empty());
    assert!(by_cost(&[&Capture::default()]).rows.is_empty());
}

#[test]
fn allocations_and_system_calls_are_evidence_for_the_nearest_owned_function() {
    let text = "@5 main;gz::Find;std::string::string;malloc 4000\n@15 main;gz::Save;write 4000\n@25 main;gz::Idle 30";
    let drawing = Drawing::new().window(0..40).process(7, "/usr/bin/sim").steps("main", 0, 10, 4, 1);
    let mut capture = of_scenario("static", drawing.folded(cpu_clock(), text));
    let allocations = "main;gz::Find;std::string::string;malloc 3 48 3 0 0\nmain;gz::Idle;malloc 3 48 3 0 0";
    drawn::allocations(&mut capture, 10..40, allocations);
    drawn::system_calls(&mut capture, 15, "main;gz::Save;write", "write", 40);
    drawn::system_calls(&mut capture, 16, "main;gz::Find;poll", "poll", 99);
    let table = by_score(&[&capture]);
    // A step takes 2007.5 ns of CPU time. One allocation costs 41.6 ns, ten calls 100 ns; gz::Idle has less than 0.5 %.
    let columns = [
        "function",
        "evidence",
        "allocations_per_step",
        "temporary_per_step",
        "system_calls_per_step",
        "system_call_time_per_step",
    ];
    assert_eq!(
        cells(&table, &columns),
        [
            "gz::Find | cpu 40/40, heap 7/10, syscalls 0/10 | 1 | 1 | 24.75 | 0",
            "gz::Save | cpu 40/40, heap 0/10, syscalls 7/10 | 0 | 0 | 10 | 100",
            "gz::Idle | cpu 0/40, heap 0/10, syscalls 0/10 | 1 | 1 | 0 | 0",
        ]
    );
}

#[test]
fn bytes_are_no_evidence_about_cpus() {
    let event = Event { unit: "bytes".to_owned(), ..Event::weighed("inuse_space", "bytes") };
    let capture = of_scenario("static", Drawing::new().folded(event, "main;gz::Load;malloc 4096"));
    assert_eq!(cells(&by_score(&[&capture]), &["function", "cost", "score", "evidence"]), ["gz::Load | 100 | 0 | "]);
}
