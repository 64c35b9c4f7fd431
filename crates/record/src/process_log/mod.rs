//! [`ProcessLog`]: each process of a program's tree from fork to exit, with what it used, and no samples.
//!
//! For trees of many short processes, such as a build. Readings at intervals miss what such a process used last, and the
//! kernel's account at the end (`wait4`) goes to the parent and adds up children. So each process is followed by
//! `ptrace(2)`: it stops when it forks, executes and exits, and runs at full speed between. At the exit it
//! still has all its figures: the CPU time of all its threads (the process' CPU clock, exact), peak memory, page faults and
//! I/O (`/proc/PID`), and how long its first thread waited for a CPU (`schedstat`).
//!
//! On request, compilers and configure steps get options that make them time themselves: see [`Timing`].
//!
//! One thread row stands for all threads of a process. What does not work below `ptrace`: debuggers, `strace`, leak
//! checks of LeakSanitizer, and programs that get rights by their set-user-id bit, such as `sudo`.

mod arguments;
pub(crate) mod ptrace;
mod timing;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stepscope_assemble::raw_log::Writer;
use stepscope_assemble::{Entry, MachineReading, ProcessRef, RecordingEnd, Sink, ThreadRef};
use stepscope_model::{CaptureInfo, Dimension, DimensionStatus, RecordingCost};

use crate::conditions::read_machine;
use crate::finish::{LogError, create_log};
use crate::launch::Prepared;
use crate::{clock, machine, proc};
use ptrace::Change;
use timing::Timer;
pub use timing::{Timed, Timing, TimingKind};

/// For how long the log is kept back in memory at most, while processes start and end. A killed recorder loses that.
const FLUSH_EVERY: Duration = Duration::from_millis(300);

/// Why a tree cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessLogError {
    /// Its log cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The kernel refuses `ptrace`.
    #[error(
        "cannot follow the program's processes (ptrace: {source}): allow it (in containers: `--cap-add SYS_PTRACE`; else `sysctl kernel.yama.ptrace_scope=1`)"
    )]
    Refused {
        /// The cause.
        source: io::Error,
    },
    /// Waiting for processes failed.
    #[error("cannot follow the program's processes any more: {source}; what was recorded is kept")]
    Wait {
        /// The cause.
        source: io::Error,
    },
}

/// A log that is being written by a thread of its own.
#[derive(Debug)]
pub struct ProcessLog {
    thread: JoinHandle<Result<Vec<Timed>, ProcessLogError>>,
    ended: Arc<AtomicU64>,
}

impl ProcessLog {
    /// Creates the log in a folder and follows the program from its first instruction. Start the program then.
    ///
    /// # Errors
    /// [`ProcessLogError`]
    pub fn start(
        folder: &Path,
        prepared: &Prepared,
        info: CaptureInfo,
        timing: Option<Timing>,
    ) -> Result<Self, ProcessLogError> {
        let timer = timing.map(Timer::new);
        let writer = create_log(folder)?;
        let pid = prepared.pid();
        let ended = Arc::new(AtomicU64::new(0));
        let (sender, started) = mpsc::channel();
        let count = Arc::clone(&ended);
        let follow = move || {
            let seized = ptrace::seize(pid).map_err(|source| ProcessLogError::Refused { source });
            let is_seized = seized.is_ok();
            let _ = sender.send(seized);
            if is_seized { Follower::new(writer, info, count, timer).follow(pid) } else { Ok(Vec::new()) }
        };
        let thread = std::thread::Builder::new().name("process log".to_owned()).spawn(follow);
        let thread = thread.map_err(|source| ProcessLogError::Wait { source })?;
        started.recv().expect("the thread sends whether it follows the program")?;
        Ok(Self { thread, ended })
    }

    /// Processes that have ended so far.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits for the end of all processes, and completes the log. Returns what compilers and configure steps said of their times.
    ///
    /// # Errors
    /// [`ProcessLogError`]
    pub fn finish(self) -> Result<Vec<Timed>, ProcessLogError> {
        self.thread.join().expect("the thread that follows processes does not panic")
    }
}

/// The program that a process executes.
#[derive(Debug, Clone, Default)]
struct Image {
    executable: String,
    command_line: Vec<String>,
    directory: Option<String>,
    name: String,
}

/// A process that lives.
#[derive(Debug)]
struct Process {
    process: ProcessRef,
    image: Arc<Image>,
    used: Used,
    /// Whether its first thread exited, though others may go on.
    first_thread_exited: bool,
    has_executed: bool,
    was_read: bool,
}

/// What a process used until its exit.
#[derive(Debug, Default)]
struct Used {
    cpu_ns: u64,
    runnable_ns: Option<u64>,
    figures: [Option<i64>; FIGURES.len()],
}

const FIGURES: [&str; 9] = [
    "cpu_user_ns",
    "cpu_system_ns",
    "minor_faults",
    "major_faults",
    "peak_rss_bytes",
    "io_read_bytes",
    "io_write_bytes",
    "io_read_call_bytes",
    "io_write_call_bytes",
];

