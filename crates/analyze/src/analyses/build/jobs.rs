//! The jobs of a build: processes put together by the command that they belong to.

use std::collections::{HashMap, HashSet};

use stepscope_model::build_command::{Kind, Part, Work, part, work};
use stepscope_model::compiler_work::{CRATE, OUTPUT};
use stepscope_model::{Capture, Counter, Process, ProcessId};

use crate::query::process_label::process_name;

/// A command of the build with all that it started.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub work: Work,
    pub start_ns: u64,
    pub end_ns: u64,
    pub used: Used,
    pub exit_status: Option<i32>,
    /// Time in which no other job ran.
    pub alone_ns: u64,
    /// Whether what it makes existed before.
    pub made_before: bool,
}

impl Job {
    pub fn wall_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// What processes used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used {
    pub processes: u64,
    pub cpu_ns: u64,
    pub compiler_ns: u64,
    pub assembler_ns: u64,
    pub linker_ns: u64,
    pub runnable_ns: u64,
    /// The largest of one process.
    pub peak_rss: Option<i64>,
    pub read: i64,
    pub written: i64,
    pub major_faults: i64,
    /// CPU time by what compilers said of it: front end, back end, and templates within the front end.
    pub front_end_ns: Option<i64>,
    pub back_end_ns: Option<i64>,
    pub templates_ns: Option<i64>,
    /// Processes whose CPU time is known.
    pub known: u64,
}

/// What a job of the path waited for before it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    Input,
    Slot,
    Unknown,
}

/// What a build did.
#[derive(Debug, Default)]
pub(crate) struct Build {
    /// By start.
    pub jobs: Vec<Job>,
    /// Processes that belong to no job, by program.
    pub others: Vec<(String, Used)>,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Processes whose CPU time is unknown.
    pub unknown: usize,
    /// The job of each process.
    pub job_of: Vec<Option<usize>>,
}

impl Build {
    /// The jobs of a capture. None if no command of it is a job.
    pub fn of(capture: &Capture) -> Self {
        let works: Vec<Option<Work>> = capture.processes.iter().map(work_of).collect();
        let (Some(start_ns), Some(end_ns)) = (capture.info.start_ns, capture.info.end_ns) else {
            return Self::default();
        };
        let mut build = Self { start_ns, end_ns, ..Self::default() };
        if works.iter().all(Option::is_none) {
            return build;
        }
        let used = used(capture, &mut build.unknown);
        let is_made_before = |one: &&Counter| &*one.name == "made_before" && one.value > 0;
        let made_before: HashSet<usize> =
            capture.counters.iter().filter(is_made_before).filter_map(|one| Some(one.process?.index())).collect();
        let mut by_pid: HashMap<u32, usize> = HashMap::new();
        let mut job_of: Vec<Option<usize>> = Vec::with_capacity(works.len());
        let mut others: HashMap<&str, Used> = HashMap::new();
        for (index, (process, work)) in capture.processes.iter().zip(works).enumerate() {
            let parent = process.parent_pid.and_then(|pid| by_pid.get(&pid)).copied();
            by_pid.insert(process.pid, index);
            let of_parent = parent.and_then(|parent| job_of[parent]);
            let is_script = |job: usize| build.jobs[job].work.kind == Kind::BuildScript;
            let job = match (of_parent, work) {
                (Some(job), Some(work)) if is_script(job) => Some(build.begin(process, work)),
                (Some(job), _) => Some(job),
                (None, Some(work)) => Some(build.begin(process, work)),
                (None, None) => None,
            };
            job_of.push(job);
            let sum = match job {
                Some(job) => &mut build.jobs[job].used,
                None => others.entry(process_name(process)).or_default(),
            };
            sum.add(&used[index]);
            if let Some(job) = job {
                build.jobs[job].made_before |= made_before.contains(&index);
            }
        }
        build.others = others.into_iter().map(|(name, used)| (name.to_owned(), used)).collect();
        build.others.sort_by(|(a, first), (b, second)| second.cpu_ns.cmp(&first.cpu_ns).then_with(|| a.cmp(b)));
        build.sort(job_of);
        build.find_alone();
        build
    }

    /// Sorts the jobs by start.
    fn sort(&mut self, job_of: Vec<Option<usize>>) {
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_key(|&index| (self.jobs[index].start_ns, self.jobs[index].end_ns));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
        self.jobs = order.iter().map(|&old| self.jobs[old].clone()).collect();
        self.job_of = job_of.into_iter().map(|job| job.map(|old| place[old])).collect();
    }

    /// The CPU time of all processes.
    pub fn cpu_ns(&self) -> u64 {
        let others: u64 = self.others.iter().map(|(_, used)| used.cpu_ns).sum();
        others + self.jobs.iter().map(|job| job.used.cpu_ns).sum::<u64>()
    }

