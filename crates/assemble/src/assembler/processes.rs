//! Processes and threads: how records introduce, change and end them.

use rustc_hash::FxHashSet;
use stepscope_model::Losses;

use super::{Assembler, Process, Thread};
use crate::address_space::{AddressSpace, Mapping};
use crate::entry::{Entry, Module, ModuleKind, ProcessRef, Sink, ThreadRef};
use crate::event_role::{Follow, Switches};
use crate::kernel_record::{FileIdentity, Map, ThreadIds};
use crate::target::{Image, Target};
use crate::thread_timeline::{InitialState, OffCpu, ThreadTimeline};

impl<W: Target> Assembler<W> {
    /// The thread of a record. A followed thread that is not known yet is introduced.
    pub(super) fn thread(&mut self, ids: ThreadIds, time: Option<u64>, sink: &mut impl Sink) -> Option<ThreadRef> {
        let ThreadIds { pid, tid } = ids;
        if let Some(thread) = self.threads.get(&tid) {
            return Some(thread.id);
        }
        if self.ended.contains(&tid) || self.awaits(pid) || !self.follows(pid) {
            return None;
        }
        if !self.processes.contains_key(&pid) {
            self.start_process(pid, None, None, AddressSpace::new(), sink);
            self.read_image(pid, sink);
        }
        let name = (self.threads.get(&pid)).map_or_else(|| format!("thread {tid}"), |main| main.name.clone());
        let start_ns = self.start_ns.or(time);
        let timeline = ThreadTimeline::initial(start_ns.unwrap_or(0), InitialState::Blocked);
        Some(self.start_thread(ids, name, start_ns, timeline, sink))
    }

    /// Changes a thread's state, and writes the wait that ends with the change.
    pub(super) fn switch(
        &mut self,
        ids: ThreadIds,
        time: Option<u64>,
        sink: &mut impl Sink,
        change: impl FnOnce(&mut ThreadTimeline, u64) -> Option<OffCpu>,
    ) {
        if self.switches == Switches::Unrecorded {
            return;
        }
        let Some(time) = time else { return };
        if self.thread(ids, Some(time), sink).is_none() {
            return;
        }
        let Some(thread) = self.threads.get_mut(&ids.tid) else { return };
        if let Some(interval) = change(&mut thread.timeline, time) {
            sink.take(wait(thread.id, interval));
        }
    }

    pub(super) fn rename(&mut self, ids: ThreadIds, name: &str, time: Option<u64>, sink: &mut impl Sink) {
        if self.awaits(ids.pid) {
            return;
        }
        let known = self.threads.contains_key(&ids.tid);
        let Some(id) = self.thread(ids, time, sink) else { return };
        let Some(thread) = self.threads.get_mut(&ids.tid).filter(|thread| thread.name != name) else { return };
        thread.name = name.to_owned();
        // perf starts a file with the names of what already ran: that is no change.
        let time_ns = time.filter(|_| known).unwrap_or(0);
        sink.take(Entry::ThreadName { thread: id, time_ns, name: name.to_owned() });
    }

    pub(super) fn exec(&mut self, ids: ThreadIds, name: &str, time: Option<u64>, sink: &mut impl Sink) {
        let ThreadIds { pid, tid } = ids;
        if let Some(awaited) = self.awaited.take_if(|awaited| awaited.pid == pid) {
            self.start_ns = time;
            if let Some(time_ns) = time {
                sink.take(Entry::WindowStart { time_ns });
            }
            self.start_process(pid, Some(awaited.parent_pid), time, AddressSpace::new(), sink);
            self.start_thread(ids, name.to_owned(), time, ThreadTimeline::running(time.unwrap_or(0)), sink);
        }
        if self.thread(ids, time, sink).is_none() {
            return;
        }
        self.keep_code(pid, time);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.space = AddressSpace::new();
        process.image = None;
        let others: Vec<u32> = process.threads.iter().copied().filter(|&other| other != tid).collect();
        for other in others {
            self.end_thread(other, time, sink);
        }
        self.rename(ids, name, time, sink);
        self.read_image(pid, sink);
    }

