//! A capture of threads that wait at four places, for tests and benches that add the waits.

use stepscope_model::{Capture, Dimension, DimensionStatus, Event, EventId, Process, StackId, Thread};

/// A capture without waits, steps and samples.
pub struct Workers {
    pub capture: Capture,
    /// CPU samples.
    pub event: EventId,
    /// Where the threads wait.
    pub stacks: [Option<StackId>; 4],
}

impl Workers {
    /// This many threads, all of them from the start of a recording of this length to its end.
    pub fn new(threads: u64, length_ns: u64) -> Self {
        let mut capture = Capture::default();
        (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(length_ns));
        for dimension in [Dimension::Cpu, Dimension::Offcpu, Dimension::Sched, Dimension::Steps] {
            capture.info.dimensions.insert(dimension, DimensionStatus::Recorded);
        }
        let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
        let process = capture.add_process(Process { pid: 1, executable: "/usr/bin/sim".into(), ..Process::default() });
        let places = [
            ["main", "Worker::run", "pthread_cond_wait"],
            ["main", "Physics::solve", "pthread_mutex_lock"],
            ["main", "Network::poll", "epoll_wait"],
            ["main", "Clock::sleep", "nanosleep"],
        ];
        let stacks = places.map(|names| {
            let frames: Vec<_> = names.iter().map(|name| capture.intern_function(name)).collect();
            capture.intern_stack(frames)
        });
        for number in 0..threads {
            let name = format!("worker-{number}");
            let thread = Thread { tid: 100 + number as u32, process: Some(process), name, ..Thread::default() };
            capture.add_thread(Thread { start_ns: Some(0), end_ns: Some(length_ns), ..thread });
        }
        Self { capture, event, stacks }
    }
}
