//! Where trials run: their folders, users, commands, and what they leave behind.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// In the environment of all processes of a trial. A process that still has it after the trial was left behind.
const MARK: &str = "STEPSCOPE_SOAK_TRIAL";

/// Only guards against a hang: everything here takes seconds, on a busy machine tens of them.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Who runs the recorder and its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Root,
    /// A user without rights. If root runs the test, `nobody`.
    WithoutRights,
}

impl User {
    /// The users that this test can be.
    pub fn all(workbench: &Workbench) -> Vec<User> {
        if !workbench.is_root {
            return vec![User::WithoutRights];
        }
        let may = Command::new(NOBODY[0]).args(&NOBODY[1..]).arg("true").status().is_ok_and(|status| status.success());
        if !may {
            println!("skipped: soak as nobody: rights cannot be given up here (setpriv)");
        }
        [User::Root, User::WithoutRights].into_iter().filter(|user| may || *user == User::Root).collect()
    }

    pub fn has_all_rights(self) -> bool {
        self == User::Root
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_all_rights() { "root" } else { "nobody" })
    }
}

const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Copies of the program and of the load, in a folder that is open to all.
pub struct Workbench {
    folder: tempfile::TempDir,
    is_root: bool,
    pub stepscope: PathBuf,
    pub load: PathBuf,
}

impl Workbench {
    pub fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        open_to_all(folder.path());
        let (stepscope, load) = (folder.path().join("stepscope"), folder.path().join("load"));
        fs::copy(env!("CARGO_BIN_EXE_stepscope"), &stepscope).map_err(|error| error.to_string())?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soak/load.cpp");
        let compiler = Command::new("g++").args(["-O2", "-g1", "-o"]).arg(&load).arg(source).arg("-lpthread").status();
        if !compiler.is_ok_and(|status| status.success()) {
            return Err("no g++ to build the load".to_owned());
        }
        let doctor = Command::new(&stepscope).arg("doctor").stdout(Stdio::null()).status();
        if !doctor.is_ok_and(|status| status.success()) {
            return Err("nothing can be recorded on this machine (see stepscope doctor)".to_owned());
        }
        // SAFETY: only asks for a number.
        let is_root = unsafe { libc::geteuid() } == 0;
        Ok(Self { folder, is_root, stepscope, load })
    }
}

fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}

/// A trial: its folder, user and random choices.
pub struct Trial<'a> {
    pub workbench: &'a Workbench,
    pub user: User,
    pub random: fastrand::Rng,
    folder: Option<tempfile::TempDir>,
}

impl<'a> Trial<'a> {
    pub fn new(workbench: &'a Workbench, number: usize, user: User, random: fastrand::Rng) -> Self {
        let folder = tempfile::Builder::new().prefix(&format!("{number}-")).tempdir_in(&workbench.folder).unwrap();
        open_to_all(folder.path());
        fs::create_dir(folder.path().join("tmp")).unwrap();
        open_to_all(&folder.path().join("tmp"));
        Self { workbench, user, random, folder: Some(folder) }
    }

    pub fn folder(&self) -> &Path {
        self.folder.as_ref().expect("until it is kept").path()
    }

