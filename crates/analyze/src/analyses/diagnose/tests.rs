use std::fmt::Write as _;
use std::path::Path;

use stepscope_model::{Capture, Event, Machine, Step};

use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing};

const STEPS: u64 = 100;

/// A loop of 100 steps of 1 ms, each sampled ten times: `of_step` gives the stack of each tenth of a step.
pub(super) fn looping(of_step: impl Fn(u64, u64) -> String) -> Capture {
    let mut text = String::new();
    for step in 0..STEPS {
        for tenth in 0..10 {
            let time = step * 1_000_000 + tenth * 100_000 + 50_000;
            let _ = writeln!(text, "@{time} main;sim::Step;{} 100000", of_step(step, tenth));
        }
    }
    let mut capture = Drawing::new()
        .window(0..STEPS * 1_000_000)
        .lived("main", 0..STEPS * 1_000_000, STEPS * 1_000_000)
        .steps("main", 0, 1_000_000, STEPS, 500_000)
        .folded(Event::sampled("cpu-clock", "ns"), &text)
        .capture;
    capture.info.phase = Some(Phase::Steady);
    capture
}

/// Loading of 100 ms: the stack of each ms.
pub(super) fn loading(of_ms: impl Fn(u64) -> String) -> Capture {
    let lines: Vec<String> = (0..100).map(|ms| format!("@{} main;{} 1000000", ms * 1_000_000, of_ms(ms))).collect();
    let mut capture = Drawing::new()
        .window(0..100_000_000)
        .lived("main", 0..100_000_000, 100_000_000)
        .folded(Event::sampled("cpu-clock", "ns"), &lines.join("\n"))
        .capture;
    capture.info.phase = Some(Phase::Loading);
    capture
}

/// Kind, function and gain of each finding.
pub(super) fn found(capture: &Capture) -> Vec<String> {
    drawn::selected(capture, &["sim::"], |selection| {
        cells(&table(std::slice::from_ref(selection), &Calls::default()), &["kind", "function", "gain_share"])
    })
}

pub(super) fn work(tenth: u64, of: &[(u64, &str)], otherwise: &str) -> String {
    of.iter().find(|(until, _)| tenth < *until).map_or(otherwise, |(_, stack)| stack).to_owned()
}

#[test]
fn a_program_without_a_known_defect_has_no_findings() {
    let capture = looping(|_, tenth| work(tenth, &[(3, "sim::Sense"), (6, "sim::Move")], "sim::Collide"));
    let table = drawn::selected(&capture, &["sim::"], |selection| {
        super::table(std::slice::from_ref(selection), &Calls::default())
    });
    assert_eq!(table.rows.len(), 0);
    assert_eq!(table.notes[0], "No known kind of defect was found. See `rank` for what your functions cost.");
}

#[test]
fn a_file_that_is_opened_for_each_record_is_found_with_its_writes() {
    let open = "sim::Save;open64;__x64_sys_openat [kernel]";
    let write = "sim::Save;write;__x64_sys_write [kernel]";
    let capture = looping(|_, tenth| work(tenth, &[(1, open), (3, write)], "sim::Move"));
    assert_eq!(found(&capture), ["file-opened-each-time | sim::Save | 30"]);
    let once = looping(|step, _| if step == 7 { open } else { "sim::Move" }.to_owned());
    assert!(found(&once).is_empty(), "{:?}", found(&once));
}

#[test]
fn a_stream_that_opens_a_file_is_part_of_opening_it_and_no_text() {
    let stream = "sim::Log;std::basic_ofstream<char, std::char_traits<char> >::basic_ofstream";
    let opens = format!("{stream};std::basic_filebuf<char>::open;__x64_sys_openat [kernel]");
    let locale = format!("{stream};std::locale::locale;std::basic_ios<char>::init");
    let capture = looping(|_, tenth| work(tenth, &[(1, &opens), (3, &locale)], "sim::Move"));
    assert_eq!(found(&capture), ["file-opened-each-time | sim::Log | 30"]);
}

#[test]
fn containers_built_in_each_step_differ_from_temporaries_for_look_ups() {
    let titles = |capture: &Capture| {
        drawn::selected(capture, &["sim::"], |selection| {
            cells(&table(std::slice::from_ref(selection), &Calls::default()), &["finding"])
        })
    };
    let insert = "sim::Poses;std::map<int, int>::insert;operator new;malloc";
    let rebuilt = looping(|_, tenth| work(tenth, &[(4, insert)], "sim::Move"));
    assert_eq!(titles(&rebuilt), ["`sim::Poses` builds a container in every step"]);
    let find = "sim::Look;std::map<std::string, int>::find";
    let temporary = looping(|_, tenth| work(tenth, &[(1, "sim::Look;malloc"), (6, find)], "sim::Move"));
    assert_eq!(
        titles(&temporary),
        [
            "`sim::Look` looks up texts in a map in every step, and makes each text for it",
            "`sim::Look` makes a temporary for each look-up"
        ]
    );
    let few = looping(|step, tenth| match (step % 3, tenth) {
        (0, 0) => "sim::Look;malloc".to_owned(),
        (_, 1) if step % 4 < 3 => find.to_owned(),
        _ => "sim::Move".to_owned(),
    });
    assert_eq!(titles(&few), ["`sim::Look` makes a temporary for each look-up"]);
    let loaded = loading(|_| insert.to_owned());
    assert!(titles(&loaded).is_empty(), "loading builds what the simulation needs");
}

