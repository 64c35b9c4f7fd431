use stepscope_model::{
    AlignmentMethod, ClockAlignment, Clocks, Counter, Event, EventId, FlowEvent, FlowNumber, FlowStage, Losses,
    Machine, Module, Process, Sample, Scope, Step, Thread, ThreadId, Wait, WaitState, WallReading,
};

use super::*;
use crate::clocks::ClockMap;

const SECOND: u64 = 1_000_000_000;

/// A capture of one process with two threads, from `start_ns` on for a second.
fn capture(host: &str, start_ns: u64) -> Capture {
    let (start, end) = (Some(start_ns), Some(start_ns + SECOND));
    let mut capture = Capture::of(CaptureInfo { start_ns: start, end_ns: end, ..CaptureInfo::default() });
    capture.info.machine = Some(Machine { host: host.into(), cores: 2, ..Machine::default() });
    capture.info.losses = Losses { samples: 2, cpu_time_ns: Some(300), ..Losses::default() };
    capture.info.notes.push("A note.".into());
    capture.info.clocks = Some(Clocks {
        wall: vec![WallReading { time_ns: start_ns, unix_ns: 1_000 * SECOND as i64, ..WallReading::default() }],
        ..Clocks::default()
    });
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let process = capture.add_process(Process { pid: 40, executable: "/bin/node".into(), ..Process::default() });
    let module = capture.add_module(Module { path: format!("/bin/{host}"), ..Module::default() });
    let frame = capture.intern_function("spin");
    capture.frames[frame.index()].module = Some(module);
    let stack = capture.intern_stack([frame]);
    for (tid, name) in [(40, "main"), (41, "worker")] {
        let thread = capture.add_thread(Thread {
            tid,
            process: Some(process),
            name: name.into(),
            start_ns: start,
            end_ns: end,
            cpu_ns: Some(150),
            ..Thread::default()
        });
        let time_ns = Some(start_ns + u64::from(tid));
        capture.samples.push(Sample { time_ns, thread, cpu: Some(1), stack, event, weight: 150 });
        capture.waits.push(Wait {
            start_ns: start_ns + 100,
            end_ns: start_ns + 400,
            thread,
            stack,
            state: WaitState::Blocked,
            runnable_ns: Some(20),
            cpu: Some(0),
            waker: None,
            waker_stack: None,
            count: 1,
        });
    }
    let main = ThreadId::from_index(0);
    capture.steps.push(Step { index: 7, start_ns, end_ns: start_ns + 10, sim_time_ns: None, thread: main });
    capture.scopes.push(Scope { thread: main, name: "Outer".into(), start_ns, end_ns: start_ns + 10, depth: 0 });
    capture.scopes.push(Scope { thread: main, name: "Inner".into(), start_ns, end_ns: start_ns + 10, depth: 1 });
    let name = capture.intern_text("rss_bytes");
    capture.counters.push(Counter { time_ns: start_ns, process: Some(process), thread: None, name, value: 5 });
    capture
}

fn part(name: &str, capture: Capture, offset_ns: i128, error_ns: u64) -> Part {
    let method = if offset_ns == 0 { AlignmentMethod::Reference } else { AlignmentMethod::Exchange };
    let alignment = ClockAlignment { method, offset_ns: offset_ns as i64, error_ns, ..ClockAlignment::default() };
    let aligned = Aligned { map: ClockMap::shift(offset_ns), alignment };
    Part { name: name.into(), source: format!("{name}.capture"), capture, aligned }
}

fn flow(thread: usize, time_ns: u64, flow: u64, stage: FlowStage) -> FlowEvent {
    let thread = ThreadId::from_index(thread);
    FlowEvent { time_ns, thread, topic: "/scan".into(), flow: Some(flow), stage, name: None, period_ns: None }
}