struct Follower {
    writer: Writer<File>,
    tasks: HashMap<u32, u32>,
    processes: HashMap<u32, Process>,
    count: u32,
    ended: Arc<AtomicU64>,
    unread: u64,
    start: MachineReading,
    cpu_before_ns: u64,
    flushed: Instant,
    timer: Option<Timer>,
}

impl Follower {
    fn new(mut writer: Writer<File>, info: CaptureInfo, ended: Arc<AtomicU64>, timer: Option<Timer>) -> Self {
        let start = read_machine();
        writer.take(Entry::Start(Box::new(CaptureInfo {
            started_at: Some(clock::utc_now()),
            clock: Some("CLOCK_MONOTONIC".to_owned()),
            start_ns: Some(clock::now_ns()),
            machine: Some(machine::describe()),
            conditions: Some(start.conditions_until(None, None)),
            dimensions: [(Dimension::Resources, DimensionStatus::Recorded)].into(),
            ..info
        })));
        Self {
            writer,
            tasks: HashMap::new(),
            processes: HashMap::new(),
            count: 0,
            ended,
            unread: 0,
            start,
            cpu_before_ns: clock::thread_cpu_ns(),
            flushed: Instant::now(),
            timer,
        }
    }

    fn follow(mut self, program: u32) -> Result<Vec<Timed>, ProcessLogError> {
        self.begin(program, None);
        let result = loop {
            let (tid, change) = match ptrace::next() {
                Ok(Some(change)) => change,
                Ok(None) => break Ok(()),
                Err(source) => break Err(ProcessLogError::Wait { source }),
            };
            match change {
                Change::Forked { new } => {
                    if let Some(&parent) = self.tasks.get(&tid).filter(|_| new != 0) {
                        self.learn(new, Some(parent));
                    }
                    ptrace::resume(tid, 0);
                }
                Change::Executed { before } => {
                    self.execute(tid, before);
                    ptrace::resume(tid, 0);
                }
                Change::Exits => {
                    self.read_used(tid);
                    ptrace::resume(tid, 0);
                }
                Change::Stopped => {
                    // It may stop for the first time before its parent says that it exists.
                    self.learn(tid, None);
                    ptrace::resume(tid, 0);
                }
                Change::GroupStopped => ptrace::listen(tid),
                Change::Signalled { signal } => ptrace::resume(tid, signal),
                Change::Ended { status, cpu_ns } => self.end(tid, status, cpu_ns),
            }
            self.flush_if_due();
        };
        let timed = self.timer.take().map(Timer::finish).unwrap_or_default();
        self.complete();
        result.map(|()| timed)
    }

    /// Adds a task if it is new: a thread of a process, or a process.
    fn learn(&mut self, tid: u32, creator: Option<u32>) {
        if self.tasks.contains_key(&tid) {
            return;
        }
        if let Some(pid) = creator.filter(|pid| Path::new(&format!("/proc/{pid}/task/{tid}")).exists()) {
            self.tasks.insert(tid, pid);
            return;
        }
        if creator.is_some() {
            return self.begin(tid, creator);
        }
        // Its first stop came before the event of its creator.
        match (proc::status(tid), proc::stat(tid)) {
            (Ok(status), _) if status.process != tid => _ = self.tasks.insert(tid, status.process),
            (Ok(_), Ok(stat)) => self.begin(tid, self.processes.contains_key(&stat.parent).then_some(stat.parent)),
            _ => {}
        }
    }

    fn begin(&mut self, pid: u32, parent_pid: Option<u32>) {
        let start_ns = Some(clock::now_ns());
        let process = ProcessRef(self.count);
        self.count += 1;
        self.writer.take(Entry::Process { pid, parent_pid, start_ns });
        // Until it executes another program, it runs that of its parent.
        let of_parent = parent_pid.and_then(|parent| Some(Arc::clone(&self.processes.get(&parent)?.image)));
        let image = of_parent.unwrap_or_default();
        self.writer.take(Entry::Thread { tid: pid, process, start_ns, name: image.name.clone() });
        let used = Used::default();
        let began = Process { process, image, used, first_thread_exited: false, has_executed: false, was_read: false };
        self.tasks.insert(pid, pid);
        self.processes.insert(pid, began);
        if let Some(timer) = &mut self.timer {
            timer.begin(pid, parent_pid, process.0);
        }
    }

    fn execute(&mut self, pid: u32, before: u32) {
        if before != pid {
            self.tasks.remove(&before);
        }
        let Some(process) = self.processes.get_mut(&pid) else { return };
        (process.first_thread_exited, process.has_executed) = (false, true);
        let path = |path: Result<std::path::PathBuf, _>| path.ok().map(|path| path.to_string_lossy().into_owned());
        let image = Image {
            executable: path(proc::executable(pid)).unwrap_or_default(),
            command_line: proc::command_line(pid).unwrap_or_default(),
            directory: path(proc::working_directory(pid)),
            name: proc::thread_name(pid, pid).unwrap_or_default(),
        };
        let (id, thread) = (process.process, ThreadRef(process.process.0));
        process.image = Arc::new(image);
        let image = Arc::clone(&process.image);
        if let Some(timer) = &mut self.timer {
            timer.execute(pid, &image.executable, &image.command_line, image.directory.as_deref().unwrap_or("/"));
        }
        self.write_image(id, &image);
        let name = image.name.clone();
        self.writer.take(Entry::ThreadName { thread, time_ns: clock::now_ns(), name });
    }

