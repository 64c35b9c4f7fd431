//! The rank: the functions with the largest cost, over several scenarios.
//!
//! There are two orders of the same rows. Each row is a function that costs are attributed to.
//!
//! # Cost
//! The cost of a function in a scenario is its attributed weight: the samples whose nearest owned function it is. Every
//! sample is attributed once, so the rows of a scenario add up to the cost under owned code. Wrappers (`Run`, `Step`,
//! `main`), which lead every inclusive ranking, have only their own cost (errata 2 and 13 of the Gazebo study).
//!
//! Cost is *per step* if all scenarios have steps, else per second of wall time, else in percent of the scenario's weight. It
//! is also in percent if a capture's coverage is below [50 %](crate::query::coverage::LEAST_PERCENT): shares of few samples
//! must not be turned into time (erratum 3). With steps, samples before the first and after the last do not count. In the
//! loading phase everything counts, and costs are per second of wall time: it has few steps, which do not represent it.
//!
//! `cost` is the mean over scenarios. A scenario without the function counts as zero, so that rows still add up. Other columns
//! have the range, the number of scenarios with the function, and the worst scenario: the one with its largest cost
//! (erratum 9).
//!
//! # Score
//! The study's composite of a scenario's evidence, 0 to 100, from [exact values](score) (erratum 8), with up to 20 points more
//! for allocations and system calls, which the study had no points for:
//!
//! | dimension | points |
//! |---|---|
//! | cpu | attributed share above 10 %: 40; 5 to 10 %: 25; 1 to 5 %: 10 |
//! | cache | share of cache misses over share of CPU above 2.0: 20; above 1.3: 10; from 0.5 % of the CPU time on |
//! | offcpu | among the 5 callers with most blocked time: 15; among the first 10: 8; from 0.5 % of the wall time on |
//! | sharing | share of modified-line hits above 5 %: 15; 1 to 5 %: 8 |
//! | sched | runs on a thread that is [flagged](crate::analyses::sched) for delays that recorded threads cause: 10 |
//! | heap | cost of its allocations, estimated as 40 ns each and 0.1 ns a byte: from 5 % of the CPU time on 6, from 1 % on 3; that of its temporary ones: from 1 % on 4, from 0.5 % on 2 |
//! | syscalls | time in its calls that do not wait for others: from 5 % of the CPU time on 6, from 1 % on 3; 10 calls or more in a step (without steps: in a millisecond) that take 0.5 % of the CPU time: 4 |
//!
//! Allocations and system calls of functions with less than 0.5 % of the CPU time give no points.
//!
//! A dimension that was not recorded gives no points and lowers the highest possible score (`score_max`); `evidence` lists
//! the recorded dimensions with their points. A function's score is that of the scenario in which it is highest. Missing
//! data are not zero: without cache misses of the same scenario there is no ratio (erratum 5).
//!
//! Delays that other programs cause give no points: see `sched`.
//!
//! # Joins
//! Evidence of several captures is joined only if scenario, variant, phase, command and build are the same. (A join by file
//! names paired loading with runtime, and one world with another's misses: erratum 4.) Notes name other captures. A table is
//! about one phase; captures whose phase is unknown are ranked apart from those with one, and so are captures that need not
//! [count the same](pairing::alike). Functions are joined by exact name and module (erratum 5), or by what
//! [tools print differently](crate::query::partners) of them, delays with functions on the delayed threads
//! only (erratum 10), waits by nearest owned caller (erratum 11). Ties are ordered by the other figure, then by name
//! (erratum 16).
//!
//! If no code is marked as owned, costs are attributed to the nearest function outside run-time libraries and the kernel.

mod costs;
pub(crate) mod extent;
pub mod pairing;
pub mod score;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Add;

use stepscope_model::{Column, Columns, Importance, Note, Phase, Table, Value, note};

use self::costs::Costs;
use self::extent::{Extent, cost_column};
use self::pairing::Scenario;
use self::score::Score;
use crate::analyses::hotspots::Hotspots;
use crate::notes::{ownership_note, ownership_option};
use crate::query::basis::Basis;
use crate::query::functions::Identity;
use crate::query::select::Selection;
use crate::query::weights::percent;

/// How to rank.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// Order of the rows.
    pub by: Order,
    /// The phase to rank; by default `steady` if any capture is of it.
    pub phase: Option<Phase>,
}

