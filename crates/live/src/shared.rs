//! What the threads of a live recording share: its rows so far, its viewers, and the requests for snapshots.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use stepscope_analyze::{Owned, Ownership};
use stepscope_app::profile::Names;
use stepscope_assemble::raw_log::{self, ReadError};
use stepscope_assemble::{Growing, NamedCode, Rows, Unnamed};
use stepscope_model::{Capture, ThreadId};
use stepscope_record::clock;
use stepscope_serve::Viewers;

use crate::encoder::{self, Encoder};
use crate::saves::Saves;
use crate::state::{Moment, Stage, State};
use crate::window::{self, Window};

/// Bytes that may wait for one viewer.
const QUEUE_BYTES: usize = 16 << 20;
/// Time between two snapshots, at least.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(1);
/// Snapshots take at most this part of the time.
const SNAPSHOT_SHARE: u32 = 10;
/// Viewers hear of the state with each snapshot, and else after this time.
const TELL_AFTER: Duration = Duration::from_millis(1_500);
/// For how long rows are kept.
const RETAINED: Duration = Duration::from_secs(60);

/// How a recording is followed.
#[derive(Debug, Clone)]
pub struct Options {
    /// For how long rows are kept.
    pub retained: Duration,
    /// The process that records, if a viewer may end the recording: it gets SIGUSR2.
    pub recorder: Option<u32>,
    /// The code that costs are attributed to.
    pub owned: Owned,
}

impl Default for Options {
    fn default() -> Self {
        let owned = Ownership::default().compile().expect("no pattern is malformed");
        Self { retained: RETAINED, recorder: None, owned }
    }
}

/// What the thread of snapshots is asked.
pub(crate) enum Request {
    /// Go on with this window.
    Window(Box<SnapshotWindow>),
    /// Give a table.
    Table { name: String, answer: Sender<Option<Vec<u8>>> },
    /// Give the manifest.
    Manifest { answer: Sender<Vec<u8>> },
}

/// The rows of the window, as a capture.
pub(crate) struct SnapshotWindow {
    pub capture: Capture,
    pub names: Arc<Names>,
    pub from_ns: u64,
}

/// What other threads need of a new snapshot.
pub(crate) struct SnapshotSummary {
    pub steps: Option<Bytes>,
    pub entry: serde_json::Map<String, serde_json::Value>,
    pub title: String,
    /// The CPU time it took.
    pub took: Duration,
}

/// What the threads of a live recording share.
pub(crate) struct Shared {
    pub folder: PathBuf,
    options: Options,
    pub viewers: Viewers,
    requests: Sender<Request>,
    /// To the thread that names code.
    unnamed: Sender<Unnamed>,
    pub saves: Saves,
    held: Mutex<Held>,
}

/// The recording so far.
pub(crate) struct Held {
    pub growing: Growing,
    pub window: Window,
    encoder: Encoder,
    pub state: State,
    /// The latest message of steps.
    steps: Option<bytes::Bytes>,
    /// When the last snapshot was asked for; how long the last one took; whether one is being made.
    snapshot_since: Instant,
    snapshot_took: Duration,
    snapshot_waits: bool,
    /// Rounds of reading so far, and before the last snapshot.
    rounds: u64,
    snapshot_rounds: u64,
    /// The latest time in the log at the last round.
    until_ns: u64,
    /// When viewers heard of the state.
    state_sent: Instant,
}

impl Shared {
    /// Nothing so far of the recording in a folder.
    pub fn new(folder: &Path, options: Options, requests: Sender<Request>, unnamed: Sender<Unnamed>) -> Self {
        let held = Held {
            growing: Growing::default(),
            window: Window::default(),
            encoder: Encoder::new(options.owned.clone()),
            state: State { folder: folder.display().to_string(), ..State::default() },
            steps: None,
            snapshot_since: Instant::now(),
            snapshot_took: Duration::ZERO,
            snapshot_waits: false,
            rounds: 0,
            snapshot_rounds: 0,
            until_ns: 0,
            state_sent: Instant::now(),
        };
        let (folder, viewers) = (folder.to_owned(), Viewers::new(QUEUE_BYTES));
        Self { folder, options, viewers, requests, unnamed, saves: Saves::default(), held: Mutex::new(held) }
    }