#[test]
fn images_that_are_decoded_while_it_runs_are_found() {
    let capture = looping(|step, _| if step % 10 == 3 { "sim::Draw;stbi_load;malloc" } else { "sim::Move" }.to_owned());
    assert_eq!(found(&capture), ["decoding-in-steps | sim::Draw | 10"]);
}

#[test]
fn values_that_go_through_text_are_found_in_steps_and_in_loading() {
    let shows = |tenth: u64, text: u64| {
        work(tenth, &[(text, "sim::Show;std::basic_stringstream<char>;std::ostream::_M_insert<double>")], "sim::Move")
    };
    let rows = found(&looping(|_, tenth| shows(tenth, 2)));
    assert_eq!(rows, ["values-through-text | sim::Show | 20"]);
    let rows = found(&loading(|ms| shows(ms % 10, 3)));
    assert_eq!(rows, ["values-through-text | sim::Show | 30"]);
    let log = looping(|_, tenth| work(tenth, &[(2, "sim::Log;std::ostream::_M_insert<double>")], "sim::Move"));
    assert_eq!(found(&log), ["values-through-text | sim::Log | -"], "a log has to be text");
    let put = "sim::Log;sim::Pose::Print;std::ostream::_M_insert<double>";
    let own = "sim::Log;std::ostream::_M_insert<double>";
    let with = |other: &str| found(&looping(|_, tenth| work(tenth, &[(3, put), (4, own), (5, other)], "sim::Move")));
    let faults = "sim::Move;asm_exc_page_fault [kernel]";
    assert_eq!(with(faults)[0], "values-through-text | sim::Log | 40", "nobody writes the text");
    let writes = "sim::Save;write;__x64_sys_write [kernel]";
    assert_eq!(with(writes)[0], "values-through-text | sim::Log | -", "it is written");
}

#[test]
fn work_of_a_few_long_steps_is_found_at_its_deepest_function() {
    // Every twentieth step takes ten times as long.
    let mut drawing = Drawing::new().window(0..200_000_000).lived("main", 0..200_000_000, 200_000_000);
    let (mut text, mut time) = (String::new(), 0_u64);
    let main = drawing.thread("main");
    for index in 0..80 {
        let is_long = index % 20 == 10;
        let length = if is_long { 10_000_000 } else { 1_000_000 };
        for tenth in 0..10 {
            let stack = if is_long { "sim::Step;sim::Load;sim::Parse" } else { "sim::Step;sim::Move" };
            let _ = writeln!(text, "@{} main;{stack} {}", time + tenth * length / 10, length / 10);
        }
        let (start_ns, end_ns, sim_time_ns) = (time, time + length, None);
        drawing.capture.steps.push(Step { index, start_ns, end_ns, sim_time_ns, thread: main });
        time += length;
    }
    let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
    capture.info.phase = Some(Phase::Steady);
    let rows = found(&capture);
    assert!(rows[0].starts_with("rare-long-steps | sim::Parse | "), "{rows:?}");
    assert_eq!(rows.len(), 1, "its callers are not found again: {rows:?}");
}

#[test]
fn a_long_first_step_is_found_unless_others_are_as_long_or_loading_had_one() {
    // The first step takes 50 ms; others 1 ms, but each tenth as long as `burst`.
    let stepping = |phase: Option<Phase>, burst: u64| {
        let mut drawing = Drawing::new().window(0..1_000_000_000).lived("main", 0..1_000_000_000, 1_000_000_000);
        let (mut text, mut time) = (String::new(), 0_u64);
        let main = drawing.thread("main");
        for index in 0..80 {
            let stack = if index == 0 { "sim::Step;sim::Build" } else { "sim::Step;sim::Move" };
            let length = if index == 0 { 50_000_000 } else { 1_000_000 };
            let length = if index % 10 == 5 { burst } else { length };
            let _ = writeln!(text, "@{time} main;{stack} {length}");
            drawing.capture.steps.push(Step {
                index,
                start_ns: time,
                end_ns: time + length,
                sim_time_ns: None,
                thread: main,
            });
            time += length;
        }
        let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
        capture.info.phase = phase;
        capture
    };
    let kinds = |capture: &Capture| {
        found(capture).into_iter().filter(|row| row.starts_with("long-first-step")).collect::<Vec<_>>()
    };
    let of = |phase, burst| kinds(&stepping(phase, burst)).len();
    assert_eq!(of(None, 1_000_000), 1);
    assert_eq!(of(None, 40_000_000), 0, "bursts are as long");
    assert_eq!(of(Some(Phase::Steady), 1_000_000), 0, "it is the first step of the recording");
}

