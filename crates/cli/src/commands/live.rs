//! A recording in the browser while it goes on: `view --live`, `view FOLDER` of a running recording, and `record --live`.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stepscope_live::{LiveRecording, Options, Stage};
use stepscope_model::disk::{self, DiskError};
use stepscope_record::proc::ProcessSelection;
use stepscope_serve::{Data, Feed, Refusal, Server, feed};

use super::served_page::{ServedPage, app};
use crate::failure::Failure;
use crate::interrupt;

/// Time between two looks at the recorder.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the viewer of `record --live` may take to tell its pages that the capture is finished.
const FAREWELL: Duration = Duration::from_secs(1);
/// The same where the recorder is gone. If it was killed, that shows by its silence.
const LAST_WORDS: Duration = Duration::from_secs(6);

/// How long that viewer may take to complete what its pages save.
const LAST_SAVE: Duration = Duration::from_secs(60);

/// How the names of tables of the live rows start. `web/src/data/source.ts` has the same. Others are those of the finished capture.
const LIVE_TABLES: &str = "live/";

/// What a live view records.
#[derive(Debug, Clone)]
pub enum Recorded {
    /// A program with its arguments.
    Program(Vec<String>),
    /// Processes that run.
    Processes(ProcessSelection),
}

/// Whether a recorder writes to this folder now.
pub fn is_being_recorded(folder: &Path) -> bool {
    folder.is_dir() && matches!(disk::hold_log(folder), Err(DiskError::Busy(_)))
}

/// Records, and shows the recording while it goes on and afterwards.
pub fn record_and_view(page: &ServedPage, recorded: &Recorded, folder: &Path) -> Result<ExitCode, Failure> {
    // Before the program writes to the same standard output, and before anything is recorded that nobody can see.
    let server = announced(page)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("record").arg("-o").arg(folder);
    match recorded {
        Recorded::Processes(selection) => command.args(selection.arguments()),
        Recorded::Program(program) => command.arg("--").args(program),
    };
    let recorder = command.spawn().map_err(Failure::writing("the recorder"))?;
    serve(page, server, folder, Maker::Child(recorder))
}

/// Shows a recording that another process makes, until Ctrl-C.
pub fn watch(page: &ServedPage, folder: &Path) -> Result<ExitCode, Failure> {
    serve(page, announced(page)?, folder, Maker::Stranger)
}

/// Shows the recording of the parent process, as long as that lives.
pub fn watch_parent(page: &ServedPage, folder: &Path) -> Result<ExitCode, Failure> {
    serve(page, announced(page)?, folder, Maker::Parent(std::os::unix::process::parent_id()))
}

/// The process that records.
enum Maker {
    Child(Child),
    Parent(u32),
    Stranger,
}

/// A server whose address is printed. Browsers wait until it runs.
fn announced(page: &ServedPage) -> Result<Server, Failure> {
    let server = Server::bind(page.port)?;
    page.announce(&server)?;
    Ok(server)
}

fn serve(page: &ServedPage, server: Server, folder: &Path, maker: Maker) -> Result<ExitCode, Failure> {
    stepscope_record::session::lower_priority();
    let recorder = match &maker {
        Maker::Child(child) => Some(child.id()),
        Maker::Parent(_) | Maker::Stranger => None,
    };
    let live = LiveRecording::follow(folder, Options { recorder, ..Options::default() });
    let (stop, interrupted) = (server.stop(), interrupt::flag());
    let data = LiveThenFinished { live, folder: folder.to_owned(), page: page.clone(), finished: Mutex::new(None) };
    thread::scope(|scope| {
        let over = scope.spawn(|| {
            let code = match maker {
                Maker::Child(child) => wait_for_child(child, &data.live, &interrupted),
                Maker::Parent(parent) => wait_for_parent(parent, &data.live),
                Maker::Stranger => {
                    wait_for(&interrupted);
                    ExitCode::SUCCESS
                }
            };
            if data.live.complete_saves() {
                // The pages hear where it is.
                thread::sleep(LOOK_EVERY);
            }
            stop.stop();
            code
        });
        server.run(&app(), &data)?;
        Ok(over.join().unwrap_or(ExitCode::FAILURE))
    })
}

fn wait_for(interrupted: &AtomicBool) {
    while !interrupted.load(Ordering::Relaxed) {
        thread::sleep(LOOK_EVERY);
    }
}

/// Waits for the recorder, and then for Ctrl-C. If the recording was ended by Ctrl-C, that is enough.
fn wait_for_child(mut recorder: Child, live: &LiveRecording, interrupted: &AtomicBool) -> ExitCode {
    let mut is_asked = false;
    loop {
        match recorder.try_wait() {
            Ok(None) => thread::sleep(LOOK_EVERY),
            Ok(Some(status)) if status.success() => break,
            // Nothing was recorded, and the recorder said why.
            _ if live.state().stage == Stage::Waiting => return ExitCode::FAILURE,
            _ => return wait_after_failure(live, interrupted),
        }
        // A terminal sends Ctrl-C to the recorder, too; `kill` does not.
        if !is_asked && interrupted.load(Ordering::Relaxed) {
            is_asked = true;
            let _ = live.command(feed::Command::Stop {});
        }
    }
    if interrupted.load(Ordering::Relaxed) {
        last_words(live);
        return ExitCode::SUCCESS;
    }
    eprintln!("The page shows the recording until Ctrl-C.");
    wait_for(interrupted);
    ExitCode::SUCCESS
}

