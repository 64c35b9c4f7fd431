use stepscope_model::compiler_work::JOBS_MODULE;
use stepscope_model::{Capture, Counter, Event, Frame, Module, Process, Sample, Thread};

use super::*;
use crate::analyses::compare::{Comparison, Evidence, Family, Noise, Options, Side};
use crate::analyses::metrics;
use crate::columns::read::cells;
use crate::drawn;
use crate::query::basis::Basis;

/// Processes, one a line: `pid parent start end cpu peak command`.
fn drawn_build(text: &str) -> Capture {
    let mut capture = Capture::default();
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(100));
    capture.info.working_directory = Some("/b".into());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.splitn(7, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (pid, parent, start, end, cpu, peak) = (number(), number(), number(), number(), number(), number());
        let command_line = words.next().unwrap().to_owned();
        let process = capture.add_process(Process {
            pid: pid as u32,
            parent_pid: Some(parent as u32),
            start_ns: Some(start),
            end_ns: Some(end),
            executable: format!("/usr/bin/{}", command_line.split(' ').next().unwrap()),
            command_line,
            exit_status: Some(0),
            working_directory: Some("/b".into()),
            ..Process::default()
        });
        capture.add_thread(Thread {
            process: Some(process),
            cpu_ns: Some(cpu),
            runnable_ns: Some(1),
            ..Thread::default()
        });
        capture.counters.push(Counter {
            time_ns: end,
            process: Some(process),
            thread: None,
            name: "peak_rss_bytes".into(),
            value: peak as i64,
        });
    }
    capture
}

/// Two units on two slots, then an archive and a link.
const BUILD: &str = "
    1 0 0 100 2 10 make -j2
    2 1 5 45 1 20 g++ -c src/a.cpp -o a.o
    3 2 6 40 30 900 cc1plus src/a.cpp
    4 2 40 45 4 30 as -o a.o
    5 1 5 65 1 20 g++ -c src/b.cpp -o b.o
    6 5 6 60 50 500 cc1plus src/b.cpp
    7 5 60 65 3 30 as -o b.o
    8 1 66 70 4 40 ar qc lib.a a.o b.o
    9 1 72 98 1 20 g++ -o prog lib.a
    10 9 73 97 20 300 ld -o prog lib.a
    11 1 99 100 1 5 sh -c true
";

#[test]
fn jobs_have_the_costs_of_all_their_processes_and_add_up_to_the_build() {
    let capture = drawn_build(BUILD);
    let table = drawn::selected(&capture, &[], jobs);
    assert_eq!(
        cells(
            &table,
            &["job", "job_kind", "wall", "cpu", "cpu_compile", "cpu_assemble", "cpu_link", "rss_peak", "alone"]
        ),
        [
            "src/b.cpp | compile | 60 | 54 | 50 | 3 | 0 | 500 | 20",
            "src/a.cpp | compile | 40 | 35 | 30 | 4 | 0 | 900 | 0",
            "prog | link | 26 | 21 | 0 | 0 | 20 | 300 | 26",
            "lib.a | archive | 4 | 4 | 0 | 0 | 0 | 40 | 4",
            "(make) | other | - | 2 | 0 | 0 | 0 | 10 | -",
            "(sh) | other | - | 1 | 0 | 0 | 0 | 5 | -",
        ]
    );
    let summary = drawn::selected(&capture, &[], summary);
    assert_eq!(
        cells(&summary, &["wall", "cpu", "build_jobs", "jobs_average", "slots", "idle_slots", "alone"]),
        ["100 | 117 | 4 | 1.3 | 2 | 35 | 50"]
    );
    assert_eq!(summary.notes, ["`prog` ran alone for 26 ns, the longest of all jobs; 1 slot waited meanwhile."]);
}

#[test]
fn the_longest_chain_is_of_jobs_that_need_each_others_outputs() {
    // 60 of `b.o`, 4 of `lib.a`, 26 of `prog`; `a.o` is made beside.
    assert_eq!(super::jobs::Build::of(&drawn_build(BUILD)).longest_chain_ns(), 90);
}