#[test]
fn a_chain_that_is_climbed_in_each_step_is_found() {
    // Each climb has as much work at each of its links.
    let links = |number: usize| vec!["sim::Pose"; number].join(";");
    let climbed = |link: &dyn Fn(usize) -> String| {
        // At another time in each step.
        let at = |step: u64, tenth: u64| ((tenth + step * 5) % 6) as usize;
        found(&looping(|step, tenth| if tenth < 6 { link(at(step, tenth)) } else { "sim::Move".to_owned() }))
    };
    assert_eq!(climbed(&|tenth| links(tenth + 1)), ["chain-climbed-each-time | sim::Pose | 60"]);
    assert!(climbed(&|tenth| links(tenth.max(3) + 1)).is_empty(), "a tree has its work at its leaves");
    let split = |tenth: usize| {
        let parts = (0..tenth).map(|at| format!("sim::Split [file:/s.cpp:{}];", 10 + at % 2));
        format!("{}sim::Split", parts.collect::<String>())
    };
    assert!(climbed(&split).is_empty(), "what calls itself at two places is divided into parts");
    let in_order = looping(|_, tenth| if tenth < 6 { links(tenth as usize + 1) } else { "sim::Move".to_owned() });
    assert!(found(&in_order).is_empty(), "one climb in each step is a division into parts");
}

#[test]
fn loading_that_links_or_does_its_work_twice_is_found() {
    let capture = loading(|ms| match ms {
        0..20 => "_dl_start [lib:/lib/ld-linux-x86-64.so.2]".to_owned(),
        20..50 => "sim::Download;sim::Parse".to_owned(),
        50..70 => "sim::Create".to_owned(),
        _ => "sim::Load;sim::Parse".to_owned(),
    });
    assert_eq!(found(&capture), ["work-done-twice | sim::Parse | 30", "dynamic-linking | - | 10"]);
    // One caller that parses many files is one loop.
    let once = loading(|ms| if ms % 2 == 0 { "sim::Load;sim::Parse" } else { "sim::Load;sim::Create" }.to_owned());
    assert!(found(&once).is_empty(), "{:?}", found(&once));
}

#[test]
fn a_library_that_only_loading_enters_in_one_piece_is_found() {
    let mut steady = looping(|_, _| "sim::Move".to_owned());
    let mut load = loading(|ms| match ms {
        10..40 => "sim::Start;Py_Initialize [lib:/lib/libpython3.so]".to_owned(),
        _ => "sim::Create".to_owned(),
    });
    for capture in [&mut steady, &mut load] {
        capture.info.scenario = Some("world".to_owned());
    }
    let functions = [&steady, &load].map(|capture| crate::Functions::of(capture, &drawn::owned_by(&["sim::"])));
    let both = [Selection::all(&steady, &functions[0]), Selection::all(&load, &functions[1])];
    let rows = cells(&table(&both, &Calls::default()), &["kind", "function", "phase", "scenario"]);
    assert_eq!(rows, ["unused-initialisation | sim::Start | loading | world"]);
}

/// A loop of 100 steps of 10 ms on `main`, and a thread `helper` beside it.
fn beside_steps(samples: &str) -> Drawing {
    Drawing::new()
        .window(0..1_000_000_000)
        .process(1, "sim")
        .lived("main", 0..1_000_000_000, None)
        .lived("helper", 0..1_000_000_000, None)
        .steps("main", 0, 10_000_000, 100, 1)
        .folded(Event::sampled("cpu-clock", "ns"), samples)
}

#[test]
fn a_thread_that_polls_is_found_and_one_that_works_periodically_is_not() {
    // A wait each 10 ms for one second, and the time that the thread runs between them.
    let waiting = |run_ns: u64, runs: &str, waits: &str| {
        let samples = format!("@500 main;sim::Step 9000\n@600 helper;{runs} 1000");
        let mut drawing = beside_steps(&samples);
        for start in (0..100).map(|number| number * 10_000_000) {
            drawing = drawing.blocked_then_runnable("helper", start + run_ns..start + 10_000_000, 0, waits);
        }
        drawing.capture.info.phase = Some(Phase::Steady);
        found(&drawing.capture)
    };
    let waking = |run_ns: u64, runs: &str| waiting(run_ns, runs, "sim::Look;nanosleep");
    // The run before the first wait is no look.
    assert_eq!(waking(5_000, "sim::Look"), ["polling | sim::Look | 9.9"]);
    assert!(waking(200_000, "sim::Look").is_empty(), "{:?}", waking(200_000, "sim::Look"));
    assert!(waking(5_000, "sim::Look;sim::Filter").is_empty(), "a short task");
    let polls = waiting(5_000, "sim::Look", "sim::Look;poll;__x64_sys_poll [kernel];do_sys_poll [kernel]");
    assert_eq!(polls, ["polling | sim::Look | 9.9"]);
    let receives = waiting(5_000, "sim::Look", "sim::Look;recv;__x64_sys_recvfrom [kernel];__skb_recv_udp [kernel]");
    assert!(receives.is_empty(), "a message came, perhaps from another machine: {receives:?}");
}

