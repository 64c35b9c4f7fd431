//! Long recordings in segments: each can be read while the recording goes on, and together they are the whole.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use stepscope_convert::ImportOptions;
use stepscope_lab::source;
use stepscope_model::{Capture, Origin, disk};

use common::{command, stepscope, text};

/// A busy machine finishes segments slowly.
const PATIENCE: Duration = Duration::from_secs(90);

/// A program that counts its steps, scopes and frames until a file exists.
fn program(test: &str, folder: &Path) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("steps");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-DSTEPSCOPE_MARKS=1", "-I"])
        .arg(sources.join("../../marks/c"))
        .arg(sources.join("tests/segments/steps.c"))
        .arg("-o")
        .arg(&program)
        .args(["-lpthread", "-ldl"])
        .status();
    if compiled.is_err() {
        println!("skipped: {test}: no gcc to build the program");
        return None;
    }
    assert!(compiled.unwrap().success(), "steps.c compiles");
    Some(program)
}

/// A recording of the program.
struct Recorder {
    folder: PathBuf,
    child: Child,
}

impl Recorder {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let words = [&["record", "-o", "run"], options, &["--", "./steps", "stop"]].concat();
        let child = command(folder, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { folder: folder.to_owned(), child }
    }

    fn wait_for(&mut self, segment: u32, file: &str) {
        let path = disk::segment(&self.folder.join("run"), segment).join(file);
        let since = Instant::now();
        while !path.exists() {
            assert!(since.elapsed() < PATIENCE, "no {}", path.display());
            assert!(self.child.try_wait().unwrap().is_none(), "the recorder ended early");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the program. Gives its numbers of steps and scopes, and what the recorder said.
    fn end(self) -> (u64, u64, String) {
        fs::write(self.folder.join("stop"), "").unwrap();
        let ended = self.child.wait_with_output().unwrap();
        let (out, err) = (text(&ended.stdout), text(&ended.stderr));
        assert!(ended.status.success(), "{err}");
        let counts: Vec<u64> = out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (counts[0], counts[1], err)
    }
}

fn joined(run: &Path) -> Capture {
    source::read_one(run, &ImportOptions::default(), &Default::default()).unwrap()
}

/// Running and waiting time of each thread add up to its life, and its waits do not overlap.
fn tile(capture: &Capture) {
    let mut off_ns = vec![0; capture.threads.len()];
    let mut last = BTreeMap::new();
    for wait in &capture.waits {
        off_ns[wait.thread.index()] += wait.end_ns - wait.start_ns;
        let before = last.insert(wait.thread, wait.end_ns).unwrap_or(0);
        assert!(before < wait.start_ns, "a wait is divided or counted twice at {before}");
    }
    let unknown_ns = capture.info.losses.unknown_cpu_ns.unwrap_or(0);
    for (thread, off_ns) in capture.threads.iter().zip(off_ns) {
        let life_ns = thread.end_ns.unwrap() - thread.start_ns.unwrap();
        let sum_ns = thread.cpu_ns.unwrap() + off_ns;
        assert!(sum_ns <= life_ns && life_ns - sum_ns <= unknown_ns, "{thread:?}: {sum_ns} of {life_ns}, {unknown_ns}");
    }
}

#[test]
fn segments_can_be_read_while_the_recording_goes_on_and_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    if program("segments_can_be_read_while_the_recording_goes_on_and_add_up", at).is_none() {
        return;
    }
    let mut recorder = Recorder::start(at, &["--segment", "1s"]);
    recorder.wait_for(2, disk::INFO_FILE);
    for view in ["summary", "hotspots", "steps", "scopes"] {
        let shown = stepscope(at, &["show", "run/segment-0002", "--view", view]);
        assert!(shown.status.success(), "{}", text(&shown.stderr));
    }
    // What is recorded now is left out.
    assert!(stepscope(at, &["show", "run"]).status.success());
    let (steps, scopes, said) = recorder.end();

    let run = at.join("run");
    let segments: Vec<Capture> = disk::segments(&run).iter().map(|segment| disk::read(segment).unwrap()).collect();
    assert!(segments.len() >= 3, "{said}");
    let whole = joined(&run);
    if whole.info.losses.lost_marks == 0 {
        // A step lasts from one start to the next, so the last start makes none. Frames are scopes.
        let frames = steps - 1;
        assert_eq!((whole.steps.len() as u64, whole.scopes.len() as u64), (steps - 1, scopes + frames));
    }
    let sum = |count: fn(&Capture) -> u64| segments.iter().map(count).sum::<u64>();
    assert_eq!(whole.steps.len() as u64, sum(|segment| segment.steps.len() as u64));
    assert_eq!(whole.scopes.len() as u64, sum(|segment| segment.scopes.len() as u64));
    assert_eq!(whole.samples.len() as u64, sum(|segment| segment.samples.len() as u64));
    assert_eq!(whole.info.losses.cpu_time_ns, Some(sum(|segment| segment.info.losses.cpu_time_ns.unwrap_or(0))));
    let off_ns = |capture: &Capture| capture.waits.iter().map(|wait| wait.end_ns - wait.start_ns).sum::<u64>();
    assert_eq!(off_ns(&whole), segments.iter().map(off_ns).sum::<u64>());
    // Steps follow each other without a gap or an overlap, also across segments.
    assert!(whole.steps.iter().enumerate().all(|(row, step)| step.index == row as u64));
    assert!(whole.steps.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    let outer = whole.scopes.iter().find(|scope| &*scope.name == "run").unwrap();
    assert_eq!(outer.depth, 0);
    assert!(whole.scopes.iter().filter(|scope| &*scope.name == "work").all(|scope| scope.depth >= 1));
    assert!(segments.windows(2).all(|pair| pair[0].info.end_ns == pair[1].info.start_ns));
    tile(&whole);
}

#[test]
fn only_the_last_segments_are_kept_and_a_killed_recorder_leaves_them_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    if program("only_the_last_segments_are_kept_and_a_killed_recorder_leaves_them_whole", at).is_none() {
        return;
    }
    let run = at.join("run");
    let mut recorder = Recorder::start(at, &["--segment", "1s", "--keep", "1"]);
    recorder.wait_for(4, disk::RAW_LOG_FILE);
    // While it is being finished, it stays.
    let since = Instant::now();
    while disk::segment(&run, 1).exists() {
        assert!(since.elapsed() < PATIENCE, "the first segment is still there");
        thread::sleep(Duration::from_millis(20));
    }
    recorder.child.kill().unwrap();
    recorder.child.wait().unwrap();
    fs::write(at.join("stop"), "").unwrap();
    let kept = disk::segments(&run);
    assert!(!kept.contains(&disk::segment(&run, 1)), "{kept:?}");
    // A segment that is being finished is finished, although its recorder is gone.
    let since = Instant::now();
    let is_free = |segment: &PathBuf| disk::hold_log(segment).is_ok();
    while !kept.iter().all(is_free) {
        assert!(since.elapsed() < PATIENCE, "{kept:?}");
        thread::sleep(Duration::from_millis(20));
    }
    // What finishes a segment may have started, and not hold it yet.
    let recovered = loop {
        let recovered = stepscope(at, &["recover", "run"]);
        if !text(&recovered.stderr).contains("still at work") || since.elapsed() > PATIENCE {
            break recovered;
        }
        thread::sleep(Duration::from_millis(20));
    };
    // An earlier try may have recovered the last segment, and found only another one still at work.
    let said = text(&recovered.stderr);
    assert!(recovered.status.success() || said.contains("all segments are whole"), "{said}");
    let last = disk::read(kept.last().unwrap()).unwrap();
    assert_eq!(last.info.origin, Origin::Recovered);
    let whole = joined(&run);
    let losses: u64 = whole.info.losses.lost_records + whole.info.losses.lost_marks;
    assert!(losses > 0 || whole.steps.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    assert!(stepscope(at, &["recover", "run"]).status.code() == Some(2), "nothing is left to recover");
    // A new recording replaces all segments.
    fs::remove_file(at.join("stop")).unwrap();
    assert_eq!(stepscope(at, &["record", "-o", "run", "--", "true"]).status.code(), Some(2));
    assert!(stepscope(at, &["record", "--force", "-o", "run", "--", "true"]).status.success());
    assert!(disk::segments(&run).is_empty());
}
