//! Captures from strangers: names of any kind and length, and times at the ends of the clock, make a page that is whole.

use proptest::prelude::*;
use stepscope_analyze::{Functions, Ownership, Selection};
use stepscope_app::{Dataset, Limits, app_js, page};
use stepscope_model::{
    Capture, Column, Counter, Event, Frame, Kind, Module, Process, Sample, Scope, Step, Table, Thread, ThreadId, Value,
    Wait, WaitState,
};
use stepscope_view::report::{Report, Section};

const HOSTILE: [&str; 8] = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]></style><img src=x onerror=alert(1)>",
    "\" onload=\"alert(1)",
    "{{constructor.constructor('alert(1)')()}}",
    "\u{0}\u{202e}\u{feff}\n\r\t",
    "/etc/shadow",
    "../../../../etc/passwd.c",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(&HOSTILE).prop_map(str::to_owned),
        any::<String>(),
        (prop::sample::select(&HOSTILE), 1..2_000_usize).prop_map(|(text, times)| text.repeat(times)),
    ]
}

/// Times near zero, in the middle and at the end of the clock.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![0..2_000_u64, any::<u64>(), (u64::MAX - 2_000)..=u64::MAX]
}

/// What captures are made of.
#[derive(Debug, Clone)]
struct Parts {
    names: Vec<String>,
    times: Vec<u64>,
    window: Option<(u64, u64)>,
    seed: Vec<u32>,
}

fn parts() -> impl Strategy<Value = Parts> {
    let window = prop::option::of((time(), time())).prop_map(|ends| ends.map(|(a, b)| (a.min(b), a.max(b))));
    (
        prop::collection::vec(name(), 1..6),
        prop::collection::vec(time(), 1..30),
        window,
        prop::collection::vec(any::<u32>(), 1..60),
    )
        .prop_map(|(names, times, window, seed)| Parts { names, times, window, seed })
}

fn capture(parts: &Parts) -> Capture {
    let mut capture = Capture::default();
    let name = |index: u32| parts.names[index as usize % parts.names.len()].as_str();
    let seed = |index: usize| parts.seed[index % parts.seed.len()];
    if let Some((start, end)) = parts.window {
        (capture.info.start_ns, capture.info.end_ns) = (Some(start), Some(end));
    }
    capture.info.scenario = Some(name(0).to_owned());
    capture.info.variant = Some(name(1).to_owned());
    let event = capture.add_event(Event::sampled(name(2), name(3)));
    let process =
        Process { pid: u32::MAX, command_line: name(0).into(), executable: name(1).into(), ..Process::default() };
    let process = capture.add_process(process);
    for index in 0..3 {
        let (start_ns, end_ns) = (parts.times.iter().min().copied(), parts.times.iter().max().copied());
        let thread = Thread {
            tid: index,
            process: Some(process),
            name: name(index).into(),
            start_ns,
            end_ns,
            ..Thread::default()
        };
        capture.add_thread(thread);
    }
    let module = capture.add_module(Module { path: name(4).into(), ..Module::default() });
    let mut stack = None;
    for index in 0..parts.seed.len() {
        let frame = Frame {
            module: seed(index).is_multiple_of(2).then_some(module),
            file: seed(index).is_multiple_of(3).then(|| name(seed(index)).into()),
            line: Some(seed(index)),
            ..Frame::named(name(seed(index)))
        };
        let frame = capture.intern_frame(frame);
        stack = Some(capture.intern_stack_node(stack.filter(|_| !seed(index).is_multiple_of(5)), frame));
    }
    let thread = |index: usize| ThreadId(seed(index) % 3);
    let mut times = parts.times.clone();
    times.sort_unstable();
    for (index, time) in times.iter().enumerate() {
        let (time_ns, cpu) = (seed(index).is_multiple_of(7).then_some(*time).or(Some(*time)), Some(seed(index)));
        capture.samples.push(Sample {
            time_ns,
            thread: thread(index),
            cpu,
            stack,
            event,
            weight: u64::from(seed(index)) << 31,
        });
        let counter = Counter {
            time_ns: *time,
            process: Some(process),
            thread: None,
            name: name(seed(index)).into(),
            value: i64::MIN,
        };
        capture.counters.push(counter);
    }
    for (index, ends) in times.windows(2).enumerate() {
        let (start_ns, end_ns) = (ends[0], ends[1]);
        let state = if index % 2 == 0 { WaitState::Blocked } else { WaitState::Preempted };
        let wait = Wait {
            start_ns,
            end_ns,
            thread: ThreadId(0),
            stack: stack.filter(|_| index % 3 > 0),
            state,
            runnable_ns: Some(u64::from(seed(index)).min(end_ns - start_ns)),
            cpu: Some(seed(index)),
            waker: Some(thread(index)),
            waker_stack: stack,
            count: 1,
        };
        capture.waits.push(wait);
        capture.steps.push(Step {
            index: index as u64,
            start_ns,
            end_ns,
            sim_time_ns: Some(end_ns),
            thread: ThreadId(0),
        });
        let scope = Scope { thread: ThreadId(1), name: name(seed(index)).into(), start_ns, end_ns, depth: seed(index) };
        capture.scopes.push(scope);
    }
    capture.check().expect("a capture that a reader accepts");
    capture
}