#[test]
fn aggregated_waits_do_not_say_that_a_thread_polls() {
    let waking = |stack: &str, aggregated: bool| {
        let samples = format!("@500 main;sim::Step 9000\n@600 helper;{} 1000", stack.split(';').next().unwrap());
        let mut drawing = beside_steps(&samples);
        for start in (0..100).map(|number| number * 10_000_000) {
            let [from, until] = [5_000, 10_000_000].map(|at| start + at);
            drawing = drawing.blocked_then_runnable("helper", from..until, 0, stack);
            // Each row is the sum of a slice.
            if aggregated {
                drawing.capture.waits.change_last(|wait| wait.count = 500);
            }
        }
        drawing.capture.info.phase = Some(Phase::Steady);
        found(&drawing.capture)
    };
    let receives = "sim::Receive;pthread_cond_wait";
    assert_eq!(waking(receives, false).len(), 1, "its waits end by time-out");
    assert!(waking(receives, true).is_empty(), "who ends the waits is unknown");
}

#[test]
fn a_thread_that_looks_while_it_starts_and_then_computes_does_not_poll() {
    let mut drawing = Drawing::new()
        .window(0..1_000_000_000)
        .process(1, "sim")
        .lived("main", 0..1_000_000_000, None)
        .folded(Event::sampled("cpu-clock", "ns"), "@500000000 main;sim::Compute 900000000");
    for start in (0..100).map(|number| number * 1_000_000) {
        drawing = drawing.blocked_then_runnable("main", start + 5_000..start + 1_000_000, 0, "sim::Connect;nanosleep");
    }
    drawing.capture.info.phase = Some(Phase::Steady);
    assert!(!found(&drawing.capture).iter().any(|row| row.starts_with("polling")), "{:?}", found(&drawing.capture));
}

#[test]
fn a_lock_that_the_loop_waits_for_names_its_waiter_and_holder() {
    let mut drawing = Drawing::new()
        .window(0..100_000)
        .process(1, "sim")
        .lived("main", 0..100_000, None)
        .lived("holder", 0..100_000, None)
        .steps("main", 0, 1_000, 100, 1)
        .folded(Event::sampled("cpu-clock", "ns"), "@500 main;sim::Step 100");
    for step in 0..100 {
        let start = step * 1_000 + 100;
        drawing = drawing.blocked_then_runnable("main", start..start + 400, 0, "sim::View;pthread_mutex_lock");
        let waker = drawing.thread("holder");
        let stack = drawing.clone().folded(Event::sampled("none", "ns"), "holder;sim::Write 1");
        let waker_stack = stack.capture.samples.last().and_then(|sample| sample.stack);
        drawing.capture = stack.capture;
        drawing.capture.samples.retain(|sample| sample.time_ns.is_some());
        drawing.capture.waits.change_last(|wait| (wait.waker, wait.waker_stack) = (Some(waker), waker_stack));
    }
    drawing.capture.info.phase = Some(Phase::Steady);
    let rows = drawn::selected(&drawing.capture, &["sim::"], |selection| {
        cells(&table(std::slice::from_ref(selection), &Calls::default()), &["kind", "finding", "gain_share"])
    });
    assert!(
        rows.contains(&"lock-wait | `sim::View` waits for a lock that `sim::Write` holds | 40".to_owned()),
        "{rows:?}"
    );
}

#[test]
fn a_thread_for_each_client_is_found_and_an_idle_pool_is_not() {
    let threads = |switches: u64| {
        let mut drawing = Drawing::new().window(0..1_000_000_000).lived("main", 0..1_000_000_000, 500_000_000);
        let mut text = "@5 main;sim::Step 500000000\n".to_owned();
        for client in 0..40 {
            let name = format!("client-{client}");
            drawing = drawing.lived(&name, 0..1_000_000_000, 5_000_000);
            for switch in 0..switches {
                let start = switch * 10_000_000;
                drawing = drawing.blocked(&name, start..start + 9_000_000, "sim::Serve;poll;__x64_sys_poll [kernel]");
            }
            let _ = writeln!(text, "@{client} {name};sim::Serve;poll;__x64_sys_poll [kernel] 5000000");
        }
        let mut capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
        capture.info.phase = Some(Phase::Steady);
        capture.info.machine = Some(Machine { cores: 4, ..Machine::default() });
        found(&capture)
    };
    let rows = threads(20);
    assert!(rows.contains(&"thread-per-client | sim::Serve | 28.571429".to_owned()), "{rows:?}");
    assert!(!threads(1).iter().any(|row| row.starts_with("thread-per-client")));
}

