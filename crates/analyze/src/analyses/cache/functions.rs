//! Cache misses by function, against its share of the cost.

use std::cmp::Reverse;

use stepscope_model::{Column, Columns, EventId, Table, Value, note};
use stepscope_stats::Estimate;
use stepscope_stats::counts::{Count, rate_change};

use super::{FRIENDLY, HOSTILE, simulation_note};
use crate::analyses::rank::score::{FLOOR_PERMILLE, Part};
use crate::columns::{bounds, of_function};
use crate::query::events::{self, Role};
use crate::query::functions::{FunctionId, Functions};
use crate::query::select::Selection;
use crate::query::weights::{Amount, StackWeights};

/// The weights of some events by function.
struct ByFunction {
    own: Vec<Amount>,
    attributed: Vec<Amount>,
    no_stack: Amount,
    total: Amount,
    counts_known: bool,
}

impl ByFunction {
    /// `None` if there are no events, or no samples of them.
    fn of(selection: &Selection<'_>, events: &[EventId]) -> Option<Self> {
        let weights = events.iter().map(|event| StackWeights::of_samples(&selection.of_event(*event)));
        let weights = weights.reduce(StackWeights::and)?;
        let (capture, functions) = (selection.capture(), selection.functions());
        let total = weights.total();
        (!total.is_zero()).then(|| Self {
            own: weights.self_by_function(capture, functions),
            attributed: weights.attributed_by_function(functions),
            no_stack: weights.no_stack,
            total,
            counts_known: weights.counts_known,
        })
    }

    fn own(&self, id: Option<FunctionId>) -> Amount {
        id.map_or(self.no_stack, |id| self.own[id.index()])
    }

    fn part(&self, amount: Amount) -> Part {
        Part { part: amount.weight, whole: self.total.weight }
    }
}

/// Misses and cost of the same run.
struct Both {
    misses: ByFunction,
    cost: ByFunction,
}

/// The events of the cost: of the run whose misses these are.
fn cost_events(selection: &Selection<'_>, misses: &[EventId]) -> Vec<EventId> {
    let capture = selection.capture();
    if misses.iter().any(|event| events::is_simulated(capture.event(*event))) {
        return events::of_role(capture, Role::Instructions).collect();
    }
    let primary = selection.event_id().filter(|id| events::role(capture.event(*id)) == Role::Cpu);
    let own = || events::primary(capture).filter(|id| events::role(capture.event(*id)) == Role::Cpu);
    primary.or_else(own).into_iter().collect()
}

impl Both {
    fn of(selection: &Selection<'_>) -> Option<Self> {
        let misses = events::cache_misses(selection.capture());
        let cost = cost_events(selection, &misses);
        Some(Self { misses: ByFunction::of(selection, &misses)?, cost: ByFunction::of(selection, &cost)? })
    }

    /// Share of misses over share of cost, with its interval if the numbers of samples are known.
    fn ratio(&self, misses: Amount, cost: Amount) -> Option<Estimate> {
        let (part, of_cost) = (self.misses.part(misses), self.cost.part(cost));
        if of_cost.part == 0 || part.whole == 0 {
            return None;
        }
        let value = (part.part as f64 / part.whole as f64) / (of_cost.part as f64 / of_cost.whole as f64);
        if !self.misses.counts_known || !self.cost.counts_known {
            return Some(Estimate { value, low: f64::NAN, high: f64::NAN });
        }
        let count = |amount: Amount, all: Amount| Count { samples: amount.count, exposure: all.count as f64 };
        let of_counts = rate_change(count(cost, self.cost.total), count(misses, self.misses.total), 0.95)?.ratio?;
        // Weights are periods: the interval of the counts is moved to their ratio.
        let scale = if of_counts.value > 0.0 { value / of_counts.value } else { 1.0 };
        Some(Estimate { value, low: of_counts.low * scale, high: of_counts.high * scale })
    }

    fn own_ratio(&self, id: Option<FunctionId>) -> Option<Estimate> {
        self.ratio(self.misses.own(id), self.cost.own(id))
    }

    /// Functions below the floor are not judged.
    fn verdict(&self, id: Option<FunctionId>) -> Option<&'static str> {
        if !self.cost.part(self.cost.own(id)).reaches_permille(FLOOR_PERMILLE) {
            return None;
        }
        let ratio = self.own_ratio(id)?;
        Some(match ratio.value {
            _ if ratio.low <= 1.0 && ratio.high >= 1.0 && !(FRIENDLY..=HOSTILE).contains(&ratio.value) => {
                "inconclusive"
            }
            value if value > HOSTILE => "hostile",
            value if value < FRIENDLY => "friendly",
            _ => "neutral",
        })
    }
}