/// What the rows are ordered by; ties by the other one, then by name and module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Cost, the mean over scenarios.
    #[default]
    Cost,
    /// Inclusive cost, the mean over scenarios.
    Inclusive,
    /// The composite score.
    Score,
}

/// A function's place in the rank.
struct Ranked<'a> {
    function: Identity,
    cost: f64,
    inclusive: f64,
    least: f64,
    most: f64,
    worst: Option<&'a Costs>,
    scenarios: u64,
    score: Score,
    scored_in: &'a Costs,
}

/// The table `rank` of each group of captures that are [known to be alike](pairing::alike).
pub fn tables(selections: &[Selection<'_>], options: &Options) -> Vec<Table> {
    pairing::each_alike(selections, |alike| table(alike, options))
}

/// The table `rank` of captures that count the same.
pub fn table(selections: &[Selection<'_>], options: &Options) -> Table {
    let [table] = in_orders(selections, options.phase, [options.by]);
    table
}

/// The same in several orders, whose costs are computed once.
pub fn in_orders<const N: usize>(selections: &[Selection<'_>], phase: Option<Phase>, orders: [Order; N]) -> [Table; N] {
    let mut notes = Vec::new();
    let phase = pairing::phase(selections, phase);
    let scenarios = pairing::pair(selections, phase, &mut notes);
    let all: Vec<Costs> = scenarios.iter().map(Costs::of).collect();
    let costs: Vec<&Costs> = all.iter().filter(|costs| costs.has_cpu()).collect();
    let extents: Vec<(&str, &Extent)> = costs.iter().map(|one| (one.label.as_str(), &one.extent)).collect();
    let basis = extent::common_basis(&extents, &mut notes);
    let ordered = |by| {
        let mut ranked = rank(&costs, basis, by);
        ranked.sort_by(|a, b| a.compare(b, by));
        table_columns(&costs, basis, by).table("rank", title(by, phase), ranked.iter().enumerate())
    };
    let mut said: Vec<Note> =
        costs.iter().map(|one| one.extent.note(one.under_owned, basis).about(&one.label)).collect();
    said.extend(costs.iter().filter_map(|one| Some(one.extent.loading_note()?.about(&one.label))));
    said.extend(scenarios.iter().flat_map(Scenario::apart));
    said.extend(costs.iter().filter_map(|one| Some(one.other_run_note()?.about(&one.label))));
    said.extend(all.iter().filter(|costs| !costs.has_cpu()).map(|one| {
        note!(Loss, "Not used: no CPU samples, and no capture of the same scenario that has some.").about(&one.label)
    }));
    said.append(&mut notes);
    said.extend(ownership_note(selections));
    let unnamed = |one: &Selection<'_>| Some(Hotspots::of(one).unnamed_note(one)?.about(one.capture().info.name()));
    said.extend(selections.iter().filter_map(unnamed));
    let is_known = |selection: &Selection<'_>| selection.functions().ownership_known();
    if let Some(first) = selections.first().filter(|_| !selections.iter().any(is_known)) {
        said.push(note!(
            Hint,
            "No code is marked as owned, so costs are attributed to the nearest function outside run-time libraries and \
             the kernel. Name your own, perhaps with `{}`.",
            ownership_option(first)
        ));
    }
    orders.map(|by| {
        let mut table = ordered(by);
        table.add_notes(said.iter().cloned());
        table
    })
}

fn rank<'a>(costs: &[&'a Costs], basis: Basis, by: Order) -> Vec<Ranked<'a>> {
    let functions: BTreeSet<&Identity> = costs.iter().flat_map(|one| one.functions()).collect();
    let ranked = functions.into_iter().filter_map(|function| Ranked::of(function, costs, basis));
    // A wrapper that has only its callees' cost is of interest in the order of inclusive cost alone.
    ranked.filter(|one| one.scenarios > 0 || one.score.points > 0 || by == Order::Inclusive).collect()
}