#[test]
fn a_build_without_optimisation_is_found_by_calls_that_are_always_inlined() {
    let accessors =
        ["std::vector<int>::operator[]", "std::unique_ptr<int>::get", "std::vector<int>::begin", "std::move<int&>"];
    let capture = looping(|_, tenth| accessors.get(tenth as usize).map_or("sim::Move", |name| name).to_owned());
    assert_eq!(found(&capture), ["slow-build | - | -"]);
    let with_a_sort = looping(|_, tenth| match tenth {
        8.. => "sim::Order;__cxa_throw".to_owned(),
        tenth => accessors.get(tenth as usize).map_or("sim::Move", |name| name).to_owned(),
    });
    assert_eq!(found(&with_a_sort), ["slow-build | - | -", "exceptions-each-step | sim::Order | 20"]);
    let inlined = looping(|_, tenth| {
        accessors.get(tenth as usize).map_or("sim::Move".to_owned(), |name| format!("{name} [inl]"))
    });
    assert!(found(&inlined).is_empty(), "{:?}", found(&inlined));
}

#[test]
fn costs_that_are_no_times_give_shares_and_captures_without_samples_are_named() {
    let text = "main;sim::Climb;sim::Climb;sim::Climb;sim::Climb 30\nmain;_dl_start [lib:/lib/ld-linux-x86-64.so.2] 70";
    let mut capture = Drawing::new().folded(Event::weighed("cycles", "cycles"), text).capture;
    capture.info.phase = Some(Phase::Loading);
    drawn::selected(&capture, &["sim::"], |selection| {
        let table = &table(std::slice::from_ref(selection), &Calls::default());
        assert_eq!(
            cells(table, &["kind", "gain", "gain_share", "how"]),
            ["dynamic-linking | - | 35 | share of samples"]
        );
        assert!(table.notes[0].to_string().ends_with("All findings together gain 35.00 %."), "{}", table.notes[0]);
    });
    let empty = Drawing::new().window(0..10).capture;
    drawn::selected(&empty, &[], |selection| {
        let table = &table(std::slice::from_ref(selection), &Calls::default());
        assert!(table.notes.iter().any(|note| note.contains("Not looked at: no CPU samples.")), "{:?}", table.notes);
    });
}

#[test]
fn findings_of_a_scenario_are_averaged_and_joined_over_scenarios() {
    let insert = "sim::Poses;std::map<int, int>::insert;malloc";
    let with = |tenths: u64, scenario: &str| {
        let mut capture = looping(|_, tenth| work(tenth, &[(tenths, insert)], "sim::Move"));
        capture.info.scenario = Some(scenario.to_owned());
        capture
    };
    let captures = [with(2, "small"), with(4, "small"), with(6, "large")];
    let functions: Vec<_> =
        captures.iter().map(|one| crate::Functions::of(one, &drawn::owned_by(&["sim::"]))).collect();
    let selections: Vec<_> = captures.iter().zip(&functions).map(|(one, of)| Selection::all(one, of)).collect();
    let table = super::table(&selections, &Calls::default());
    assert_eq!(cells(&table, &["scenario", "gain_share", "captures", "also_in"]), ["large | 60 | 1 of 1 | small"]);
    let notes: Vec<String> = table.notes.iter().map(ToString::to_string).collect();
    assert!(notes[0].starts_with("small steady: All findings together gain 300 µs (30.00 %)"), "{notes:?}");
    // Two captures that differ widen the interval beyond that of sampling.
    let small = super::table(&selections[..2], &Calls::default());
    let [low, high] = ["gain_low", "gain_high"].map(|column| small.get(0, column).cloned());
    assert_eq!((low, high), (Some(0.0.into()), Some(1_000_000.0.into())));
}

#[test]
fn what_is_part_of_a_larger_finding_says_so_and_counts_once() {
    // The open file and its writes are all that the long steps do.
    let capture = looping(|step, tenth| {
        let tenth = if tenth < 6 { (tenth + step * 5) % 6 } else { tenth };
        let keep = "sim::Pose;sim::Pose;sim::Pose;sim::Pose;sim::Keep;std::map<int, int>::insert;malloc";
        work(tenth, &[(4, keep), (6, "sim::Pose")], "sim::Move")
    });
    let table = drawn::selected(&capture, &["sim::"], |selection| {
        super::table(std::slice::from_ref(selection), &Calls::default())
    });
    assert_eq!(
        cells(&table, &["number", "kind", "gain_share", "within"]),
        ["1 | chain-climbed-each-time | 60 | -", "2 | allocations-each-step | 40 | 1"]
    );
    assert!(table.notes[0].contains("(60.00 %)"), "{:?}", table.notes);
}

