//! Hosts reached by ssh, one task at a time on each.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::{CLUSTER_FOLDER, ClusterError, Job, Placement, Progress, Scheduler, Submission};

/// `ssh`.
pub(super) struct Ssh;

/// Failures of ssh itself after which a host gets no more tasks.
const MOST_LOST: usize = 2;

/// Exit code of ssh if the connection failed.
const UNREACHABLE: i32 = 255;

/// Exit code of `timeout` if the limit was reached.
const TIMED_OUT: i32 = 124;

impl Scheduler for Ssh {
    fn name(&self) -> &'static str {
        "ssh"
    }

    fn submit(&self, job: &Job<'_>) -> Result<Box<dyn Submission>, ClusterError> {
        if job.placement.hosts.is_empty() {
            return Err(ClusterError::Usage("name the hosts: --hosts HOST,HOST".to_owned()));
        }
        let shared = Arc::new(Shared {
            open: Mutex::new(job.tasks.iter().copied().collect()),
            fates: Mutex::default(),
            cancelled: AtomicBool::new(false),
        });
        let start = |host: &String| {
            let (host, shared) = (host.clone(), shared.clone());
            let (run, placement) = (job.run.to_owned(), job.placement.clone());
            thread::spawn(move || Host { host, run, placement, shared }.work())
        };
        Ok(Box::new(Hosts { threads: job.placement.hosts.iter().map(start).collect(), shared }))
    }
}

/// What all hosts share.
struct Shared {
    open: Mutex<VecDeque<usize>>,
    fates: Mutex<BTreeMap<usize, String>>,
    cancelled: AtomicBool,
}

