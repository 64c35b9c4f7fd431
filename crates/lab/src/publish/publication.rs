//! [`Publication`]: what `publication.json` says about a published run.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stepscope_analyze::Selection;
use stepscope_analyze::history::Recording;

use super::files::{Files, PublishedFile};
use crate::history::{Place, Store};
use crate::run::Run;

/// Version of `publication.json`. Raised when a reader of the old form would misread the new.
pub(super) const SCHEMA: u32 = 1;

/// Longest name of a run in that of its folder.
const LONGEST_NAME: usize = 60;

/// A published run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// Version of this form.
    pub schema: u32,
    /// What tells this run from all others: start, machine and name.
    pub id: String,
    /// Name of the project, or of the capture.
    pub name: String,
    /// Start of the run, RFC 3339 in UTC; empty if unknown.
    pub started_at: String,
    /// The user's remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The sentence of its comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// Its scenarios.
    pub scenarios: Vec<String>,
    /// Program and version that published it.
    pub tool: String,
    /// Its files, from its folder.
    pub files: Vec<PublishedFile>,
    /// The metrics of its captures.
    pub recordings: Vec<Recording>,
}

/// A published run as it lies on the site.
#[derive(Debug)]
pub(super) struct Listed {
    /// Name of its folder.
    pub name: String,
    /// `None` if it cannot be read: it is damaged, or of a newer version.
    pub publication: Option<Publication>,
}

impl Publication {
    pub(super) fn of(
        run: Option<&Run>,
        selections: &[Selection<'_>],
        headline: Option<String>,
        note: Option<String>,
        files: &Files,
    ) -> Self {
        let first = &selections[0].capture().info;
        let info = run.and_then(|run| run.info());
        let name = info.map_or_else(|| selections[0].capture().info.name(), |info| info.name.clone());
        let started_at = info.map(|info| info.started_at.clone()).or_else(|| first.started_at.clone());
        let started_at = started_at.unwrap_or_default();
        let host = first.machine.as_ref().map_or("", |machine| machine.host.as_str());
        let scenarios: BTreeSet<String> = selections
            .iter()
            .map(|one| one.capture().info.scenario.clone().unwrap_or_else(|| one.capture().info.name()))
            .collect();
        Self {
            schema: SCHEMA,
            id: format!("{started_at} {host} {name}"),
            recordings: recordings(run, selections),
            name,
            started_at,
            note,
            headline,
            scenarios: scenarios.into_iter().collect(),
            tool: concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            files: files.listed(),
        }
    }

    /// Name of its folder: its start, and its name in letters that every host serves.
    pub fn folder_name(&self) -> String {
        let plain = |text: &str| -> String {
            let kept = text.chars().map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' });
            let kept: String = kept.collect();
            kept.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
        };
        let date = plain(self.started_at.split('.').next().unwrap_or_default());
        let name: String = plain(&self.name).trim_start_matches('.').chars().take(LONGEST_NAME).collect();
        [date.trim_end_matches('Z').to_owned(), name]
            .iter()
            .filter(|part| !part.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join("-")
    }

    /// The file at this path.
    pub fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }
}

/// The metrics of complete captures: half a loading phase would count as a fast one.
fn recordings(run: Option<&Run>, selections: &[Selection<'_>]) -> Vec<Recording> {
    let store = Store::beside(Path::new("."));
    let working_tree = run.and_then(|run| run.info()?.working_tree.as_ref());
    let is_complete = |selection: &&Selection<'_>| {
        let info = &selection.capture().info;
        let trials = run.and_then(|run| run.info()).into_iter().flat_map(|info| &info.trials);
        let mut of_capture = trials.filter(|trial| {
            Some(&trial.scenario) == info.scenario.as_ref()
                && trial.repetition == info.repetition
                && trial.variant.as_ref().is_none_or(|variant| Some(variant) == info.variant.as_ref())
        });
        of_capture.all(|trial| trial.result.is_recorded())
    };
    let recording = |selection: &Selection<'_>| {
        let place = Place { capture: Path::new(""), run: Path::new(""), working_tree };
        // Paths of this machine stay here.
        Recording { run: String::new(), ..store.entry(selection, place).recording }
    };
    selections.iter().filter(is_complete).map(recording).collect()
}
