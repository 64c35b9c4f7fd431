//! Firefox Profiler's processed profile, for profiler.firefox.com.
//!
//! This writes version 55 of the format, like `fxprof-processed-profile`. That crate has no columns for source lines
//! and inlined frames and holds the profile in memory, so this module writes the JSON itself. The types are in the
//! profiler's `src/types/profile.ts` of that version: each thread has its own tables of strings, functions, frames and
//! stacks, as struct-of-arrays.
//!
//! The samples of one event become the thread's samples: the chosen event, or the first that measures CPU time. Samples
//! of other events, waits, steps and scopes become markers with their stack as cause. `threadCPUDelta` is exact if
//! context switches were recorded. Samples without times (folded stacks) are placed one millisecond apart in the
//! capture's order; then only their weights are meaningful.

mod tables;

use std::io::{self, Write};

use serde_json::{Value, json};
use stepscope_model::{Capture, Counter, ProcessId, Sample, Scope, Step, Thread, ThreadId, Wait, WaitState};

use self::tables::{CATEGORIES, Category, Tables};
use super::clock::started_at_ns;
use super::json::Json;
use super::selection::{Series, series};
use super::timeline::{self, ByThread, Ids, Window};
use super::{Evidence, ExportError, ExportOptions};

const VERSION: u32 = 55;

/// Colours by the format's names.
const COLOURS: [(Category, &str); CATEGORIES] = [
    (Category::Other, "grey"),
    (Category::User, "yellow"),
    (Category::Kernel, "orange"),
    (Category::Python, "blue"),
    (Category::OffCpu, "brown"),
];

pub fn write(capture: &Capture, out: &mut dyn Write, options: &ExportOptions) -> Result<(), ExportError> {
    let (sampled, marked) = choose(series(capture, options)?);
    let profile = Profile::new(capture, sampled, &marked, &options.process_names);
    let title = super::title(capture, options);
    Json::new(out).object(|json| {
        json.object_entry("meta", |json| profile.meta(json, &title))?;
        profile.libs(json)?;
        json.array_entry("threads", |json| profile.order.iter().try_for_each(|&thread| profile.thread(json, thread)))?;
        json.column("pages", [(); 0])?;
        json.column("profilerOverhead", [(); 0])?;
        json.array_entry("counters", |json| profile.counters(json))
    })?;
    Ok(())
}

/// Separates the series for samples from those for markers.
fn choose(mut series: Vec<Series>) -> (Series, Vec<Evidence>) {
    let on_cpu = |series: &Series| {
        matches!(series.evidence, Evidence::Event(_)) && matches!(series.unit.as_str(), "ns" | "cycles")
    };
    let sampled = series.remove(series.iter().position(on_cpu).unwrap_or(0));
    (sampled, series.into_iter().map(|series| series.evidence).collect())
}

/// Weight type of samples in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Each sample counts 1.
    One,
    /// The weight is a number of samples, or has an unknown unit.
    Number,
    /// The weight is in ns, shown as ms.
    Time,
    /// The weight is in bytes.
    Bytes,
}

impl Weight {
    fn of(series: &Series) -> Self {
        match series.unit.as_str() {
            "ns" => Self::Time,
            "bytes" => Self::Bytes,
            _ if series.count_of(2) == Some(1) => Self::One,
            _ => Self::Number,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::One | Self::Number => "samples",
            Self::Time => "tracing-ms",
            Self::Bytes => "bytes",
        }
    }
}

/// A sample of a thread in the profile.
#[derive(Debug, Clone, Copy)]
struct Row {
    thread: ThreadId,
    time_ns: u64,
    stack: Option<stepscope_model::StackId>,
    weight: u64,
}

struct Profile<'a> {
    capture: &'a Capture,
    window: Window,
    ids: Ids,
    sampled: Series,
    rows: ByThread<Row>,
    waits: ByThread<Wait>,
    marked_waits: bool,
    marked: ByThread<Sample>,
    steps: ByThread<Step>,
    scopes: ByThread<&'a Scope>,
    /// Threads in output order: by process, main thread first.
    order: Vec<ThreadId>,
    process_names: &'a [String],
}

