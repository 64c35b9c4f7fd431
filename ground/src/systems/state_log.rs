//! Writes what moved to a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::{PostUpdate, UpdateInfo};
use crate::components::WorldPose;
use crate::ecs::EntityComponentManager;

/// A text log: a line a changed pose, `step entity x y z qx qy qz qw`.
pub struct StateLog {
    out: BufWriter<File>,
    failed: bool,
}

impl StateLog {
    /// Starts a log.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        writeln!(out, "step entity x y z qx qy qz qw")?;
        Ok(Self { out, failed: false })
    }

    fn write(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) -> io::Result<()> {
        for &entity in ecm.changed_poses() {
            let Some(WorldPose(pose)) = ecm.component::<WorldPose>(entity) else { continue };
            let (at, turn) = (pose.translation, pose.rotation);
            let (step, id) = (info.step, entity.id());
            writeln!(self.out, "{step} {id} {} {} {} {} {} {} {}", at.x, at.y, at.z, turn.x, turn.y, turn.z, turn.w)?;
        }
        Ok(())
    }
}

impl PostUpdate for StateLog {
    fn post_update(&mut self, info: &UpdateInfo, ecm: &EntityComponentManager) {
        if self.failed {
            return;
        }
        if let Err(error) = self.write(info, ecm) {
            eprintln!("ground: the log ends at step {}: {error}", info.step);
            self.failed = true;
        }
    }
}
