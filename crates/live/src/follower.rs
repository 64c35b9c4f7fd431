//! The thread that reads the log behind the recorder, and the one that names code.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use stepscope_assemble::Unnamed;
use stepscope_assemble::raw_log::{self, ReadError};
use stepscope_model::disk::{self, DiskError};
use stepscope_symbolize::Symbolizer;

use crate::shared::Shared;
use crate::state::Stage;

/// Time between two looks at a log that has nothing new. It is written every half second.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// Chunks of a round: some megabytes of entries.
const MOST_CHUNKS: usize = 16;
/// A log that did not grow for as long may have lost its recorder.
const SILENCE: Duration = Duration::from_secs(3);

/// Reads until the recording is over, or nobody needs it any more.
pub(crate) fn run(folder: &Path, shared: &Weak<Shared>) {
    let mut follower = None;
    let mut last_chunk = Instant::now();
    while let Some(shared) = shared.upgrade() {
        let stage = shared.stage();
        if matches!(stage, Stage::Finished | Stage::Killed | Stage::Failed) {
            return;
        }
        let read = match &mut follower {
            None => open(folder).map(|log| {
                follower = log.map(raw_log::Follower::new);
                0
            }),
            Some(log) => shared.read(log, MOST_CHUNKS),
        };
        match read {
            Ok(0) => {
                let is_silent = last_chunk.elapsed() > SILENCE;
                let next = follower.as_ref().and_then(|_| next_stage(folder, stage, is_silent));
                if let Some(next) = next.filter(|_| shared.is_settled()) {
                    shared.turn(next, String::new());
                }
                drop(shared);
                std::thread::sleep(LOOK_EVERY);
            }
            Ok(_) => {
                last_chunk = Instant::now();
                drop(shared);
                // The next reader that waits for the lock gets it.
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => shared.turn(Stage::Failed, error.to_string()),
        }
    }
}

/// The log, if it is there by now.
fn open(folder: &Path) -> Result<Option<File>, ReadError> {
    match File::open(folder.join(disk::RAW_LOG_FILE)) {
        Ok(log) => Ok(Some(log)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Names code while it runs, until all senders are gone. A server of debug information would keep the picture waiting.
pub(crate) fn name(asked: &Receiver<Unnamed>, shared: &Weak<Shared>) {
    let mut symbols = Symbolizer::new(stepscope_symbolize::Options { debuginfod: false, ..Default::default() });
    for unnamed in asked {
        let named = unnamed.name(&mut symbols);
        let Some(shared) = shared.upgrade() else { return };
        shared.add_names(named);
    }
}

/// The stage of a recording whose log has nothing new, if it is another.
fn next_stage(folder: &Path, stage: Stage, is_silent: bool) -> Option<Stage> {
    let is_finished = || disk::is_capture(folder) && disk::read_info(folder).is_ok();
    match stage {
        Stage::Ended => is_finished().then_some(Stage::Finished),
        _ if !is_silent => None,
        // A living recorder holds its log.
        _ => match disk::hold_log(folder) {
            Err(DiskError::Busy(_)) | Err(_) => None,
            Ok(_) if is_finished() => Some(Stage::Finished),
            Ok(_) => Some(Stage::Killed),
        },
    }
}

/// Starts a thread that has no part in the priority of the program.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        stepscope_record::session::lower_priority();
        work();
    })?;
    Ok(())
}

/// A reference that does not keep the recording.
pub(crate) fn weak(shared: &Arc<Shared>) -> Weak<Shared> {
    Arc::downgrade(shared)
}