    pub(super) fn fork(&mut self, child: ThreadIds, parent: ThreadIds, time: Option<u64>, sink: &mut impl Sink) {
        // A thread that exits has its id until its last switch, which may have been lost.
        if let Some(time) = time.filter(|_| self.threads.get(&child.tid).is_some_and(|thread| thread.exit.is_some())) {
            self.end_unseen(child.tid, time, sink);
        }
        if self.awaits(parent.pid) || self.threads.contains_key(&child.tid) {
            return;
        }
        if self.follow == Follow::Tree && !self.processes.contains_key(&parent.pid) {
            return;
        }
        self.ended.remove(&child.tid);
        // perf makes up forks of what ran before it started, and its files: by then it may run another program than its parent.
        let is_made_up = time.is_none();
        // What it did before the recording started is unknown.
        let time = time.filter(|time| self.start_ns.is_none_or(|start| start <= *time));
        if !self.processes.contains_key(&child.pid) {
            let process = self.processes.get(&parent.pid).filter(|_| !is_made_up);
            let image = process.and_then(|process| process.image.clone());
            let space = process.map_or_else(AddressSpace::new, |process| process.space.forked());
            self.start_process(child.pid, Some(parent.pid), time, space, sink);
            self.set_image(child.pid, image, sink);
        }
        let creator = self.threads.get(&parent.tid).or_else(|| self.threads.get(&parent.pid));
        let name = creator.map_or_else(|| format!("thread {}", child.tid), |creator| creator.name.clone());
        let timeline = match time {
            Some(time) => ThreadTimeline::created(time),
            None => ThreadTimeline::initial(self.start_ns.unwrap_or(0), InitialState::Blocked),
        };
        self.start_thread(child, name, time.or(self.start_ns), timeline, sink);
    }

    pub(super) fn map(&mut self, map: Map, sink: &mut impl Sink) {
        if map.kernel || !map.executable || map.pid <= 0 || self.awaits(map.pid as u32) {
            return;
        }
        let pid = map.pid as u32;
        if map.path == b"[uprobes]" {
            let range = map.start..map.start.saturating_add(map.length);
            return self.processes.get_mut(&pid).map_or((), |process| process.space.execute_out_of_line(range));
        }
        if !self.processes.contains_key(&pid) {
            if self.follow == Follow::Tree {
                return;
            }
            self.start_process(pid, None, None, AddressSpace::new(), sink);
        }
        let Some(end) = map.start.checked_add(map.length) else { return };
        let Some(module) = module_of(&map, pid) else { return };
        if matches!(module.kind, ModuleKind::JitDump(_)) {
            self.target.describes_code(&module, pid);
            self.interner.module(module, sink);
            return;
        }
        let offset = match module.kind {
            ModuleKind::File => map.offset,
            ModuleKind::Vdso => 0,
            _ => map.start,
        };
        let is_file = module.kind == ModuleKind::File;
        let module = self.interner.module(module, sink);
        let process = self.processes.get_mut(&pid).expect("added above");
        process.space.map(Mapping { range: map.start..end, offset, module });
        // The kernel maps a program's own file before any other.
        if is_file && process.image.is_none() {
            let executable = String::from_utf8_lossy(&map.path).into_owned();
            self.set_image(pid, Some(Image { executable, command_line: Vec::new() }), sink);
        }
    }

    pub(super) fn start_process(
        &mut self,
        pid: u32,
        parent_pid: Option<u32>,
        start_ns: Option<u64>,
        space: AddressSpace,
        sink: &mut impl Sink,
    ) {
        let id = self.next_process();
        let threads = FxHashSet::default();
        self.processes
            .insert(pid, Process { id, parent_pid, space, threads, image: None, steps_started: 0, last_step: None });
        sink.take(Entry::Process { pid, parent_pid, start_ns });
    }

    pub(super) fn start_thread(
        &mut self,
        ids: ThreadIds,
        name: String,
        start_ns: Option<u64>,
        timeline: ThreadTimeline,
        sink: &mut impl Sink,
    ) -> ThreadRef {
        let ThreadIds { pid, tid } = ids;
        let id = self.next_thread();
        let process = self.processes.get_mut(&pid).expect("a thread starts in a known process");
        process.threads.insert(tid);
        self.system_calls.note_thread(tid, id, start_ns);
        sink.take(Entry::Thread { tid, process: process.id, start_ns, name: name.clone() });
        self.threads.insert(tid, Thread { id, pid, name, timeline, cpu: None, exit: None });
        id
    }

