//! A capture small enough to follow by hand, with something of everything that a capture can hold.
//!
//! ```text
//! time/ns      1000      2000      3000      4000      5000      6000
//! sim (10)     running---|blocked--------|rr|running-------------|     steps 0: 1000-3900, 1: 3900-6000
//!                ^A                          ^B        ^B     f           samples of cpu-clock, a fault at 5500
//! worker (11)            running-------------------|pp|running----|      scope "job" around "part"
//!                            ^C                                ^C
//!
//! A  main -> World::Step<std::pair<int, long> >      (inlined: pow)
//! B  main -> World::Step<...> -> operator new -> [kernel] do_page_fault
//! C  clone3 -> [unknown function of libphys.so]
//! ```

use stepscope_model::{
    Capture, Counter, Event, Frame, FrameId, Language, Module, Process, Sample, Scope, StackId, Step, SymbolSource,
    Thread, ThreadId, Wait, WaitState,
};

pub fn example() -> Capture {
    let mut capture = Capture::default();
    capture.info.tool = "stepscope test".to_owned();
    capture.info.scenario = Some("shapes".to_owned());
    capture.info.started_at = Some("2026-11-21T11:39:32.5Z".to_owned());
    (capture.info.start_ns, capture.info.end_ns) = (Some(1000), Some(6000));
    capture.info.notes.push("One note; with \"quotes\".".to_owned());
    let cpu = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let faults = capture.add_event(Event::sampled("page-faults", "faults"));
    let (sim, worker) = threads(&mut capture);
    let [a, b, c, wait] = stacks(&mut capture);
    for (time_ns, thread, stack, event, weight) in [
        (1200, sim, a, cpu, 1000),
        (2500, worker, c, cpu, 1003),
        (4200, sim, b, cpu, 1000),
        (5200, sim, b, cpu, 997),
        (5500, sim, b, faults, 1),
        (5800, worker, c, cpu, 1001),
    ] {
        let (time_ns, cpu) = (Some(time_ns), Some(u32::from(thread == worker)));
        capture.samples.push(Sample { time_ns, thread, cpu, stack, event, weight });
    }
    let blocked = Wait {
        start_ns: 2000,
        end_ns: 3700,
        thread: sim,
        stack: wait,
        state: WaitState::Blocked,
        runnable_ns: Some(200),
        cpu: None,
        waker: Some(worker),
        waker_stack: c,
        count: 1,
    };
    capture.waits.push(blocked);
    let state = WaitState::Preempted;
    let preempted =
        Wait { start_ns: 4500, end_ns: 4800, thread: worker, state, waker: None, waker_stack: None, ..blocked };
    capture.waits.push(Wait { stack: c, runnable_ns: Some(300), ..preempted });
    timeline(&mut capture, sim, worker);
    capture.check().unwrap();
    capture
}

fn threads(capture: &mut Capture) -> (ThreadId, ThreadId) {
    let process = capture.add_process(Process {
        pid: 10,
        executable: "/opt/sim/bin/sim server".to_owned(),
        command_line: "sim server -r".to_owned(),
        start_ns: Some(1000),
        ..Process::default()
    });
    let thread = |tid, name: &str, start_ns| Thread {
        tid,
        process: Some(process),
        name: name.to_owned(),
        start_ns: Some(start_ns),
        ..Thread::default()
    };
    let sim = capture.add_thread(Thread { end_ns: Some(6000), ..thread(10, "sim", 1000) });
    (sim, capture.add_thread(thread(11, "worker \"1\"", 2000)))
}

/// The stacks A, B, C and the one that `sim` waits at.
fn stacks(capture: &mut Capture) -> [Option<StackId>; 4] {
    let module = |path: &str, build_id: Option<&str>| Module {
        path: path.to_owned(),
        build_id: build_id.map(str::to_owned),
        symbols: SymbolSource::DebugInfo,
        ..Module::default()
    };
    let physics = capture.add_module(module("/usr/lib/libphys.so", None));
    let program =
        capture.add_module(module("/opt/sim/bin/sim server", Some("b4ef3d5a2c1e9f8070605040302010ffeeddccbb")));
    let kernel = capture.add_module(module("[kernel.kallsyms]", None));
    let named = |capture: &mut Capture, name: &str, place: Option<(&str, u32)>, address| {
        let file = place.map(|(file, _)| capture.intern_text(file));
        let frame =
            Frame { module: Some(program), file, line: place.map(|(_, line)| line), address, ..Frame::named(name) };
        capture.intern_frame(frame)
    };
    let main = named(capture, "main", Some(("src/main.cc", 12)), Some(0x1040));
    let step = named(capture, "World::Step<std::pair<int, long> >", Some(("src/world.cc", 80)), Some(0x2080));
    let inlined = Frame { inlined: true, ..capture.frames[step.index()].clone() };
    let pow = capture.intern_frame(Frame { function: "pow".into(), line: Some(7), ..inlined });
    let new = named(capture, "operator new", None, Some(0x30c0));
    let wait = named(capture, "Barrier::Wait", Some(("src/barrier.cc", 5)), Some(0x4000));
    let in_kernel = |capture: &mut Capture, name: &str| {
        let address = Some(0xffff_ffff_8175_336a);
        let frame = Frame { module: Some(kernel), language: Language::Kernel, address, ..Frame::named(name) };
        capture.intern_frame(frame)
    };
    let fault = in_kernel(capture, "do_page_fault");
    let schedule = in_kernel(capture, "schedule");
    let clone = capture.intern_function("clone3");
    let unknown = capture.intern_frame(Frame { module: Some(physics), ..Frame::named("libphys.so+0x1234") });
    let stacks: [&[FrameId]; 4] =
        [&[main, step, pow], &[main, step, new, fault], &[clone, unknown], &[main, wait, schedule]];
    stacks.map(|frames| capture.intern_stack(frames.iter().copied()))
}

fn timeline(capture: &mut Capture, sim: ThreadId, worker: ThreadId) {
    for (index, start_ns, end_ns) in [(0, 1000, 3900), (1, 3900, 6000)] {
        capture.steps.push(Step { index, start_ns, end_ns, sim_time_ns: Some(index * 1_000_000), thread: sim });
    }
    for (name, start_ns, end_ns, depth) in [("job", 2100, 5900, 0), ("part", 2200, 3000, 1), ("part", 3000, 5900, 1)] {
        capture.scopes.push(Scope { thread: worker, name: name.into(), start_ns, end_ns, depth });
    }
    for (time_ns, value) in [(1500, 4096), (4500, 12288)] {
        let process = capture.threads[sim.index()].process;
        capture.counters.push(Counter { time_ns, process, thread: None, name: "rss_bytes".into(), value });
    }
    let name = "cpu_user_ns".into();
    capture.counters.push(Counter { time_ns: 4500, process: None, thread: Some(worker), name, value: 77 });
}
