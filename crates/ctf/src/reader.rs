//! All streams of all traces in a folder, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{CtfError, Losses};
use crate::event::Event;
use crate::metadata;
use crate::schema::Schema;
use crate::stream::{Content, Identity, Stream, StreamFile};

/// Deepest folder in which traces are sought: LTTng writes `ust/uid/1000/64-bit` below `archives/NAME`.
const DEEPEST: usize = 12;
/// Most entries of folders that are looked at for a trace.
const MOST_ENTRIES: usize = 100_000;
/// Largest metadata. The largest kernel traces have some 5 MB.
const LARGEST_METADATA: u64 = 256 << 20;
/// Memory for the windows of all streams.
const WINDOWS: usize = 32 << 20;

/// The file of a trace's folder that describes the trace.
pub const METADATA_FILE: &str = "metadata";

/// The first folder with a trace: this one, or one below it. `None` if there is none, or it cannot be read.
pub fn first_trace(folder: &Path) -> Option<PathBuf> {
    let mut folders = Vec::new();
    find_traces(folder, DEEPEST, &mut 10_000, &mut folders).ok()?;
    folders.sort();
    let has_metadata = |folder: &&PathBuf| {
        let mut head = [0; 4096];
        let read =
            fs::File::open(folder.join(METADATA_FILE)).and_then(|mut file| std::io::Read::read(&mut file, &mut head));
        read.is_ok_and(|read| metadata::is_metadata(&head[..read]))
    };
    folders.iter().find(has_metadata).cloned()
}

/// A trace: a folder with a file `metadata` and files of streams.
#[derive(Debug)]
pub struct Trace {
    /// Its folder.
    pub path: PathBuf,
    /// What its metadata describe.
    pub schema: Arc<Schema>,
}

/// Reads the events of one or more traces in the order of their times.
///
/// Memory is bounded: a window of 8 to 256 KiB for each stream, of at most 64 MiB for a single event. No file stays open.
pub struct Reader {
    traces: Vec<Trace>,
    streams: Vec<(usize, Stream)>,
    /// Streams that have an event, by its time.
    next: BinaryHeap<Reverse<(i64, usize)>>,
    current: Option<usize>,
    losses: Losses,
    bytes: u64,
}

impl Reader {
    /// Opens the trace in a folder, or all traces below it, as LTTng writes them.
    ///
    /// # Errors
    /// If there is no trace whose metadata can be understood. Other damage is counted in [`Self::losses`].
    pub fn open(folder: &Path) -> Result<Self, CtfError> {
        let mut folders = Vec::new();
        find_traces(folder, DEEPEST, &mut { MOST_ENTRIES }, &mut folders)
            .map_err(|source| CtfError::Io { path: folder.to_owned(), source })?;
        folders.sort();
        let mut parts = Vec::new();
        let mut losses = Losses::default();
        let mut first_error = None;
        for path in folders {
            match read_folder(&path, &mut losses) {
                Ok((schema, files)) => parts.push((Trace { path, schema }, files)),
                Err(error) => {
                    losses.add_damage(0, || format!("{}: {error}", path.display()));
                    first_error.get_or_insert(error);
                }
            }
        }
        if parts.is_empty() {
            return Err(first_error.unwrap_or_else(|| CtfError::NoTrace(folder.to_owned())));
        }
        Ok(Self::start(parts, losses))
    }

    /// A trace in memory: its metadata and the bytes of its streams.
    ///
    /// # Errors
    /// If the metadata cannot be understood.
    pub fn of_bytes(metadata: &[u8], streams: &[&[u8]]) -> Result<Self, CtfError> {
        let mut losses = Losses::default();
        let schema = read_metadata(metadata, "metadata", &mut losses)?;
        let file = |(at, bytes): (usize, &&[u8])| StreamFile {
            name: format!("stream {at}"),
            content: Content::Bytes((*bytes).into()),
            bytes: bytes.len() as u64,
        };
        let files = streams.iter().enumerate().map(file).collect();
        Ok(Self::start(vec![(Trace { path: PathBuf::new(), schema }, files)], losses))
    }

    fn start(parts: Vec<(Trace, Vec<StreamFile>)>, mut losses: Losses) -> Self {
        let files: usize = parts.iter().map(|(_, files)| files.len()).sum();
        let bytes = parts.iter().flat_map(|(_, files)| files).map(|file| file.bytes).sum();
        let chunk = (WINDOWS / files.max(1)).clamp(8 << 10, 256 << 10);
        let mut traces = Vec::new();
        let mut streams = Vec::new();
        for (at, (trace, files)) in parts.into_iter().enumerate() {
            let of_trace = streams_of(&trace.schema, files, chunk, &mut losses);
            streams.extend(of_trace.into_iter().map(|stream| (at, stream)));
            traces.push(trace);
        }
        let mut next = BinaryHeap::with_capacity(streams.len());
        for (at, (_, stream)) in streams.iter_mut().enumerate() {
            if stream.advance(&mut losses) {
                next.push(Reverse((stream.time_ns().unwrap_or(0), at)));
            }
        }
        Self { traces, streams, next, current: None, losses, bytes }
    }