#[test]
fn the_path_follows_outputs_to_inputs_and_says_what_it_does_not_know() {
    let table = drawn::selected(&drawn_build(BUILD), &[], path);
    assert_eq!(cells(&table, &["job", "gap", "wall"]), ["src/b.cpp | 5 | 60", "lib.a | 1 | 4", "prog | 2 | 26"]);
    assert_eq!(
        table.notes,
        [
            "Jobs of the path ran for 90 ns (90.00 % of the build); 5 ns before its first job, of which it is unknown what it waited for."
        ]
    );
}

#[test]
fn a_unit_on_the_path_waited_for_the_slot_that_it_got() {
    let capture = drawn_build(
        "1 0 0 100 2 10 make -j2
         2 1 5 45 40 1 g++ -c a.cpp
         3 1 5 50 45 1 g++ -c b.cpp
         4 1 46 90 44 1 g++ -c c.cpp
         5 1 91 95 4 1 ar qc lib.a a.o b.o c.o
         6 1 97 99 2 1 g++ -c late.cpp",
    );
    let table = drawn::selected(&capture, &[], path);
    assert_eq!(cells(&table, &["job", "waited_for", "gap"]), ["late.cpp | - | 97"], "one slot was free before it");
    let capture = drawn_build(
        "1 0 0 100 2 10 make -j2
         2 1 5 45 40 1 g++ -c a.cpp -o a.o
         3 1 5 50 45 1 g++ -c b.cpp -o b.o
         4 1 46 90 44 1 g++ -c c.cpp -o c.o
         5 1 91 95 4 1 ar qc lib.a a.o b.o c.o",
    );
    let table = drawn::selected(&capture, &[], path);
    assert_eq!(
        cells(&table, &["job", "waited_for", "gap"]),
        ["a.cpp | - | 5", "c.cpp | slot | 1", "lib.a | input | 1"]
    );
    assert_eq!(
        table.notes[1],
        "1 of 3 jobs of the path waited for a slot: with more slots, and CPUs for them, they begin earlier."
    );
}

#[test]
fn an_archive_and_its_index_do_not_make_a_circle() {
    let capture = drawn_build("1 0 0 9 1 1 ar qc l.a x.o\n2 0 10 20 1 1 ranlib l.a\n3 0 21 30 1 1 ranlib l.a");
    let table = drawn::selected(&capture, &[], path);
    assert_eq!(cells(&table, &["job", "gap"]), ["l.a | 0", "l.a | 1", "l.a | 1"]);
}

#[test]
fn a_configure_step_has_what_it_tries_and_a_build_script_does_not() {
    let capture = drawn_build(
        "1 0 0 50 5 1 cmake -S . -B o
         2 1 10 20 7 1 gcc -c try.c
         3 0 50 90 5 1 /t/build/zstd-1/build-script-build
         4 3 60 80 9 1 cc -c zstd.c",
    );
    let table = drawn::selected(&capture, &[], jobs);
    assert_eq!(
        cells(&table, &["job", "job_kind", "cpu"]),
        ["cmake in /b | configure | 12", "zstd-1 | build script | 5", "zstd.c | compile | 9"]
    );
}

#[test]
fn jobs_over_time_add_up_to_the_time_of_all_jobs() {
    let table = drawn::selected(&drawn_build(BUILD), &[], over_time);
    let sum: f64 = (0..table.rows.len())
        .map(|row| stepscope_model::quantity::number(table.get(row, "jobs_average").unwrap()).unwrap())
        .zip([4, 4, 4, 4, 4, 5].into_iter().cycle())
        .map(|(average, _)| average)
        .sum();
    // Parts differ by one ns in length.
    assert!((sum / BINS as f64 - 1.3).abs() < 0.03, "{sum}");
    assert_eq!(table.get(0, "jobs_idle"), Some(&Value::Float(2.0)));
}

#[test]
fn a_capture_without_compilers_says_what_to_do() {
    let capture = drawn_build("1 0 0 100 2 10 ./sim --steps 3");
    let table = drawn::selected(&capture, &[], summary);
    assert!(table.rows.is_empty());
    assert_eq!(table.notes, ["No compiler or linker ran in this capture; fix: `stepscope build -- make`."]);
}

