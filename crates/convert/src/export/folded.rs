//! Folded stacks: one line per stack, `thread;root;...;leaf COUNT`. The inverse of [`crate::import::folded`].
//!
//! Lines are in order of first occurrence, so that an imported file is exported unchanged. The format has no escapes:
//! `;` in names becomes `:`, as in collapse scripts, and line ends become spaces.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, StackId, ThreadId};

use super::selection::{WeighedStack, series, sums};
use super::{ExportError, ExportOptions, Format, ThreadLabels};

/// Written for a sample without a stack if there is no thread name.
const NO_STACK: &str = "(no stack)";

pub fn write(capture: &Capture, out: &mut dyn Write, options: &ExportOptions) -> Result<(), ExportError> {
    let series = series(capture, options)?;
    let series = match series.as_slice() {
        [one] => one,
        several => {
            let events = several.iter().map(|series| series.name.clone()).collect();
            return Err(ExportError::SeveralEvents { format: Format::Folded, events });
        }
    };
    let mut line = Vec::new();
    for (row, sum) in sums_by_label(capture, sums(capture, series, options.measure)?, options.threads) {
        line.clear();
        stack(capture, row, options.threads, &mut line)?;
        writeln!(line, " {sum}")?;
        out.write_all(&line)?;
    }
    Ok(())
}

/// Adds up threads with the same label.
fn sums_by_label(
    capture: &Capture,
    sums: Vec<(WeighedStack, u128)>,
    labels: ThreadLabels,
) -> Vec<(WeighedStack, u128)> {
    let mut first_of: HashMap<String, ThreadId> = HashMap::new();
    let written_as: Vec<ThreadId> = (0..capture.threads.len())
        .map(ThreadId::from_index)
        .map(|thread| *first_of.entry(label(capture, thread, labels)).or_insert(thread))
        .collect();
    let alike = stacks_written_alike(capture);
    let mut places: FxHashMap<(ThreadId, Option<StackId>), usize> = FxHashMap::default();
    let mut merged: Vec<(WeighedStack, u128)> = Vec::with_capacity(sums.len());
    for (row, sum) in sums {
        let stack = row.stack.map(|stack| alike[stack.index()]);
        let row = WeighedStack { thread: written_as[row.thread.index()], stack, ..row };
        match places.entry((row.thread, row.stack)) {
            Entry::Occupied(place) => merged[*place.get()].1 += sum,
            Entry::Vacant(place) => {
                place.insert(merged.len());
                merged.push((row, sum));
            }
        }
    }
    merged
}

/// For each node, the first node with the same text. Frames of one function at different lines are different frames.
fn stacks_written_alike(capture: &Capture) -> Vec<StackId> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let names: Vec<u32> = (capture.frames.iter())
        .map(|frame| {
            let next = numbers.len() as u32;
            *numbers.entry(&frame.function).or_insert(next)
        })
        .collect();
    let mut first: FxHashMap<(Option<StackId>, u32), StackId> = FxHashMap::default();
    let mut alike: Vec<StackId> = Vec::with_capacity(capture.stacks.len());
    for (index, node) in capture.stacks.iter().enumerate() {
        let parent = node.parent.map(|parent| alike[parent.index()]);
        let name = names[node.frame.index()];
        alike.push(*first.entry((parent, name)).or_insert(StackId::from_index(index)));
    }
    alike
}

fn label(capture: &Capture, thread: ThreadId, labels: ThreadLabels) -> String {
    let thread = &capture.threads[thread.index()];
    let pid = || match thread.process {
        Some(process) => capture.processes[process.index()].pid.to_string(),
        None => "?".to_owned(),
    };
    match labels {
        ThreadLabels::Absent => String::new(),
        ThreadLabels::Name => thread.name.clone(),
        ThreadLabels::NamePid => format!("{}-{}", thread.name, pid()),
        ThreadLabels::NamePidTid => format!("{}-{}/{}", thread.name, pid(), thread.tid),
    }
}

