//! Processes and threads of a trace.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use stepscope_assemble::{Entry, InitialState, OffCpu, ProcessRef, Sink, ThreadRef, ThreadTimeline};
use stepscope_model::{Capture, Process, ProcessId};

use super::output::Output;

/// A thread in an event of the scheduler.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// 0 for an idle CPU.
    pub tid: u32,
    pub name: Option<&'a [u8]>,
}

/// The process of threads whose process the trace does not name.
const UNKNOWN: u32 = 0;

#[derive(Default)]
pub struct Tasks {
    /// Start of the capture.
    pub start_ns: u64,
    processes: FxHashMap<u32, ProcessRef>,
    process_count: u32,
    threads: FxHashMap<u32, Task>,
    thread_count: u32,
    /// What the trace said of threads that made no event so far: process, name.
    stated: HashMap<u32, Stated>,
    /// Threads whose process became known after them.
    late: Vec<(ThreadRef, u32)>,
    /// The thread that made the last event, if it lives.
    last: Option<(u32, ThreadRef)>,
}

/// What the trace says of a thread.
#[derive(Default)]
struct Stated {
    pid: Option<u32>,
    name: Option<String>,
}

/// A thread that was created.
#[derive(Debug, Clone, Copy)]
pub struct Forked<'a> {
    /// The process that created it, if known.
    pub parent_pid: Option<u32>,
    /// Its own process, if known.
    pub pid: Option<u32>,
    pub tid: u32,
    pub name: &'a [u8],
}

pub struct Task {
    id: ThreadRef,
    name: String,
    pid: Option<u32>,
    /// Running, runnable, blocked, once the scheduler named the thread.
    timeline: Option<ThreadTimeline>,
    first_ns: u64,
    last_ns: u64,
    is_exiting: bool,
}

impl Tasks {
    fn process(&mut self, pid: u32, parent: Option<u32>, start_ns: Option<u64>, sink: &mut Output) -> ProcessRef {
        if let Some(process) = self.processes.get(&pid) {
            return *process;
        }
        let process = ProcessRef(self.process_count);
        self.process_count += 1;
        self.processes.insert(pid, process);
        sink.take(Entry::Process { pid, parent_pid: parent, start_ns });
        process
    }

    fn add(&mut self, tid: u32, pid: Option<u32>, name: &str, start_ns: u64, sink: &mut Output) -> &mut Task {
        let process = self.process(pid.unwrap_or(UNKNOWN), None, None, sink);
        let id = ThreadRef(self.thread_count);
        self.thread_count += 1;
        sink.take(Entry::Thread { tid, process, start_ns: Some(start_ns), name: name.to_owned() });
        let task = Task {
            id,
            name: name.to_owned(),
            pid,
            timeline: None,
            first_ns: start_ns,
            last_ns: start_ns,
            is_exiting: false,
        };
        self.threads.insert(tid, task);
        self.threads.get_mut(&tid).expect("it was added")
    }

    fn task(&mut self, tid: u32, pid: Option<u32>, name: Option<&[u8]>, start_ns: u64, sink: &mut Output) -> &mut Task {
        if !self.threads.contains_key(&tid) {
            let stated = self.stated.remove(&tid).unwrap_or_default();
            let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
            let name = name.or(stated.name).unwrap_or_else(|| format!("thread {tid}"));
            return self.add(tid, pid.or(stated.pid), &name, start_ns, sink);
        }
        self.threads.get_mut(&tid).expect("it was found")
    }

    /// A thread of a program made an event.
    pub fn saw(&mut self, tid: u32, pid: Option<u32>, name: Option<&[u8]>, time_ns: u64, sink: &mut Output) {
        let task = self.task(tid, pid, name, time_ns, sink);
        task.last_ns = task.last_ns.max(time_ns);
        rename(task, name, time_ns, sink);
        if let Some(pid) = pid.filter(|_| task.pid.is_none()) {
            task.pid = Some(pid);
            let id = task.id;
            self.late.push((id, pid));
        }
    }

