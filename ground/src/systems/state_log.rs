//! Logs changed poses to a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rapier3d::math::Pose;

use super::{PostUpdate, UpdateInfo};
use crate::components::WorldPose;
use crate::ecs::{Entity, EntityComponentManager};

/// A text log with one line per changed pose: `step entity x y z qx qy qz qw`.
pub struct StateLog {
    writer: Writer,
}

/// Which thread writes the lines.
enum Writer {
    /// The thread of the system: a step ends after its lines are written.
    System(Log),
    /// A background thread that no step waits for.
    Background { changes: Option<Sender<Changes>>, thread: Option<JoinHandle<()>> },
}

/// The changes of a step.
struct Changes {
    step: u64,
    poses: Vec<(Entity, Pose)>,
}

struct Log {
    out: BufWriter<File>,
    failed: bool,
}

/// Which thread writes a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogThread {
    /// The thread of the system. The step waits for it.
    #[default]
    System,
    /// The background thread `LogWriter`.
    Background,
}

impl StateLog {
    /// Starts a log.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, thread: LogThread) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        writeln!(out, "step entity x y z qx qy qz qw")?;
        let log = Log { out, failed: false };
        let writer = match thread {
            LogThread::System => Writer::System(log),
            LogThread::Background => {
                let (changes, received) = channel();
                let thread =
                    std::thread::Builder::new().name("LogWriter".into()).spawn(|| write_changes(log, received))?;
                Writer::Background { changes: Some(changes), thread: Some(thread) }
            }
        };
        Ok(Self { writer })
    }
}

#[inline(never)]
fn write_changes(mut log: Log, received: Receiver<Changes>) {
    for changes in received {
        log.write_step(&changes);
    }
}

impl Log {
    fn write_step(&mut self, changes: &Changes) {
        if self.failed {
            return;
        }
        if let Err(error) = self.write(changes) {
            eprintln!("ground: the log ends at step {}: {error}", changes.step);
            self.failed = true;
        }
    }

    fn write(&mut self, Changes { step, poses }: &Changes) -> io::Result<()> {
        for (entity, pose) in poses {
            let (at, turn, id) = (pose.translation, pose.rotation, entity.id());
            writeln!(self.out, "{step} {id} {} {} {} {} {} {} {}", at.x, at.y, at.z, turn.x, turn.y, turn.z, turn.w)?;
        }
        Ok(())
    }
}

impl PostUpdate for StateLog {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        stepscope_marks::scope!("StateLog::PostUpdate");
        let pose = |&entity: &Entity| Some((entity, ecm.component::<WorldPose>(entity)?.0));
        let changes = Changes { step: info.step, poses: ecm.changed_poses().iter().filter_map(pose).collect() };
        match &mut self.writer {
            Writer::System(log) => log.write_step(&changes),
            Writer::Background { changes: sender, .. } => {
                // The receiver lives until the sender is dropped.
                let _ = sender.as_ref().map(|sender| sender.send(changes));
            }
        }
    }
}

impl Drop for StateLog {
    /// Waits until everything is written.
    fn drop(&mut self) {
        if let Writer::Background { changes, thread } = &mut self.writer {
            drop(changes.take());
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}
