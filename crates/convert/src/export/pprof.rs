//! pprof: a gzipped Protocol Buffers message, read by `go tool pprof`, Pyroscope, Grafana and others.
//!
//! Field numbers are those of `profile.proto` (<https://github.com/google/pprof/blob/main/proto/profile.proto>). Each
//! event becomes a value type in its own unit, and a second one with the number of samples if known. Off-CPU time
//! becomes `off-cpu`. Samples of the same thread and stack are added up. Fields of the outer message may come in any
//! order, so strings, functions and locations are written at first use, and only their ids are kept.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Counts, FrameId, ModuleId, StackId, ThreadId};

use super::clock::started_at_ns;
use super::protobuf::Message;
use super::selection::{Series, series};
use super::{Evidence, ExportError, ExportOptions};

pub fn write(capture: &Capture, out: &mut dyn Write, options: &ExportOptions) -> Result<(), ExportError> {
    let columns = columns(series(capture, options)?);
    let samples = Samples::of(capture, &columns);
    let mut profile = Profile::new(capture, out)?;
    profile.head(&columns, options)?;
    for (&(thread, stack), values) in samples.keys.iter().zip(samples.values.chunks_exact(columns.len())) {
        profile.sample(thread, stack, values)?;
    }
    profile.out.finish()?;
    Ok(())
}

/// A value of every sample.
struct Column {
    name: String,
    unit: String,
    series: Series,
    counts_samples: bool,
}

/// The weights of each series, and its number of samples if that is known and differs.
fn columns(series: Vec<Series>) -> Vec<Column> {
    let mut columns = Vec::new();
    for series in series {
        let name = series.name.clone();
        let counted = if series.evidence == Evidence::OffCpu { "waits" } else { "samples" };
        let unit = unit(&series.unit).to_owned();
        columns.push(Column { name: name.clone(), unit, series: series.clone(), counts_samples: false });
        if series.counts == Counts::OnePerRow {
            let name = format!("{name}-{counted}");
            columns.push(Column { name, unit: "count".to_owned(), series, counts_samples: true });
        }
    }
    columns
}

/// pprof scales units whose names it knows.
fn unit(unit: &str) -> &str {
    match unit {
        "ns" => "nanoseconds",
        "samples" | "faults" | "misses" | "events" | "switches" => "count",
        other => other,
    }
}

/// Values by thread and stack, in order of first occurrence.
struct Samples {
    keys: Vec<(ThreadId, Option<StackId>)>,
    values: Vec<u64>,
}

impl Samples {
    fn of(capture: &Capture, columns: &[Column]) -> Self {
        let mut places = FxHashMap::default();
        let mut samples = Self { keys: Vec::new(), values: Vec::new() };
        for (index, column) in columns.iter().enumerate() {
            for row in column.series.rows(capture) {
                let key = (row.thread, row.stack);
                let place = *places.entry(key).or_insert_with(|| {
                    samples.keys.push(key);
                    samples.values.resize(samples.values.len() + columns.len(), 0);
                    samples.keys.len() - 1
                });
                let value = &mut samples.values[place * columns.len() + index];
                let added = if column.counts_samples { 1 } else { row.weight };
                // Values are signed in the format.
                *value = value.saturating_add(added).min(i64::MAX as u64);
            }
        }
        samples
    }
}

struct Profile<'a> {
    capture: &'a Capture,
    out: GzEncoder<&'a mut dyn Write>,
    strings: FxHashMap<String, u64>,
    functions: FxHashMap<(u64, u64), u64>,
    mappings: FxHashMap<ModuleId, u64>,
    /// Location by the frames at one address, innermost first.
    locations: FxHashMap<Box<[FrameId]>, u64>,
    /// Locations by innermost node, so that most stacks need no look-up of their frames; 0 if unknown.
    location_of_node: Vec<u64>,
}

impl<'a> Profile<'a> {
    fn new(capture: &'a Capture, out: &'a mut dyn Write) -> io::Result<Self> {
        let mut profile = Self {
            capture,
            out: GzEncoder::new(out, flate2::Compression::default()),
            strings: FxHashMap::default(),
            functions: FxHashMap::default(),
            mappings: FxHashMap::default(),
            locations: FxHashMap::default(),
            location_of_node: vec![0; capture.stacks.len()],
        };
        // The format requires the first string to be empty.
        profile.string("")?;
        Ok(profile)
    }

    fn field(&mut self, message: Message) -> io::Result<()> {
        self.out.write_all(message.bytes())
    }

    fn head(&mut self, columns: &[Column], options: &ExportOptions) -> io::Result<()> {
        for column in columns {
            let value_type =
                Message::default().number(1, self.string(&column.name)?).number(2, self.string(&column.unit)?);
            self.field(Message::default().message(1, &value_type))?;
        }
        let default = self.string(&columns[0].name)?;
        let title = self.string(&super::title(self.capture, options))?;
        let tool = self.string(&self.capture.info.tool)?;
        let started = started_at_ns(self.capture).and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
        self.field(
            Message::default()
                .number(14, default)
                .number(9, started)
                .number(10, self.capture.info.wall_ns().unwrap_or(0))
                .numbers(13, [title, tool]),
        )?;
        for note in &self.capture.info.notes {
            let note = self.string(note)?;
            self.field(Message::default().numbers(13, [note]))?;
        }
        // The format takes the first mapping as the main program.
        if let Some(main) = self.main_module() {
            self.mapping(main)?;
        }
        Ok(())
    }

