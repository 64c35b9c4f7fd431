//! [`Recording`]: what a store keeps of a capture.

use serde::{Deserialize, Serialize};
use stepscope_model::{Machine, Phase};

use crate::analyses::metrics::{self, Better, Metric};

/// The metrics of one recording, which a store keeps after the recording is deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Name of its run.
    pub run: String,
    /// Its start, RFC 3339 in UTC.
    pub at: String,
    /// The scenario, or a label if there is none.
    pub scenario: String,
    /// The variant, if there are variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The phase, if there are phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The machine, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The kind of build, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Revision of the source, if known; `+3` for three changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Program and version of the recorder.
    pub tool: String,
    /// Its metrics.
    pub figures: Vec<Figure>,
    /// Whether its folder still exists.
    #[serde(skip)]
    pub kept: Kept,
}

/// Whether a recording's folder still exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kept {
    /// It can be opened.
    #[default]
    There,
    /// It is gone; only the metrics are left.
    Gone,
}

/// A value of a metric. Another version of the program may have named it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way it should go, unless that follows from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// Its value.
    pub value: f64,
}

impl From<Metric> for Figure {
    fn from(metric: Metric) -> Self {
        let better = Some(metric.better).filter(|better| *better != metrics::better(&metric.name));
        Self { name: metric.name.into_owned(), unit: metric.unit, better, value: metric.value }
    }
}