    /// A thread made another event, with the same name and process. False if it is not known any more.
    pub fn saw_again(&mut self, tid: u32, time_ns: u64) -> bool {
        let Some(task) = self.threads.get_mut(&tid) else { return false };
        task.last_ns = task.last_ns.max(time_ns);
        self.last = Some((tid, task.id));
        true
    }

    /// The scheduler named a thread: changes its timeline, and writes the wait that ends with the change.
    pub fn switch(
        &mut self,
        named: Named<'_>,
        time_ns: u64,
        sink: &mut Output,
        change: impl FnOnce(&mut ThreadTimeline) -> Option<OffCpu>,
    ) -> &mut Task {
        let start_ns = self.start_ns;
        let task = self.task(named.tid, None, named.name, start_ns, sink);
        rename(task, named.name, time_ns, sink);
        task.last_ns = task.last_ns.max(time_ns);
        let first_ns = task.first_ns;
        let timeline = task.timeline.get_or_insert_with(|| ThreadTimeline::initial(first_ns, InitialState::Blocked));
        if let Some(interval) = change(timeline) {
            sink.wait(&interval.of(task.id));
        }
        task
    }

    /// A thread leaves its CPU. It ends if it is exiting.
    pub fn switch_out(&mut self, named: Named<'_>, time_ns: u64, preempted: bool, sink: &mut Output) {
        let task = self.switch(named, time_ns, sink, |timeline| timeline.switch_out(time_ns, preempted));
        if task.is_exiting {
            self.end(named.tid, time_ns, sink);
        }
    }

    /// A thread may have left its CPU at some time until now.
    pub fn lose_switch_out(&mut self, tid: u32, time_ns: u64) {
        let timeline = self.threads.get_mut(&tid).and_then(|task| task.timeline.as_mut());
        timeline.into_iter().for_each(|timeline| timeline.lose_switch_out(time_ns));
    }

    /// A thread took another name.
    pub fn rename(&mut self, named: Named<'_>, time_ns: u64, sink: &mut Output) {
        if let Some(task) = self.threads.get_mut(&named.tid) {
            rename(task, named.name, time_ns, sink);
        }
    }

    /// A reading of a process, or of the machine.
    pub fn measure(&mut self, pid: Option<u32>, name: &str, time_ns: u64, value: i64, sink: &mut Output) {
        let process = self.process(pid.unwrap_or(UNKNOWN), None, None, sink);
        sink.counter(Some(ProcessId(process.0)), None, name.into(), time_ns, value);
    }

    /// The number of a thread that is known.
    pub fn id(&self, tid: u32) -> Option<ThreadRef> {
        match self.last {
            Some((last, id)) if last == tid => Some(id),
            _ => self.threads.get(&tid).map(|task| task.id),
        }
    }

    pub fn fork(&mut self, forked: Forked<'_>, time_ns: u64, sink: &mut Output) {
        let Forked { parent_pid, pid, tid, name } = forked;
        // Its id may have been that of a thread before.
        self.end(tid, time_ns, sink);
        if let Some(pid) = pid.filter(|&pid| pid == tid) {
            self.processes.remove(&pid);
            self.process(pid, parent_pid, Some(time_ns), sink);
        }
        let name = String::from_utf8_lossy(name).into_owned();
        self.add(tid, pid, &name, time_ns, sink).timeline = Some(ThreadTimeline::created(time_ns));
    }

    pub fn exec(&mut self, tid: u32, executable: &[u8], sink: &mut Output) {
        let process = self.process(tid, None, None, sink);
        let executable = String::from_utf8_lossy(executable).into_owned();
        sink.take(Entry::Image { process, executable: executable.clone(), command_line: vec![executable] });
    }