    pub(super) fn next_process(&mut self) -> ProcessRef {
        self.process_count += 1;
        ProcessRef(self.process_count - 1)
    }

    pub(super) fn next_thread(&mut self) -> ThreadRef {
        self.thread_count += 1;
        ThreadRef(self.thread_count - 1)
    }

    pub(super) fn end_thread(&mut self, tid: u32, time: Option<u64>, sink: &mut impl Sink) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        count_unknown(&mut self.losses, &thread);
        end_timeline(&mut thread, time, self.switches).into_iter().for_each(|entry| sink.take(entry));
        self.keep_thread(tid, thread.id, time);
        let Some(process) = self.processes.get_mut(&thread.pid) else { return };
        process.threads.remove(&tid);
        process.space.forget_thread(tid);
        self.pending.remove(&tid);
        self.written_slices.remove(&tid);
        if process.threads.is_empty() {
            if let Some(time_ns) = time {
                sink.take(Entry::ProcessEnd { process: process.id, time_ns });
            }
            self.keep_code(thread.pid, time);
            self.processes.remove(&thread.pid);
        }
    }

    pub(super) fn read_image(&mut self, pid: u32, sink: &mut impl Sink) {
        let image = self.target.image(pid);
        self.set_image(pid, image, sink);
    }

    fn set_image(&mut self, pid: u32, image: Option<Image>, sink: &mut impl Sink) {
        let Some(image) = image else { return };
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let Image { executable, command_line } = image.clone();
        process.image = Some(image);
        sink.take(Entry::Image { process: process.id, executable, command_line });
    }
}

/// Counts the time for which it is open whether the thread ran.
pub(super) fn count_unknown(losses: &mut Losses, thread: &Thread) {
    if thread.timeline.unknown_ns > 0 {
        let unknown_ns = losses.unknown_cpu_ns.get_or_insert(0);
        *unknown_ns = unknown_ns.saturating_add(thread.timeline.unknown_ns);
    }
}

/// The last entries of a thread: its last wait, and its end.
pub(super) fn end_timeline(thread: &mut Thread, time: Option<u64>, switches: Switches) -> Vec<Entry> {
    let recorded = switches != Switches::Unrecorded;
    let last = time.filter(|_| recorded).and_then(|time| thread.timeline.end(time));
    let end = Entry::ThreadEnd {
        thread: thread.id,
        time_ns: time,
        cpu_ns: recorded.then_some(thread.timeline.running_ns),
        runnable_ns: (switches == Switches::WithWakeUps).then_some(thread.timeline.runnable_ns),
    };
    last.map(|interval| wait(thread.id, interval)).into_iter().chain([end]).collect()
}

fn wait(thread: ThreadRef, interval: OffCpu) -> Entry {
    Entry::Wait(interval.of(thread))
}

/// Whether a file describes generated code: `jit-PID.dump`, which generators map as code to be found (jitdump
/// specification of `perf`).
fn is_jit_dump(path: &str) -> bool {
    let name = path.rsplit('/').next().and_then(|name| name.strip_prefix("jit-")?.strip_suffix(".dump"));
    path.starts_with('/') && name.is_some_and(|pid| pid.parse::<u32>().is_ok())
}

/// The module of a mapping. `None` for pages without code of interest.
fn module_of(map: &Map, pid: u32) -> Option<Module> {
    let path = String::from_utf8_lossy(&map.path);
    let kind = match &*path {
        "[vdso]" => ModuleKind::Vdso,
        "[vsyscall]" | "[uprobes]" => return None,
        "" | "//anon" | "[heap]" | "[stack]" | "/dev/zero" | "/dev/zero (deleted)" => ModuleKind::Jit(pid),
        path if path.starts_with("[anon") || path.starts_with("/memfd:") || path.starts_with("/anon_hugepage") => {
            ModuleKind::Jit(pid)
        }
        path if is_jit_dump(path) => ModuleKind::JitDump(pid),
        path if path.starts_with('/') => ModuleKind::File,
        _ => ModuleKind::Jit(pid),
    };
    let path = match kind {
        ModuleKind::Jit(_) => "[jit]".to_owned(),
        _ => path.into_owned(),
    };
    let build_id = match &map.file {
        FileIdentity::BuildId(id) if kind == ModuleKind::File => Some(id.clone()),
        _ => None,
    };
    Some(Module { kind, path, build_id })
}