impl<'a> Profile<'a> {
    fn new(capture: &'a Capture, sampled: Series, marked: &[Evidence], process_names: &'a [String]) -> Self {
        let mut rows = rows(capture, &sampled);
        rows.sort_by_key(|row| row.time_ns);
        let timeless = Window { start_ns: 0, end_ns: rows.last().map_or(0, |row| row.time_ns) };
        let is_marked = |sample: &Sample| marked.contains(&Evidence::Event(sample.event)) && sample.time_ns.is_some();
        Self {
            capture,
            window: Window::of(capture).unwrap_or(timeless),
            ids: Ids::of(capture),
            sampled,
            rows: ByThread::new(capture, rows.into_iter(), |row| row.thread),
            waits: ByThread::new(capture, capture.waits.iter(), |wait| wait.thread),
            marked_waits: marked.contains(&Evidence::OffCpu),
            marked: ByThread::new(capture, capture.samples.iter().copied().filter(is_marked), |sample| sample.thread),
            steps: ByThread::new(capture, capture.steps.iter().copied(), |step| step.thread),
            scopes: ByThread::new(capture, capture.scopes.iter(), |scope| scope.thread),
            order: order(capture),
            process_names,
        }
    }

    fn millis(&self, time_ns: u64) -> f64 {
        self.window.since_start_ns(time_ns) as f64 / 1e6
    }

    fn meta(&self, json: &mut Json<'_>, title: &str) -> io::Result<()> {
        let info = &self.capture.info;
        json.array_entry("categories", |json| {
            COLOURS.iter().try_for_each(|(category, colour)| {
                json.value(json!({"name": category.name(), "color": colour, "subcategories": ["Other"]}))
            })
        })?;
        json.entry("debug", false)?;
        json.entry("extensions", json!({"length": 0, "baseURL": [], "id": [], "name": []}))?;
        json.entry("interval", self.interval_ms())?;
        json.entry("preprocessedProfileVersion", VERSION)?;
        json.entry("processType", 0)?;
        json.entry("product", title)?;
        json.some_entry("oscpu", info.machine.as_ref().map(|machine| format!("Linux {}", machine.architecture)))?;
        json.entry("sampleUnits", json!({"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"}))?;
        json.entry("startTime", started_at_ns(self.capture).unwrap_or(0) as f64 / 1e6)?;
        json.entry("symbolicated", true)?;
        json.column("pausedRanges", [(); 0])?;
        // Ignored by readers of the processed version.
        json.entry("version", 24)?;
        json.entry("usesOnlyOneStackType", true)?;
        json.entry("sourceCodeIsNotOnSearchfox", true)?;
        json.entry("importedFrom", &info.tool)?;
        json.entry("markerSchema", marker_schema())
    }

    /// The time between samples, used by the profiler only for drawing.
    fn interval_ms(&self) -> f64 {
        let rows = &self.capture.samples;
        let total: u128 = rows.iter().map(|sample| u128::from(sample.weight)).sum();
        match (Weight::of(&self.sampled), rows.len()) {
            (Weight::Time, count @ 1..) => total as f64 / count as f64 / 1e6,
            _ => 1.0,
        }
    }

    fn libs(&self, json: &mut Json<'_>) -> io::Result<()> {
        let architecture = self.capture.info.machine.as_ref().map_or("", |machine| &machine.architecture);
        json.array_entry("libs", |json| {
            for module in &self.capture.modules {
                json.line()?;
                json.object(|json| {
                    json.entry("arch", architecture)?;
                    json.entry("name", module.name())?;
                    json.entry("path", &module.path)?;
                    json.entry("debugName", module.name())?;
                    json.entry("debugPath", &module.path)?;
                    json.entry("breakpadId", breakpad_id(module.build_id.as_deref().unwrap_or_default()))?;
                    json.entry("codeId", &module.build_id)
                })?;
            }
            Ok(())
        })
    }