/// Two machines, the second of which is 4 s behind.
fn merged(change: impl FnOnce(&mut Capture, &mut Capture), error_ns: u64) -> Capture {
    let (mut base, mut robot) = (capture("base", 10 * SECOND), capture("robot", 6 * SECOND));
    change(&mut base, &mut robot);
    let merged = merge(vec![part("base", base, 0, 0), part("robot", robot, 4 * i128::from(SECOND), error_ns)]);
    merged.check().unwrap();
    merged
}

#[test]
fn sums_are_those_of_the_parts_and_equal_pids_stay_apart() {
    let merged = merged(|_, _| {}, 0);
    let machines: Vec<_> = merged.processes.iter().map(|one| (one.pid, one.machine.as_deref())).collect();
    assert_eq!(machines, [(40, Some("base")), (40, Some("robot"))]);
    let processes: Vec<_> = merged.threads.iter().map(|one| (one.tid, one.process.unwrap().index())).collect();
    assert_eq!(processes, [(40, 0), (41, 0), (40, 1), (41, 1)]);
    assert_eq!(merged.threads.iter().filter_map(|thread| thread.cpu_ns).sum::<u64>(), 600);
    assert_eq!((merged.samples.len(), merged.samples.iter().map(|sample| sample.weight).sum::<u64>()), (4, 600));
    assert!(merged.samples.is_sorted_by_key(|sample| sample.time_ns));
    assert_eq!(merged.waits.iter().map(|wait| wait.end_ns - wait.start_ns).sum::<u64>(), 4 * 300);
    assert_eq!(merged.waits.iter().filter_map(|wait| wait.runnable_ns).sum::<u64>(), 4 * 20);
    assert_eq!(
        merged.steps.iter().map(|step| (step.index, step.start_ns)).collect::<Vec<_>>(),
        [(7, 10 * SECOND), (7, 10 * SECOND)]
    );
    assert_eq!(
        merged.scopes.iter().map(|scope| (&*scope.name, scope.depth)).collect::<Vec<_>>(),
        [("Outer", 0), ("Inner", 1), ("Outer", 0), ("Inner", 1)]
    );
    assert_eq!(merged.counters.len(), 2);
    // One event, one function in each of two files.
    assert_eq!((merged.info.events.len(), merged.modules.len(), merged.frames.len()), (1, 2, 2));
    assert_eq!(merged.samples[0].event, EventId(0));
}

#[test]
fn the_description_has_all_machines() {
    let merged = merged(
        |base, robot| {
            base.info.dimensions.insert(stepscope_model::Dimension::Cpu, stepscope_model::DimensionStatus::Recorded);
            robot.info.dimensions.insert(stepscope_model::Dimension::Cpu, stepscope_model::DimensionStatus::Recorded);
            base.info.dimensions.insert(stepscope_model::Dimension::Heap, stepscope_model::DimensionStatus::Recorded);
        },
        30,
    );
    let info = &merged.info;
    assert_eq!((info.start_ns, info.end_ns), (Some(10 * SECOND), Some(11 * SECOND)));
    let machine = info.machine.as_ref().unwrap();
    assert_eq!((machine.host.as_str(), machine.cores), ("base + robot", 4));
    assert_eq!((info.losses.samples, info.losses.cpu_time_ns), (4, Some(600)));
    assert_eq!(
        info.notes,
        [
            "The clock of robot was aligned to that of base by 0 exchanges (shortest round trip 0 ns): its times are right to 30 ns. It \
         was 0.00 ppm slower.",
            "CPUs are numbered from 0 on of base, from 2 on of robot.",
            "base: A note.",
            "robot: A note.",
        ]
    );
    let heap = stepscope_model::DimensionStatus::Partial { lacks: vec!["robot: not asked for.".into()] };
    assert_eq!(info.dimensions[&stepscope_model::Dimension::Heap], heap);
    assert_eq!(info.dimensions[&stepscope_model::Dimension::Cpu], stepscope_model::DimensionStatus::Recorded);
    let about = info.merged.as_ref().unwrap();
    assert_eq!(about.error_ns(), 30);
    let robot = &about.machines[1];
    assert_eq!((robot.name.as_str(), robot.first_cpu, robot.start_ns), ("robot", 2, 10 * SECOND));
    assert_eq!(robot.clock.offset_ns, 4 * SECOND as i64);
    // CPU 1 of the second machine is the fourth of all.
    let cpus: Vec<Option<u32>> = merged.samples.iter().map(|sample| sample.cpu).collect();
    assert_eq!(cpus.iter().filter(|cpu| **cpu == Some(3)).count(), 2);
}

