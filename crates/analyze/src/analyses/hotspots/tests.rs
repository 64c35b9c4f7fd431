use stepscope_model::{Capture, Event, Value};

use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing};

/// The small case of the samples, with every trap of the study in it.
const MICRO: &str = "
    main;a;b;a;c 10
    main;a;b 5
    main;void gz::sim::Foo<int, std::pair<long, long> >::Run;std::map<gz::math::X, int>::find 20
    main;gz::sim::Bar::Step;std::function<bool 7
    main;a;operator new 3
    worker 4
    worker;[unknown];[unknown] 6
    worker;_[i];malloc 45
    ";

fn hotspots(capture: &Capture) -> Table {
    drawn::selected(capture, &["gz::"], table)
}

/// The table by another column than self weight.
fn by(column: &str, mut table: Table) -> Table {
    let place = table.column(column).unwrap();
    table.rows.sort_by_key(|row| match (&row[place], &row[0]) {
        (Value::Int(weight), Value::Text(name)) => (Reverse(Some(*weight)), name.clone()),
        (_, name) => (Reverse(None), format!("{name:?}")),
    });
    table
}

#[test]
fn self_inclusive_and_attributed_of_the_small_case() {
    let table = hotspots(&drawn::folded(MICRO));
    assert_eq!(
        cells(&table, &["function", "self", "inclusive", "attributed", "count", "self_share"]),
        [
            "malloc | 45 | 45 | 0 | 1 | 45",
            "std::map<gz::math::X, int>::find | 20 | 20 | 0 | 1 | 20",
            "c | 10 | 10 | 0 | 1 | 10",
            "std::function<bool | 7 | 7 | 0 | 1 | 7",
            "[unknown] | 6 | 6 | 0 | 1 | 6",
            "b | 5 | 15 | 0 | 2 | 5",
            "(no stack) | 4 | 4 | 0 | 1 | 4",
            "operator new | 3 | 3 | 0 | 1 | 3",
            "_[i] | 0 | 45 | 0 | 1 | 0",
            "a | 0 | 18 | 0 | 3 | 0",
            "gz::sim::Bar::Step | 0 | 7 | 7 | 1 | 0",
            "void gz::sim::Foo<int, std::pair<long, long> >::Run | 0 | 20 | 20 | 1 | 0",
        ]
    );
    assert_eq!(
        table.notes,
        [
            "Total: 100 ns in 8 samples of cpu-clock.",
            "Under owned code: 27 ns (27.00 %); other stacks contain no owned function.",
            "8 samples only: a share of 50 % may be off by 35 points. Record for longer, or more often (`record --frequency`).",
        ]
    );
}

#[test]
fn categories_and_ownership_are_shown_and_sorting_by_attributed_puts_owned_code_first() {
    let table = by("attributed", hotspots(&drawn::folded(MICRO)));
    assert_eq!(
        cells(&table, &["function", "owned", "category"])[..4],
        [
            "void gz::sim::Foo<int, std::pair<long, long> >::Run | true | native",
            "gz::sim::Bar::Step | true | native",
            "(no stack) | - | unknown",
            "[unknown] | false | unknown",
        ]
    );
}

#[test]
fn patterns_without_a_match_and_missing_ownership_are_noted() {
    let capture = drawn::folded("main;gz::Run;find 5");
    let notes = |owned: &[&str]| drawn::selected(&capture, owned, |selection| edges(selection).notes);
    assert!(notes(&["gz::"]).is_empty());
    let nothing = "No function matches the owned pattern `nope::*`. Largest namespaces here: `gz::*`.";
    assert_eq!(notes(&["nope::*"]), [nothing]);
    assert!(notes(&[])[0].contains("--owned 'sim::*'"));
    let table = drawn::selected(&capture, &["nope::*"], table);
    assert!(table.notes.iter().any(|note| note == nothing), "{:?}", table.notes);
}

#[test]
fn totals_have_readable_units() {
    let total = |event: Event, weight: u64| {
        let capture = Drawing::new().folded(event, &format!("main;a {weight}")).capture;
        let table = hotspots(&capture);
        (table.title.clone(), table.notes[0].to_string().split(',').next().unwrap().to_owned())
    };
    assert_eq!(
        total(Event::sampled("cpu-clock", "ns"), 5_819_458_218),
        ("On-CPU time by function".to_owned(), "Total: 5.82 s in 1 sample of cpu-clock.".to_owned())
    );
    assert_eq!(
        total(Event::weighed("weight", "weight"), 156_578_009_190),
        ("Weight of samples by function".to_owned(), "Total: 157 G weight".to_owned())
    );
}

/// Erratum 1.
#[test]
fn sums_of_weights_have_no_count() {
    let capture = Drawing::new().folded(Event::weighed("cycles", "cycles"), "main;a 156578009190").capture;
    let table = hotspots(&capture);
    assert_eq!(cells(&table, &["function", "count", "self", "self_count"]), ["a | - | 156578009190 | -"]);
    assert_eq!(table.columns[table.column("self").unwrap()].unit, "cycles");
    assert!(table.notes[0].contains("the number of samples is not known"), "{}", table.notes[0]);
}