    fn thread(&self, json: &mut Json<'_>, id: ThreadId) -> io::Result<()> {
        let thread = &self.capture.threads[id.index()];
        let process = thread.process.map(|process| &self.capture.processes[process.index()]);
        let mut tables = Tables::new(self.capture);
        json.line()?;
        json.object(|json| {
            json.entry("name", &thread.name)?;
            json.entry("isMainThread", self.is_main(id))?;
            json.entry("processType", "default")?;
            json.entry(
                "processName",
                thread
                    .process
                    .map_or("threads".to_owned(), |id| timeline::process_name(self.capture, self.process_names, id)),
            )?;
            json.entry("pid", self.ids.pid(thread.process).to_string())?;
            json.entry("tid", self.ids.tid(id))?;
            let start = |start_ns: Option<u64>| self.millis(start_ns.unwrap_or(self.window.start_ns));
            json.entry("processStartupTime", start(process.and_then(|process| process.start_ns)))?;
            json.entry("processShutdownTime", process.and_then(|process| process.end_ns).map(|end| self.millis(end)))?;
            json.entry("registerTime", start(thread.start_ns))?;
            json.entry("unregisterTime", thread.end_ns.map(|end_ns| self.millis(end_ns)))?;
            json.column("pausedRanges", [(); 0])?;
            json.entry("showMarkersInTimeline", !self.steps.of(id).is_empty())?;
            json.object_entry("samples", |json| self.samples(json, id, &mut tables))?;
            json.object_entry("markers", |json| self.markers(json, id, &mut tables))?;
            tables.write(json)
        })
    }

    /// The kernel gives a process's first thread the process id. If that thread is unknown, the first listed one is
    /// main.
    fn is_main(&self, id: ThreadId) -> bool {
        let thread = &self.capture.threads[id.index()];
        let is_of_process = |other: &&ThreadId| self.capture.threads[other.index()].process == thread.process;
        thread.process.is_none() || self.order.iter().find(is_of_process) == Some(&id)
    }

    fn samples(&self, json: &mut Json<'_>, thread: ThreadId, tables: &mut Tables<'_>) -> io::Result<()> {
        let rows = self.rows.of(thread);
        let weight = Weight::of(&self.sampled);
        json.entry("length", rows.len())?;
        json.column("stack", rows.iter().map(|row| row.stack.map(|stack| tables.stack(stack))))?;
        json.column("time", rows.iter().map(|row| self.millis(row.time_ns)))?;
        match weight {
            Weight::One => json.entry("weight", None::<u64>)?,
            Weight::Time => json.column("weight", rows.iter().map(|row| row.weight as f64 / 1e6))?,
            Weight::Number | Weight::Bytes => json.column("weight", rows.iter().map(|row| row.weight))?,
        }
        json.entry("weightType", weight.name())?;
        if !self.capture.waits.is_empty() {
            json.column("threadCPUDelta", cpu_deltas(rows, self.waits.of(thread)))?;
        } else if weight == Weight::Time && self.has_times() {
            // Without context switches a sample stands for its period of CPU time.
            json.column("threadCPUDelta", rows.iter().map(|row| row.weight))?;
        }
        Ok(())
    }

    fn has_times(&self) -> bool {
        self.capture.samples.iter().any(|sample| sample.time_ns.is_some())
    }

    fn markers(&self, json: &mut Json<'_>, thread: ThreadId, tables: &mut Tables<'_>) -> io::Result<()> {
        let markers = self.markers_of(thread, tables);
        json.entry("length", markers.len())?;
        json.column("category", markers.iter().map(|marker| marker.category as u32))?;
        json.column("data", markers.iter().map(|marker| &marker.data))?;
        json.column("endTime", markers.iter().map(|marker| marker.end_ns.map(|end_ns| self.millis(end_ns))))?;
        json.column("name", markers.iter().map(|marker| marker.name))?;
        const INSTANT: u32 = 0;
        const INTERVAL: u32 = 1;
        json.column("phase", markers.iter().map(|marker| if marker.end_ns.is_some() { INTERVAL } else { INSTANT }))?;
        json.column("startTime", markers.iter().map(|marker| self.millis(marker.start_ns)))
    }