/// A build that `stepscope build` recorded: a sample with the CPU time of each process.
fn recorded_build(wall_ns: u64, cpu_ns: u64) -> Capture {
    let mut capture = drawn_build(&format!("1 0 0 {wall_ns} {cpu_ns} 10 g++ -c src/a.cpp"));
    capture.info.end_ns = Some(wall_ns);
    capture.info.events = vec![Event::weighed("cpu", "ns")];
    let module = Some(capture.add_module(Module { path: JOBS_MODULE.into(), ..Module::default() }));
    let frame = capture.intern_frame(Frame { module, ..Frame::named("src/a.cpp") });
    let stack = Some(capture.intern_stack_node(None, frame));
    let thread = stepscope_model::ThreadId::from_index(0);
    let event = stepscope_model::EventId::from_index(0);
    capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight: cpu_ns });
    capture
}

/// Compares builds, each by wall and CPU time.
fn compared(before: &[(u64, u64)], after: &[(u64, u64)]) -> Comparison {
    let evidence = |builds: &[(u64, u64)]| -> Vec<Evidence> {
        let one = |&(wall, cpu): &(u64, u64)| {
            drawn::selected(&recorded_build(wall, cpu), &[], |selection| {
                assert_eq!(Basis::of(selection), Basis::PerBuild);
                Evidence::of(selection, Basis::PerBuild)
            })
        };
        builds.iter().map(one).collect()
    };
    let side = |name: &str, builds| Side { name: name.into(), runs: evidence(builds) };
    Comparison::of(&side("before", before), &side("after", after), &Options::default())
}

#[test]
fn costs_of_a_build_are_those_of_the_whole_whatever_its_wall_time() {
    // The second build has two thirds of the CPU time, in a sixth of the wall time.
    let comparison = compared(&[(60_000, 21_000)], &[(10_000, 14_000)]);
    let cpu = comparison.metrics.iter().find(|row| row.name == "cpu").unwrap();
    assert_eq!((cpu.unit.as_str(), cpu.assessment.before, cpu.assessment.after), ("ns/build", 21_000.0, 14_000.0));
    let row = &comparison.rows(Family::Own)[0];
    assert_eq!((row.assessment.before, row.assessment.after), (21_000.0, 14_000.0));
    assert!(matches!(comparison.noise, Noise::Unknown(_)));
    assert_eq!(
        comparison.notes,
        [
            "One build per side cannot be tested: how much builds vary is unknown. Record several builds per side.",
            "Costs are those of whole builds."
        ]
    );
}

#[test]
fn several_builds_per_side_are_tested() {
    let builds = |cpu: u64| (0..6).map(|run| (50_000 + 1_000 * run, cpu + 100 * run)).collect::<Vec<_>>();
    let comparison = compared(&builds(21_000), &builds(14_000));
    assert_eq!(comparison.noise, Noise::Runs);
    let cpu = comparison.metrics.iter().find(|row| row.name == "cpu").unwrap();
    assert_eq!(cpu.assessment.verdict.name(), "changed");
    assert!((cpu.assessment.after / cpu.assessment.before - 0.67).abs() < 0.01);
    let unit = &comparison.rows(Family::Own)[0].assessment;
    assert_eq!(
        (unit.verdict.name(), unit.q.is_some()),
        ("changed", true),
        "sums have no samples that could be too few"
    );
}

#[test]
fn a_build_and_another_recording_have_seconds_in_common() {
    let (build, other) = (recorded_build(60_000, 21_000), drawn_build("1 0 0 100 2 10 ./sim"));
    let steps = drawn::Drawing::new().window(0..10_000).process(7, "/sim").steps("main", 1_000, 1_000, 5, 500).capture;
    drawn::selected(&build, &[], |build| {
        drawn::selected(&other, &[], |other| assert_eq!(Basis::common([build, other]), Basis::PerSecond));
        drawn::selected(&steps, &[], |steps| {
            assert_eq!(Basis::of(steps), Basis::PerStep);
            assert_eq!(Basis::common([build, steps]), Basis::PerSecond);
            assert_eq!(Basis::common([steps, build]), Basis::PerSecond);
        });
        assert_eq!(Basis::common([build, build]), Basis::PerBuild);
        let cpu = metrics::of(build, Basis::PerBuild).into_iter().find(|metric| metric.name == "cpu");
        assert_eq!(cpu.unwrap().value, 21_000.0);
    });
}
