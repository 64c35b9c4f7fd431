//! Texts of ftrace.

use stepscope_model::{Capture, WaitState};

use crate::import::ftrace::waits_of;
use crate::{ImportOptions, Source, import};

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

const KERNEL: &str = "\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [000] d..2. 1.000100: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=gz sim next_pid=11 next_prio=120
          gz sim-11      [000] d..2. 1.000150: sched_switch: prev_comm=gz sim prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
             net-20      [001] d..4. 1.000160: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=net next_pid=20 next_prio=120
             net-20      [001] d..4. 1.000170: sched_waking: comm=gz sim pid=11 prio=120 target_cpu=000
          <idle>-0       [000] d..2. 1.000190: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=gz sim next_pid=11 next_prio=120
          gz sim-11      [000] d..2. 1.000200: sched_switch: prev_comm=gz sim prev_pid=11 prev_prio=120 prev_state=R+ ==> next_comm=a next_pid=30 next_prio=120
               a-30      [000] d..2. 1.000230: sched_switch: prev_comm=a prev_pid=30 prev_prio=120 prev_state=D ==> next_comm=gz sim next_pid=11 next_prio=120
";

const TRACE_CMD: &str = "\
cpus=2
          <idle>-0     [000]     1.000100: sched_switch:         swapper/0:0 [120] R ==> gz sim:11 [120]
          gz sim-11    [000]     1.000150: sched_switch:         gz sim:11 [120] S ==> swapper/0:0 [120]
             net-20    [001]     1.000160: sched_switch:         swapper/1:0 [120] R ==> net:20 [120]
             net-20    [001]     1.000170: sched_waking:         comm=gz sim pid=11 prio=120 target_cpu=000
          <idle>-0     [000]     1.000190: sched_switch:         swapper/0:0 [120] R ==> gz sim:11 [120]
          gz sim-11    [000]     1.000200: sched_switch:         gz sim:11 [120] R+ ==> a:30 [120]
               a-30    [000]     1.000230: sched_switch:         a:30 [120] D ==> gz sim:11 [120]
";

#[test]
fn the_kernels_text_and_that_of_trace_cmd_have_the_same_waits() {
    let capture = read(KERNEL);
    let us = |us: u64| 1_000_000_000 + us * 1000;
    assert_eq!(
        waits_of(&capture, 11),
        [
            (us(150), us(190), WaitState::Blocked, Some(20_000), Some(20)),
            (us(200), us(230), WaitState::Preempted, Some(30_000), None),
        ]
    );
    assert_eq!(capture.threads.iter().find(|thread| thread.tid == 11).unwrap().name, "gz sim");
    let other = read(TRACE_CMD);
    assert_eq!((&other.waits, &other.threads), (&capture.waits, &capture.threads));
    assert_eq!(capture.info.losses.malformed_records, 0);
}

#[test]
fn a_thread_whose_switch_is_missing_runs_no_longer_than_until_another_one_leaves_its_cpu() {
    let capture = read(
        "cpus=2
               a-30    [000]     1.000230: sched_switch:         a:30 [120] R ==> b:75 [120]
               a-30    [000]     1.000240: sched_switch:         a:30 [120] R ==> c:40 [120]
               c-40    [000]     1.001240: sched_switch:         c:40 [120] S ==> a:30 [120]
               d-50    [001]     1.002000: sched_switch:         d:50 [120] S ==> e:60 [120]
",
    );
    let cpu_ns = |tid: u32| capture.threads.iter().find(|thread| thread.tid == tid).unwrap().cpu_ns;
    assert_eq!((cpu_ns(75), cpu_ns(40)), (Some(0), Some(1_000_000)));
}

#[test]
fn marks_of_programs_become_scopes_and_readings() {
    let capture = read(
        "# tracer: nop
  gz sim-11 (   10) [000] ..... 1.000100: tracing_mark_write: B|10|step
  gz sim-11 (   10) [000] ..... 1.000110: print: tracing_mark_write: B|10|physics
  gz sim-11 (   10) [000] ..... 1.000120: tracing_mark_write: C|10|entities|42
  gz sim-11 (   10) [000] ..... 1.000130: print: ffffffff81234567: E|10
  gz sim-11 (   10) [000] ..... 1.000140: tracing_mark_write: E|10
  gz sim-11 (   10) [000] ..... 1.000150: funcgraph_entry:        2.500 us   |  kfree();
  gz sim-11 (   10) [000] ..... 1.000160: funcgraph_entry:                   |  ksys_read() {
  gz sim-11 (   10) [000] ..... 1.000170: funcgraph_exit:       + 10.000 us  |  }
  gz sim-11 (   10) [000] ..... 1.000180: path_put <-walk_component
",
    );
    let scopes: Vec<_> = capture
        .scopes
        .iter()
        .map(|scope| {
            format!(
                "{}-{} {} {}",
                scope.start_ns - 1_000_000_000,
                scope.end_ns - 1_000_000_000,
                scope.depth,
                scope.name
            )
        })
        .collect();
    assert_eq!(
        scopes,
        ["100000-140000 0 step", "110000-130000 1 physics", "150000-152500 0 kfree", "160000-170000 0 ksys_read"]
    );
    assert_eq!((&*capture.counters[0].name, capture.counters[0].value), ("entities", 42));
    assert_eq!(capture.processes[capture.threads[0].process.unwrap().index()].pid, 10);
    assert!(capture.info.notes.iter().any(|note| note == "1 of 9 events fill no table: function (1)."));
}

#[test]
fn lost_events_and_lines_that_are_none_are_counted() {
    let text = KERNEL.replace(
        "             net-20      [001] d..4. 1.000170",
        "CPU:0 [LOST 5 EVENTS]\nCPU:1 [EVENTS DROPPED]\nwhat\n             net-20      [001] d..4. 1.000170",
    );
    let capture = read(&text[..text.len() - 10]);
    assert_eq!((capture.info.losses.lost_records, capture.info.losses.malformed_records), (5, 2));
    let notes = capture.info.notes.join("\n");
    assert!(notes.contains("The tracer lost 5 events"), "{notes}");
    assert!(notes.contains("2 malformed records skipped; the first is line 9: it is no event."), "{notes}");
    // The thread that woke the other is not known, because its CPU lost events.
    assert_eq!(waits_of(&capture, 11)[0].4, None);
}
