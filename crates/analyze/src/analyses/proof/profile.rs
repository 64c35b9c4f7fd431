//! What one recording says of a program's functions.

use std::collections::BTreeMap;

use stepscope_model::{Table, Value};

use crate::analyses::hotspots::Hotspots;
use crate::query::qualified_name::own_name;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::{critical_path, rank};

/// What one recording says, by the names that it shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Samples of CPU time.
    pub samples: u64,
    /// CPU time that they stand for, ns.
    pub total_ns: f64,
    /// Whole steps; 1 where there are none, as in loading.
    pub steps: f64,
    /// Mean duration of a step, ns; of the recording where there are no steps.
    pub step_ns: f64,
    /// CPU time with everything called, by function, ns.
    pub inclusive_ns: BTreeMap<String, f64>,
    /// What `rank` gives functions by cost: percent of all that there is.
    pub ranked: BTreeMap<String, f64>,
    /// The most that a step could be shorter without each function, ns. Empty where critical paths are not known.
    pub gain_bound_ns: BTreeMap<String, f64>,
    /// What [`diagnose`](crate::analyses::diagnose) finds, best first.
    pub claims: Vec<Claim>,
}

/// A finding.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claim {
    /// Its kind.
    pub kind: String,
    /// The function that it names; empty if none.
    pub function: String,
    /// Its gain in percent of the step or phase; 0 if unknown.
    pub gain_share: f64,
}

/// The rows of a table of findings, best first.
fn claims(table: &Table) -> Vec<Claim> {
    let text = |row: usize, column: &str| match table.get(row, column) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let claim = |row: usize| Claim {
        kind: text(row, "kind"),
        function: own_name(&text(row, "function")).into_owned(),
        gain_share: match table.get(row, "gain_share") {
            Some(Value::Float(share)) => *share,
            _ => 0.0,
        },
    };
    (0..table.rows.len()).map(claim).collect()
}

impl Profile {
    /// Reads it off a recording, with the [findings](crate::analyses::diagnose) of it: of its steps, or of all of it where it is one of
    /// [loading](stepscope_model::Phase::Loading). Functions go by their [own names](own_name).
    pub fn of(selection: &Selection<'_>, findings: &Table) -> Self {
        let stepped = selection.capture().info.phase != Some(stepscope_model::Phase::Loading);
        let loops = Loops::of(selection).filter(|_| stepped);
        let span = loops.as_ref().map(|loops| loops.main().span.clone());
        let inside = span.map(|span| selection.within(span));
        let claims = claims(findings);
        Self { claims, ..Self::within(inside.as_ref().unwrap_or(selection), loops.as_deref()) }
    }

    fn within(selection: &Selection<'_>, loops: Option<&Loops>) -> Self {
        let hotspots = Hotspots::of(selection);
        let functions = selection.functions();
        let mut inclusive_ns = BTreeMap::new();
        for cost in &hotspots.costs {
            if let Some(id) = cost.function {
                let name = own_name(&functions.get(id).name).into_owned();
                *inclusive_ns.entry(name).or_insert(0.0) += cost.inclusive.weight as f64;
            }
        }
        let mean = loops.and_then(|loops| loops.main().times.mean());
        let path = if loops.is_some() {
            critical_path::tables(selection).into_iter().find(|table| table.name == "critical_path")
        } else {
            None
        };
        let mut gain_bound_ns = BTreeMap::new();
        for row in 0..path.as_ref().map_or(0, |table| table.rows.len()) {
            let cell = |column| path.as_ref().and_then(|table| table.get(row, column));
            if let (Some(Value::Text(name)), Some(Value::Float(ns))) = (cell("function"), cell("gain_bound")) {
                gain_bound_ns.insert(own_name(name).into_owned(), *ns);
            }
        }
        let order = rank::table(std::slice::from_ref(selection), &rank::Options::default());
        let mut ranked = BTreeMap::new();
        for row in 0..order.rows.len() {
            if let (Some(Value::Text(name)), Some(Value::Float(share))) =
                (order.get(row, "function"), order.get(row, "share"))
            {
                *ranked.entry(own_name(name).into_owned()).or_insert(0.0) += share;
            }
        }
        let wall = || selection.wall_ns().map(|ns| ns as f64);
        Self {
            samples: hotspots.total.count,
            total_ns: hotspots.total.weight as f64,
            steps: loops.map_or(1.0, |loops| loops.main().count() as f64),
            step_ns: mean.or_else(wall).unwrap_or(0.0),
            inclusive_ns,
            ranked,
            gain_bound_ns,
            claims: Vec::new(),
        }
    }

    /// The share of CPU time with these functions and all that they call, in percent.
    pub fn share_percent(&self, names: &[&str]) -> f64 {
        if self.total_ns > 0.0 { 100.0 * self.inclusive(names) / self.total_ns } else { 0.0 }
    }

    /// CPU time a step of these functions and all that they call, ns.
    pub fn inclusive_per_step(&self, names: &[&str]) -> f64 {
        self.inclusive(names) / self.steps
    }

    /// CPU time a step, ns.
    pub fn total_per_step(&self) -> f64 {
        self.total_ns / self.steps
    }

    /// What these functions have of the critical path of a step, ns.
    pub fn on_path(&self, names: &[&str]) -> f64 {
        names.iter().filter_map(|name| self.gain_bound_ns.get(*name)).sum()
    }

    fn inclusive(&self, names: &[&str]) -> f64 {
        names.iter().filter_map(|name| self.inclusive_ns.get(*name)).sum()
    }
}