struct Hosts {
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Submission for Hosts {
    fn progress(&mut self) -> Result<Progress, ClusterError> {
        let is_over = self.threads.iter().all(JoinHandle::is_finished);
        Ok(if is_over { Progress::Over } else { Progress::Open })
    }

    fn fate(&mut self, task: usize) -> Option<String> {
        let known = self.shared.fates.lock().expect("no thread panics with it").get(&task).cloned();
        known.or_else(|| Some("no host was left for its task".to_owned()))
    }

    fn cancel(&mut self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A host at work.
struct Host {
    host: String,
    run: PathBuf,
    placement: Placement,
    shared: Arc<Shared>,
}

impl Host {
    fn work(&self) {
        let mut lost = 0;
        while lost < MOST_LOST && !self.shared.cancelled.load(Ordering::Relaxed) {
            let next = self.shared.open.lock().expect("no thread panics with it").pop_front();
            let Some(task) = next else { return };
            let Some(fate) = self.task(task) else { continue };
            self.shared.fates.lock().expect("no thread panics with it").insert(task, fate.text);
            if fate.is_of_host {
                lost += 1;
                // Another host may reach it, or this one again.
                self.shared.open.lock().expect("no thread panics with it").push_back(task);
            }
        }
    }

    /// Runs a task; gives why it has no result, if that is so.
    fn task(&self, task: usize) -> Option<Fate> {
        let job = Job { run: &self.run, tasks: &[], placement: &self.placement };
        let folder = match self.placement.copies {
            true => PathBuf::from(format!("/tmp/stepscope-{}-{task}", self.run.file_name()?.to_string_lossy())),
            false => self.run.clone(),
        };
        let log = job.folder().join(format!("task-{task}.log"));
        if self.placement.copies && !self.send(&folder, &log) {
            let text = format!("{} could not be reached{}", self.host, last_words(&log));
            return Some(Fate { text, is_of_host: true });
        }
        let limit = self.placement.time_limit.map(|limit| format!("timeout --kill-after=30 {} ", limit.as_secs()));
        let pinned = self.placement.cpus.map(|cpus| format!("taskset --cpu-list 0-{} ", cpus.max(1) - 1));
        let command = format!(
            "STEPSCOPE_NODE={} {}{}{}",
            shlex::try_quote(&self.host).map(|text| text.into_owned()).unwrap_or_default(),
            limit.unwrap_or_default(),
            pinned.unwrap_or_default(),
            job.command(&folder, &task.to_string())
        );
        let status = self.ssh(&command, &log);
        let received = !self.placement.copies || self.receive(&folder);
        match status {
            Some(0 | 1) if received => None,
            Some(UNREACHABLE) | None => {
                let text = format!("{} was lost{}", self.host, last_words(&log));
                Some(Fate { text, is_of_host: true })
            }
            Some(TIMED_OUT) => Some(Fate { text: "its task reached the time limit".to_owned(), is_of_host: false }),
            Some(code) => {
                let text = format!("its task ended on {} with status {code}; see {}", self.host, log.display());
                Some(Fate { text, is_of_host: false })
            }
        }
    }

    fn program(&self) -> Command {
        let mut command = Command::new("ssh");
        // A host that dies is noticed within half a minute; a question would wait for ever.
        command.args([
            "-o",
            "BatchMode=yes",
            "-o",
            "ServerAliveInterval=10",
            "-o",
            "ServerAliveCountMax=3",
            "-o",
            "ConnectTimeout=10",
        ]);
        command.args(&self.placement.arguments).arg(&self.host);
        command
    }

    /// Runs a command on the host; its output goes to a log. Gives its exit code.
    fn ssh(&self, command: &str, log: &Path) -> Option<i32> {
        let log = std::fs::File::create(log).ok()?;
        let mut child = self
            .program()
            .arg("-tt")
            .arg(command)
            .stdin(Stdio::null())
            .stdout(log.try_clone().ok()?)
            .stderr(log)
            .spawn()
            .ok()?;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Err(_) => return None,
                Ok(None) if self.shared.cancelled.load(Ordering::Relaxed) => {
                    // With a terminal, the end of ssh ends the command.
                    let _ = child.kill();
                    let _ = child.wait();
                    return None;
                }
                Ok(None) => thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
    }

    /// Copies what a task needs; what ssh says goes to a log.
    fn send(&self, folder: &Path, log: &Path) -> bool {
        let folder = folder.display();
        let pack = Command::new("tar")
            .args(["-C", &self.run.display().to_string(), "-cf", "-", "run.json", "stepscope.toml"])
            .arg(format!("{CLUSTER_FOLDER}/tasks.json"))
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut pack) = pack else { return false };
        let Some(packed) = pack.stdout.take() else { return false };
        let mut unpack = self.program();
        unpack.arg(format!("rm -rf {folder} && mkdir -p {folder} && tar -C {folder} -xf -"));
        let said = std::fs::File::create(log).map_or_else(|_| Stdio::null(), Stdio::from);
        let unpacked = unpack.stdin(packed).stdout(Stdio::null()).stderr(said).status();
        pack.wait().is_ok_and(|status| status.success()) && unpacked.is_ok_and(|status| status.success())
    }

    /// Brings back what a task made. Its result comes last, so that it is never there without the captures.
    fn receive(&self, folder: &Path) -> bool {
        let folder = folder.display();
        let command = format!(
            "cd {folder} && tar -cf - --exclude=./run.json --exclude=./stepscope.toml --exclude=./{CLUSTER_FOLDER} . && rm -rf {folder}.done && \
             mkdir {folder}.done"
        );
        let copied = self.unpack(&command);
        copied
            && self.unpack(&format!(
                "cd {folder} && tar -cf - {CLUSTER_FOLDER}/task-*.json; rm -rf {folder} {folder}.done"
            ))
    }

    fn unpack(&self, command: &str) -> bool {
        let pack = self.program().arg(command).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut pack) = pack else { return false };
        let Some(packed) = pack.stdout.take() else { return false };
        let unpacked = Command::new("tar")
            .args(["-C", &self.run.display().to_string(), "-xf", "-"])
            .stdin(packed)
            .stderr(Stdio::null())
            .status();
        pack.wait().is_ok_and(|status| status.success()) && unpacked.is_ok_and(|status| status.success())
    }
}

/// Why a task has no result.
/// The last line of a task's log, after a colon: why ssh gave up.
fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or_else(String::new, |line| format!(": {}", line.trim_end_matches('.')))
}

struct Fate {
    text: String,
    /// Whether the host is at fault, and not the task.
    is_of_host: bool,
}
