//! The rows of a capture that an export writes, as weighted stacks.

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Counts, EventId, StackId, ThreadId};

use super::{Evidence, ExportError, ExportOptions, Measure};

/// A column of numbers: the weights of an event, or off-CPU time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Source of the numbers.
    pub evidence: Evidence,
    /// Name of the event, or `off-cpu`.
    pub name: String,
    /// Unit of the weights.
    pub unit: String,
    /// Number of samples per row.
    pub counts: Counts,
}

impl Series {
    fn of(evidence: Evidence, capture: &Capture) -> Self {
        match evidence {
            Evidence::Event(id) => {
                let event = capture.event(id);
                Self { evidence, name: event.name.clone(), unit: event.unit.clone(), counts: event.counts }
            }
            Evidence::OffCpu => {
                Self { evidence, name: "off-cpu".to_owned(), unit: "ns".to_owned(), counts: Counts::OnePerRow }
            }
        }
    }

    /// Number of samples of a row with this weight.
    pub fn count_of(&self, weight: u64) -> Option<u64> {
        match self.counts {
            Counts::OnePerRow => Some(1),
            Counts::Weight => Some(weight),
            Counts::Unknown => None,
        }
    }

    /// The rows in the capture's order.
    pub fn rows<'c>(&self, capture: &'c Capture) -> Box<dyn Iterator<Item = WeighedStack> + 'c> {
        match self.evidence {
            Evidence::Event(event) => {
                let samples = capture.samples.iter().filter(move |sample| sample.event == event);
                Box::new(samples.map(|sample| WeighedStack {
                    thread: sample.thread,
                    stack: sample.stack,
                    weight: sample.weight,
                }))
            }
            Evidence::OffCpu => Box::new(capture.waits.iter().map(|wait| WeighedStack {
                thread: wait.thread,
                stack: wait.stack,
                weight: wait.end_ns.saturating_sub(wait.start_ns),
            })),
        }
    }

    /// The rows grouped by thread, in the capture's order within each.
    pub fn rows_by_thread(&self, capture: &Capture) -> Vec<WeighedStack> {
        let mut rows: Vec<WeighedStack> = self.rows(capture).collect();
        rows.sort_by_key(|row| row.thread);
        rows
    }
}

/// A weighted stack of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeighedStack {
    /// The thread.
    pub thread: ThreadId,
    /// The stack, if there is one.
    pub stack: Option<StackId>,
    /// Its weight.
    pub weight: u64,
}

/// The series to write: the chosen one, or all with rows, events first.
pub fn series(capture: &Capture, options: &ExportOptions) -> Result<Vec<Series>, ExportError> {
    let candidates: Vec<Evidence> = match options.evidence {
        Some(evidence) => vec![evidence],
        None => (0..capture.info.events.len())
            .map(|event| Evidence::Event(EventId::from_index(event)))
            .chain([Evidence::OffCpu])
            .collect(),
    };
    let mut has_rows = vec![false; capture.info.events.len()];
    for sample in &capture.samples {
        has_rows[sample.event.index()] = true;
    }
    let found: Vec<Series> = candidates
        .into_iter()
        .filter(|evidence| match evidence {
            Evidence::Event(event) => has_rows.get(event.index()).copied().unwrap_or(false),
            Evidence::OffCpu => !capture.waits.is_empty(),
        })
        .map(|evidence| Series::of(evidence, capture))
        .collect();
    if found.is_empty() {
        let wanted = match options.evidence {
            Some(Evidence::Event(event)) => match capture.info.events.get(event.index()) {
                Some(event) => format!("samples of {}", event.name),
                None => "such event".to_owned(),
            },
            Some(Evidence::OffCpu) => "waits".to_owned(),
            None => "samples and no waits".to_owned(),
        };
        return Err(ExportError::NothingToWrite { wanted });
    }
    Ok(found)
}

/// Sums of a series in order of first occurrence of each thread and stack. Memory is bounded by the distinct ones.
pub fn sums(capture: &Capture, series: &Series, measure: Measure) -> Result<Vec<(WeighedStack, u128)>, ExportError> {
    let mut places: FxHashMap<(ThreadId, Option<StackId>), usize> = FxHashMap::default();
    let mut sums: Vec<(WeighedStack, u128)> = Vec::new();
    for row in series.rows(capture) {
        let number = match measure {
            Measure::Weight => row.weight,
            Measure::Count => {
                series.count_of(row.weight).ok_or_else(|| ExportError::CountUnknown { event: series.name.clone() })?
            }
        };
        let place = *places.entry((row.thread, row.stack)).or_insert_with(|| {
            sums.push((row, 0));
            sums.len() - 1
        });
        sums[place].1 += u128::from(number);
    }
    Ok(sums)
}
