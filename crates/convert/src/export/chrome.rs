//! Chrome's trace events as JSON, which Perfetto reads too.
//!
//! The format is described in "Trace Event Format", which chrome://tracing links to. The track of a thread shows its
//! state: running, runnable, or blocked and in which function, with arrows from wakers. Samples are instants on it.
//! Steps and scopes have their own tracks (asynchronous events), because they do not nest with running and waiting.
//! Stages of messages are slices of a nanosecond, with arrows from publication to each arrival, over the stages between. Readings over
//! time are counters.
//!
//! Times are microseconds since the capture's start with three decimals, so that ns are kept.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use stepscope_model::{
    Capture, Counter, FlowEvent, FlowNumber, FlowStage, FrameId, Language, ProcessId, Sample, Scope, StackId, Step,
    ThreadId, Wait,
};

use super::json::Json;
use super::timeline::{self, ByThread, Ids, Slice, State, Window};
use super::{Evidence, ExportError, ExportOptions, Format};

pub fn write(capture: &Capture, out: &mut dyn Write, options: &ExportOptions) -> Result<(), ExportError> {
    let window = Window::of(capture).ok_or(ExportError::NoTimes { format: Format::Chrome })?;
    let trace = Trace { capture, window, ids: Ids::of(capture), process_names: &options.process_names };
    let with_waits = !matches!(options.evidence, Some(Evidence::Event(_)));
    let waits = ByThread::new(capture, capture.waits.iter().filter(|_| with_waits), |wait| wait.thread);
    Json::new(out).object(|json| {
        json.entry("displayTimeUnit", "ns")?;
        json.object_entry("otherData", |json| {
            json.entry("title", super::title(capture, options))?;
            json.entry("tool", &capture.info.tool)?;
            json.entry("notes", &capture.info.notes)
        })?;
        json.array_entry("traceEvents", |json| {
            trace.names(json)?;
            for thread in (0..capture.threads.len()).map(ThreadId::from_index) {
                trace.states(json, thread, waits.of(thread))?;
            }
            trace.wake_ups(json, with_waits)?;
            trace.messages(json)?;
            trace.samples(json, options.evidence)?;
            trace.steps(json)?;
            trace.scopes(json)?;
            trace.counters(json)
        })?;
        trace.stack_frames(json)
    })?;
    Ok(())
}

struct Trace<'a> {
    capture: &'a Capture,
    window: Window,
    ids: Ids,
    process_names: &'a [String],
}