/// Errata 2 and 13.
#[test]
fn a_leaf_is_attributed_to_its_nearest_owned_caller_and_not_to_wrappers() {
    let capture = drawn::folded(
        "
        main;gz::Run;gz::Step;gz::EntityMatches;_Hashtable::find 275
        main;gz::Run;gz::Step;gz::Write;_Hashtable::find 2
        main;gz::Run;gz::Step 3
        ",
    );
    let table = by("attributed", hotspots(&capture));
    assert_eq!(
        cells(&table, &["function", "attributed", "inclusive"])[..4],
        ["gz::EntityMatches | 275 | 275", "gz::Step | 3 | 280", "gz::Write | 2 | 2", "_Hashtable::find | 0 | 277",]
    );
    let edges = drawn::selected(&capture, &["gz::"], edges);
    assert_eq!(
        cells(&edges, &["caller", "leaf", "weight"]),
        ["gz::EntityMatches | _Hashtable::find | 275", "gz::Step | gz::Step | 3", "gz::Write | _Hashtable::find | 2",]
    );
}

/// Erratum 7.
#[test]
fn names_with_spaces_are_whole() {
    let name = "void gz::Each<gz::A, std::pair<long, long> >::operator new [clone .cold]";
    let table = hotspots(&drawn::folded(&format!("main;{name} 1")));
    assert_eq!(cells(&table, &["function"]), [name]);
}

/// Erratum 16.
#[test]
fn ties_are_in_the_order_of_names() {
    let table = hotspots(&drawn::folded("main;b 1\nmain;c 1\nmain;a 1\nmain;d 2"));
    assert_eq!(cells(&table, &["function"]), ["d", "a", "b", "c"]);
}

#[test]
fn without_ownership_its_columns_are_missing() {
    let capture = drawn::folded("main;gz::a 1");
    let table = drawn::selected(&capture, &[], table);
    assert_eq!(cells(&table, &["owned", "attributed", "attributed_share"]), ["- | - | -"]);
}

#[test]
fn the_source_is_the_line_with_most_self_weight_whatever_its_address() {
    let capture = drawn::columns(
        "
        main                  main                  main                  main
        step [file:a.cc:10]   step [file:a.cc:20]   step [file:a.cc:20]   step [file:a.cc:5]
                                                                          find
        4                     3                     2                     9
        ",
    );
    let table = by("inclusive", hotspots(&capture));
    assert_eq!(cells(&table, &["function", "source"])[0], "step | a.cc:20");
}

#[test]
fn where_steps_are_known_costs_are_per_step_too() {
    let capture = Drawing::new()
        .window(0..1_000)
        .lived("main", 0..1_000, None)
        .steps("main", 100, 100, 4, 1)
        .folded(
            Event::sampled("cpu-clock", "ns"),
            "@50 main;gz::Load 900\n@150 main;gz::Step;find 40\n@250 main;gz::Step 20",
        )
        .blocked("main", 420..620, "gz::Step;gz::Pause;nanosleep")
        .capture;
    let table = hotspots(&capture);
    assert_eq!(
        cells(
            &table,
            &["function", "self", "self_per_step", "inclusive_per_step", "attributed_per_step", "blocked_per_step"]
        ),
        ["gz::Load | 900 | 0 | 0 | 0 | 0", "find | 40 | 10 | 10 | 0 | 0", "gz::Step | 20 | 5 | 15 | 15 | 0",]
    );
    assert_eq!(table.notes.last().unwrap(), "Per step: 15 ns (4 steps).");
    let stepless = hotspots(&drawn::folded("main;a 1"));
    assert_eq!(stepless.column("self_per_step"), None);
}

#[test]
fn a_module_without_symbols_is_named_with_its_share() {
    let capture = drawn::columns(
        "
        main                              main
        Run                               Run
        sumo+0x1230 [lib:/usr/bin/sumo]   Write
        84                                16
        ",
    );
    let note =
        |capture: &Capture| drawn::selected(capture, &[], |selection| Hotspots::of(selection).unnamed_note(selection));
    assert_eq!(
        note(&capture).unwrap(),
        "84.00 % of the samples end in `sumo`, in functions without a name. Install its debug symbols, or name a \
         folder that has them with `--debug-dir DIR`, then run `stepscope symbolize CAPTURE`; or ask a server: \
         `DEBUGINFOD_URLS=... stepscope symbolize CAPTURE`."
    );
    assert_eq!(note(&drawn::folded("main;Run 1")), None);
}

#[test]
fn an_interpreter_that_does_not_name_its_functions_is_named() {
    let note = |text: &str| {
        drawn::selected(&drawn::folded(text), &[], |selection| Hotspots::of(selection).unnamed_note(selection))
    };
    let text = "main;_PyEval_EvalFrameDefault;PyDict_GetItem 3\nmain;read 1";
    assert_eq!(
        note(text).unwrap(),
        "75.00 % of the samples are in or below CPython's interpreter, and Python functions have no names. Record them with \
         `record --with python`."
    );
    assert_eq!(note("main;py::step:/srv/robot.py;_PyEval_EvalFrameDefault 4"), None);
}

#[test]
fn a_capture_without_events_gives_an_empty_table_and_a_note() {
    let table = hotspots(&Capture::default());
    assert!(table.rows.is_empty());
    assert_eq!(table.notes, ["The capture has no samples of any event."]);
}
