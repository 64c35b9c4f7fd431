//! What must hold of steps in any capture: nothing within a step is lost or counted twice, and parts add up to wholes.

use std::ops::Range;

use proptest::prelude::*;
use stepscope_analyze::cpu_holders::CpuHolders;
use stepscope_analyze::off_cpu::OffCpu;
use stepscope_analyze::step_paths::{Paths, State};
use stepscope_analyze::step_times::{self, StepParts};
use stepscope_analyze::steps::Loops;
use stepscope_analyze::{Filter, calltree};
use stepscope_analyze::{Functions, Ownership, Selection, TimeRange, critical_path, hotspots, slow_steps};
use stepscope_model::{Capture, Event, Process, ProcessId, Sample, Step, Thread, ThreadId, Value, Wait, WaitState};

/// Length of every drawn recording.
const END: u64 = 1_000;

const THREADS: u32 = 5;

/// Begins of steps, by process and thread, with gaps where the flag says so.
type DrawnSteps = Vec<(u64, u32, bool)>;

/// Moments at which each thread is switched out and in, by turns, with what each wait is: blocked or not, runnable ns, waker.
type DrawnLife = Vec<(u64, bool, u64, Option<u32>)>;

fn steps() -> impl Strategy<Value = DrawnSteps> {
    prop::collection::vec((0..END, 0..THREADS, prop::bool::weighted(0.2)), 0..30)
}

fn lives() -> impl Strategy<Value = Vec<DrawnLife>> {
    let cuts = prop::collection::vec((0..=END, any::<bool>(), 0..200_u64, prop::option::of(0..THREADS)), 0..16);
    prop::collection::vec(cuts, THREADS as usize)
}

fn samples() -> impl Strategy<Value = Vec<(u64, u32, u64)>> {
    prop::collection::vec((0..END, 0..THREADS, 1..50_u64), 0..60)
}

/// Threads 0 to 2 are of process 0, the others of process 1. Each step of a process lasts from its start to the next step's start.
fn capture(steps: &DrawnSteps, lives: &[DrawnLife], samples: &[(u64, u32, u64)]) -> Capture {
    let mut capture = Capture::default();
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(END));
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    for pid in 0..2 {
        capture.add_process(Process { pid, ..Process::default() });
    }
    for tid in 0..THREADS {
        let process = Some(ProcessId(u32::from(tid > 2)));
        let (start_ns, end_ns) = (Some(u64::from(tid) * 7), Some(END));
        capture.add_thread(Thread { tid, process, name: format!("t{tid}"), start_ns, end_ns, ..Thread::default() });
    }
    for process in 0..2_u32 {
        let mut begins: Vec<_> = steps.iter().filter(|(_, thread, _)| u32::from(*thread > 2) == process).collect();
        begins.sort();
        for (index, pair) in begins.windows(2).enumerate() {
            let ((start_ns, thread, gap), (next, ..)) = (*pair[0], *pair[1]);
            let end_ns = if gap { start_ns + (next - start_ns) / 2 } else { next };
            let thread = ThreadId(thread);
            capture.steps.push(Step { index: index as u64, start_ns, end_ns, sim_time_ns: None, thread });
        }
    }
    let frame = capture.intern_function("gz::f");
    let stack = capture.intern_stack([frame]);
    for (thread, life) in lives.iter().enumerate() {
        let mut cuts = life.clone();
        cuts.sort();
        for pair in cuts.chunks_exact(2) {
            let ((start_ns, blocked, runnable, waker), (end_ns, ..)) = (pair[0], pair[1]);
            let start_ns = start_ns.max(capture.threads[thread].start_ns.unwrap_or(0));
            if start_ns > end_ns {
                continue;
            }
            let length = end_ns - start_ns;
            capture.waits.push(Wait {
                start_ns,
                end_ns,
                thread: ThreadId::from_index(thread),
                stack,
                state: if blocked { WaitState::Blocked } else { WaitState::Preempted },
                runnable_ns: Some(if blocked { runnable.min(length) } else { length }),
                waker: waker.filter(|_| blocked).map(ThreadId),
                // Sometimes two threads on one CPU, as in damaged captures.
                cpu: Some(end_ns as u32 % 3).filter(|_| end_ns % 7 > 0),
                waker_stack: None,
                count: 1,
            });
        }
    }
    for (time, thread, weight) in samples {
        let (time_ns, thread) = (Some(*time), ThreadId(*thread));
        capture.samples.push(Sample { time_ns, thread, cpu: None, stack, event, weight: *weight });
    }
    capture.check().unwrap();
    capture
}