/// The findings of several captures.
pub(super) fn table_of(captures: &[Capture]) -> Table {
    let owned = drawn::owned_by(&["sim::"]);
    let functions: Vec<_> = captures.iter().map(|one| crate::Functions::of(one, &owned)).collect();
    let selections: Vec<_> = captures.iter().zip(&functions).map(|(one, of)| Selection::all(one, of)).collect();
    table(&selections, &Calls::default())
}

#[test]
fn captures_of_other_programs_or_of_unknown_cost_are_kept_apart() {
    let insert = "sim::Poses;std::map<int, int>::insert;malloc";
    let of_command = |command: &str, tenths| {
        let mut capture = looping(|_, tenth| work(tenth, &[(tenths, insert)], "sim::Move"));
        capture.info.scenario = Some("world".to_owned());
        capture.info.command = vec![command.to_owned()];
        capture
    };
    let findings = &table_of(&[of_command("sim", 2), of_command("sim2", 4)]);
    assert_eq!(
        cells(findings, &["scenario", "gain_share", "captures", "also_in"]),
        ["world (2) | 40 | 1 of 1 | world"],
        "no mean of two programs"
    );
    let note =
        "world: A capture is ranked apart from the others of its scenario: their commands differ (`sim`, `sim2`).";
    assert!(findings.notes.iter().any(|one| one == note), "{:?}", findings.notes);

    let unknown = || {
        let text = "main;_dl_start [lib:/lib/ld-linux-x86-64.so.2] 70\nmain;sim::Load 30";
        let mut capture = Drawing::new().folded(Event::weighed("weight", "weight"), text).capture;
        capture.info.phase = Some(Phase::Loading);
        capture
    };
    let findings = &table_of(&[unknown(), unknown()]);
    assert_eq!(
        cells(findings, &["kind", "gain_share", "also_in"]),
        ["dynamic-linking | 35 | ", "dynamic-linking | 35 | "]
    );
    assert!(findings.notes.iter().any(|one| one.starts_with("Ranked apart: ")), "{:?}", findings.notes);
}

#[test]
fn counted_calls_are_evidence_and_short_frequent_ones_a_finding() {
    let insert = "sim::Poses;std::map<int, int>::insert;malloc";
    // Per step: 300 µs in `Poses`, 200 µs in `IsActive`.
    let mut capture = looping(|_, tenth| work(tenth, &[(3, insert), (5, "sim::IsActive")], "sim::Move"));
    capture.info.scenario = Some("world".to_owned());
    let calls = |function: &str, per_step| FunctionCalls {
        scenario: Some("world".to_owned()),
        variant: None,
        function: function.to_owned(),
        per_step,
        briefly: false,
    };
    let found = |calls: Calls| {
        drawn::selected(&capture, &["sim::"], |selection| {
            cells(&table(std::slice::from_ref(selection), &calls), &["kind", "function", "gain_share", "why"])
        })
    };
    let counted = found(Calls {
        functions: vec![calls("sim::Poses", 1.0), calls("sim::IsActive", 20_000.0)],
        ..Calls::default()
    });
    assert_eq!(counted.len(), 2, "{counted:?}");
    assert!(counted[0].starts_with("allocations-each-step | sim::Poses | 30 | "), "{counted:?}");
    assert!(counted[0].contains("It is called once a step; a call takes 300 µs."), "{counted:?}");
    assert!(counted[1].starts_with("called-very-often | sim::IsActive | 10 | "), "{counted:?}");
    assert!(counted[1].contains("It is called 20,000 times a step; a call takes 10"), "{counted:?}");
    let rare = found(Calls { functions: vec![calls("sim::IsActive", 20.0)], ..Calls::default() });
    assert_eq!(rare.len(), 1, "calls of 10 µs are no accessor: {rare:?}");
    let other = Calls {
        functions: vec![FunctionCalls { scenario: None, ..calls("sim::IsActive", 20_000.0) }],
        ..Calls::default()
    };
    assert_eq!(found(other).len(), 1, "counts of another scenario are no evidence");
}

/// Calls of a function of the scenario `world` that were replayed, none of which repeats another.
fn replayed(function: &str) -> FunctionRepeats {
    FunctionRepeats {
        scenario: Some("world".to_owned()),
        variant: None,
        function: function.to_owned(),
        followed: 40,
        repeated: 0,
        part: 0.0,
        instructions: 9_000,
        input_bytes: 0,
        output_bytes: 0,
        python: None,
        scans: FunctionScans::default(),
        mathematics: FunctionMathematics::default(),
        effects: FunctionEffects::default(),
    }
}

