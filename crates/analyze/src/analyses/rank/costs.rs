//! [`Costs`]: the evidence of one scenario, by function.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analyses::rank::extent::Extent;
use crate::analyses::rank::pairing::Scenario;
use crate::analyses::rank::score::{Evidence, Part};
use crate::analyses::sched;
use crate::query::events::{self, Role};
use crate::query::functions::{FunctionId, Identity};
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};

/// The evidence of one scenario, by function.
pub(super) struct Costs {
    pub(super) label: String,
    pub(super) extent: Extent,
    /// The weight that is attributed to any function.
    pub(super) under_owned: u128,
    by_function: FxHashMap<Identity, (u128, u128)>,
    misses: Option<(u128, FxHashMap<Identity, u128>)>,
    blocked: Option<Blocked>,
    delayed: Option<FxHashSet<Identity>>,
}

/// Blocked time by attributed caller, and the callers' places, the most blocked one first.
pub(super) struct Blocked {
    ns: FxHashMap<Identity, u128>,
    places: FxHashMap<Identity, u64>,
}

impl Costs {
    pub(super) fn of(scenario: &Scenario<'_, '_>) -> Self {
        let mut costs = Self {
            label: scenario.label.clone(),
            extent: Extent::default(),
            under_owned: 0,
            by_function: FxHashMap::default(),
            misses: None,
            blocked: None,
            delayed: None,
        };
        for selection in scenario.cpu() {
            costs.add_cpu(selection);
        }
        for selection in &scenario.captures {
            costs.add_misses(selection);
            costs.add_blocked(selection);
            costs.add_delays(selection);
        }
        costs.place_blocked();
        costs
    }

    fn add_cpu(&mut self, selection: &Selection<'_>) {
        let weights = self.extent.add(selection);
        let functions = selection.functions();
        let attributed = weights.attributed_by_function(functions);
        let inclusive = weights.inclusive_by_function(selection.capture(), functions);
        self.under_owned += attributed.iter().map(|amount| amount.weight).sum::<u128>();
        let costs = |id: FunctionId| !attributed[id.index()].is_zero() || !inclusive[id.index()].is_zero();
        for (id, function) in functions.all().filter(|(id, _)| functions.is_owner(*id) && costs(*id)) {
            let sums = self.by_function.entry(function.identity()).or_default();
            sums.0 += attributed[id.index()].weight;
            sums.1 += inclusive[id.index()].weight;
        }
    }

    fn add_misses(&mut self, selection: &Selection<'_>) {
        for event in events::of_role(selection.capture(), Role::CacheMisses) {
            let (total, by_function) = self.misses.get_or_insert_default();
            let weights = StackWeights::of_samples(&selection.of_event(event));
            *total += weights.total().weight;
            add_by_identity(by_function, selection, &weights.attributed_by_function(selection.functions()));
        }
    }

    fn add_blocked(&mut self, selection: &Selection<'_>) {
        if !selection.has_switches() {
            return;
        }
        let blocked =
            self.blocked.get_or_insert_with(|| Blocked { ns: FxHashMap::default(), places: FxHashMap::default() });
        let weights = StackWeights::of_blocked(selection);
        add_by_identity(&mut blocked.ns, selection, &weights.attributed_by_function(selection.functions()));
    }

    /// Callers with equal times share the better place.
    fn place_blocked(&mut self) {
        let Some(blocked) = &mut self.blocked else { return };
        let mut order: Vec<(u128, &Identity)> = blocked.ns.iter().map(|(identity, ns)| (*ns, identity)).collect();
        order.sort_by(|a, b| b.cmp(a));
        let place = |ns: u128| order.partition_point(|(other, _)| *other > ns) as u64 + 1;
        blocked.places = order.iter().map(|(ns, identity)| ((*identity).clone(), place(*ns))).collect();
    }

    /// Adds the functions that run on threads that recorded threads delay.
    fn add_delays(&mut self, selection: &Selection<'_>) {
        if !selection.has_switches() {
            return;
        }
        let delayed = self.delayed.get_or_insert_default();
        for delays in sched::delays(selection).iter().filter(|delays| delays.is_flagged_without_others()) {
            let weights = StackWeights::of_samples(&selection.of_thread(delays.thread));
            let attributed = weights.attributed_by_function(selection.functions());
            let running = selection.functions().all().filter(|(id, _)| !attributed[id.index()].is_zero());
            delayed.extend(running.map(|(_, function)| function.identity()));
        }
    }

    pub(super) fn attributed(&self, function: &Identity) -> u128 {
        self.by_function.get(function).map_or(0, |sums| sums.0)
    }

    pub(super) fn inclusive(&self, function: &Identity) -> u128 {
        self.by_function.get(function).map_or(0, |sums| sums.1)
    }

    pub(super) fn has_cpu(&self) -> bool {
        self.extent.total > 0
    }

    pub(super) fn evidence(&self, function: &Identity) -> Evidence {
        let part = Part { part: self.attributed(function), whole: self.extent.total };
        let misses = self.misses.as_ref().map(|(whole, by_function)| {
            // A function without sampled misses has no ratio: nothing was measured.
            by_function.get(function).map(|part| Part { part: *part, whole: *whole })
        });
        Evidence {
            cpu: self.has_cpu().then_some(part),
            misses,
            blocked: self
                .blocked_ns(function)
                .zip(self.extent.wall_ns())
                .map(|(ns, wall)| Part { part: ns, whole: wall.into() }),
            blocked_place: self.blocked.as_ref().map(|blocked| blocked.places.get(function).copied()),
            modified_hits: None,
            delayed: self.delayed.as_ref().map(|delayed| delayed.contains(function)),
        }
    }

    pub(super) fn blocked_ns(&self, function: &Identity) -> Option<u128> {
        Some(self.blocked.as_ref()?.ns.get(function).copied().unwrap_or(0))
    }

    /// Every function with any evidence.
    pub(super) fn functions(&self) -> impl Iterator<Item = &Identity> {
        let blocked = self.blocked.as_ref().map(|blocked| blocked.ns.keys());
        self.by_function.keys().chain(blocked.into_iter().flatten())
    }
}

fn add_by_identity(sums: &mut FxHashMap<Identity, u128>, selection: &Selection<'_>, amounts: &[Amount]) {
    for (id, function) in selection.functions().all() {
        let amount = amounts[id.index()];
        if amount.weight > 0 {
            *sums.entry(function.identity()).or_default() += amount.weight;
        }
    }
}