/// Lets the pages of a recorder that was killed keep what they have, until Ctrl-C.
fn wait_after_failure(live: &LiveRecording, interrupted: &AtomicBool) -> ExitCode {
    let folder = live.state().folder;
    eprintln!("The recorder ended early. Make a capture of what it wrote: stepscope recover {folder}");
    if !interrupted.load(Ordering::Relaxed) {
        eprintln!("The page shows the recording until Ctrl-C.");
        wait_for(interrupted);
    }
    ExitCode::FAILURE
}

/// Waits until the recorder is gone or needs no viewer any more, and the pages know what became of it.
fn wait_for_parent(parent: u32, live: &LiveRecording) -> ExitCode {
    let (is_over, over) = mpsc::channel();
    thread::spawn(move || {
        // Without a byte, the recorder is gone.
        if matches!(io::stdin().read(&mut [0]), Ok(1)) {
            let _ = is_over.send(());
        }
    });
    while std::os::unix::process::parent_id() == parent {
        match over.recv_timeout(LOOK_EVERY) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
        }
    }
    last_words(live);
    ExitCode::SUCCESS
}

/// Waits until the pages know what became of the recording.
fn last_words(live: &LiveRecording) {
    let since = Instant::now();
    let is_known = || matches!(live.state().stage, Stage::Finished | Stage::Killed | Stage::Failed);
    while since.elapsed() < LAST_WORDS && !is_known() {
        thread::sleep(LOOK_EVERY);
    }
    thread::sleep(LOOK_EVERY);
}

/// The recording while it goes on, then its capture.
struct LiveThenFinished {
    live: LiveRecording,
    folder: PathBuf,
    page: ServedPage,
    finished: Mutex<Option<Sender<Asked>>>,
}

/// A question about the finished capture.
struct Asked {
    what: What,
    answer: Sender<Result<Vec<u8>, Refusal>>,
}

/// What is asked.
enum What {
    Manifest,
    Verdict,
    Document,
    Table(String),
}

impl LiveThenFinished {
    /// The thread that has the finished capture, if there is one by now.
    fn finished(&self) -> Option<Sender<Asked>> {
        if self.live.state().stage != Stage::Finished {
            return None;
        }
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (asks, asked) = mpsc::channel();
            let (page, folder) = (self.page.clone(), self.folder.clone());
            thread::spawn(move || answer_of_capture(&page, &folder, &asked));
            asks
        };
        Some(finished.get_or_insert_with(start).clone())
    }

    fn ask(asks: &Sender<Asked>, what: What) -> Result<Vec<u8>, Refusal> {
        let (answer, answered) = mpsc::channel();
        let gone = || Refusal::Failed("The capture cannot be read.".to_owned());
        asks.send(Asked { what, answer }).map_err(|_| gone())?;
        answered.recv().unwrap_or_else(|_| Err(gone()))
    }
}

/// Answers from the finished capture.
fn answer_of_capture(page: &ServedPage, folder: &Path, asked: &Receiver<Asked>) {
    let served = page.with_dataset(folder, |data| {
        for Asked { what, answer } in asked {
            let answered = match what {
                What::Manifest => data.manifest(),
                What::Verdict => data.verdict(),
                What::Document => data.document(),
                What::Table(name) => data.table(&name),
            };
            // Who asked may be gone.
            let _ = answer.send(answered);
        }
    });
    if served.is_err() {
        for Asked { answer, .. } in asked {
            let _ = answer.send(Err(Refusal::Failed("The capture cannot be read.".to_owned())));
        }
    }
}

impl Data for LiveThenFinished {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        self.finished().map_or_else(|| self.live.manifest(), |asks| Self::ask(&asks, What::Manifest))
    }

    fn verdict(&self) -> Result<Vec<u8>, Refusal> {
        self.finished().map_or_else(|| self.live.verdict(), |asks| Self::ask(&asks, What::Verdict))
    }

    fn document(&self) -> Result<Vec<u8>, Refusal> {
        self.finished().map_or_else(|| self.live.document(), |asks| Self::ask(&asks, What::Document))
    }

    /// Pages that show the live rows ask for tables of the last snapshot also when the capture is finished.
    fn table(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        match name.strip_prefix(LIVE_TABLES) {
            Some(name) => self.live.table(name),
            None => Self::ask(&self.finished().ok_or(Refusal::Absent)?, What::Table(name.to_owned())),
        }
    }

    fn feed(&self) -> Option<&dyn Feed> {
        Some(&self.live)
    }
}

/// The viewer beside `record --live`: a process of its own, which a defect or a slow page cannot make the recorder's.
pub struct Beside {
    viewer: Child,
    folder: PathBuf,
}

impl Beside {
    /// Starts the viewer of a recording in this folder. It prints its address.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let viewer = Command::new("/proc/self/exe")
            .args(["view", "--starting"])
            .arg(folder)
            // A line there says that nothing is recorded any more.
            .stdin(Stdio::piped())
            // Standard output has the folder of the capture alone.
            .stdout(io::stderr())
            .process_group(0)
            .spawn()?;
        Ok(Self { viewer, folder: folder.to_owned() })
    }
}

impl Beside {
    /// Waits until the viewer has ended, at most for this long.
    fn wait(&mut self, most: Duration) {
        let since = Instant::now();
        while since.elapsed() < most && matches!(self.viewer.try_wait(), Ok(None)) {
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Beside {
    /// Lets the pages hear of the finished capture, and ends the viewer when it has saved what pages asked for.
    fn drop(&mut self) {
        if disk::is_capture(&self.folder) {
            self.wait(FAREWELL);
            // It may be gone.
            if self.viewer.stdin.as_mut().is_some_and(|farewell| farewell.write_all(b"\n").is_ok()) {
                self.wait(LAST_SAVE);
            }
        }
        let _ = self.viewer.kill();
        let _ = self.viewer.wait();
    }
}