    /// The traces.
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// Bytes of all streams.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was lost so far; complete once [`Self::next_event`] has returned `None`.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The next event by time, or `None` at the end. Events of one stream keep their order, even if their times do not.
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        if let Some(before) = self.current.take()
            && let Some(mut top) = self.next.peek_mut()
        {
            let (_, stream) = &mut self.streams[before];
            if stream.advance(&mut self.losses) {
                let last = top.0.0;
                *top = Reverse((stream.time_ns().unwrap_or(last), before));
            } else {
                PeekMut::pop(top);
            }
        }
        let &Reverse((_, at)) = self.next.peek()?;
        self.current = Some(at);
        let (trace, stream) = &self.streams[at];
        Some(Event { stream, trace: *trace, number: at })
    }
}

/// Files by stream. A tracer that limits the size of its files writes one stream to several.
fn streams_of(schema: &Arc<Schema>, files: Vec<StreamFile>, chunk: usize, losses: &mut Losses) -> Vec<Stream> {
    let mut known: Vec<(Identity, Vec<StreamFile>)> = Vec::new();
    let mut ignored = Losses::default();
    for file in files {
        if file.bytes == 0 {
            continue;
        }
        let mut first = Stream::new(schema.clone(), vec![file.clone()], 4096);
        match first.identity(&mut ignored) {
            Some(identity) => known.push((identity, vec![file])),
            // It is read once more for its damage.
            None => _ = Stream::new(schema.clone(), vec![file], chunk).advance(losses),
        }
    }
    known.sort_by_key(|(identity, _)| *identity);
    known.dedup_by(|(identity, files), (before, before_files)| {
        let same = identity.instance.is_some()
            && (identity.class, identity.instance) == (before.class, before.instance)
            && identity.begin != before.begin
            && stem(&files[0].name).is_some_and(|stem_of| Some(stem_of) == stem(&before_files[0].name));
        if same {
            before.begin = identity.begin;
            before_files.append(files);
        }
        same
    });
    known.into_iter().map(|(_, files)| Stream::new(schema.clone(), files, chunk)).collect()
}

/// The part of `channel0_3_1` before the number of the file, as LTTng names the files of one stream.
fn stem(name: &str) -> Option<&str> {
    let (stem, number) = name.rsplit_once('_')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(stem)
}

fn find_traces(folder: &Path, depth: usize, entries: &mut usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if folder.join(METADATA_FILE).is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        *entries = entries.saturating_sub(1);
        if *entries == 0 {
            return Ok(());
        }
        // Links are not followed, so that no folder comes twice.
        if entry.file_type()?.is_dir() {
            find_traces(&entry.path(), depth - 1, entries, found)?;
        }
    }
    Ok(())
}

fn read_folder(folder: &Path, losses: &mut Losses) -> Result<(Arc<Schema>, Vec<StreamFile>), CtfError> {
    let in_file = |path: &Path| {
        let path = path.to_owned();
        move |source| CtfError::Io { path, source }
    };
    let path = folder.join(METADATA_FILE);
    let mut bytes = Vec::new();
    let file = fs::File::open(&path).map_err(in_file(&path))?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, LARGEST_METADATA), &mut bytes).map_err(in_file(&path))?;
    let schema = read_metadata(&bytes, &path.display().to_string(), losses)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(in_file(folder))? {
        let entry = entry.map_err(in_file(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let metadata = fs::metadata(entry.path()).map_err(in_file(&entry.path()))?;
        if name != METADATA_FILE && !name.starts_with('.') && metadata.is_file() {
            let path = entry.path();
            files.push(StreamFile {
                name: path.display().to_string(),
                content: Content::File(path),
                bytes: metadata.len(),
            });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((schema, files))
}

fn read_metadata(bytes: &[u8], name: &str, losses: &mut Losses) -> Result<Arc<Schema>, CtfError> {
    let (text, left_out) = metadata::text(bytes)?;
    if left_out > 0 {
        losses.add_damage(left_out, || format!("{name}: a packet of the metadata is damaged"));
    }
    let schema = Schema::parse(&text).map_err(CtfError::Metadata)?;
    for defect in &schema.defects {
        losses.add_damage(0, || format!("{name}, {defect}"));
    }
    Ok(Arc::new(schema))
}