    fn begin(&mut self, process: &Process, work: Work) -> usize {
        let start_ns = process.start_ns.unwrap_or(self.start_ns);
        let end_ns = process.end_ns.unwrap_or(self.end_ns).max(start_ns);
        let (used, exit_status) = (Used::default(), process.exit_status);
        self.jobs.push(Job { work, start_ns, end_ns, used, exit_status, alone_ns: 0, made_before: false });
        self.jobs.len() - 1
    }

    /// The times between changes of the number of running jobs, each with the jobs that ran in it.
    pub fn intervals(&self) -> Vec<(u64, u64, Vec<usize>)> {
        let starts = self.jobs.iter().enumerate().map(|(index, job)| (job.start_ns, true, index));
        let ends = self.jobs.iter().enumerate().map(|(index, job)| (job.end_ns, false, index));
        let mut changes: Vec<(u64, bool, usize)> = starts.chain(ends).collect();
        changes.sort_unstable_by_key(|&(time, begins, index)| (time, !begins, index));
        let mut running: Vec<usize> = Vec::new();
        let mut intervals = Vec::new();
        let mut since = self.start_ns;
        for (time, begins, index) in changes {
            if time > since {
                intervals.push((since, time, running.clone()));
                since = time;
            }
            if begins {
                running.push(index);
            } else {
                running.retain(|&one| one != index);
            }
        }
        if self.end_ns > since {
            intervals.push((since, self.end_ns, Vec::new()));
        }
        intervals
    }

    fn find_alone(&mut self) {
        for (start, end, running) in self.intervals() {
            if let [only] = running[..] {
                self.jobs[only].alone_ns += end - start;
            }
        }
    }

    /// Most jobs at one moment.
    pub fn most_jobs(&self) -> usize {
        self.intervals().iter().map(|(.., running)| running.len()).max().unwrap_or(0)
    }

    /// The jobs that the last one to end waited for, from the first to the last: before each stands the producer of one of
    /// its inputs that ended last. If none is known, it is the job whose slot it got.
    pub fn path(&self) -> Vec<(usize, Waited)> {
        let makers = self.makers();
        let slots = self.most_jobs();
        let last = (0..self.jobs.len()).max_by_key(|&index| self.jobs[index].end_ns);
        let mut path: Vec<(usize, Waited)> = last.into_iter().map(|last| (last, Waited::Unknown)).collect();
        while let Some((of, waited)) = path.last_mut() {
            let before = self.producers(*of, &makers);
            let of = &self.jobs[*of];
            let producer = before.max_by_key(|&input| self.jobs[input].end_ns).map(|job| (job, Waited::Input));
            let Some((job, why)) = producer.or_else(|| Some((self.slot_before(of.start_ns, slots)?, Waited::Slot)))
            else {
                break;
            };
            *waited = why;
            path.push((job, Waited::Unknown));
        }
        path.reverse();
        path
    }

    /// The longest time of jobs of which each needs an output of the one before: no number of slots makes a build shorter.
    pub fn longest_chain_ns(&self) -> u64 {
        let makers = self.makers();
        let mut chains = vec![0; self.jobs.len()];
        // By start, so that producers come first.
        for job in 0..self.jobs.len() {
            let before = self.producers(job, &makers).map(|producer| chains[producer]).max().unwrap_or(0);
            chains[job] = before + self.jobs[job].wall_ns();
        }
        chains.into_iter().max().unwrap_or(0)
    }

    /// The jobs that make each file.
    fn makers(&self) -> HashMap<&str, Vec<usize>> {
        let mut makers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, job) in self.jobs.iter().enumerate() {
            for output in &job.work.outputs {
                makers.entry(output).or_default().push(index);
            }
        }
        makers
    }

    /// The jobs that make a job's inputs, and start before it: a path of them cannot come back.
    fn producers<'b>(&'b self, job: usize, makers: &'b HashMap<&str, Vec<usize>>) -> impl Iterator<Item = usize> + 'b {
        let of = &self.jobs[job];
        let inputs = of.work.inputs.iter().filter_map(|input| makers.get(input.as_str())).flatten().copied();
        inputs.filter(|&input| self.jobs[input].start_ns < of.start_ns)
    }

    /// The last job to end before `start_ns`, if all slots were taken until then.
    fn slot_before(&self, start_ns: u64, slots: usize) -> Option<usize> {
        let ended =
            (0..self.jobs.len()).filter(|&job| self.jobs[job].start_ns < start_ns && self.jobs[job].end_ns <= start_ns);
        let last = ended.max_by_key(|&job| self.jobs[job].end_ns)?;
        let end_ns = self.jobs[last].end_ns;
        let ran = self.jobs.iter().filter(|job| job.start_ns < end_ns && job.end_ns >= end_ns).count();
        (ran == slots).then_some(last)
    }
}