/// The table `cache_functions`: one row per function with misses or at least 0.5 % of the cost; most misses first.
pub fn by_function(selection: &Selection<'_>) -> Table {
    let functions = selection.functions();
    let both = Both::of(selection);
    let mut rows: Vec<Option<FunctionId>> = match &both {
        None => Vec::new(),
        Some(both) => {
            let is_shown = |id: &Option<FunctionId>| {
                both.misses.own(*id).weight > 0
                    || both.cost.part(both.cost.own(*id)).reaches_permille(FLOOR_PERMILLE)
                    || id.is_some_and(|id| both.misses.attributed[id.index()].weight > 0)
            };
            functions.all().map(|(id, _)| Some(id)).chain([None]).filter(is_shown).collect()
        }
    };
    if let Some(both) = &both {
        rows.sort_by_cached_key(|id| {
            let identity = id.map(|id| functions.get(id).identity());
            (Reverse(both.misses.own(*id).weight), Reverse(both.cost.own(*id).weight), identity)
        });
    }
    let mut table = table_columns(functions, both.as_ref()).table("cache_functions", "Cache misses by function", rows);
    table.add_notes(simulation_note(selection));
    if let Some(both) = &both {
        let is_hostile = |id: &Option<FunctionId>| both.verdict(*id) == Some("hostile");
        let hostile = functions.all().map(|(id, _)| Some(id)).filter(is_hostile).count();
        table.note(note!(
            Fact,
            "Functions with a share of the misses above {} times their share of the cost: {}.",
            HOSTILE.to_string(),
            stepscope_model::NoteValue::number(hostile as u64)
        ));
    } else if !events::cache_misses(selection.capture()).is_empty() {
        table.note(note!(
            Limit,
            "The capture has cache misses but no CPU samples. Import both with the same `--scenario` and `--phase`, then run `stepscope rank`."
        ));
    }
    table
}

fn table_columns<'t>(functions: &'t Functions, both: Option<&'t Both>) -> Columns<'t, Option<FunctionId>> {
    let misses = move |id: &Option<FunctionId>| both.map(|both| both.misses.own(*id).weight);
    let share = |of: fn(&Both) -> &ByFunction| {
        move |id: &Option<FunctionId>| both.and_then(|both| of(both).own(*id).percent_of(of(both).total))
    };
    let attributed = |of: fn(&Both) -> &ByFunction| {
        move |id: &Option<FunctionId>| {
            let id = (*id)?;
            both.and_then(|both| of(both).attributed[id.index()].percent_of(of(both).total))
        }
    };
    let own_ratio = move |id: &Option<FunctionId>| both.and_then(|both| both.own_ratio(*id));
    let finite = move |id: &Option<FunctionId>| own_ratio(id).filter(|ratio| ratio.low.is_finite());
    of_function(functions)
        .with(
            Column::text(
                "verdict",
                "`hostile` above a ratio of 1.3, `friendly` below 0.7, `neutral`, or `inconclusive` if the interval contains 1; \
                 missing below 0.5 % of the cost.",
            ),
            move |id| both.and_then(|both| both.verdict(*id)).map_or(Value::Missing, Value::from),
        )
        .with(Column::number("ratio", "", "Share of the misses over share of the cost."), move |id| {
            own_ratio(id).map(|ratio| ratio.value).into()
        })
        .with_all(bounds("ratio_", |name, doc| Column::number(name, "", doc), finite))
        .percentage("miss_share", "Last-level misses with this leaf, in percent of all.", share(|both| &both.misses))
        .percentage(
            "cost_share",
            "CPU cost with this leaf, in percent of all; in a simulation, of its instructions.",
            share(|both| &both.cost),
        )
        .weight("misses", "misses", "Last-level misses with this leaf.", misses)
        .percentage("attributed_miss_share", "Misses attributed to it, in percent of all.", attributed(|both| &both.misses))
        .percentage("attributed_cost_share", "Cost attributed to it, in percent of all.", attributed(|both| &both.cost))
        .with(
            Column::number("attributed_ratio", "", "Attributed share of the misses over attributed share of the cost."),
            move |id| {
                let ratio = both.zip(*id).and_then(|(both, id)| {
                    both.ratio(both.misses.attributed[id.index()], both.cost.attributed[id.index()])
                });
                ratio.map(|ratio| ratio.value).into()
            },
        )
        .essential("verdict ratio miss_share cost_share")
        .detail("attributed_miss_share attributed_cost_share attributed_ratio")
}