/// Fields of one event besides phase, name, thread and time.
type Extras<'a> = &'a dyn Fn(&mut Json<'_>) -> io::Result<()>;

impl Trace<'_> {
    /// Writes an event of a thread.
    fn event(
        &self,
        json: &mut Json<'_>,
        phase: &str,
        name: &str,
        thread: ThreadId,
        time_ns: u64,
        extras: Extras<'_>,
    ) -> io::Result<()> {
        json.line()?;
        json.object(|json| {
            json.entry("ph", phase)?;
            json.entry("name", name)?;
            json.entry("pid", self.ids.pid(self.capture.threads[thread.index()].process))?;
            json.entry("tid", self.ids.tid(thread))?;
            json.entry("ts", micros(self.window.since_start_ns(time_ns)))?;
            extras(json)
        })
    }

    /// Names of processes and threads.
    fn names(&self, json: &mut Json<'_>) -> io::Result<()> {
        let metadata = |json: &mut Json<'_>, what: &str, pid: u32, tid: Option<u32>, name: &str| {
            json.line()?;
            json.object(|json| {
                json.entry("ph", "M")?;
                json.entry("name", what)?;
                json.entry("pid", pid)?;
                json.some_entry("tid", tid)?;
                json.object_entry("args", |json| json.entry("name", name))
            })
        };
        for process in (0..self.capture.processes.len()).map(ProcessId::from_index) {
            let name = timeline::process_name(self.capture, self.process_names, process);
            metadata(json, "process_name", self.ids.pid(Some(process)), None, &name)?;
        }
        if self.capture.threads.iter().any(|thread| thread.process.is_none()) {
            metadata(json, "process_name", self.ids.pid(None), None, "threads")?;
        }
        for (index, thread) in self.capture.threads.iter().enumerate() {
            let tid = self.ids.tid(ThreadId::from_index(index));
            metadata(json, "thread_name", self.ids.pid(thread.process), Some(tid), &thread.name)?;
        }
        Ok(())
    }

    fn states(&self, json: &mut Json<'_>, thread: ThreadId, waits: &[Wait]) -> io::Result<()> {
        let row = &self.capture.threads[thread.index()];
        for slice in timeline::slices(row, waits, self.window) {
            let Slice { start_ns, end_ns, state, stack } = slice;
            let function = stack.and_then(|stack| self.waiting_function(stack));
            let (name, colour) = match (state, function) {
                (State::Running, _) => ("running".to_owned(), "thread_state_running"),
                (State::Runnable, _) => ("runnable".to_owned(), "thread_state_runnable"),
                (State::Blocked, None) => ("blocked".to_owned(), "thread_state_sleeping"),
                (State::Blocked, Some(function)) => {
                    (format!("blocked in {}", self.capture.function(function)), "thread_state_sleeping")
                }
            };
            self.event(json, "X", &name, thread, start_ns, &|json| {
                json.entry("dur", micros(end_ns - start_ns))?;
                json.entry("cat", "sched")?;
                json.entry("cname", colour)?;
                json.some_entry("sf", stack.map(|stack| stack.index().to_string()))
            })?;
        }
        Ok(())
    }

    /// The innermost function of the program, not of the kernel.
    fn waiting_function(&self, stack: StackId) -> Option<FrameId> {
        let is_kernel = |frame: &FrameId| self.capture.frames[frame.index()].language == Language::Kernel;
        let mut frames = self.capture.frames_of(Some(stack));
        let leaf = frames.next()?;
        Some(std::iter::once(leaf).chain(frames).find(|frame| !is_kernel(frame)).unwrap_or(leaf))
    }

    /// Arrows from wakers to woken threads.
    fn wake_ups(&self, json: &mut Json<'_>, with_waits: bool) -> io::Result<()> {
        let woken = self.capture.waits.iter().filter(|_| with_waits).filter_map(|wait| Some((wait, wait.waker?)));
        for (id, (wait, waker)) in woken.enumerate() {
            let time_ns = timeline::woken_ns(&wait);
            let flow = |json: &mut Json<'_>| {
                json.entry("cat", "wakeup")?;
                json.entry("id", id)
            };
            self.event(json, "s", "wake-up", waker, time_ns, &flow)?;
            self.event(json, "f", "wake-up", wait.thread, time_ns, &|json| {
                json.entry("bp", "e")?;
                flow(json)
            })?;
        }
        Ok(())
    }

    /// Stages of messages, and an arrow for each arrival.
    fn messages(&self, json: &mut Json<'_>) -> io::Result<()> {
        let mut messages: FxHashMap<(&str, u64), Vec<&FlowEvent>> = FxHashMap::default();
        let mut arrows = 0_usize;
        for stage in &self.capture.flows {
            self.stage(json, stage)?;
            let Some(flow) = stage.flow else { continue };
            let way = messages.entry((&*stage.topic, flow)).or_default();
            // A number that is published again names another message.
            if stage.stage == FlowStage::Published {
                way.clear();
            }
            way.push(stage);
            let Some(published) = way.first().filter(|first| first.stage == FlowStage::Published) else { continue };
            if stage.stage.is_arrival() {
                let ends = [published.thread, stage.thread];
                let between = way[1..way.len() - 1].iter().filter(|between| is_between(between, ends));
                let whole: Vec<&FlowEvent> = [*published].into_iter().chain(between.copied()).chain([stage]).collect();
                self.arrow(json, &whole, arrows)?;
                arrows += 1;
            }
        }
        Ok(())
    }

    fn stage(&self, json: &mut Json<'_>, stage: &FlowEvent) -> io::Result<()> {
        let name = format!("{} {}", stage.stage.name(), stage.topic);
        self.event(json, "X", &name, stage.thread, stage.time_ns, &|json| {
            // An arrow needs a slice that is open at its time.
            json.entry("dur", micros(1))?;
            json.entry("cat", "message")?;
            json.object_entry("args", |json| {
                json.some_entry("message", stage.flow.map(|flow| FlowNumber::of(flow).shown()))?;
                json.some_entry("name", stage.name.as_deref())
            })
        })
    }

    /// An arrow over the stages of one message on its way to one subscriber.
    fn arrow(&self, json: &mut Json<'_>, way: &[&FlowEvent], id: usize) -> io::Result<()> {
        for (at, stage) in way.iter().enumerate() {
            let phase = match at {
                0 => "s",
                _ if at + 1 == way.len() => "f",
                _ => "t",
            };
            self.event(json, phase, &stage.topic, stage.thread, stage.time_ns, &|json| {
                json.entry("cat", "message")?;
                // Other arrows are wake-ups, and have numbers of their own.
                json.entry("id", format!("message {id}"))?;
                json.entry("bp", "e")
            })?;
        }
        Ok(())
    }

    fn samples(&self, json: &mut Json<'_>, evidence: Option<Evidence>) -> io::Result<()> {
        let is_wanted = |sample: &&Sample| match evidence {
            Some(Evidence::Event(event)) => sample.event == event,
            Some(Evidence::OffCpu) => false,
            None => true,
        };
        for sample in self.capture.samples.iter().filter(is_wanted) {
            let Some(time_ns) = sample.time_ns else { continue };
            let event = self.capture.event(sample.event);
            let function = self.capture.frames_of(sample.stack).next();
            let name = function.map_or(&*event.name, |function| self.capture.function(function));
            self.event(json, "i", name, sample.thread, time_ns, &|json| {
                json.entry("s", "t")?;
                json.entry("cat", &event.name)?;
                json.some_entry("sf", sample.stack.map(|stack| stack.index().to_string()))?;
                json.object_entry("args", |json| {
                    json.entry(&event.unit, sample.weight)?;
                    json.some_entry("cpu", sample.cpu)
                })
            })?;
        }
        Ok(())
    }

    fn steps(&self, json: &mut Json<'_>) -> io::Result<()> {
        for Step { index, start_ns, end_ns, sim_time_ns, thread } in &self.capture.steps {
            self.begin(json, "step", "step", *thread, *start_ns, &|json| {
                json.object_entry("args", |json| {
                    json.entry("index", index)?;
                    json.some_entry("sim_time_ns", *sim_time_ns)
                })
            })?;
            self.end(json, "step", "step", *thread, *end_ns)?;
        }
        Ok(())
    }

    /// Scopes are ordered by start within a thread, so the open ones form a stack.
    fn scopes(&self, json: &mut Json<'_>) -> io::Result<()> {
        let by_thread = ByThread::new(self.capture, self.capture.scopes.iter(), |scope| scope.thread);
        for thread in (0..self.capture.threads.len()).map(ThreadId::from_index) {
            let mut open: Vec<&Scope> = Vec::new();
            for scope in by_thread.of(thread) {
                while let Some(ended) = open.pop_if(|open| open.end_ns <= scope.start_ns) {
                    self.end(json, "scope", &ended.name, thread, ended.end_ns)?;
                }
                self.begin(json, "scope", &scope.name, thread, scope.start_ns, &|_| Ok(()))?;
                open.push(scope);
            }
            for ended in open.into_iter().rev() {
                self.end(json, "scope", &ended.name, thread, ended.end_ns)?;
            }
        }
        Ok(())
    }

    fn begin(
        &self,
        json: &mut Json<'_>,
        category: &str,
        name: &str,
        thread: ThreadId,
        time_ns: u64,
        extras: Extras<'_>,
    ) -> io::Result<()> {
        self.event(json, "b", name, thread, time_ns, &|json| {
            json.entry("cat", category)?;
            json.entry("id", self.ids.tid(thread).to_string())?;
            extras(json)
        })
    }

    fn end(&self, json: &mut Json<'_>, category: &str, name: &str, thread: ThreadId, time_ns: u64) -> io::Result<()> {
        self.event(json, "e", name, thread, time_ns, &|json| {
            json.entry("cat", category)?;
            json.entry("id", self.ids.tid(thread).to_string())
        })
    }

    fn counters(&self, json: &mut Json<'_>) -> io::Result<()> {
        for Counter { time_ns, process, thread, name, value } in &self.capture.counters {
            let of_thread = thread.map(|thread| &self.capture.threads[thread.index()]);
            let process = process.or(of_thread.and_then(|thread| thread.process));
            json.line()?;
            json.object(|json| {
                json.entry("ph", "C")?;
                match thread {
                    Some(thread) => json.entry("name", format!("{name} of {}", self.ids.tid(*thread)))?,
                    None => json.entry("name", name)?,
                }
                json.entry("pid", self.ids.pid(process))?;
                json.entry("ts", micros(self.window.since_start_ns(*time_ns)))?;
                json.object_entry("args", |json| json.entry(name, value))
            })?;
        }
        Ok(())
    }

    /// The call tree, to which events refer by `sf`.
    fn stack_frames(&self, json: &mut Json<'_>) -> io::Result<()> {
        json.object_entry("stackFrames", |json| {
            for (index, node) in self.capture.stacks.iter().enumerate() {
                json.line()?;
                json.object_entry(&index.to_string(), |json| {
                    json.entry("name", self.capture.function(node.frame))?;
                    json.entry("category", self.capture.module_of(node.frame).map_or("", |module| module.name()))?;
                    json.some_entry("parent", node.parent.map(|parent| parent.index().to_string()))
                })?;
            }
            Ok(())
        })
    }
}

/// Whether a stage is on the way from one thread to another, and no arrival.
fn is_between(stage: &FlowEvent, ends: [ThreadId; 2]) -> bool {
    ends.contains(&stage.thread) && !stage.stage.is_arrival() && stage.stage != FlowStage::CallbackEnd
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1000.0
}