#[test]
fn recordings_without_common_time_have_a_note() {
    let (base, robot) = (capture("base", 10 * SECOND), capture("robot", 60 * SECOND));
    let merged = merge(vec![part("base", base, 0, 0), part("robot", robot, 5, 0)]);
    let is_apart = |note: &String| note.starts_with("The recording of robot has no time in common");
    assert!(merged.info.notes.iter().any(is_apart), "{:?}", merged.info.notes);
}

#[test]
fn a_machine_that_booted_later_may_be_the_first() {
    let (robot, base) = (capture("robot", SECOND), capture("base", 100 * SECOND));
    let merged = merge(vec![part("robot", robot, 0, 0), part("base", base, -101 * i128::from(SECOND), 0)]);
    // The base station was recorded from one second before the boot of the robot on.
    assert_eq!((merged.info.start_ns, merged.info.end_ns), (Some(0), Some(3 * SECOND)));
    let machines = &merged.info.merged.as_ref().unwrap().machines;
    assert_eq!((machines[0].start_ns, machines[1].start_ns), (2 * SECOND, 0));
    assert_eq!(machines[0].clock.offset_ns, SECOND as i64);
}

#[test]
fn a_process_in_two_captures_of_one_machine_is_noted() {
    let own = stepscope_model::ClockId { host: "base".into(), boot_id: "b".into(), namespace_offset_ns: 0 };
    let [mut first, mut second] = [capture("base", SECOND), capture("base", SECOND + SECOND / 2)];
    for capture in [&mut first, &mut second] {
        capture.info.clocks.as_mut().unwrap().own = Some(own.clone());
    }
    let merged = merge(vec![part("base", first, 0, 0), part("base (2)", second, 0, 0)]);
    // One machine has its CPUs once.
    let cpus: Vec<u32> = merged.info.merged.as_ref().unwrap().machines.iter().map(|one| one.first_cpu).collect();
    assert_eq!((cpus, merged.info.machine.as_ref().unwrap().cores), (vec![0, 0], 2));
    let note = merged.info.notes.last().unwrap();
    assert_eq!(note, "Processes that are in two captures of one machine, so that their rows count twice: 1.");
}

#[test]
fn messages_that_programs_number_join_across_machines() {
    let merged = merged(
        |base, robot| {
            base.flows.push(flow(0, 10 * SECOND + 100, 7, FlowStage::Published));
            robot.flows.push(flow(1, 6 * SECOND + 350, 7, FlowStage::Arrived));
        },
        20,
    );
    let stages: Vec<_> = merged.flows.iter().map(|event| (event.time_ns - 10 * SECOND, event.thread.index())).collect();
    assert_eq!(stages, [(100, 0), (350, 3)]);
    let about = merged.info.merged.unwrap();
    assert_eq!((about.early_messages, about.impossible_messages), (0, 0));
}

#[test]
fn a_message_that_arrives_early_by_less_than_the_error_arrives_at_once() {
    let merged = merged(
        |base, robot| {
            for (number, sent) in [(7, 100), (8, 5_000)] {
                base.flows.push(flow(0, 10 * SECOND + sent, number, FlowStage::Published));
            }
            robot.flows.push(flow(1, 6 * SECOND + 85, 7, FlowStage::Taken));
            robot.flows.push(flow(1, 6 * SECOND + 90, 7, FlowStage::Arrived));
            robot.flows.push(flow(1, 6 * SECOND + 200, 8, FlowStage::Arrived));
        },
        20,
    );
    let stages: Vec<_> =
        merged.flows.iter().map(|event| (event.time_ns - 10 * SECOND, event.flow, event.stage)).collect();
    assert_eq!(
        stages,
        [
            (100, Some(7), FlowStage::Published),
            (101, Some(7), FlowStage::Taken),
            (101, Some(7), FlowStage::Arrived),
            (200, Some(8), FlowStage::Arrived),
            (5_000, Some(8), FlowStage::Published),
        ]
    );
    let about = merged.info.merged.unwrap();
    assert_eq!((about.early_messages, about.impossible_messages), (1, 1));
}

