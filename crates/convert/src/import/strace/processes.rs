//! Processes and threads, from what their calls say.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Process, ProcessId, Thread, ThreadId};

use super::super::text::text;
use super::line;

/// All threads of a log.
#[derive(Default)]
pub(super) struct Processes {
    tasks: BTreeMap<Option<u32>, Task>,
}

#[derive(Default)]
struct Task {
    thread: Option<ThreadId>,
    name: String,
    executable: String,
    command: Vec<String>,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    creator: Option<Creator>,
    exit: Option<Exit>,
}

struct Exit {
    status: Option<i32>,
    time_ns: Option<u64>,
}

#[derive(Clone, Copy)]
struct Creator {
    tid: Option<u32>,
    is_thread: bool,
}

impl Processes {
    /// The thread's row. A log without ids has one thread.
    pub fn thread(&mut self, tid: Option<u32>, capture: &mut Capture) -> ThreadId {
        let task = self.tasks.entry(tid).or_default();
        *task.thread.get_or_insert_with(|| capture.add_thread(Thread { tid: tid.unwrap_or(0), ..Thread::default() }))
    }

    pub fn seen(&mut self, tid: Option<u32>, time_ns: Option<u64>) {
        let Some(time_ns) = time_ns else { return };
        let task = self.tasks.entry(tid).or_default();
        task.first_ns = task.first_ns.or(Some(time_ns));
        task.last_ns = task.last_ns.max(Some(time_ns));
    }

    pub fn exited(&mut self, tid: Option<u32>, status: Option<i32>, time_ns: Option<u64>) {
        self.seen(tid, time_ns);
        self.tasks.entry(tid).or_default().exit = Some(Exit { status, time_ns });
    }

    /// What a successful call says about processes.
    pub fn called(&mut self, tid: Option<u32>, name: &str, arguments: &[u8], value: Option<i64>) {
        match name {
            "clone" | "clone3" | "fork" | "vfork" => {
                let Some(child) = value.and_then(|value| u32::try_from(value).ok()).filter(|&child| child > 0) else {
                    return;
                };
                let is_thread = memchr::memmem::find(arguments, b"CLONE_THREAD").is_some();
                if Some(child) != tid {
                    self.tasks.entry(Some(child)).or_default().creator = Some(Creator { tid, is_thread });
                }
            }
            "execve" | "execveat" => {
                let mut texts = Texts(arguments).map(|text| text.into_owned());
                let task = self.tasks.entry(tid).or_default();
                task.executable = texts.next().unwrap_or_default();
                task.command = texts.collect();
                task.name = task.executable.rsplit('/').next().unwrap_or_default().to_owned();
            }
            "prctl" if arguments.starts_with(b"PR_SET_NAME") => {
                if let Some(name) = Texts(arguments).next() {
                    self.tasks.entry(tid).or_default().name = name.into_owned();
                }
            }
            _ => {}
        }
    }

    /// The thread that a thread's process is named after.
    fn leader(&self, tid: Option<u32>) -> Option<u32> {
        let mut leader = tid;
        for _ in 0..self.tasks.len() {
            match self.tasks.get(&leader).and_then(|task| task.creator).filter(|creator| creator.is_thread) {
                Some(creator) => leader = creator.tid,
                None => break,
            }
        }
        leader
    }

    /// Adds processes, and completes threads.
    pub fn finish(self, capture: &mut Capture) {
        let mut processes: FxHashMap<Option<u32>, ProcessId> = FxHashMap::default();
        for (tid, task) in &self.tasks {
            let Some(thread) = task.thread else { continue };
            let leader = self.leader(*tid);
            let of_leader = self.tasks.get(&leader);
            let process = *processes.entry(leader).or_insert_with(|| capture.add_process(self.process(leader)));
            let named = [Some(task), of_leader].into_iter().flatten().find(|task| !task.name.is_empty());
            let row = &mut capture.threads[thread.index()];
            row.process = Some(process);
            row.name = named.map_or_else(String::new, |task| task.name.clone());
            (row.start_ns, row.end_ns) = (task.first_ns, task.last_ns);
        }
        let first = self.tasks.values().find(|task| !task.executable.is_empty());
        capture.info.command = first.map(|task| task.command.clone()).unwrap_or_default();
    }

    fn process(&self, leader: Option<u32>) -> Process {
        let task = self.tasks.get(&leader);
        let creator = task.and_then(|task| task.creator);
        // A fork runs the program of its parent until it executes another.
        let inherited = creator.and_then(|creator| self.tasks.get(&self.leader(creator.tid)));
        let program = [task, inherited].into_iter().flatten().find(|task| !task.executable.is_empty());
        let exit = task.and_then(|task| task.exit.as_ref());
        Process {
            pid: leader.unwrap_or(0),
            parent_pid: creator.and_then(|creator| self.leader(creator.tid)),
            start_ns: creator.and(task).and_then(|task| task.first_ns),
            end_ns: exit.and_then(|exit| exit.time_ns),
            command_line: program.map(|task| task.command.join(" ")).unwrap_or_default(),
            executable: program.map(|task| task.executable.clone()).unwrap_or_default(),
            exit_status: exit.and_then(|exit| exit.status),
            working_directory: None,
            machine: None,
        }
    }
}

/// The quoted texts of arguments.
struct Texts<'a>(&'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = std::borrow::Cow<'a, str>;

    fn next(&mut self) -> Option<Self::Item> {
        let after = &self.0[memchr::memchr(b'"', self.0)? + 1..];
        let content = line::string(after)?;
        self.0 = &after[content.len() + 1..];
        Some(text(content))
    }
}
