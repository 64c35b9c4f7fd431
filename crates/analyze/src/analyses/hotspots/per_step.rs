//! Costs of functions per simulation step.

use stepscope_model::{Column, Columns, Kind, Note, NoteValue, note};

use super::Cost;
use crate::query::functions::FunctionId;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::weights::{Amount, StackWeights};

/// Weights of the samples and waits within steps, by function; the last one is without a stack.
pub(super) struct PerStep {
    steps: u64,
    loops: usize,
    total: u128,
    own: Vec<u128>,
    inclusive: Vec<u128>,
    attributed: Vec<u128>,
    /// Absent where context switches were not recorded.
    blocked: Option<Vec<u128>>,
}

impl PerStep {
    /// `None` without steps, or if samples have no times.
    pub(super) fn of(selection: &Selection<'_>) -> Option<Self> {
        let loops = Loops::of(selection)?;
        if selection.samples().any(|sample| sample.time_ns.is_none()) {
            return None;
        }
        let (capture, functions) = (selection.capture(), selection.functions());
        let samples = loops.sample_weights(selection);
        let with = |sums: Vec<Amount>, weights: &StackWeights| -> Vec<u128> {
            sums.into_iter().chain([weights.no_stack]).map(|amount| amount.weight).collect()
        };
        let blocked = selection.has_switches().then(|| loops.blocked_weights(selection));
        Some(Self {
            steps: loops.main().count() as u64,
            loops: loops.count(),
            total: samples.total().weight,
            own: with(samples.self_by_function(capture, functions), &samples),
            inclusive: with(samples.inclusive_by_function(capture, functions), &samples),
            attributed: samples.nearest_owned_by_function(functions).into_iter().map(|amount| amount.weight).collect(),
            blocked: blocked.map(|blocked| with(blocked.attributed_by_function(functions), &blocked)),
        })
    }

    /// Costs per step of a function, or of samples without a stack.
    pub(super) fn columns<'t>(&'t self, selection: &'t Selection<'_>) -> Columns<'t, Cost> {
        let unit = selection.event().map_or("", |event| event.unit.as_str());
        let kind = match Column::weight("", unit, "").kind {
            Kind::Count => Kind::Number,
            kind => kind,
        };
        let weight = |name: &str, doc: &str| Column::new(name, kind, format!("{unit}/step"), doc);
        let blocked = "Blocked time per simulation step that is attributed to the function, of all selected threads.";
        let known = selection.functions().ownership_known();
        let row = |cost: &Cost| cost.function.map_or(self.own.len() - 1, FunctionId::index);
        let per_step = |weight: u128| weight as f64 / self.steps as f64;
        Columns::new()
            .with(
                weight("self_per_step", "Self weight per simulation step, of samples that belong to a step."),
                move |cost| per_step(self.own[row(cost)]).into(),
            )
            .with(weight("inclusive_per_step", "Inclusive weight per simulation step."), move |cost| {
                per_step(self.inclusive[row(cost)]).into()
            })
            .with(weight("attributed_per_step", "Attributed weight per simulation step."), move |cost| {
                let attributed = self.attributed.get(row(cost)).copied().unwrap_or(0);
                known.then(|| per_step(attributed)).into()
            })
            .with(Column::new("blocked_per_step", Kind::Duration, "ns/step", blocked), move |cost| {
                self.blocked.as_ref().map(|blocked| per_step(blocked[row(cost)])).into()
            })
            .detail("inclusive_per_step")
    }

    pub(super) fn note(&self, selection: &Selection<'_>) -> Note {
        let unit = selection.event().map_or("", |event| event.unit.as_str());
        let weight = NoteValue::of((self.total as f64 / self.steps as f64).round() as u128, unit);
        let steps = NoteValue::plural(self.steps as usize, "step");
        match self.loops {
            0 | 1 => note!(Fact, "Per step: {} ({}).", weight, steps),
            _ => note!(Fact, "Per step: {} ({}); each thread counts per step of its own loop.", weight, steps),
        }
    }
}
