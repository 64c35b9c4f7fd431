//! Collects the user's own metrics of a phase from the program's output, CSV files and counters.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use stepscope_model::{Capture, OwnMetric, Phase};

use crate::lab_file::{MetricSettings, MetricSource};

/// Lengths of the files that hold metrics, at the start and the end of each phase.
#[derive(Debug, Default)]
pub(crate) struct PhaseExtents {
    marks: HashMap<(Phase, PathBuf), Extent>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    start: u64,
    end: Option<u64>,
}

impl PhaseExtents {
    /// A phase starts; earlier content of the files does not belong to it.
    pub(crate) fn start(&mut self, phase: Phase, metrics: &[MetricSettings], output: &Path) {
        for file in metrics.iter().filter_map(|metric| file_of(metric, output)) {
            let extent = Extent { start: length(&file), end: None };
            self.marks.insert((phase, file), extent);
        }
    }

    /// A phase ends; later content does not belong to it.
    pub(crate) fn end(&mut self, phase: Phase) {
        for ((of, file), extent) in &mut self.marks {
            if *of == phase {
                extent.end.get_or_insert_with(|| length(file));
            }
        }
    }

    /// Adds the metrics of a phase to its capture.
    pub(crate) fn collect(&self, phase: Phase, metrics: &[MetricSettings], output: &Path, capture: &mut Capture) {
        for metric in metrics {
            let values = match &metric.source {
                MetricSource::Counter(name) => {
                    let named = capture.counters.iter().filter(|counter| *counter.name == **name);
                    named.map(|counter| counter.value as f64 * metric.scale).collect()
                }
                _ => self.values(phase, metric, output),
            };
            if values.is_empty() {
                capture.info.notes.push(format!("The program reported no value of the metric {}.", metric.name));
                continue;
            }
            capture.info.own_metrics.push(OwnMetric {
                name: metric.name.clone(),
                unit: metric.unit.clone(),
                better: metric.better,
                values,
            });
        }
    }

    fn values(&self, phase: Phase, metric: &MetricSettings, output: &Path) -> Vec<f64> {
        let Some(file) = file_of(metric, output) else { return Vec::new() };
        let bytes = fs::read(&file).unwrap_or_default();
        let extent = self.marks.get(&(phase, file)).copied().unwrap_or_default();
        // A file that is shorter than at the start was rewritten.
        let start = usize::try_from(extent.start).ok().filter(|start| *start <= bytes.len()).unwrap_or(0);
        let end = extent.end.and_then(|end| usize::try_from(end).ok()).unwrap_or(bytes.len()).clamp(start, bytes.len());
        let text = String::from_utf8_lossy(&bytes);
        let header = text.lines().next().unwrap_or_default();
        metric.values(&String::from_utf8_lossy(&bytes[start..end]), header)
    }
}

fn file_of(metric: &MetricSettings, output: &Path) -> Option<PathBuf> {
    match &metric.source {
        MetricSource::Log { .. } => Some(output.to_owned()),
        MetricSource::Csv { file, .. } => Some(file.clone()),
        MetricSource::Counter(_) => None,
    }
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}
