//! [`add`]: the CPU time of a build as samples, divided by what compilers and configure steps say of their own times.
//!
//! Each process has its exact CPU time as samples below the stack `KIND ; JOB ; PROGRAM`. Where it said what it worked on, its CPU time is divided
//! in proportion, so that all samples add up to the CPU time of the build. A configure step waits for the programs that it tries: its times divide the CPU
//! time of all of them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;

use stepscope_convert::import::builds::{WorkTree, module};
use stepscope_model::build_command::{JobOf, absolute};
use stepscope_model::compiler_work::{BUILD_EVENT, CompilerWork, JOBS_MODULE};
use stepscope_model::{Capture, Counter, Event, Frame, Process, ProcessId, Sample, Scope, StackId, ThreadId};

use crate::process_log::{Timed, TimingKind};

/// Adds samples, scopes and counters to the capture of a build. `jobs` has the job of each process.
pub fn add(capture: &mut Capture, jobs: &[Option<JobOf>], timed: &[Timed]) {
    let event = capture.add_event(Event::weighed(BUILD_EVENT, "ns"));
    let mut threads: Vec<Option<ThreadId>> = vec![None; capture.processes.len()];
    for (index, thread) in capture.threads.iter().enumerate() {
        if let Some(process) = thread.process {
            threads[process.index()].get_or_insert(ThreadId::from_index(index));
        }
    }
    let cpu = |capture: &Capture, process: usize| {
        threads[process].and_then(|thread| capture.threads[thread.index()].cpu_ns).unwrap_or(0)
    };
    let sizes = CodeSizes::default();
    let mut notes: HashSet<&'static str> = HashSet::new();
    let mut done: HashSet<usize> = HashSet::new();
    for one in timed {
        let process = one.process as usize;
        let (Some(Some(thread)), Ok(bytes)) = (threads.get(process).copied(), fs::read(&one.path)) else { continue };
        if done.contains(&process) {
            continue;
        }
        let job = jobs[process].as_ref();
        let source = job.map_or("", |job| job.name.as_str());
        let mut tree = match one.kind {
            TimingKind::ClangTrace => WorkTree::of_clang_trace(&bytes),
            TimingKind::GccReport => WorkTree::of_gcc_report(&bytes, &|path| sizes.of(&one.directory, path, source)),
            TimingKind::CmakeProfile => WorkTree::of_cmake_profile(&bytes),
        };
        if tree.is_empty() {
            continue;
        }
        tree.absolute_paths(|path| absolute(&one.directory, path));
        notes.extend(tree.note());
        let parts: Vec<usize> = match (one.kind, job) {
            (TimingKind::CmakeProfile, Some(job)) => {
                let is_part = |other: &Option<JobOf>| other.as_ref().is_some_and(|other| other.job == job.job);
                (0..jobs.len()).filter(|index| is_part(&jobs[*index]) && !done.contains(index)).collect()
            }
            _ => vec![process],
        };
        let total_ns = parts.iter().map(|part| cpu(capture, *part)).sum();
        let below = stack(capture, process, job);
        let first = capture.samples.len();
        tree.add_samples(capture, thread, Some(below), event, Some(total_ns));
        set_times(capture, first, process);
        done.extend(parts);
        let offset_ns = match one.kind {
            TimingKind::ClangTrace => capture.processes[process].start_ns.unwrap_or(0),
            // It has the same clock.
            _ => 0,
        };
        tree.add_scopes(capture, thread, offset_ns);
        let mut figures = vec![("made_before", i64::from(one.made_before))];
        if one.kind != TimingKind::CmakeProfile {
            let all = tree.total_ns().max(1);
            let part = |work| {
                let ns = u128::from(tree.inclusive_ns(work)) * u128::from(total_ns) / u128::from(all);
                i64::try_from(ns).unwrap_or(i64::MAX)
            };
            figures.push(("front_end_cpu_ns", part(CompilerWork::FrontEnd)));
            figures.push(("back_end_cpu_ns", part(CompilerWork::BackEnd)));
            figures.push(("templates_cpu_ns", part(CompilerWork::Template)));
        }
        let time_ns = capture.processes[process].end_ns.unwrap_or(0);
        for (name, value) in figures {
            let (process, name) = (Some(ProcessId::from_index(process)), capture.intern_text(name));
            capture.counters.push(Counter { time_ns, process, thread: None, name, value });
        }
    }
    for process in 0..capture.processes.len() {
        let weight = cpu(capture, process);
        let Some(thread) = threads[process].filter(|_| weight > 0 && !done.contains(&process)) else { continue };
        let stack = Some(stack(capture, process, jobs[process].as_ref()));
        let time_ns = capture.processes[process].end_ns;
        capture.samples.push(Sample { time_ns, thread, cpu: None, stack, event, weight });
    }
    add_job_scopes(capture, jobs, &threads);
    capture.info.notes.extend(notes.into_iter().map(str::to_owned));
}

