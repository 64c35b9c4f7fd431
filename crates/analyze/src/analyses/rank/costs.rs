//! [`Costs`]: the evidence of one scenario, by function.

use std::ops::AddAssign;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_model::{Note, note};

use crate::analyses::rank::extent::Extent;
use crate::analyses::rank::pairing::Scenario;
use crate::analyses::rank::score::{self, Evidence, Heap, Part};
use crate::analyses::{sched, sharing};
use crate::query::coverage::known_cpu_ns;
use crate::query::events;
use crate::query::functions::{Caller, FunctionId, Identity};
use crate::query::heap::{AllocationRates, HeapSums};
use crate::query::partners::Partners;
use crate::query::select::Selection;
use crate::query::steps::Loops;
use crate::query::system_calls::SelectedCalls;
use crate::query::weights::{Amount, StackWeights};

/// The evidence of one scenario, by function.
pub(super) struct Costs {
    pub(super) label: String,
    pub(super) extent: Extent,
    /// The weight that is attributed to any function.
    pub(super) under_owned: u128,
    by_function: FxHashMap<Identity, (u128, u128)>,
    /// Whether the weights are bytes or allocations, which are no evidence about CPUs.
    is_memory: bool,
    misses: Option<(u128, FxHashMap<Identity, u128>)>,
    /// Loads of lines that another core had modified.
    modified: Option<(u128, FxHashMap<Identity, u128>)>,
    blocked: Option<Blocked>,
    delayed: Option<FxHashSet<Identity>>,
    allocations: Option<Rates<AllocationRates>>,
    system_calls: Option<Rates<SystemCalls>>,
    /// The functions of the captures with CPU samples, by which those of the others are named.
    partners: Partners,
    /// CPU time of all those captures, in ns; `None` where their samples count something else.
    cpu_ns: Option<f64>,
}

/// What functions do in a step, or in the whole recording without steps, and the CPU time there.
struct Rates<T> {
    by_function: FxHashMap<Identity, T>,
    cpu_ns: f64,
    /// Milliseconds of wall time; `None` for a step.
    wall_ms: Option<f64>,
    /// Whether the CPU time is that of another capture.
    of_other_run: bool,
}

/// System calls of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SystemCalls {
    pub(super) count: f64,
    /// Time within those that do not wait for others.
    pub(super) busy_ns: f64,
}