#[test]
fn repeated_work_is_named_once_by_the_function_that_repeats_most() {
    // Half of each step in `Plan`, all of it in `Search`; three tenths in `Sense`.
    let tenths = [(5, "sim::Plan;sim::Search"), (8, "sim::Sense")];
    let mut capture = looping(|_, tenth| work(tenth, &tenths, "sim::Move"));
    capture.info.scenario = Some("world".to_owned());
    let repeats = |function: &str, repeated: u64, part: f64| FunctionRepeats {
        repeated,
        part,
        input_bytes: 4096,
        output_bytes: 800,
        ..replayed(function)
    };
    let found = |repeats: &[FunctionRepeats]| {
        let calls = Calls { repeats: repeats.to_vec(), ..Calls::default() };
        drawn::selected(&capture, &["sim::"], |selection| {
            let table = table(std::slice::from_ref(selection), &calls);
            let rows = cells(&table, &["kind", "function", "gain_share", "why"]);
            rows.into_iter().filter(|row| row.starts_with("same-work-again")).collect::<Vec<String>>()
        })
    };
    // All calls of both are repeated as often: the caller is named.
    let both = found(&[repeats("sim::Search", 30, 0.75), repeats("sim::Plan", 30, 0.75)]);
    assert_eq!(both.len(), 1, "{both:?}");
    assert!(both[0].starts_with("same-work-again | sim::Plan | 37.5 | "), "{both:?}");
    assert!(
        both[0].contains(
            "Of 40 calls that were replayed, 30 read the same as an earlier one, but for two words at most (4.00 KiB)"
        ),
        "{both:?}"
    );
    // Its caller does more that is not repeated.
    let inner = found(&[repeats("sim::Search", 30, 0.75), repeats("sim::Plan", 12, 0.3)]);
    assert_eq!(inner.len(), 1, "{inner:?}");
    assert!(inner[0].starts_with("same-work-again | sim::Search | 37.5 | "), "{inner:?}");
    let two = found(&[repeats("sim::Search", 30, 0.75), repeats("sim::Sense", 20, 0.5)]);
    assert_eq!(two.len(), 2, "{two:?}");
    let of_python = FunctionRepeats {
        python: Some(PythonRepeats { call_ns: 3_100_000, reads: vec!["self.map".to_owned(), "goal".to_owned()] }),
        ..repeats("sim::Search", 30, 0.75)
    };
    let of_python = found(&[of_python]);
    let words = "Of 40 calls that were compared, 30 had the same arguments, attributes and globals as an earlier one, and the same result. \
                 They are 75.00 % of its time: a call takes 3.10 ms.";
    assert!(of_python[0].contains(words), "{of_python:?}");
    assert!(of_python[0].contains("a kept result depends on: `self.map`, `goal`."), "{of_python:?}");
    assert_eq!(found(&[repeats("sim::Search", 2, 0.9)]).len(), 0, "two calls are chance");
    assert_eq!(found(&[repeats("sim::Sense", 5, 0.1)]).len(), 0, "most calls differ");
}

#[test]
fn a_function_that_goes_through_the_same_data_in_each_call_is_distinguished_from_those_that_need_it() {
    // Half of each step in `Steer`, four tenths in `Near`, which it calls; two tenths in `Find`, a search by name.
    let tenths = [(4, "sim::Steer;sim::Near"), (5, "sim::Steer"), (7, "sim::Find;std::find<int*, int>")];
    let mut capture = looping(|_, tenth| work(tenth, &tenths, "sim::Move"));
    capture.info.scenario = Some("world".to_owned());
    let scans =
        FunctionScans { read_bytes: 19_200, written_bytes: 80, shared: 0.99, arguments: 40, changed: 60, mattered: 15 };
    let found = |all: &[(&str, FunctionScans)], rates: &[(&str, f64)]| {
        let repeats = all.iter().map(|(function, scans)| FunctionRepeats {
            followed: 48,
            scans: scans.clone(),
            ..replayed(function)
        });
        let functions = rates.iter().map(|(function, per_step)| FunctionCalls {
            scenario: Some("world".to_owned()),
            variant: None,
            function: (*function).to_owned(),
            per_step: *per_step,
            briefly: false,
        });
        let calls = Calls { repeats: repeats.collect(), functions: functions.collect() };
        drawn::selected(&capture, &["sim::"], |selection| {
            let table = table(std::slice::from_ref(selection), &calls);
            let rows = cells(&table, &["kind", "function", "gain_share"]);
            rows.into_iter().filter(|row| row.starts_with("same-data")).collect::<Vec<String>>()
        })
    };
    let of = |scans: FunctionScans| found(&[("sim::Near", scans)], &[]);
    let near = ["same-data-each-call | sim::Near | 30"];
    assert_eq!(of(scans.clone()), near);
    assert_eq!(found(&[("sim::Near", scans.clone()), ("sim::Steer", scans.clone())], &[]), near, "not its caller");
    assert!(of(FunctionScans { mattered: 55, ..scans }).is_empty(), "a sum needs all that it reads");
    assert!(of(FunctionScans { written_bytes: 19_200, ..scans }).is_empty(), "it makes something of it");
    assert!(of(FunctionScans { shared: 0.4, ..scans }).is_empty(), "it reads something else each time");
    assert!(of(FunctionScans { read_bytes: 400, ..scans }).is_empty(), "a hash table");
    assert!(of(FunctionScans { arguments: 1, ..scans }).is_empty(), "a sensor asks the same once a step");
    assert!(of(FunctionScans { changed: 3, mattered: 0, ..scans }).is_empty(), "chance");
    assert!(of(FunctionScans::default()).is_empty(), "an older file");
    let rate = |per_step| found(&[("sim::Near", FunctionScans { arguments: 1, ..scans })], &[("sim::Near", per_step)]);
    assert_eq!((rate(600.0).len(), rate(1.0).len()), (1, 0), "the number of calls per step decides if it is known");
    assert!(found(&[("sim::Find", scans.clone())], &[]).is_empty(), "a search of the library is found without replays");
}

