//! Trials that record running processes. The lab file names them, and they go on afterwards.
//!
//! ```text
//! [launch        ready]       set found       attach       detach
//!    |--- loading ---|.............|... warm-up ...|--- steady ---|
//! ```
//!
//! With a `command`, names count only for what it has started: a launcher's nodes, and not those of another one.

use std::path::Path;
use std::time::{Duration, Instant};

use stepscope_model::Phase;
use stepscope_record::launch::{Launch, Launched};
use stepscope_record::proc::{self, ProcessSelection, ProcessSet, ProcessTree};

use super::{Abort, Event, Execution, Live, StageEnd};
use crate::outcome::Stage;
use crate::output::OutputFile;
use crate::ready::{Watch, check_observable_without_steps};
use crate::selected;

/// Time between two searches for the set: each reads all processes of the machine.
const SEARCH_EVERY: Duration = Duration::from_millis(200);

impl Execution<'_, '_> {
    /// Launches the command, if there is one, without recording it.
    pub(super) fn launch_beside(
        &mut self,
        launch: Launch,
        selection: ProcessSelection,
        watch: Option<Watch>,
        output: OutputFile,
    ) -> Result<Live, String> {
        let scenario = &self.trial.scenario;
        if let Some(ready) = &scenario.ready {
            check_observable_without_steps(ready, "`attach` records nothing before")?;
        }
        if launch.command().is_empty() && self.trial.point.cores.is_some() {
            return Err("`cores` of [sweep] needs a `command`: running processes keep their CPUs".to_owned());
        }
        self.trial.point.write_files()?;
        std::fs::create_dir_all(self.folder)
            .map_err(|error| format!("cannot create the folder {}: {error}", self.folder.display()))?;
        let since = Instant::now();
        let mut live = Live {
            recording: None,
            tree: ProcessTree::of(0),
            drivers: Vec::new(),
            launched: None,
            output,
            since,
            watch: None,
        };
        if launch.command().is_empty() {
            // Before the drivers: a workload that is not there needs none.
            ProcessSet::open(selection).map_err(|error| error.to_string())?;
            return Ok(live);
        }
        let launched = launch.prepare().and_then(|prepared| prepared.start()).map_err(|error| error.to_string())?;
        self.context.listener.notify(&Event::Launched { pid: launched.pid() });
        (live.launched, live.watch) = (Some(launched), watch);
        Ok(live)
    }

    /// Waits until a process of the set runs.
    pub(super) fn find_set(&mut self, live: &mut Live) -> Result<(), Abort> {
        let Some(selection) = self.selection(live.launched.as_ref()) else { return Ok(()) };
        let limit = self.trial.scenario.record.loading_timeout.saturating_sub(live.since.elapsed());
        let mut search_at = Instant::now();
        let mut missing = String::new();
        let end = self.stay(live, Stage::Loading, limit, |_| {
            if Instant::now() < search_at {
                return None;
            }
            search_at = Instant::now() + SEARCH_EVERY;
            ProcessSet::open(selection.clone()).map_err(|error| missing = error.to_string()).ok().map(drop)
        })?;
        match end {
            StageEnd::Done(()) => Ok(()),
            StageEnd::TimeUp => {
                let timeout_s = self.trial.scenario.record.loading_timeout.as_secs_f64();
                let reason = format!("{missing}, {timeout_s} s after launch (`loading = {{ timeout_s = ... }}`)");
                Err(self.cut(live, Stage::Loading, reason, None))
            }
            StageEnd::Ended(exit) => Err(self.cut_by_end(live, Stage::Loading, &exit, "before its processes ran")),
        }
    }

    /// Starts to record the set, in the steady phase.
    pub(super) fn attach(&mut self, live: &mut Live, folder: &Path) -> Result<(), Abort> {
        let Some(selection) = self.selection(live.launched.as_ref()) else { return Ok(()) };
        let step = self.find_step(
            || {
                let pid = selected::first(&selection).map_err(|error| error.to_string())?;
                proc::executable(pid).map_err(|error| error.to_string())
            },
            |_| selected::libraries(&selection),
        );
        let step = step.map_err(|reason| self.cut(live, Stage::Steady, reason, None))?;
        let order = self.order(step, Some(Phase::Steady));
        let recording = self.context.recorder.attach(selection.clone(), &order, folder);
        live.recording = Some(recording.map_err(|error| self.cut_by_recorder(Stage::Steady, &error))?);
        live.tree = selected::tree(&selection);
        Ok(())
    }

    fn selection(&self, launched: Option<&Launched>) -> Option<ProcessSelection> {
        let mut selection = ProcessSelection::from(self.trial.scenario.attach.as_ref()?);
        selection.names_below = launched.map(Launched::keeper_pid);
        Some(selection)
    }
}