impl AddAssign for SystemCalls {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.busy_ns += other.busy_ns;
    }
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
            is_memory: false,
            misses: None,
            modified: None,
            blocked: None,
            delayed: None,
            allocations: None,
            system_calls: None,
            partners: Partners::of(scenario.cpu()),
            cpu_ns: scenario.cpu().map(known_cpu_ns).sum(),
        };
        for selection in scenario.cpu() {
            costs.is_memory |= selection.event().is_some_and(events::is_memory);
            costs.add_cpu(selection);
        }
        for selection in &scenario.captures {
            costs.add_misses(selection);
            costs.add_modified(selection);
            costs.add_blocked(selection);
            costs.add_delays(selection);
            costs.add_allocations(selection);
            costs.add_system_calls(selection);
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
        for event in events::cache_misses(selection.capture()) {
            let (total, by_function) = self.misses.get_or_insert_default();
            let weights = StackWeights::of_samples(&selection.of_event(event));
            *total += weights.total().weight;
            add_by_identity(
                by_function,
                &self.partners,
                selection,
                &weights.attributed_by_function(selection.functions()),
            );
        }
    }

    /// Adds loads of modified lines, if the CPU sampled them.
    fn add_modified(&mut self, selection: &Selection<'_>) {
        for access in &selection.capture().data_accesses {
            let Some(hits) = sharing::hitm(access).filter(|_| selection.has_thread(access.thread)) else { continue };
            let (whole, by_function) = self.modified.get_or_insert_default();
            *whole += u128::from(hits);
            if let Caller::Function(id) = selection.functions().caller(access.stack) {
                let identity = self.partners.identity(selection.functions().get(id));
                *by_function.entry(identity).or_default() += u128::from(hits);
            }
        }
    }

    fn add_blocked(&mut self, selection: &Selection<'_>) {
        if !selection.has_switches() {
            return;
        }
        let blocked =
            self.blocked.get_or_insert_with(|| Blocked { ns: FxHashMap::default(), places: FxHashMap::default() });
        let weights = StackWeights::of_blocked(selection);
        add_by_identity(
            &mut blocked.ns,
            &self.partners,
            selection,
            &weights.attributed_by_function(selection.functions()),
        );
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
            delayed.extend(running.map(|(_, function)| self.partners.identity(function)));
        }
    }

    /// Adds the first capture with allocations: several have steps of their own.
    fn add_allocations(&mut self, selection: &Selection<'_>) {
        if self.allocations.is_some() || selection.capture().allocations.is_empty() {
            return;
        }
        let heap = HeapSums::of(selection);
        let sums = heap.by_caller(selection.functions());
        self.allocations = Rates::of(self, selection, heap.has_steps, sums, |sums, in_step| sums.rates(in_step));
    }

    /// Adds the first capture with system calls.
    fn add_system_calls(&mut self, selection: &Selection<'_>) {
        if self.system_calls.is_some() || selection.capture().system_calls.is_empty() {
            return;
        }
        let calls = SelectedCalls::of(selection);
        let functions = selection.functions();
        let sums = calls.by(|calls| Some(functions.caller(calls.stack)));
        let steps = calls.steps.map_or(1.0, |steps| steps as f64);
        self.system_calls = Rates::of(self, selection, calls.steps.is_some(), sums, |sum, in_step| {
            let (count, busy_ns) =
                if in_step { (sum.in_steps.count, sum.in_steps.busy_ns) } else { (sum.count, sum.busy_ns) };
            let per = if in_step { steps } else { 1.0 };
            SystemCalls { count: count as f64 / per, busy_ns: busy_ns as f64 / per }
        });
    }

    pub(super) fn allocations_per_step(&self, function: &Identity) -> Option<AllocationRates> {
        self.allocations.as_ref()?.in_step(function)
    }

    pub(super) fn system_calls_per_step(&self, function: &Identity) -> Option<SystemCalls> {
        self.system_calls.as_ref()?.in_step(function)
    }

    pub(super) fn attributed(&self, function: &Identity) -> u128 {
        self.by_function.get(function).map_or(0, |sums| sums.0)
    }

    pub(super) fn inclusive(&self, function: &Identity) -> u128 {
        self.by_function.get(function).map_or(0, |sums| sums.1)
    }

    /// Says which counts are of another run than the CPU time that they are compared with.
    pub(super) fn other_run_note(&self) -> Option<Note> {
        let allocations = self.allocations.as_ref().filter(|rates| rates.of_other_run).map(|_| "allocations");
        let calls = self.system_calls.as_ref().filter(|rates| rates.of_other_run).map(|_| "system calls");
        let what: Vec<&str> = allocations.into_iter().chain(calls).collect();
        (!what.is_empty()).then(|| {
            note!(
                Limit,
                "Counts of {} are of another run than the CPU time: both are taken as the same work.",
                what.join(" and ")
            )
        })
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
            cpu: (self.has_cpu() && !self.is_memory).then_some(part),
            misses,
            blocked: self
                .blocked_ns(function)
                .zip(self.extent.wall_ns())
                .map(|(ns, wall)| Part { part: ns, whole: wall.into() }),
            blocked_place: self.blocked.as_ref().map(|blocked| blocked.places.get(function).copied()),
            modified_hits: self
                .modified
                .as_ref()
                .map(|(whole, by)| Part { part: by.get(function).copied().unwrap_or(0), whole: *whole }),
            delayed: self.delayed.as_ref().map(|delayed| delayed.contains(function)),
            heap: self.allocations.as_ref().map(|rates| rates.heap(function)),
            system_calls: self.system_calls.as_ref().map(|rates| rates.calls(function)),
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

impl<T: Copy + Default + AddAssign> Rates<T> {
    /// What was counted in a capture: in a step, if it has steps and CPU time of its own. Otherwise all of it, beside all the CPU
    /// time of the scenario. `None` if that is not known.
    fn of<S>(
        costs: &Costs,
        selection: &Selection<'_>,
        has_steps: bool,
        sums: impl IntoIterator<Item = (Caller, S)>,
        rate: impl Fn(&S, bool) -> T,
    ) -> Option<Self> {
        let loops = Loops::of_costs(selection).filter(|_| has_steps);
        let of_steps = loops.as_ref().map(|loops| selection.within(loops.main().span.clone()));
        let own_ns = known_cpu_ns(of_steps.as_ref().unwrap_or(selection)).filter(|ns| *ns > 0.0);
        let cpu_ns = own_ns.or(costs.cpu_ns.filter(|ns| *ns > 0.0))?;
        let steps = loops.as_ref().filter(|_| own_ns.is_some()).map(|loops| loops.main().count() as f64);
        let functions = selection.functions();
        let of_function = |(caller, sums): (Caller, S)| match caller {
            Caller::Function(id) => Some((costs.partners.identity(functions.get(id)), rate(&sums, steps.is_some()))),
            Caller::NotOwned | Caller::NoStack => None,
        };
        let mut by_function: FxHashMap<Identity, T> = FxHashMap::default();
        for (identity, rates) in sums.into_iter().filter_map(of_function) {
            *by_function.entry(identity).or_default() += rates;
        }
        let wall_ns = if own_ns.is_some() { selection.wall_ns() } else { costs.extent.wall_ns() };
        let wall_ms = wall_ns.map_or(f64::INFINITY, |wall| wall as f64 / 1e6);
        Some(Self {
            by_function,
            cpu_ns: cpu_ns / steps.unwrap_or(1.0),
            wall_ms: if steps.is_some() { None } else { Some(wall_ms) },
            of_other_run: own_ns.is_none(),
        })
    }

    fn of_function(&self, function: &Identity) -> T {
        self.by_function.get(function).copied().unwrap_or_default()
    }

    fn in_step(&self, function: &Identity) -> Option<T> {
        self.wall_ms.is_none().then(|| self.of_function(function))
    }

    /// A part of the CPU time, in thousandths of a nanosecond: a step may be short.
    fn part(&self, ns: f64) -> Part {
        Part { part: (ns * 1e3) as u128, whole: (self.cpu_ns * 1e3) as u128 }
    }
}

impl Rates<AllocationRates> {
    fn heap(&self, function: &Identity) -> Heap {
        let one = self.of_function(function);
        Heap {
            all: self.part(score::allocation_cost(one.calls, one.bytes)),
            temporary: self.part(score::allocation_cost(one.temporary, one.temporary * one.mean_bytes())),
        }
    }
}

impl Rates<SystemCalls> {
    fn calls(&self, function: &Identity) -> score::SystemCalls {
        let one = self.of_function(function);
        let are_many = one.count / self.wall_ms.unwrap_or(1.0) >= score::MANY_CALLS;
        score::SystemCalls { time: self.part(one.busy_ns), are_many }
    }
}

fn add_by_identity(
    sums: &mut FxHashMap<Identity, u128>,
    partners: &Partners,
    selection: &Selection<'_>,
    amounts: &[Amount],
) {
    for (id, function) in selection.functions().all() {
        let amount = amounts[id.index()];
        if amount.weight > 0 {
            *sums.entry(partners.identity(function)).or_default() += amount.weight;
        }
    }
}