    /// No code panics while it holds the lock, except for defects; what is held is then still good enough to look at.
    pub fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stage(&self) -> Stage {
        self.held().state.stage
    }

    /// Takes the next chunks of the log, and sends their rows. Gives how many chunks there were.
    pub fn read<R: Read>(&self, log: &mut raw_log::Follower<R>, most: usize) -> Result<usize, ReadError> {
        let mut held = self.held();
        let chunks = log.read(most, &mut held.growing)?;
        if chunks > 0 {
            held.grow(self, chunks == most);
        }
        Ok(chunks)
    }

    /// Takes names of code, and sends the rows that waited for them.
    pub fn add_names(&self, named: NamedCode) {
        let mut held = self.held();
        held.growing.add_names(named);
        held.grow(self, false);
    }

    /// Notes how far the recording is, and tells the viewers.
    pub fn turn(&self, stage: Stage, problem: String) {
        let mut held = self.held();
        held.state.stage = stage;
        held.state.problem = problem;
        held.state.behind = 0.0;
        self.tell(&mut held);
    }

    fn tell(&self, held: &mut Held) {
        held.state_sent = Instant::now();
        if !self.viewers.is_empty() {
            self.viewers.send(&encoder::state(&held.state));
        }
    }

    /// A snapshot was made: its steps and its lanes are the present ones.
    pub fn announce(&self, made: SnapshotSummary) {
        let mut held = self.held();
        let SnapshotSummary { steps, entry, title, took } = made;
        held.snapshot_waits = false;
        held.snapshot_took = took;
        held.state.snapshot += 1;
        held.state.entry = entry;
        held.state.title = title;
        if let Some(steps) = &steps {
            self.viewers.send(steps);
        }
        held.steps = steps;
        self.tell(&mut held);
    }

    pub fn ask_for_snapshot(&self, held: &mut Held) {
        if held.snapshot_waits || held.growing.capture().threads.is_empty() {
            return;
        }
        let window = held.snapshot();
        held.snapshot_since = Instant::now();
        held.snapshot_rounds = held.rounds;
        held.snapshot_waits = self.requests.send(Request::Window(Box::new(window))).is_ok();
    }

    /// Whether the viewers have the last snapshot. Asks for it, if not.
    pub fn is_settled(&self) -> bool {
        let mut held = self.held();
        if !held.growing.is_named() {
            return false;
        }
        if self.viewers.is_empty() {
            return true;
        }
        let is_last = !held.snapshot_waits && held.snapshot_rounds == held.rounds;
        if !is_last {
            self.ask_for_snapshot(&mut held);
        }
        is_last
    }

    /// Marks the present moment.
    pub fn mark(&self, text: Option<String>) -> Result<String, String> {
        // The lock may be held for a while.
        let now_ns = clock::now_ns();
        let mut held = self.held();
        if held.growing.capture().threads.is_empty() {
            return Err("The recording has no rows yet, so there is nothing to mark.".to_owned());
        }
        let time = now_ns.saturating_sub(held.start_ns()) as f64;
        let number = held.state.moments.len() + 1;
        held.state.moments.push(Moment { time, text: text.unwrap_or_else(|| format!("mark {number}")) });
        self.tell(&mut held);
        Ok(format!("Marked at {:.2} s.", time / 1e9))
    }

    pub fn end_recording(&self) -> Result<String, String> {
        let Some(recorder) = self.options.recorder else {
            return Err("This recording was started elsewhere. End it there, with Ctrl-C.".to_owned());
        };
        if self.stage().is_over() {
            return Err("The recording has ended.".to_owned());
        }
        // SAFETY: sends a signal; the recorder ends its recording.
        match unsafe { libc::kill(recorder as libc::pid_t, libc::SIGUSR2) } {
            0 => Ok("The recording ends.".to_owned()),
            _ => Err(format!("The recorder does not end ({}).", std::io::Error::last_os_error())),
        }
    }
}

impl Held {
    /// Start of the recording, from which times of tables count.
    pub fn start_ns(&self) -> u64 {
        self.growing.capture().info.start_ns.unwrap_or(0)
    }