#[test]
fn a_number_that_is_used_again_joins_with_the_nearer_publication() {
    let merged = merged(
        |base, robot| {
            base.flows.push(flow(0, 10 * SECOND + 100, 7, FlowStage::Published));
            robot.flows.push(flow(1, 6 * SECOND + 150, 7, FlowStage::Arrived));
            robot.flows.push(flow(1, 6 * SECOND + 995, 7, FlowStage::Arrived));
            base.flows.push(flow(0, 10 * SECOND + 1_000, 7, FlowStage::Published));
        },
        20,
    );
    let times: Vec<u64> = merged.flows.iter().map(|event| event.time_ns - 10 * SECOND).collect();
    assert_eq!(times, [100, 150, 1_000, 1_001]);
}

#[test]
fn what_a_thread_does_after_an_early_message_stays_after_it() {
    let merged = merged(
        |base, robot| {
            base.flows.push(flow(0, 10 * SECOND + 100, 7, FlowStage::Published));
            robot.flows.push(flow(1, 6 * SECOND + 85, 7, FlowStage::Arrived));
            // The robot answers, and the answer arrives before all of it.
            let answer = |event: FlowEvent| FlowEvent { topic: "/answer".into(), ..event };
            robot.flows.push(answer(flow(1, 6 * SECOND + 86, 1, FlowStage::Published)));
            base.flows.push(answer(flow(0, 10 * SECOND + 101, 1, FlowStage::Arrived)));
        },
        20,
    );
    let stages: Vec<_> =
        merged.flows.iter().map(|event| (event.time_ns - 10 * SECOND, event.stage, event.thread.index())).collect();
    assert_eq!(
        stages,
        [
            (100, FlowStage::Published, 0),
            (101, FlowStage::Arrived, 3),
            (101, FlowStage::Published, 3),
            (101, FlowStage::Arrived, 0),
        ]
    );
}

#[test]
fn messages_of_ros_2_join_by_the_time_that_the_publisher_wrote() {
    let counted = |count| FlowNumber::Counted { machine: 0, count }.to_flow();
    let merged = merged(
        |base, robot| {
            // Both recorders count from 0. The wall clock of the base station is 1,000 s at 10 s.
            base.flows.push(flow(0, 10 * SECOND + 100, counted(0), FlowStage::Published));
            base.flows.push(flow(0, 10 * SECOND + 900, counted(1), FlowStage::Published));
            robot.flows.push(flow(0, 6 * SECOND + 200, counted(0), FlowStage::Published));
            robot.flows.push(flow(1, 6 * SECOND + 210, counted(0), FlowStage::Taken));
            let stamped = |ns: u64| FlowNumber::Stamped(1_000 * SECOND + ns).to_flow();
            robot.flows.push(flow(1, 6 * SECOND + 950, stamped(910), FlowStage::Taken));
            robot.flows.push(flow(1, 6 * SECOND + 990, stamped(90), FlowStage::Taken));
        },
        20,
    );
    let number = |machine, count| Some(FlowNumber::Counted { machine, count });
    let stages: Vec<_> =
        merged.flows.iter().map(|event| (event.time_ns - 10 * SECOND, event.flow.map(FlowNumber::of))).collect();
    assert_eq!(
        stages,
        [
            (100, number(0, 0)),
            (200, number(1, 0)),
            (210, number(1, 0)),
            (900, number(0, 1)),
            (950, number(0, 1)),
            // It was published before any message that was recorded.
            (990, Some(FlowNumber::Stamped(1_000 * SECOND + 90))),
        ]
    );
}