/// Puts the samples from the first on one behind the other, up to the end of a process.
fn set_times(capture: &mut Capture, first: usize, process: usize) {
    let Some(end_ns) = capture.processes[process].end_ns else { return };
    let samples = &mut capture.samples[first..];
    let mut left: u64 = samples.iter().map(|sample| sample.weight).sum();
    for sample in samples {
        left -= sample.weight;
        sample.time_ns = Some(end_ns.saturating_sub(left));
    }
}

/// A scope for each job, on the thread of its outermost process: `src/a.cpp (compile)`.
fn add_job_scopes(capture: &mut Capture, jobs: &[Option<JobOf>], threads: &[Option<ThreadId>]) {
    let mut seen = HashSet::new();
    let mut scopes = Vec::new();
    for (process, job) in jobs.iter().enumerate() {
        // Processes are in the order of their starts.
        let Some(job) = job.as_ref().filter(|job| seen.insert(job.job)) else { continue };
        let Process { start_ns: Some(start_ns), end_ns: Some(end_ns), .. } = capture.processes[process] else {
            continue;
        };
        let Some(thread) = threads[process] else { continue };
        let name = capture.intern_text(&format!("{} ({})", below(capture, &job.name), job.kind));
        scopes.push(Scope { thread, name, start_ns, end_ns, depth: 0 });
    }
    let around: HashSet<ThreadId> = scopes.iter().map(|scope| scope.thread).collect();
    capture.scopes.iter_mut().filter(|scope| around.contains(&scope.thread)).for_each(|scope| scope.depth += 1);
    capture.scopes.extend(scopes);
}

/// A path, relative to the build's working directory if it is below.
fn below<'p>(capture: &Capture, path: &'p str) -> &'p str {
    let folder = capture.info.working_directory.as_deref().unwrap_or_default();
    let rest = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    rest.filter(|_| folder.len() > 1).unwrap_or(path)
}

/// What a process is for, root first: `compile ; src/a.cpp ; cc1plus`.
fn stack(capture: &mut Capture, process: usize, job: Option<&JobOf>) -> StackId {
    let process = &capture.processes[process];
    let first = process.command_line.split(' ').next().unwrap_or_default();
    let program = if process.executable.is_empty() { first } else { &process.executable };
    let program: Arc<str> = program.rsplit('/').next().unwrap_or(program).into();
    let names: Vec<(Arc<str>, Option<Arc<str>>)> = match job {
        Some(job) => {
            vec![
                (job.kind.into(), None),
                (below(capture, &job.name).into(), Some(job.name.as_str().into())),
                (program, None),
            ]
        }
        None => vec![("other".into(), None), (program, None)],
    };
    let module = Some(module(capture, JOBS_MODULE));
    let mut stack = None;
    for (function, file) in names {
        let frame = capture.intern_frame(Frame { module, file, ..Frame::named(function) });
        stack = Some(capture.intern_stack_node(stack, frame));
    }
    stack.expect("a stack has its program")
}

/// How much code files have: bytes that are neither space nor comment.
#[derive(Default)]
struct CodeSizes(RefCell<HashMap<String, u64>>);

impl CodeSizes {
    /// The size of a file that a unit includes; of the unit itself for an empty path.
    fn of(&self, directory: &str, path: &str, source: &str) -> Option<u64> {
        let path = absolute(directory, if path.is_empty() { source } else { path });
        if let Some(size) = self.0.borrow().get(&path) {
            return Some(*size);
        }
        let size = fs::read(&path).map_or(0, |text| code_bytes(&text));
        self.0.borrow_mut().insert(path, size);
        Some(size)
    }
}

fn code_bytes(text: &[u8]) -> u64 {
    let (mut count, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(b"//") {
            at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            at += rest.windows(2).skip(2).position(|two| two == b"*/").map_or(rest.len(), |end| end + 4);
        } else {
            count += u64::from(!rest[0].is_ascii_whitespace());
            at += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_spaces_are_no_code() {
        assert_eq!(code_bytes(b"int x; // y\n/* z /* */ a"), 6);
        assert_eq!(code_bytes(b"/* open"), 0);
        assert_eq!(code_bytes(b"a/b"), 3);
    }
}