fn stack(capture: &Capture, row: WeighedStack, labels: ThreadLabels, line: &mut Vec<u8>) -> io::Result<()> {
    let mut frames: Vec<&str> = capture.frames_of(row.stack).map(|frame| capture.function(frame)).collect();
    let label = label(capture, row.thread, labels);
    if labels != ThreadLabels::Absent {
        frames.push(&label);
    } else if frames.is_empty() {
        frames.push(NO_STACK);
    }
    for (depth, name) in frames.into_iter().rev().enumerate() {
        if depth > 0 {
            line.push(b';');
        }
        line.extend(name.bytes().map(|byte| match byte {
            b';' => b':',
            b'\n' | b'\r' => b' ',
            other => other,
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use stepscope_model::{Event, Frame, Process, Sample, Thread, Wait, WaitState};

    use super::super::{Evidence, Measure, write};
    use super::*;

    /// Two threads with the same name, of process 7, that sample `main;step` and `main` of two events.
    fn capture() -> Capture {
        let mut capture = Capture::default();
        let process = capture.add_process(Process { pid: 7, ..Process::default() });
        let cycles = capture.add_event(Event::sampled("cycles", "cycles"));
        let faults = capture.add_event(Event::sampled("page-faults", "faults"));
        let threads = [8, 9].map(|tid| {
            capture.add_thread(Thread { tid, process: Some(process), name: "sim".into(), ..Thread::default() })
        });
        let main = capture.intern_function("main");
        let step = capture.intern_frame(Frame::named("step(int;\n)"));
        let outer = capture.intern_stack([main]);
        let inner = capture.intern_stack([main, step]);
        for (thread, stack, event, weight) in [
            (threads[0], inner, cycles, 100),
            (threads[1], inner, cycles, 10),
            (threads[0], outer, cycles, 1),
            (threads[0], inner, faults, 3),
            (threads[1], None, cycles, 5),
        ] {
            capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight });
        }
        capture
    }

    fn folded(capture: &Capture, options: &ExportOptions) -> Result<String, ExportError> {
        let mut out = Vec::new();
        write(capture, Format::Folded, &mut out, options)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn of(event: u32) -> ExportOptions {
        ExportOptions { evidence: Some(Evidence::Event(stepscope_model::EventId(event))), ..ExportOptions::default() }
    }

    #[test]
    fn equal_stacks_of_threads_with_equal_labels_are_added_up() {
        let lines = |threads| folded(&capture(), &ExportOptions { threads, ..of(0) }).unwrap();
        assert_eq!(lines(ThreadLabels::Name), "sim;main;step(int: ) 110\nsim;main 1\nsim 5\n");
        assert_eq!(lines(ThreadLabels::NamePid), "sim-7;main;step(int: ) 110\nsim-7;main 1\nsim-7 5\n");
        assert_eq!(
            lines(ThreadLabels::NamePidTid),
            "sim-7/8;main;step(int: ) 100\nsim-7/9;main;step(int: ) 10\nsim-7/8;main 1\nsim-7/9 5\n"
        );
        assert_eq!(lines(ThreadLabels::Absent), "main;step(int: ) 110\nmain 1\n(no stack) 5\n");
    }

    #[test]
    fn stacks_of_the_same_functions_at_other_lines_are_one_line() {
        let mut capture = capture();
        let main = capture.intern_function("main");
        let elsewhere = Frame { line: Some(7), ..Frame::named("step(int;\n)") };
        let elsewhere = capture.intern_frame(elsewhere);
        let stack = capture.intern_stack([main, elsewhere]);
        let first = capture.samples[0];
        capture.samples.push(Sample { stack, ..first });
        assert_eq!(folded(&capture, &of(0)).unwrap(), "sim;main;step(int: ) 210\nsim;main 1\nsim 5\n");
    }

    #[test]
    fn events_are_never_added_up() {
        assert_eq!(
            folded(&capture(), &ExportOptions::default()).unwrap_err().to_string(),
            "folded holds one event, and the capture has several; choose one: cycles, page-faults"
        );
        assert_eq!(folded(&capture(), &of(1)).unwrap(), "sim;main;step(int: ) 3\n");
        assert_eq!(
            folded(&capture(), &of(2)).unwrap_err().to_string(),
            "the capture has no such event; choose another event, or check the filters"
        );
    }

    #[test]
    fn samples_are_counted_if_their_number_is_known() {
        let counted = ExportOptions { measure: Measure::Count, ..of(0) };
        assert_eq!(folded(&capture(), &counted).unwrap(), "sim;main;step(int: ) 2\nsim;main 1\nsim 1\n");
        let mut summed = capture();
        summed.info.events[0] = Event::weighed("cycles", "cycles");
        assert_eq!(
            folded(&summed, &counted).unwrap_err().to_string(),
            "cycles: the number of samples is unknown; export the weights"
        );
    }

    #[test]
    fn off_cpu_time_is_summed_by_waiting_stack() {
        let mut capture = capture();
        let stack = capture.samples[0].stack;
        let wait = Wait {
            start_ns: 10,
            end_ns: 35,
            thread: ThreadId(0),
            stack,
            state: WaitState::Blocked,
            runnable_ns: None,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        };
        capture.waits = vec![wait, Wait { start_ns: 40, end_ns: 45, ..wait }].into();
        let options = ExportOptions { evidence: Some(Evidence::OffCpu), ..ExportOptions::default() };
        assert_eq!(folded(&capture, &options).unwrap(), "sim;main;step(int: ) 30\n");
    }
}