fn report(names: &[String]) -> Report {
    let columns = vec![Column::text(&names[0], &names[0]), Column::new("share", Kind::Percent, "percent", "")];
    let mut table = Table::new("t", names[0].clone(), columns);
    for name in names {
        table.push(vec![name.as_str().into(), Value::Float(f64::NAN)]);
        table.note(name.as_str());
    }
    Report::new(names[0].clone())
        .fact(names[0].clone(), names[0].clone())
        .section(Section::new(names[0].clone()).note(names[0].as_str()).table(table))
}

/// Writes the page and checks that it has the elements that it should have, and no others.
fn check(parts: &Parts, budget: u64) -> String {
    let capture = capture(parts);
    let functions = Functions::of(&capture, &Ownership::default().compile().unwrap());
    let mut page = Vec::new();
    page::write(&report(&parts.names), &[Selection::all(&capture, &functions)], budget, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let page = page.replace(app_js(), "");
    let tables = page.matches("<script type=\"application/vnd.apache.parquet\" data-name=\"0/").count();
    assert_eq!(page.matches("<script").count(), tables + 2);
    assert_eq!(page.matches("</script>").count(), tables + 2);
    assert_eq!(page.matches("<style>").count(), 1);
    assert!(!page.contains("<img") && !page.contains("onload=\"") && !page.contains("<!--"));
    let manifest = page.split("id=\"manifest\">").nth(1).unwrap().split("</script>").next().unwrap();
    let manifest: serde_json::Value = serde_json::from_str(manifest).unwrap();
    assert_eq!(manifest["captures"].as_array().unwrap().len(), 1);
    page
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_names_and_times_make_a_whole_page(parts in parts()) {
        check(&parts, page::BUDGET);
    }

    #[test]
    fn every_table_of_a_served_capture_can_be_made(parts in parts()) {
        let capture = capture(&parts);
        let functions = Functions::of(&capture, &Ownership::default().compile().unwrap());
        let dataset = Dataset::new(&report(&parts.names), vec![Selection::all(&capture, &functions)], Limits::default());
        serde_json::from_slice::<serde_json::Value>(&dataset.manifest()).unwrap();
        for name in dataset.names().iter().take(200) {
            dataset.table(name);
        }
    }
}

#[test]
fn a_name_of_ten_megabytes_is_cut() {
    let names = ["x::".repeat(3_500_000), "</script>".to_owned()].to_vec();
    let parts = Parts { names, times: vec![1, 2, 3], window: Some((0, 10)), seed: vec![1, 2, 3, 4] };
    let page = check(&parts, page::BUDGET);
    assert!(page.len() < 3_000_000, "{}", page.len());
}