#[test]
fn sines_of_the_same_numbers_are_found_at_the_innermost_function_that_asks_for_them() {
    // Four tenths of each step in sines below `Scan`, which `Step` calls.
    let sine = "sim::Step;sim::Scan;sin [lib:/lib/libm.so.6]";
    let mut capture = looping(|_, tenth| work(tenth, &[(4, sine), (6, "sim::Step;sim::Scan")], "sim::Move"));
    capture.info.scenario = Some("world".to_owned());
    let found = |all: &[(&str, u64, u64, f64)]| {
        let repeats = all.iter().map(|(function, calls, different, part)| FunctionRepeats {
            followed: 3,
            instructions: 900_000,
            mathematics: FunctionMathematics { calls: *calls, different: *different, part: *part },
            ..replayed(function)
        });
        let calls = Calls { repeats: repeats.collect(), functions: Vec::new() };
        drawn::selected(&capture, &["sim::"], |selection| {
            let table = table(std::slice::from_ref(selection), &calls);
            let rows = cells(&table, &["kind", "function", "gain_share"]);
            rows.into_iter().filter(|row| row.starts_with("same-numbers")).collect::<Vec<String>>()
        })
    };
    assert_eq!(
        found(&[("sim::Step", 9_000, 700, 1.0), ("sim::Scan", 9_000, 700, 1.0)]),
        ["same-numbers-again | sim::Scan | 40"]
    );
    assert!(found(&[("sim::Scan", 9_000, 5_000, 0.8)]).is_empty(), "twice each is no table");
    assert!(found(&[("sim::Scan", 9_000, 700, 0.5)]).is_empty(), "half of it is new");
    assert!(found(&[("sim::Scan", 90, 1, 1.0)]).is_empty(), "few calls");
}

#[test]
fn calls_that_change_nothing_are_found_at_the_innermost_function_that_has_most_of_it() {
    // Half of each step in `Sweep`, of `Solve`; three tenths in `Check`, of `Guard`.
    let tenths = [(5, "sim::Step;sim::Solve;sim::Sweep"), (8, "sim::Step;sim::Guard;sim::Check")];
    let mut capture = looping(|_, tenth| work(tenth, &tenths, "sim::Step;sim::Move"));
    capture.info.scenario = Some("world".to_owned());
    let found = |all: &[(&str, FunctionEffects)]| {
        let repeats = all.iter().map(|(name, effects)| FunctionRepeats { effects: effects.clone(), ..replayed(name) });
        let calls = Calls { repeats: repeats.collect(), functions: Vec::new() };
        drawn::selected(&capture, &["sim::"], |selection| {
            let table = table(std::slice::from_ref(selection), &calls);
            let of_effects = |row: &String| row.starts_with("results-un") || row.starts_with("no-effect");
            cells(&table, &["kind", "function", "gain_share"]).into_iter().filter(of_effects).collect::<Vec<String>>()
        })
    };
    let keeps =
        |part: f64| FunctionEffects { kept: 25, kept_part: part, kept_bytes: 800, ..FunctionEffects::default() };
    assert_eq!(
        found(&[("sim::Solve", keeps(0.5)), ("sim::Sweep", keeps(0.5))]),
        ["results-unchanged | sim::Sweep | 25"]
    );
    assert!(found(&[("sim::Sweep", keeps(0.2))]).is_empty(), "it changes most");
    let silent = |silent: u64, answers: u64| FunctionEffects { silent, answers, ..FunctionEffects::default() };
    assert_eq!(
        found(&[("sim::Guard", silent(40, 0)), ("sim::Check", silent(40, 1))]),
        ["no-effect-each-call | sim::Check | 30"]
    );
    assert!(found(&[("sim::Guard", silent(39, 0))]).is_empty(), "one call changed something");
    assert!(found(&[("sim::Guard", silent(40, 2))]).is_empty(), "its answer differs");
    assert!(found(&[("sim::Guard", FunctionEffects::default())]).is_empty(), "an older file");
}

#[test]
fn every_kind_has_its_own_name_and_a_heading_on_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/analyses/diagnose.md");
    let page = std::fs::read_to_string(page).expect("the analysis has a page");
    let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
    for name in &names {
        assert!(page.contains(&format!("### {name}\n")), "docs/analyses/diagnose.md has no heading for {name}");
    }
    let number = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), number);
}
