//! [`State`]: what a recording says of itself.

use serde::Serialize;

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It has no rows yet.
    #[default]
    Waiting,
    /// It goes on.
    Recording,
    /// It ended, and its capture is being made.
    Ended,
    /// Its capture can be read.
    Finished,
    /// The recorder ended without the end of its log.
    Killed,
    /// The log cannot be read.
    Failed,
}

impl Stage {
    /// Whether no more rows will come.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Finished | Self::Killed | Self::Failed)
    }
}

/// What a recording says of itself. `web/src/worker/store.ts` has the same as `LiveState`.
///
/// Times are ns since the start of the recording, as in the tables.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// How far it is.
    #[serde(rename = "state")]
    pub stage: Stage,
    /// Why it cannot be followed.
    pub problem: String,
    /// The latest time that is known.
    pub until: f64,
    /// The time up to which samples and waits are known: later ones wait for the names of their stacks.
    pub named: f64,
    /// The time from which rows are held.
    pub from: f64,
    /// How far `until` is behind the program, in ns.
    pub behind: f64,
    /// Records that came faster than the recorder could read them.
    pub lost: u64,
    /// Marks that came faster.
    pub lost_marks: u64,
    /// Whether samples or waits are added up, because there are too many.
    pub summed: bool,
    /// Number of the present snapshot; 0 before the first one. Tables that are not sent are those of the snapshot.
    pub snapshot: u64,
    /// The title of the page, from the first snapshot on.
    pub title: String,
    /// The folder of the recording.
    pub folder: String,
    /// Moments that were marked.
    pub moments: Vec<Moment>,
    /// The capture's entry in the manifest as of the snapshot, without the rows that are sent.
    pub entry: serde_json::Map<String, serde_json::Value>,
}

/// A moment that a viewer marked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moment {
    /// When.
    pub time: f64,
    /// What it is called; may be empty.
    pub text: String,
}