    fn markers_of(&self, thread: ThreadId, tables: &mut Tables<'_>) -> Vec<Marker> {
        let mut markers = Vec::new();
        for wait in self.waits.of(thread).iter().filter(|_| self.marked_waits) {
            markers.push(self.wait_marker(wait, tables));
        }
        for sample in self.marked.of(thread) {
            let event = self.capture.event(sample.event);
            let mut data = json!({"type": "Sample", "weight": sample.weight, "unit": event.unit});
            set_cause(&mut data, sample.stack.map(|stack| tables.stack(stack)));
            let start_ns = sample.time_ns.unwrap_or(self.window.start_ns);
            let name = tables.string(&event.name);
            markers.push(Marker { name, category: Category::Other, start_ns, end_ns: None, data });
        }
        for step in self.steps.of(thread) {
            let sim_time_ms = step.sim_time_ns.map(|ns| ns as f64 / 1e6);
            let data = json!({"type": "Step", "index": step.index, "simTime": sim_time_ms});
            let (start_ns, end_ns) = (step.start_ns, Some(step.end_ns));
            markers.push(Marker { name: tables.string("step"), category: Category::User, start_ns, end_ns, data });
        }
        for scope in self.scopes.of(thread) {
            let (start_ns, end_ns) = (scope.start_ns, Some(scope.end_ns));
            let data = json!({"type": "Scope", "depth": scope.depth});
            markers.push(Marker { name: tables.string(&scope.name), category: Category::User, start_ns, end_ns, data });
        }
        markers
    }

    fn wait_marker(&self, wait: &Wait, tables: &mut Tables<'_>) -> Marker {
        let name = match wait.state {
            WaitState::Preempted => "Preempted",
            WaitState::Blocked => "Blocked",
        };
        let mut data = json!({"type": "Wait"});
        if let Some(runnable_ns) = wait.runnable_ns {
            data["runnable"] = json!(runnable_ns as f64 / 1e6);
        }
        if let Some(waker) = wait.waker {
            let Thread { name, .. } = &self.capture.threads[waker.index()];
            data["waker"] = json!(format!("{name} ({})", self.ids.tid(waker)));
        }
        set_cause(&mut data, wait.stack.map(|stack| tables.stack(stack)));
        Marker {
            name: tables.string(name),
            category: Category::OffCpu,
            start_ns: wait.start_ns,
            end_ns: Some(wait.end_ns),
            data,
        }
    }

    /// Resident memory of each process, the only reading that the profiler draws.
    fn counters(&self, json: &mut Json<'_>) -> io::Result<()> {
        for process in (0..self.capture.processes.len()).map(ProcessId::from_index) {
            let is_rss = |counter: &&Counter| counter.process == Some(process) && &*counter.name == "rss_bytes";
            let readings: Vec<&Counter> = self.capture.counters.iter().filter(is_rss).collect();
            let main = self.order.iter().position(|id| self.capture.threads[id.index()].process == Some(process));
            let (Some(main), false) = (main, readings.is_empty()) else { continue };
            json.line()?;
            json.object(|json| {
                json.entry("name", "rss")?;
                json.entry("category", "Memory")?;
                json.entry("description", "Resident memory of the process")?;
                json.entry("pid", self.ids.pid(Some(process)).to_string())?;
                json.entry("mainThreadIndex", main)?;
                json.object_entry("samples", |json| {
                    json.entry("length", readings.len())?;
                    json.column("time", readings.iter().map(|reading| self.millis(reading.time_ns)))?;
                    let before = std::iter::once(0).chain(readings.iter().map(|reading| reading.value));
                    json.column(
                        "count",
                        readings.iter().zip(before).map(|(now, before)| now.value.saturating_sub(before)),
                    )
                })
            })?;
        }
        Ok(())
    }
}

struct Marker {
    name: u32,
    category: Category,
    start_ns: u64,
    end_ns: Option<u64>,
    data: Value,
}

fn set_cause(data: &mut Value, stack: Option<u32>) {
    if let Some(stack) = stack {
        data["cause"] = json!({"stack": stack});
    }
}

/// The samples, each with a time.
fn rows(capture: &Capture, series: &Series) -> Vec<Row> {
    const APART_NS: u64 = 1_000_000;
    match series.evidence {
        Evidence::Event(event) => {
            let samples = capture.samples.iter().filter(|sample| sample.event == event).enumerate();
            let row = |(index, sample): (usize, &Sample)| Row {
                thread: sample.thread,
                time_ns: sample.time_ns.unwrap_or(index as u64 * APART_NS),
                stack: sample.stack,
                weight: sample.weight,
            };
            samples.map(row).collect()
        }
        Evidence::OffCpu => {
            let row = |wait: Wait| Row {
                thread: wait.thread,
                time_ns: wait.start_ns,
                stack: wait.stack,
                weight: wait.end_ns.saturating_sub(wait.start_ns),
            };
            capture.waits.iter().map(row).collect()
        }
    }
}

