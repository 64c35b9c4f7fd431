//! The first step does work that later ones do not.
//!
//! Evidence: the program's first step is at least 20 times the median step, 20 ms, and twice as long as 95 % of the steps.
//! The first step of a steady phase is the program's first only if loading had none. The deepest owned function with most
//! of its time is named. Look-alikes: a just-in-time compiler that warms up.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns};
use crate::analyses::diagnose::gain::{Gain, GainBasis};
use crate::analyses::diagnose::seen::Seen;
use crate::query::steps::Steps;
use crate::query::weights::StackWeights;
use stepscope_model::Phase;
use stepscope_stats::Estimate;

const LIFT: u64 = 20;

/// Steps that are as long now and then make a long first one nothing special.
const LIFT_OF_LONG: u64 = 2;

const LEAST_NS: u64 = 20_000_000;

pub(super) struct FirstStep;

impl Kind for FirstStep {
    fn name(&self) -> &'static str {
        "long-first-step"
    }

    fn advice(&self) -> &'static str {
        "Do it while loading, on demand, or in parts; leave out what nobody asked for."
    }

    fn confirm(&self) -> &'static str {
        "See `show --view steps`: the first step against the median."
    }

    fn find(&self, seen: &Seen<'_, '_>, other: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let is_steady = seen.capture().info.phase == Some(Phase::Steady);
        if is_steady && other.is_none_or(|loading| Steps::of(loading.selection).is_some()) {
            return Vec::new();
        }
        // Steps within loading are no basis of its costs, but its first step is the program's first.
        let Some(steps) = Steps::of(seen.selection) else { return Vec::new() };
        let Some(first) = steps.first().filter(|first| first.index == 0) else { return Vec::new() };
        let later = other.and_then(|other| other.loops.as_ref()).map_or(&steps.times, |loops| &loops.main().times);
        let (Some(median), Some(long)) = (later.median(), later.percentile(95.0)) else { return Vec::new() };
        let length = first.end_ns - first.start_ns;
        if length < LEAST_NS || length / LIFT < median || length / LIFT_OF_LONG < long {
            return Vec::new();
        }
        let within = seen.selection.within(first.start_ns..first.end_ns);
        let weights = StackWeights::of_samples(&within);
        let inclusive = weights.inclusive_by_function(seen.capture(), seen.functions());
        let whole = weights.total().weight;
        // The deepest owned function with at least half of the first step.
        let most = seen
            .functions()
            .all()
            .filter(|(id, _)| seen.functions().is_owner(*id) && inclusive[id.index()].weight * 2 >= whole && whole > 0);
        let deepest = most.min_by_key(|(id, _)| (inclusive[id.index()].weight, id.index())).map(|(id, _)| id);
        let saved = (length - median) as f64;
        let whole_ns = seen.selection.wall_ns().map_or(saved, |wall| wall as f64);
        let gain =
            Gain { time: Estimate { value: saved, low: saved, high: saved }, whole_ns, basis: GainBasis::PhaseCpu };
        let what = deepest.map_or("work that later steps do not do".to_owned(), |id| format!("`{}`", seen.name(id)));
        let title = format!("The first step takes {}, most of it {what}", ns(length as f64));
        let found = Found::of_program(title, Some(gain)).about(deepest).sure(Confidence::Strong);
        vec![found.because(format!("The median step takes {}.", ns(median as f64)), "show --view steps")]
    }
}