    /// The thread leaves the CPU for the last time with its next switch.
    pub fn exits(&mut self, tid: u32, time_ns: u64, sink: &mut Output) {
        if let Some(task) = self.threads.get_mut(&tid) {
            task.is_exiting = true;
        }
        if let Some(&process) = self.processes.get(&tid) {
            sink.take(Entry::ProcessEnd { process, time_ns });
        }
    }

    /// The trace says something of a thread, before its first event or after.
    pub fn state(&mut self, tid: u32, pid: Option<u32>, name: &[u8]) {
        let Some(task) = self.threads.get_mut(&tid) else {
            let stated = self.stated.entry(tid).or_default();
            stated.pid = pid.or(stated.pid);
            stated.name = Some(name)
                .filter(|name| !name.is_empty())
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .or(stated.name.take());
            return;
        };
        if let Some(pid) = pid.filter(|_| task.pid.is_none()) {
            task.pid = Some(pid);
            self.late.push((task.id, pid));
        }
    }

    /// The process of a thread, if it is known.
    pub fn pid(&self, tid: u32) -> Option<u32> {
        let of_thread = self.threads.get(&tid).and_then(|task| task.pid);
        of_thread.or_else(|| self.stated.get(&tid)?.pid)
    }

    fn end(&mut self, tid: u32, time_ns: u64, sink: &mut Output) {
        self.last = None;
        if let Some(task) = self.threads.remove(&tid) {
            end(task, time_ns, sink);
        }
    }

    /// Ends all threads that live on.
    pub fn finish(&mut self, end_ns: u64, sink: &mut Output) {
        let mut tasks: Vec<Task> = self.threads.drain().map(|(_, task)| task).collect();
        tasks.sort_by_key(|task| task.id);
        for task in tasks {
            let end_ns = if task.timeline.is_some() { end_ns } else { task.last_ns };
            end(task, end_ns, sink);
        }
    }

    /// Sets the processes that became known late. Threads of unknown processes have none.
    pub fn complete(&self, capture: &mut Capture, remedy: &str) {
        for &(thread, pid) in &self.late {
            let known = capture.processes.iter().position(|process| process.pid == pid);
            let process = match known {
                Some(known) => ProcessId::from_index(known),
                None => capture.add_process(Process { pid, ..Process::default() }),
            };
            if let Some(thread) = capture.threads.get_mut(thread.0 as usize) {
                thread.process = Some(process);
            }
        }
        let Some(unknown) = self.processes.get(&UNKNOWN) else { return };
        let unknown = ProcessId(unknown.0);
        let threads = capture.threads.iter().filter(|thread| thread.process == Some(unknown)).count();
        if let Some(process) = capture.processes.get_mut(unknown.index()) {
            process.executable = "[unknown process]".to_owned();
        }
        if threads > 0 {
            capture.info.notes.push(format!(
                "The trace does not name the processes of {threads} threads; they are in process 0. {remedy}"
            ));
        }
    }
}

fn rename(task: &mut Task, name: Option<&[u8]>, time_ns: u64, sink: &mut Output) {
    let Some(name) = name.filter(|name| *name != task.name.as_bytes()) else { return };
    let name = String::from_utf8_lossy(name).into_owned();
    if name == task.name {
        return;
    }
    task.name = name.clone();
    sink.take(Entry::ThreadName { thread: task.id, time_ns, name });
}

fn end(mut task: Task, time_ns: u64, sink: &mut Output) {
    if let Some(interval) = task.timeline.as_mut().and_then(|timeline| timeline.end(time_ns)) {
        sink.wait(&interval.of(task.id));
    }
    let cpu_ns = task.timeline.as_ref().map(|timeline| timeline.running_ns);
    let runnable_ns = task.timeline.as_ref().map(|timeline| timeline.runnable_ns);
    sink.take(Entry::ThreadEnd { thread: task.id, time_ns: Some(time_ns), cpu_ns, runnable_ns });
}