    fn write_image(&mut self, process: ProcessRef, image: &Image) {
        let Image { executable, command_line, directory, .. } = image.clone();
        self.writer.take(Entry::Image { process, executable, command_line });
        if let Some(path) = directory {
            self.writer.take(Entry::WorkingDirectory { process, path });
        }
    }

    /// Reads what the process used, at the exit of its first thread, and of others that outlive it.
    fn read_used(&mut self, tid: u32) {
        let Some(process) = self.tasks.get(&tid).and_then(|pid| self.processes.get_mut(pid)) else { return };
        let pid = self.tasks[&tid];
        if tid != pid && !process.first_thread_exited {
            return;
        }
        process.first_thread_exited = true;
        process.was_read = true;
        let used = &mut process.used;
        used.cpu_ns = used.cpu_ns.max(clock::cpu_ns_of(pid).unwrap_or(0));
        if tid == pid {
            used.runnable_ns = proc::schedstat(pid, pid).ok().map(|schedule| schedule.run_queue_delay_ns);
        }
        let mut figures = [None; FIGURES.len()];
        if let Ok(stat) = proc::stat(pid) {
            let tick_ns = 1_000_000_000 / proc::ticks_per_second();
            let values = [stat.user_ticks * tick_ns, stat.system_ticks * tick_ns, stat.minor_faults, stat.major_faults];
            figures[..4].copy_from_slice(&values.map(|value| i64::try_from(value).ok()));
        }
        // A first thread that has ended has no memory any more.
        let status = if tid == pid { proc::status(pid) } else { proc::thread_status(pid, tid) };
        figures[4] = status.ok().and_then(|status| i64::try_from(status.peak_rss_bytes?).ok());
        if let Ok(io) = proc::io(pid) {
            let values = [io.read_bytes, io.write_bytes, io.read_call_bytes, io.write_call_bytes];
            figures[5..].copy_from_slice(&values.map(|value| i64::try_from(value).ok()));
        }
        used.figures.iter_mut().zip(figures).for_each(|(used, read)| *used = (*used).max(read));
    }

    fn end(&mut self, tid: u32, status: i32, cpu_ns: Option<u64>) {
        let Some(pid) = self.tasks.remove(&tid) else { return };
        if pid != tid {
            return;
        }
        let Some(process) = self.processes.remove(&pid) else { return };
        if let Some(timer) = &mut self.timer {
            timer.end(pid);
        }
        let (time_ns, id, thread) = (clock::now_ns(), process.process, ThreadRef(process.process.0));
        if !process.has_executed {
            self.write_image(id, &process.image);
        }
        for (name, value) in FIGURES.iter().zip(process.used.figures) {
            let Some(value) = value else { continue };
            let name = (*name).to_owned();
            self.writer.take(Entry::Counter { time_ns, process: id, thread: None, name, value });
        }
        self.unread += u64::from(!process.was_read);
        // After the start of its exit, it still frees its memory, which takes CPU time.
        let read_ns = process.was_read.then_some(process.used.cpu_ns);
        let cpu_ns = cpu_ns.filter(|ns| *ns > 0).max(read_ns);
        let runnable_ns = process.used.runnable_ns;
        self.writer.take(Entry::ThreadEnd { thread, time_ns: Some(time_ns), cpu_ns, runnable_ns });
        self.writer.take(Entry::ExitStatus { pid, status });
        self.writer.take(Entry::ProcessEnd { process: id, time_ns });
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    fn flush_if_due(&mut self) {
        if self.flushed.elapsed() >= FLUSH_EVERY {
            self.writer.flush();
            self.flushed = Instant::now();
        }
    }

    fn complete(mut self) {
        let note = (self.unread > 0).then(|| {
            format!(
                "{} processes were killed before their figures could be read: their memory and I/O are unknown.",
                self.unread
            )
        });
        let cpu_ns = clock::thread_cpu_ns().saturating_sub(self.cpu_before_ns);
        let log_bytes = self.writer.bytes();
        self.writer.take(Entry::RecordingEnd(Box::new(RecordingEnd {
            end_ns: Some(clock::now_ns()),
            cost: Some(RecordingCost { cpu_ns, log_bytes, ..RecordingCost::default() }),
            notes: note.into_iter().collect(),
            dimensions: [(Dimension::Resources, DimensionStatus::Recorded)].into(),
            machine: Some((self.start, read_machine())),
            ..RecordingEnd::default()
        })));
        self.writer.flush();
    }
}
