//! What units cost by header, template and command, of drawn captures.

use stepscope_model::compiler_work::{BUILD_EVENT, CompilerWork, JOBS_MODULE};
use stepscope_model::{Capture, Event, Frame, Machine, Module, ModuleId, Process, Sample, Scope, Thread};

use super::*;
use crate::columns::read::cells;
use crate::diagnose;
use crate::{Functions, Owned, drawn};

/// Units that compile one after the other, for 10 s each, and stacks of their CPU time, one a line: `UNIT SECONDS FRAME;FRAME`. A frame is
/// `h:` a header, `t:` a template, `c:` code, `f` or `b` the front or back end.
fn drawn_units(units: u32, text: &str) -> Capture {
    const S: u64 = 1_000_000_000;
    let mut capture = Capture::default();
    capture.info.working_directory = Some("/p/build".into());
    capture.info.machine = Some(Machine { cores: 1, ..Machine::default() });
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(u64::from(units) * 10 * S));
    let event = capture.add_event(Event::weighed(BUILD_EVENT, "ns"));
    for unit in 0..units {
        let (start_ns, end_ns) = (Some(u64::from(unit) * 10 * S), Some(u64::from(unit + 1) * 10 * S));
        let command_line = format!("clang++ -c /p/u{unit}.cpp");
        let process =
            capture.add_process(Process { pid: unit + 1, start_ns, end_ns, command_line, ..Process::default() });
        capture.add_thread(Thread { tid: unit + 1, process: Some(process), cpu_ns: Some(10 * S), ..Thread::default() });
    }
    let module = |capture: &mut Capture, path: &str| match capture.modules.iter().position(|one| one.path == path) {
        Some(index) => ModuleId::from_index(index),
        None => capture.add_module(Module { path: path.to_owned(), ..Module::default() }),
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.splitn(3, ' ');
        let unit: u32 = words.next().unwrap().parse().unwrap();
        let seconds: u64 = words.next().unwrap().parse().unwrap();
        let job = module(&mut capture, JOBS_MODULE);
        let unit_frame = capture.intern_frame(Frame { module: Some(job), ..Frame::named(format!("u{unit}.cpp")) });
        let mut stack = Some(capture.intern_stack_node(None, unit_frame));
        let thread = stepscope_model::ThreadId(unit);
        for (depth, frame) in words.next().unwrap().split(';').enumerate() {
            let (work, name) = match frame.split_once(':') {
                Some(("h", name)) => (CompilerWork::Header, name),
                Some(("t", name)) => (CompilerWork::Template, name),
                Some(("c", name)) => (CompilerWork::Code, name),
                _ if frame == "f" => (CompilerWork::FrontEnd, "front end"),
                _ => (CompilerWork::BackEnd, "back end"),
            };
            let of_work = module(&mut capture, work.module());
            let frame = capture.intern_frame(Frame { module: Some(of_work), ..Frame::named(name) });
            stack = Some(capture.intern_stack_node(stack, frame));
            let (name, end_ns) = (capture.intern_text(&work.scope(name)), seconds * S);
            capture.scopes.push(Scope { thread, name, start_ns: 0, end_ns, depth: depth as u32 });
        }
        capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight: seconds * S });
    }
    capture
}

const UNITS: &str = "
    0 1 f
    0 6 f;h:/p/a.h;h:/usr/include/c++/12/regex
    0 1 f;h:/p/a.h
    0 2 b;c:g
    1 4 f;h:/p/a.h;h:/usr/include/c++/12/regex
    1 2 f;h:/p/a.h;h:/usr/include/c++/12/regex;h:/usr/include/c++/12/map
    1 4 b
    2 6 f;h:/p/a.h;h:/usr/include/c++/12/regex
    2 2 f;h:/usr/include/c++/12/map
    2 2 f;t:V<int>;t:V<V<int>>
    3 10 b
";

#[test]
fn a_header_costs_what_is_below_it_in_all_units_and_names_who_brings_it_in() {
    let capture = drawn_units(4, UNITS);
    let table = drawn::selected(&capture, &[], headers::headers);
    const S: &str = "000000000";
    assert_eq!(
        cells(&table, &["header", "cpu", "own", "units", "included_by", "included_by_units"]),
        [
            format!("/p/a.h | 19{S} | 1{S} | 3 | - | -"),
            format!("/usr/include/c++/12/regex | 18{S} | 16{S} | 3 | /p/a.h | 3"),
            // Unit 2 includes it itself, for as much as unit 1 gets through the other header.
            format!("/usr/include/c++/12/map | 4{S} | 4{S} | 2 | /p/a.h | 1"),
        ]
    );
    assert!(table.notes.iter().any(|note| note.contains("3 of 4 units")), "{:?}", table.notes);
}

#[test]
fn a_template_within_itself_counts_once() {
    let capture = drawn_units(4, UNITS);
    let table = drawn::selected(&capture, &[], |selection| headers::templates(selection).remove(0));
    assert_eq!(cells(&table, &["template", "cpu", "units", "instantiations"]), ["V | 2000000000 | 1 | 2"]);
}

#[test]
fn the_first_finding_names_the_header_that_brings_in_another_ones_cost() {
    let capture = drawn_units(4, UNITS);
    let functions = Functions::of(&capture, &Owned::default());
    let table = diagnose::table(&[Selection::all(&capture, &functions)], &diagnose::Calls::default());
    let rows = cells(&table, &["kind", "finding", "gain"]);
    let expected = "header-pulled-in | `regex` costs 18.0 s of 40.0 s of CPU time: 3 of 4 units get it through `/p/a.h` | 12000000000";
    assert_eq!(rows[0], expected, "{rows:#?}");
    assert!(rows.iter().all(|row| row.starts_with("header")), "{rows:#?}");
}

#[test]
fn a_capture_without_times_of_compilers_says_what_to_do() {
    let capture = drawn_units(1, "0 10 x");
    let table = drawn::selected(&Capture::default(), &[], headers::headers);
    assert!(table.rows.is_empty() && table.notes[0].contains("--with-timing"), "{:?}", table.notes);
    assert_eq!(drawn::selected(&capture, &[], headers::headers).rows.len(), 0);
}