    /// Lets new code be named, and sends the rows that are complete.
    fn grow(&mut self, shared: &Shared, is_behind: bool) {
        if let Some(unnamed) = self.growing.unnamed() {
            // Without the thread that names code, the page shows what needs no names.
            let _ = shared.unnamed.send(unnamed);
        }
        let rows = self.growing.rows();
        // Until the program is executed, the start of the recording is not known.
        if !self.growing.capture().threads.is_empty() {
            self.take(rows, shared, is_behind);
        }
    }

    /// Takes the rows of a round, and sends them.
    fn take(&mut self, mut rows: Rows, shared: &Shared, is_behind: bool) {
        let until_ns = self.growing.last_ns().unwrap_or(0);
        let start_ns = self.start_ns();
        let ends = rows.waits.iter().map(|wait| wait.end_ns);
        let times = rows.samples.iter().filter_map(|sample| sample.time_ns).chain(ends);
        let span = times.fold(self.until_ns, u64::min).max(start_ns)..until_ns;
        self.until_ns = until_ns;
        self.rounds += 1;
        let capture = self.growing.capture_mut();
        window::put(capture, &mut rows);
        self.encoder.grow(capture);
        if !shared.viewers.is_empty() {
            let messages = self.encoder.new_rows(capture, span);
            messages.all.iter().for_each(|message| shared.viewers.send(message));
            self.state.summed |= messages.summed;
        }
        window::take(capture, &mut rows);
        let retained_ns = shared.options.retained.as_nanos() as u64;
        self.window.add(rows, until_ns.saturating_sub(retained_ns).max(start_ns));
        self.describe(until_ns, is_behind);
        let every = SNAPSHOT_EVERY.max(self.snapshot_took * SNAPSHOT_SHARE);
        let is_over = self.state.stage.is_over();
        if !shared.viewers.is_empty() && (is_over || self.snapshot_since.elapsed() >= every) {
            shared.ask_for_snapshot(self);
        }
        if is_over || self.state_sent.elapsed() >= TELL_AFTER {
            shared.tell(self);
        }
    }

    fn describe(&mut self, until_ns: u64, is_behind: bool) {
        let since_start = |ns: u64| ns.saturating_sub(self.start_ns()) as f64;
        let behind = if is_behind { clock::now_ns().saturating_sub(until_ns) } else { 0 };
        let losses = &self.growing.capture().info.losses;
        self.state = State {
            stage: if self.growing.has_ended() { Stage::Ended } else { Stage::Recording },
            until: since_start(until_ns),
            named: since_start(self.growing.nameless_since().map_or(until_ns, |since_ns| since_ns.min(until_ns))),
            from: since_start(self.window.start_ns()),
            behind: behind as f64,
            lost: losses.lost_records,
            lost_marks: self.growing.lost_marks(),
            ..std::mem::take(&mut self.state)
        };
    }

    /// Messages of all that is held.
    pub fn everything(&mut self) -> Vec<bytes::Bytes> {
        let mut messages = Vec::new();
        let capture = self.growing.capture_mut();
        if !capture.threads.is_empty() {
            self.window.copy_to(capture);
            messages = self.encoder.everything(capture);
            window::remove(capture);
        }
        messages.extend(self.steps.clone());
        messages.push(encoder::state(&self.state));
        messages
    }

    /// The window as a capture. Threads start with it, because their waits from before are forgotten.
    fn snapshot(&self) -> SnapshotWindow {
        let from_ns = self.window.start_ns();
        let capture = self.cut(from_ns..u64::MAX);
        SnapshotWindow { capture, names: self.encoder.names().clone(), from_ns }
    }

    /// The part of the window in a range of time.
    pub fn cut(&self, range: Range<u64>) -> stepscope_model::Capture {
        let mut capture = self.growing.capture().clone();
        self.window.copy_to(&mut capture);
        for (index, thread) in capture.threads.iter_mut().enumerate() {
            let known_ns = self.growing.known_until(ThreadId::from_index(index)).unwrap_or(u64::MAX);
            let end_ns = thread.end_ns.map(|end_ns| end_ns.min(known_ns).clamp(range.start, range.end));
            thread.start_ns = thread.start_ns.map(|start_ns| start_ns.max(range.start)).min(end_ns);
            thread.end_ns = end_ns;
        }
        capture
    }
}