impl Used {
    fn add(&mut self, other: &Self) {
        self.processes += other.processes;
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.compiler_ns = self.compiler_ns.saturating_add(other.compiler_ns);
        self.assembler_ns = self.assembler_ns.saturating_add(other.assembler_ns);
        self.linker_ns = self.linker_ns.saturating_add(other.linker_ns);
        self.runnable_ns = self.runnable_ns.saturating_add(other.runnable_ns);
        self.peak_rss = self.peak_rss.max(other.peak_rss);
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.major_faults = self.major_faults.saturating_add(other.major_faults);
        let sum = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, other) => one.or(other),
        };
        self.front_end_ns = sum(self.front_end_ns, other.front_end_ns);
        self.back_end_ns = sum(self.back_end_ns, other.back_end_ns);
        self.templates_ns = sum(self.templates_ns, other.templates_ns);
        self.known += other.known;
    }
}

fn arguments(process: &Process) -> Vec<String> {
    let words = shlex::split(&process.command_line);
    words.unwrap_or_else(|| process.command_line.split_whitespace().map(str::to_owned).collect())
}

fn work_of(process: &Process) -> Option<Work> {
    if let Some(kind) = kind_of_output(process) {
        let (name, outputs) = (process.command_line.clone(), vec![process.command_line.clone()]);
        return Some(Work { kind, name, inputs: Vec::new(), outputs });
    }
    let mut arguments = arguments(process);
    // A name that the program was started by may be shorter than what it is: `cc` for a wrapper.
    match arguments.first_mut() {
        Some(first) if first.is_empty() => first.clone_from(&process.executable),
        Some(_) => {}
        None => return None,
    }
    work(&arguments, process.working_directory.as_deref().unwrap_or("/"))
}

/// What made an output whose command is unknown, by its name.
fn kind_of_output(process: &Process) -> Option<Kind> {
    let name = process.command_line.as_str();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    match process.executable.as_str() {
        OUTPUT if ends(&[".o", ".obj", ".pcm", ".gch", ".pch"]) => Some(Kind::Compile),
        OUTPUT if ends(&[".a", ".lib"]) => Some(Kind::Archive),
        OUTPUT if ends(&["build.ninja", "CMakeCache.txt"]) => Some(Kind::Configure),
        OUTPUT if ends(&[".h", ".hpp", ".hh", ".cpp", ".cc", ".c", ".cxx", ".stamp", ".txt", ".json", ".inc"]) => {
            Some(Kind::Generate)
        }
        OUTPUT => Some(Kind::Link),
        CRATE if name.ends_with("build script (run)") => Some(Kind::BuildScript),
        CRATE
            if ["bin", "test", "bench", "example"]
                .iter()
                .any(|kind| name.ends_with(&format!("({kind})")) || name.contains(&format!(" \"{kind}\""))) =>
        {
            Some(Kind::CompileAndLink)
        }
        CRATE => Some(Kind::Compile),
        _ => None,
    }
}

/// What each process used.
fn used(capture: &Capture, unknown: &mut usize) -> Vec<Used> {
    let mut all = vec![Used { processes: 1, ..Used::default() }; capture.processes.len()];
    let mut is_known = vec![false; all.len()];
    for thread in &capture.threads {
        let Some(ProcessId(process)) = thread.process else { continue };
        let used = &mut all[process as usize];
        is_known[process as usize] |= thread.cpu_ns.is_some();
        used.known = u64::from(is_known[process as usize]);
        used.cpu_ns = used.cpu_ns.saturating_add(thread.cpu_ns.unwrap_or(0));
        used.runnable_ns = used.runnable_ns.saturating_add(thread.runnable_ns.unwrap_or(0));
    }
    *unknown = is_known.iter().filter(|known| !**known).count();
    for counter in capture.counters.iter() {
        let Some(ProcessId(process)) = counter.process.filter(|_| counter.thread.is_none()) else { continue };
        let (used, value) = (&mut all[process as usize], counter.value);
        match &*counter.name {
            "peak_rss_bytes" => used.peak_rss = used.peak_rss.max(Some(value)),
            "io_read_bytes" => used.read = used.read.max(value),
            "io_write_bytes" => used.written = used.written.max(value),
            "major_faults" => used.major_faults = used.major_faults.max(value),
            "front_end_cpu_ns" => used.front_end_ns = Some(value),
            "back_end_cpu_ns" => used.back_end_ns = Some(value),
            "templates_cpu_ns" => used.templates_ns = Some(value),
            _ => {}
        }
    }
    for (process, used) in capture.processes.iter().zip(&mut all) {
        let program = if process.executable.is_empty() { process_name(process) } else { &process.executable };
        match part(program) {
            Part::Compiler => used.compiler_ns = used.cpu_ns,
            Part::Assembler => used.assembler_ns = used.cpu_ns,
            Part::Linker => used.linker_ns = used.cpu_ns,
            Part::Other => {}
        }
    }
    all
}