impl<'a> Ranked<'a> {
    /// `None` if there are no scenarios.
    fn of(function: &Identity, costs: &[&'a Costs], basis: Basis) -> Option<Self> {
        let in_scenario =
            |one: &&'a Costs| (*one, one.attributed(function), one.extent.cost(one.attributed(function), basis));
        let found: Vec<(&Costs, u128, f64)> =
            costs.iter().map(in_scenario).filter(|(_, attributed, _)| *attributed > 0).collect();
        // Of equal ones the first by label: a later one must be strictly worse.
        let worse = |a: &(&'a Costs, u128, f64), b: &(&'a Costs, u128, f64)| {
            a.2.total_cmp(&b.2).then_with(|| b.0.label.cmp(&a.0.label))
        };
        let worst = found.iter().copied().max_by(worse);
        let scored = costs.iter().map(|one| (*one, Score::of(&one.evidence(function))));
        let (scored_in, score) = scored.max_by(|(a, a_score), (b, b_score)| {
            let cost = |one: &Costs| one.extent.cost(one.attributed(function), basis);
            let by_cost = || cost(a).total_cmp(&cost(b)).then_with(|| b.label.cmp(&a.label));
            a_score.points.cmp(&b_score.points).then_with(by_cost)
        })?;
        let inclusive = |one: &&'a Costs| one.extent.cost(one.inclusive(function), basis);
        Some(Self {
            function: function.clone(),
            cost: found.iter().fold(0.0, |sum, (.., cost)| sum + cost) / costs.len() as f64,
            inclusive: costs.iter().map(inclusive).fold(0.0, Add::add) / costs.len() as f64,
            least: found.iter().map(|(.., cost)| *cost).min_by(f64::total_cmp).unwrap_or(0.0),
            most: worst.map_or(0.0, |(.., cost)| cost),
            worst: worst.map(|(one, ..)| one),
            scenarios: found.len() as u64,
            score,
            scored_in,
        })
    }

    fn compare(&self, other: &Self, by: Order) -> Ordering {
        let cost = other.cost.total_cmp(&self.cost);
        let score = other.score.points.cmp(&self.score.points);
        let ordered = match by {
            Order::Cost => cost.then(score),
            Order::Inclusive => other.inclusive.total_cmp(&self.inclusive).then(cost),
            Order::Score => score.then(cost),
        };
        ordered.then_with(|| self.function.cmp(&other.function))
    }
}

fn title(by: Order, phase: Option<Phase>) -> String {
    let by = match by {
        Order::Cost => "cost",
        Order::Inclusive => "inclusive cost",
        Order::Score => "score",
    };
    match phase {
        Some(phase) => format!("Rank by {by}, {phase} phase"),
        None => format!("Rank by {by}"),
    }
}

/// The columns. Rows are places, from 0, and the functions there.
fn table_columns<'a>(costs: &[&'a Costs], basis: Basis, by: Order) -> Columns<'a, (usize, &'a Ranked<'a>)> {
    let unit = costs.first().map_or("", |one| one.extent.unit.as_str());
    let cost = |name: &str, doc: &str| cost_column(name, unit, basis, doc);
    let share =
        |one: &Ranked<'_>| one.worst.and_then(|worst| percent(worst.attributed(&one.function), worst.extent.total));
    let all = costs.to_vec();
    let most_inclusive = move |one: &Ranked<'_>| {
        let shares = all.iter().filter_map(|costs| percent(costs.inclusive(&one.function), costs.extent.total));
        shares.max_by(f64::total_cmp)
    };
    let inclusive = if by == Order::Inclusive { Importance::Essential } else { Importance::Detail };
    let among_several = if costs.len() > 1 { Importance::Normal } else { Importance::Detail };
    let mut columns = Columns::<(usize, &'a Ranked<'a>)>::new()
        .count("rank", "", "Place in the order of the table.", |(place, _)| Value::from(*place + 1))
        .text("function", "Full name of the function that costs are attributed to.", |(_, one)| {
            (&*one.function.name).into()
        })
        .text("module", "File name of its module; empty where unknown.", |(_, one)| (&*one.function.module).into())
        .with(
            cost(
                "cost",
                "Attributed cost: the mean over all scenarios, absence counting as zero. The column adds \
                up to the cost under owned code.",
            )
            .essential(),
            |(_, one)| one.cost.into(),
        )
        .with(
            cost("inclusive", "Cost with all that it calls: the mean over all scenarios.").at(inclusive),
            |(_, one)| one.inclusive.into(),
        )
        .with(
            Column::text("worst_scenario", "The scenario in which its cost is largest.").at(among_several),
            |(_, one)| one.worst.map(|worst| worst.label.as_str()).into(),
        )
        .percentage("share", "Attributed weight in percent of all weight, in the worst scenario.", move |(_, one)| {
            share(one)
        })
        .percentage(
            "inclusive_share",
            "Inclusive weight in percent of all weight, in the scenario where that is largest.",
            move |(_, one)| most_inclusive(one),
        )
        .count("scenarios", "scenarios", "Number of scenarios in which it costs anything.", |(_, one)| one.scenarios)
        .with(cost("cost_min", "Its least cost over those scenarios.").detail(), |(_, one)| one.least.into())
        .with(cost("cost_max", "Its largest cost over those scenarios: that of the worst one.").detail(), |(_, one)| {
            one.most.into()
        })
        .count("score", "points", "Composite score, in the scenario in which it is highest.", |(_, one)| {
            one.score.points
        })
        .count("score_max", "points", "Highest score that the evidence of that scenario allows.", |(_, one)| {
            one.score.reachable
        })
        .text("score_scenario", "The scenario in which the score is highest.", |(_, one)| {
            one.scored_in.label.as_str().into()
        })
        .text("evidence", "Points of each recorded dimension, of the most that it can give.", |(_, one)| {
            one.score.to_string().into()
        })
        .number(
            "cache_ratio",
            "",
            "Share of cache misses over share of CPU, in that scenario: above 1.3 is cache-hostile. \
                Missing without cache evidence.",
            |(_, one)| one.scored_in.evidence(&one.function).cache_ratio(),
        )
        .count("offcpu_place", "", "Place among the callers with most blocked time, in that scenario.", |(_, one)| {
            one.scored_in.evidence(&one.function).blocked_place.flatten()
        })
        .duration("blocked", "Blocked time attributed to it, in that scenario.", |(_, one)| {
            one.scored_in.blocked_ns(&one.function)
        })
        .flag("delayed", "Whether it runs on a thread that recorded threads delay, in that scenario.", |(_, one)| {
            one.scored_in.evidence(&one.function).delayed
        })
        .number(
            "allocations_per_step",
            "allocations",
            "Its allocations in a step of that scenario; missing without steps.",
            |(_, one)| one.scored_in.allocations_per_step(&one.function).map(|of| of.calls),
        )
        .number("temporary_per_step", "allocations", "The temporary ones among them.", |(_, one)| {
            one.scored_in.allocations_per_step(&one.function).map(|of| of.temporary)
        })
        .bytes("bytes_per_step", "Their bytes.", |(_, one)| {
            one.scored_in.allocations_per_step(&one.function).map(|of| of.bytes)
        })
        .number(
            "system_calls_per_step",
            "calls",
            "Its system calls in a step of that scenario; missing without steps.",
            |(_, one)| one.scored_in.system_calls_per_step(&one.function).map(|of| of.count),
        )
        .duration("system_call_time_per_step", "Time within those that do not wait for others.", |(_, one)| {
            one.scored_in.system_calls_per_step(&one.function).map(|of| of.busy_ns)
        })
        .essential("function share")
        .detail("allocations_per_step temporary_per_step bytes_per_step system_calls_per_step system_call_time_per_step")
        .detail("module inclusive_share scenarios score_max score_scenario evidence cache_ratio offcpu_place blocked delayed");
    if costs.len() > 1 {
        for one in costs.iter().copied() {
            let place = |part: &str| format!("{part}.{}", one.label);
            let (doc, all) = (format!("Attributed share of all weight in {}.", one.label), one.extent.total);
            let with_callees = format!("Inclusive share of all weight in {}.", one.label);
            columns = columns
                .with(
                    Column::percentage(&place("share"), &doc).labelled(format!("share {}", one.label)).detail(),
                    move |(_, ranked)| percent(one.attributed(&ranked.function), all).into(),
                )
                .with(
                    Column::percentage(&place("inclusive_share"), &with_callees).labelled(&one.label).at(match by {
                        Order::Inclusive => Importance::Normal,
                        _ => Importance::Detail,
                    }),
                    move |(_, ranked)| percent(one.inclusive(&ranked.function), all).into(),
                );
        }
    }
    columns
}

#[cfg(test)]
mod tests;