    fn main_module(&self) -> Option<ModuleId> {
        let executable = &self.capture.processes.first()?.executable;
        let index = self.capture.modules.iter().position(|module| module.path == *executable)?;
        Some(ModuleId::from_index(index))
    }

    fn sample(&mut self, thread: ThreadId, stack: Option<StackId>, values: &[u64]) -> io::Result<()> {
        let mut locations = Vec::new();
        let mut node = stack;
        while let Some(innermost) = node {
            let (location, caller) = self.location(innermost)?;
            locations.push(location);
            node = caller;
        }
        let mut sample = Message::default().numbers(1, locations).numbers(2, values.iter().copied());
        for label in self.labels(thread)? {
            sample = sample.message(3, &label);
        }
        self.field(Message::default().message(2, &sample))
    }

    fn labels(&mut self, thread: ThreadId) -> io::Result<Vec<Message>> {
        let thread = &self.capture.threads[thread.index()];
        let mut labels = vec![
            Message::default().number(1, self.string("thread")?).number(2, self.string(&thread.name)?),
            Message::default().number(1, self.string("tid")?).number(3, u64::from(thread.tid)),
        ];
        if let Some(process) = thread.process {
            let pid = self.capture.processes[process.index()].pid;
            labels.push(Message::default().number(1, self.string("pid")?).number(3, u64::from(pid)));
        }
        Ok(labels)
    }

    /// The location of a node and its inlining frames, and the node of their caller.
    fn location(&mut self, innermost: StackId) -> io::Result<(u64, Option<StackId>)> {
        let mut frames = Vec::new();
        let mut caller = Some(innermost);
        while let Some(node) = caller {
            let node = self.capture.stacks[node.index()];
            frames.push(node.frame);
            caller = node.parent;
            if !self.capture.frames[node.frame.index()].inlined {
                break;
            }
        }
        let known = self.location_of_node[innermost.index()];
        if known != 0 {
            return Ok((known, caller));
        }
        let id = match self.locations.get(&frames[..]) {
            Some(&id) => id,
            None => {
                let id = self.locations.len() as u64 + 1;
                self.new_location(id, &frames)?;
                self.locations.insert(frames.into(), id);
                id
            }
        };
        self.location_of_node[innermost.index()] = id;
        Ok((id, caller))
    }

    fn new_location(&mut self, id: u64, frames: &[FrameId]) -> io::Result<()> {
        let outermost = &self.capture.frames[frames[frames.len() - 1].index()];
        let mapping = match outermost.module {
            Some(module) => self.mapping(module)?,
            None => 0,
        };
        let mut location =
            Message::default().number(1, id).number(2, mapping).number(3, outermost.address.unwrap_or(0));
        for &frame in frames {
            let function = self.function(frame)?;
            let line = u64::from(self.capture.frames[frame.index()].line.unwrap_or(0));
            location = location.message(4, &Message::default().number(1, function).number(2, line));
        }
        self.field(Message::default().message(4, &location))
    }

    fn function(&mut self, frame: FrameId) -> io::Result<u64> {
        let frame = &self.capture.frames[frame.index()];
        let name = self.string(&frame.function)?;
        let file = self.string(frame.file.as_deref().unwrap_or_default())?;
        if let Some(&id) = self.functions.get(&(name, file)) {
            return Ok(id);
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert((name, file), id);
        let function = Message::default().number(1, id).number(2, name).number(3, name).number(4, file);
        self.field(Message::default().message(5, &function))?;
        Ok(id)
    }

    fn mapping(&mut self, id: ModuleId) -> io::Result<u64> {
        if let Some(&mapping) = self.mappings.get(&id) {
            return Ok(mapping);
        }
        let mapping = self.mappings.len() as u64 + 1;
        self.mappings.insert(id, mapping);
        let module = &self.capture.modules[id.index()];
        let path = self.string(&module.path)?;
        let build_id = self.string(module.build_id.as_deref().unwrap_or_default())?;
        // All flags are set, so that readers do not search a binary for names.
        let message = (7..=10)
            .fold(Message::default().number(1, mapping).number(5, path).number(6, build_id), |message, has| {
                message.flag(has, true)
            });
        self.field(Message::default().message(3, &message))?;
        Ok(mapping)
    }

    fn string(&mut self, text: &str) -> io::Result<u64> {
        if let Some(&id) = self.strings.get(text) {
            return Ok(id);
        }
        let id = self.strings.len() as u64;
        self.strings.insert(text.to_owned(), id);
        self.field(Message::default().bytes_field(6, text.as_bytes()))?;
        Ok(id)
    }
}