/// CPU time between each sample and the previous one: the elapsed time minus the waits in it. Both inputs are ordered
/// by time.
fn cpu_deltas(rows: &[Row], waits: &[Wait]) -> Vec<u64> {
    let mut deltas = Vec::with_capacity(rows.len());
    let mut before_ns = rows.first().map_or(0, |row| row.time_ns);
    let mut next = 0;
    for row in rows {
        let mut off_cpu_ns = 0;
        while let Some(wait) = waits.get(next) {
            let (start_ns, end_ns) = (wait.start_ns.max(before_ns), wait.end_ns.min(row.time_ns));
            off_cpu_ns += end_ns.saturating_sub(start_ns);
            if wait.end_ns > row.time_ns {
                break;
            }
            next += 1;
        }
        deltas.push((row.time_ns - before_ns).saturating_sub(off_cpu_ns));
        before_ns = row.time_ns;
    }
    deltas
}

fn order(capture: &Capture) -> Vec<ThreadId> {
    let mut order: Vec<ThreadId> = (0..capture.threads.len()).map(ThreadId::from_index).collect();
    order.sort_by_key(|id| {
        let thread = &capture.threads[id.index()];
        let pid = thread.process.map(|process| capture.processes[process.index()].pid);
        // Threads without a process come last.
        (pid.is_none(), thread.process, pid != Some(thread.tid), thread.start_ns, *id)
    });
    order
}

/// The identifier of a module on symbol servers: the first 16 bytes of the build-id as a GUID in the byte order of
/// Microsoft's debuggers, and an age of 0.
fn breakpad_id(build_id: &str) -> String {
    let digits: String =
        build_id.chars().filter(char::is_ascii_hexdigit).chain(std::iter::repeat('0')).take(32).collect();
    let byte = |at: usize| &digits[at * 2..at * 2 + 2];
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    order.map(byte).concat().to_uppercase() + "0"
}

fn marker_schema() -> Value {
    let schema = |name: &str, label: &str, fields: Value| {
        json!({
            "name": name,
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "tooltipLabel": "{marker.name}",
            "tableLabel": label,
            "chartLabel": "{marker.name}",
            "fields": fields,
        })
    };
    let field = |key: &str, label: &str, format: &str| json!({"key": key, "label": label, "format": format});
    json!([
        schema(
            "Sample",
            "{marker.data.weight} {marker.data.unit}",
            json!([field("weight", "Weight", "integer"), field("unit", "Unit", "string"),])
        ),
        schema("Scope", "{marker.name}", json!([field("depth", "Depth", "integer")])),
        schema(
            "Step",
            "{marker.data.index}",
            json!([field("index", "Index", "integer"), field("simTime", "Simulated time", "duration"),])
        ),
        schema(
            "Wait",
            "{marker.name}",
            json!([field("runnable", "Runnable at its end", "duration"), field("waker", "Woken by", "string"),])
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_between_samples_excludes_waits() {
        //  samples      10        20        30        50
        //  waits           13--17    22-----------45
        let row = |time_ns| Row { thread: ThreadId(0), time_ns, stack: None, weight: 1 };
        let wait = |start_ns, end_ns| Wait {
            start_ns,
            end_ns,
            thread: ThreadId(0),
            stack: None,
            state: WaitState::Blocked,
            runnable_ns: None,
            cpu: None,
            waker: None,
            waker_stack: None,
            count: 1,
        };
        let rows = [10, 20, 30, 50].map(row);
        assert_eq!(cpu_deltas(&rows, &[wait(13, 17), wait(22, 45)]), [0, 6, 2, 5]);
        assert_eq!(cpu_deltas(&rows, &[wait(0, 60)]), [0, 0, 0, 0]);
        assert_eq!(cpu_deltas(&rows, &[]), [0, 10, 10, 20]);
        assert_eq!(cpu_deltas(&[], &[wait(0, 60)]), [0; 0]);
    }

    #[test]
    fn a_build_id_becomes_a_breakpad_id() {
        assert_eq!(breakpad_id("b4ef3d5a2c1e9f8070605040302010ffeeddccbb"), "5A3DEFB41E2C809F70605040302010FF0");
        assert_eq!(breakpad_id(""), "000000000000000000000000000000000");
        assert_eq!(breakpad_id("é12"), "000000120000000000000000000000000");
    }
}