fn with<R>(capture: &Capture, look: impl FnOnce(&Selection<'_>) -> R) -> R {
    let functions = Functions::of(capture, &Ownership::default().compile().unwrap());
    look(&Selection::all(capture, &functions))
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

proptest! {
    #[test]
    fn every_sample_in_a_step_of_its_loop_belongs_to_exactly_one(
        steps in steps(), samples in samples()
    ) {
        let capture = capture(&steps, &[], &samples);
        with(&capture, |selection| {
            let Some(loops) = Loops::of(selection) else { return Ok(()) };
            let mut sums: u64 = 0;
            for sample in &capture.samples {
                let of = loops.of_thread(sample.thread);
                let time = sample.time_ns.unwrap();
                let holding: Vec<usize> =
                    (0..of.count()).filter(|position| of.range(*position).contains(&time)).collect();
                prop_assert!(holding.len() <= 1, "{holding:?} hold {time}");
                prop_assert_eq!(loops.step_of(sample).map(|(_, position)| position), holding.first().copied());
                let main = Some(of).filter(|of| std::ptr::eq(*of, loops.main())).and(holding.first().copied());
                prop_assert_eq!(loops.main_step_of(sample), main);
                sums += sample.weight * holding.len() as u64;
            }
            let weights = loops.sample_weights(selection);
            if loops.count() == 1 {
                prop_assert_eq!(weights.total().weight, u128::from(sums));
            }
            let known: usize = loops.all().map(|steps| steps.count()).sum();
            prop_assert_eq!(known, capture.steps.len());
            Ok(())
        })?;
    }

    #[test]
    fn waits_and_running_time_are_cut_at_step_boundaries_without_loss(
        steps in steps(), lives in lives()
    ) {
        let capture = capture(&steps, &lives, &[]);
        with(&capture, |selection| {
            let Some(loops) = Loops::of(selection) else { return Ok(()) };
            let (steps, off_cpu) = (loops.main(), OffCpu::of(&capture));
            for thread in 0..THREADS {
                let thread = ThreadId(thread);
                let life = selection.lifetime(thread).unwrap();
                let waits: Vec<Range<u64>> = off_cpu.waits(thread).map(|wait| wait.start_ns..wait.end_ns).collect();
                let in_each = steps.time_in_each(waits.iter().cloned());
                for (position, in_step) in in_each.iter().enumerate() {
                    let range = steps.range(position);
                    let spent = off_cpu.spent(thread, range.clone()).unwrap();
                    let off: u64 = waits.iter().map(|wait| overlap(wait, &range)).sum();
                    prop_assert_eq!(spent.runnable + spent.blocked, off);
                    prop_assert_eq!(spent.running + off, overlap(&life, &range));
                    prop_assert_eq!(*in_step, off);
                }
                for wait in &waits {
                    let pieces: Vec<u64> = steps.pieces(wait.clone()).map(|(_, piece)| piece.end - piece.start).collect();
                    let by_hand: u64 = (0..steps.count()).map(|position| overlap(wait, &steps.range(position))).sum();
                    prop_assert_eq!(pieces.iter().sum::<u64>(), by_hand);
                    prop_assert_eq!(steps.time_within(wait), by_hand);
                }
            }
            let made = StepParts::of(selection, &loops, steps, &off_cpu);
            for (position, spent) in made.spent.iter().flatten().enumerate() {
                let parts = spent.running + spent.runnable + spent.blocked;
                let alive = overlap(&selection.lifetime(steps.rows()[position].thread).unwrap(), &steps.range(position));
                prop_assert_eq!(parts, alive);
                prop_assert!(made.pacing[position] <= spent.blocked);
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_parts_of_a_critical_path_follow_each_other_and_add_up_to_the_step(
        steps in steps(), lives in lives(), samples in samples()
    ) {
        let capture = capture(&steps, &lives, &samples);
        with(&capture, |selection| {
            let Some(loops) = Loops::of(selection) else { return Ok(()) };
            let off_cpu = OffCpu::of(&capture);
            let paths = Paths::walk(&capture, loops.clone());
            for position in 0..loops.main().count() {
                let range = loops.main().range(position);
                let mut time = range.end;
                for part in paths.of_step(position) {
                    prop_assert_eq!(part.range.end, time);
                    prop_assert!(part.range.start < part.range.end);
                    let spent = off_cpu.spent(part.thread, part.range.clone()).unwrap();
                    let length = part.range.end - part.range.start;
                    match part.state {
                        State::Running => prop_assert_eq!(spent.running, length),
                        State::Runnable => prop_assert_eq!(spent.runnable, length),
                        State::Blocked(Some(_)) => prop_assert_eq!(spent.blocked, length),
                        State::Blocked(None) => {}
                    }
                    time = part.range.start;
                }
                prop_assert_eq!(time, range.start);
            }
            let tables = critical_path::tables(selection);
            if tables.len() > 1 && !loops.main().after_first().is_empty() {
                let sum: f64 = (0..tables[0].rows.len()).map(|row| match tables[0].get(row, "mean") {
                    Some(Value::Float(mean)) => *mean,
                    other => panic!("{other:?}"),
                }).sum();
                let kept = loops.main().after_first();
                let mean = kept.clone().map(|position| loops.main().duration(position)).sum::<u64>() as f64 / kept.len() as f64;
                prop_assert!((sum - mean).abs() < 1e-6 * mean.max(1.0), "{sum} {mean}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_cpu_runs_one_thread_at_a_time_without_gaps(lives in lives(), from in 0..END, length in 0..END) {
        let capture = capture(&Vec::new(), &lives, &[]);
        let off_cpu = OffCpu::of(&capture);
        let holders = CpuHolders::of(&capture, &off_cpu);
        for cpu in 0..3 {
            let mut time = from + length;
            for (thread, held) in holders.within(cpu, &(from..from + length)) {
                prop_assert!(from <= held.start && held.start < held.end && held.end <= time);
                prop_assert_eq!(off_cpu.spent(thread, held.clone()).unwrap().running, held.end - held.start);
                time = held.start;
            }
        }
    }

    #[test]
    fn hot_spots_per_step_add_up_to_what_steps_hold(
        steps in steps(), lives in lives(), samples in samples()
    ) {
        let capture = capture(&steps, &lives, &samples);
        with(&capture, |selection| {
            let Some(loops) = Loops::of(selection).filter(|loops| loops.count() == 1) else { return Ok(()) };
            let table = hotspots::table(selection);
            let sum: f64 = (0..table.rows.len()).map(|row| match table.get(row, "self_per_step") {
                Some(Value::Float(weight)) => *weight,
                other => panic!("{other:?}"),
            }).sum();
            let held = capture.samples.iter().filter(|sample| loops.step_of(sample).is_some());
            let held = held.map(|sample| sample.weight).sum::<u64>() as f64 / loops.main().count() as f64;
            prop_assert!((sum - held).abs() < 1e-6 * held.max(1.0), "{sum} {held}");
            Ok(())
        })?;
    }

    /// None of them fails, whatever the evidence and the selected time.
    #[test]
    fn every_view_of_steps_takes_any_capture(
        steps in steps(), lives in lives(), samples in samples(), from_ns in 0..END, to_ns in prop::option::of(0..END)
    ) {
        let capture = capture(&steps, &lives, &samples);
        let functions = Functions::of(&capture, &Ownership::default().compile().unwrap());
        let filter = Filter { time: Some(TimeRange { from_ns, to_ns }), ..Filter::default() };
        let Ok(selection) = Selection::new(&capture, &functions, &filter) else { return Ok(()) };
        step_times::tables(&selection);
        critical_path::tables(&selection);
        let options = slow_steps::Options { replicates: 20, ..slow_steps::Options::default() };
        slow_steps::tables(&selection, &options);
        calltree::of_samples_per_step(&selection, &calltree::Options::default());
        calltree::off_cpu_per_step(&selection, &calltree::Options::default());
    }
}