    /// Ends the trial's processes, and moves its folder to where it stays after the test.
    pub fn keep(mut self) -> PathBuf {
        for pid in self.processes() {
            // SAFETY: sends a signal to a process of this trial.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
        let folder = self.folder.take().expect("kept once").keep();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kept = std::env::temp_dir().join(format!("soak-{name}"));
        fs::rename(&folder, &kept).map_or(folder, |()| kept)
    }

    /// A command of this trial's user, marked as the trial's.
    pub fn command(&self, words: &[&str]) -> Command {
        let drops = self.workbench.is_root && !self.user.has_all_rights();
        let before = if drops { &NOBODY[..] } else { &[] };
        let mut words = before.iter().chain(words);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).env(MARK, self.folder()).env("TMPDIR", self.folder().join("tmp"));
        command.current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// Starts a command, its output into files `NAME.out` and `NAME.err`.
    pub fn start(&self, name: &str, words: &[&str]) -> Running {
        let [out, err] = ["out", "err"].map(|which| self.folder().join(format!("{name}.{which}")));
        let open = |path: &Path| fs::File::create(path).unwrap();
        let child = self.command(words).stdout(open(&out)).stderr(open(&err)).spawn().unwrap();
        Running { name: name.to_owned(), child, out, err, peak_bytes: 0, since: Instant::now() }
    }

    /// The program under test, with arguments.
    pub fn stepscope(&self, name: &str, arguments: &[&str]) -> Running {
        let program = self.workbench.stepscope.to_string_lossy();
        self.start(name, &[&[&*program], arguments].concat())
    }

    /// The processes of this trial.
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.folder().display());
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let has_mark = |&pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
        };
        pids.filter(has_mark).collect()
    }

    /// The processes of this trial that execute the load.
    pub fn loads(&self) -> Vec<u32> {
        let is_load = |pid: &u32| {
            let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command_line.split(|&byte| byte == 0).next().is_some_and(|program| program.ends_with(b"/load"))
        };
        self.processes().into_iter().filter(is_load).collect()
    }

    /// Waits for a condition.
    pub fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) -> Result<(), String> {
        let since = Instant::now();
        while !holds() {
            if since.elapsed() > HANGS_AFTER {
                return Err(format!("waited for {what} in vain; processes: {}", self.described_processes()));
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        Ok(())
    }

    fn described_processes(&self) -> String {
        let described = |pid: u32| {
            let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&command_line).replace('\0', " "))
        };
        self.processes().into_iter().map(described).collect::<Vec<_>>().join("; ")
    }

    /// Passes a random part of this time.
    pub fn wait_a_while(&mut self, at_most_ms: u64) {
        let ms = self.random.u64(..at_most_ms);
        std::thread::sleep(Duration::from_millis(ms));
    }

    /// Requires that no process and no temporary file is left of this trial.
    pub fn leaves_nothing(&self) -> Result<(), String> {
        self.wait_until("all processes to end", || self.processes().is_empty())?;
        let left: Vec<_> = fs::read_dir(self.folder().join("tmp")).unwrap().flatten().map(|file| file.path()).collect();
        if !left.is_empty() {
            return Err(format!("left behind: {left:?}"));
        }
        Ok(())
    }
}

/// A process of a trial that runs.
pub struct Running {
    pub name: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
    peak_bytes: u64,
    since: Instant,
}

/// A process of a trial that has ended.
pub struct Ended {
    pub name: String,
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
    /// The most memory that it had.
    pub peak_bytes: u64,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    pub fn has_ended(&mut self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let peak =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        self.peak_bytes = self.peak_bytes.max(peak.unwrap_or(0) * 1024);
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, but not for its success.
    pub fn end(mut self) -> Result<Ended, String> {
        while !self.has_ended() {
            if self.since.elapsed() > HANGS_AFTER {
                self.signal(libc::SIGKILL);
                self.child.wait().unwrap();
                return Err(format!("{} hangs: {}", self.name, text(&self.err)));
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        let status = self.child.wait().unwrap();
        let (out, err) = (text(&self.out), text(&self.err));
        if err.contains("panicked at") || status.signal().is_some_and(|signal| signal != libc::SIGKILL) {
            return Err(format!("{}: {status}: {err}", self.name));
        }
        Ok(Ended { name: self.name, status, out, err, peak_bytes: self.peak_bytes })
    }

    /// Waits for its success.
    pub fn succeed(self) -> Result<Ended, String> {
        let ended = self.end()?;
        if !ended.status.success() {
            return Err(format!("{}: {}: {}", ended.name, ended.status, ended.err));
        }
        Ok(ended)
    }
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    // Output that cannot be read is missing from a message only.
    let _ = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
