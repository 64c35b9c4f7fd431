//! [`Posterior`]: every shape that the data allow, with its probability.

use super::law::{Law, Shape};
use super::table::{Likelihood, Table};
use crate::interval::Estimate;
use crate::student;

/// Prior probability that a law has no fixed part.
const WITHOUT_OFFSET: f64 = 0.4;

/// Prior probability of the free law over that of each other: it stands for all laws that are not listed.
const FREE: f64 = 2.0;

/// Exponents of the free law.
const EXPONENTS: (f64, f64) = (-1.0, 4.0);

/// The least share of a fixed part at the size of least cost, and the least growth over a fixed part.
const LEAST_OFFSET: f64 = 0.03;
const LEAST_GROWTH: f64 = 0.1;

/// Cells of a grid: the first over its whole range, the second where the likelihood is.
const COARSE: usize = 14;
const FINE: usize = 18;
const COARSE_EXPONENTS: usize = 41;
const FINE_EXPONENTS: usize = 33;

/// A likelihood lower by this factor, as logarithm, counts as nothing.
const NEGLIGIBLE: f64 = 9.0;

/// Lower edges of the parts of a cell's t distribution up to its middle. The middle of each part stands for it.
const PARTS: [f64; 9] = [0.0, 0.01, 0.02, 0.03, 0.06, 0.12, 0.22, 0.36, 0.5];

/// A shape with its probability and its level.
#[derive(Debug, Clone, Copy)]
struct Cell {
    ln_weight: f64,
    shape: Shape,
    likelihood: Likelihood,
}

#[derive(Debug, Clone)]
pub(super) struct Posterior {
    cells: Vec<(f64, Cell)>,
    nodes: Vec<Node>,
}

/// A quantile of the t distribution, and the probability of the part that it stands for.
#[derive(Debug, Clone, Copy)]
struct Node {
    t: f64,
    weight: f64,
}

/// The exponent of the free law, over all fixed parts and without any.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exponents {
    pub with_offset: Estimate,
    pub without_offset: Estimate,
}

/// The laws with their probabilities, the most probable first, all shapes, and the exponent.
pub(super) fn of(table: &Table) -> (Vec<(Law, f64)>, Posterior, Exponents) {
    let mut cells = Vec::new();
    let mut laws = Vec::new();
    let mut exponents = None;
    for law in Law::ALL {
        let mut of_law: Vec<Cell> = match law.powers() {
            // The logarithm of 1 is 0, which has no logarithm.
            Some((_, logs)) if logs > 0.0 && table.sizes[0] <= 1.0 => Vec::new(),
            Some((power, logs)) => of_powers(table, power, logs, true),
            None => {
                let all = of_free(table, true);
                exponents =
                    Some(Exponents { with_offset: exponent(&all), without_offset: exponent(&of_free(table, false)) });
                all.into_iter().flatten().collect()
            }
        };
        let ln_prior = if law == Law::Free { FREE.ln() } else { 0.0 };
        of_law.iter_mut().for_each(|cell| cell.ln_weight += ln_prior);
        laws.push((law, ln_sum(&of_law)));
        cells.extend(of_law);
    }
    let most = laws.iter().map(|(_, ln)| *ln).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = laws.iter().map(|(_, ln)| (ln - most).exp()).sum();
    laws.iter_mut().for_each(|(_, ln)| *ln = (*ln - most).exp() / total);
    laws.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    (laws, Posterior::new(cells, table.degrees), exponents.expect("the free law is among all laws"))
}

/// All shapes of a power of n and of log n. Their weights add up to the likelihood, averaged over fixed parts.
fn of_powers(table: &Table, power: f64, logs: f64, offsets: bool) -> Vec<Cell> {
    let scale = *table.sizes.last().expect("a table has two sizes");
    let growing: Vec<f64> = table.sizes.iter().map(|&n| Shape::ln_growing(power, logs, scale, n).exp()).collect();
    let mut ln_shape = vec![0.0; growing.len()];
    let mut cell = |offset: f64| {
        ln_shape.iter_mut().zip(&growing).for_each(|(ln, growing)| *ln = (offset + growing).ln());
        let likelihood = table.likelihood(&ln_shape);
        Cell { ln_weight: likelihood.ln, shape: Shape { power, logs, offset, scale }, likelihood }
    };
    let mut cells = vec![cell(0.0)];
    let least = growing.iter().copied().fold(f64::INFINITY, f64::min);
    let most = growing.iter().copied().fold(0.0, f64::max);
    let (low, high) = (LEAST_OFFSET * least, (most - least) / LEAST_GROWTH - least);
    if !offsets || high <= low {
        return cells;
    }
    cells[0].ln_weight += WITHOUT_OFFSET.ln();
    let ln_density = (1.0 - WITHOUT_OFFSET).ln() - (high / low).ln().ln();
    let mut grid = |from: f64, to: f64, count: usize| -> Vec<(f64, Cell)> {
        let width = (to - from) / count as f64;
        let at = |index: usize| from + width * (index as f64 + 0.5);
        (0..count)
            .map(|index| {
                let mut cell = cell(at(index).exp());
                cell.ln_weight += ln_density + width.ln();
                (at(index), cell)
            })
            .collect()
    };
    let coarse = grid(low.ln(), high.ln(), COARSE);
    let (from, to) = range_of_weight(&coarse, low.ln(), high.ln());
    cells.extend(grid(from, to, FINE).into_iter().map(|(_, cell)| cell));
    cells
}

/// All shapes of each exponent.
fn of_free(table: &Table, offsets: bool) -> Vec<Vec<Cell>> {
    let (low, high) = EXPONENTS;
    let ln_density = -(high - low).ln();
    let grid = |from: f64, to: f64, count: usize| -> Vec<(f64, Vec<Cell>)> {
        let width = (to - from) / count as f64;
        let at = |index: usize| from + width * (index as f64 + 0.5);
        (0..count)
            .map(|index| {
                let mut cells = of_powers(table, at(index), 0.0, offsets);
                cells.iter_mut().for_each(|cell| cell.ln_weight += ln_density + width.ln());
                (at(index), cells)
            })
            .collect()
    };
    let summed = |grid: &[(f64, Vec<Cell>)]| -> Vec<(f64, Cell)> {
        grid.iter().map(|(at, cells)| (*at, Cell { ln_weight: ln_sum(cells), ..cells[0] })).collect()
    };
    let (mut from, mut to) = (low, high);
    for count in [COARSE_EXPONENTS, COARSE_EXPONENTS / 2] {
        (from, to) = range_of_weight(&summed(&grid(from, to, count)), from, to);
    }
    grid(from, to, FINE_EXPONENTS).into_iter().map(|(_, cells)| cells).collect()
}

/// The part of a grid from `low` to `high` that is not negligible, with a cell on both sides.
fn range_of_weight(grid: &[(f64, Cell)], low: f64, high: f64) -> (f64, f64) {
    let most = grid.iter().map(|(_, cell)| cell.ln_weight).fold(f64::NEG_INFINITY, f64::max);
    let width = (high - low) / grid.len() as f64;
    let counts = |(_, cell): &&(f64, Cell)| cell.ln_weight > most - NEGLIGIBLE;
    let first = grid.iter().find(counts).map_or(low, |(at, _)| at - 1.5 * width);
    let last = grid.iter().rev().find(counts).map_or(high, |(at, _)| at + 1.5 * width);
    (first.max(low), last.min(high))
}

fn ln_sum(cells: &[Cell]) -> f64 {
    let most = cells.iter().map(|cell| cell.ln_weight).fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + cells.iter().map(|cell| (cell.ln_weight - most).exp()).sum::<f64>().ln()
}

/// Median and 95 % interval of the exponent, linear between the edges of the grid's cells.
fn exponent(grid: &[Vec<Cell>]) -> Estimate {
    let powers: Vec<f64> = grid.iter().map(|cells| cells[0].shape.power).collect();
    let ln: Vec<f64> = grid.iter().map(|cells| ln_sum(cells)).collect();
    let most = ln.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = ln.iter().map(|ln| (ln - most).exp()).collect();
    let total: f64 = weights.iter().sum();
    let width = powers[1] - powers[0];
    let quantile = |probability: f64| {
        let mut left = probability * total;
        for (power, weight) in powers.iter().zip(&weights) {
            if left <= *weight {
                return power + width * (left / weight - 0.5);
            }
            left -= weight;
        }
        powers[powers.len() - 1] + width / 2.0
    };
    // Finer differences are those of the grid.
    let rounded = |probability: f64| (quantile(probability) * 1e6).round() / 1e6 + 0.0;
    Estimate { value: rounded(0.5), low: rounded(0.025), high: rounded(0.975) }
}

impl Posterior {
    fn new(mut cells: Vec<Cell>, degrees: f64) -> Self {
        let total = ln_sum(&cells);
        cells.sort_by(|a, b| b.ln_weight.total_cmp(&a.ln_weight));
        let weighted = cells.into_iter().map(|cell| ((cell.ln_weight - total).exp(), cell));
        let cells = weighted.take_while(|(weight, _)| *weight > 1e-5).collect();
        let lower = PARTS.windows(2).map(|edges| Node {
            t: student::quantile(f64::midpoint(edges[0], edges[1]), degrees),
            weight: edges[1] - edges[0],
        });
        let lower: Vec<Node> = lower.collect();
        let upper: Vec<Node> = lower.iter().map(|node| Node { t: -node.t, ..*node }).collect();
        Self { cells, nodes: [lower, upper].concat() }
    }

    pub fn predict(&self, n: f64) -> Estimate {
        self.cost(n, |likelihood| likelihood.level_variance + likelihood.run_variance)
    }

    pub fn expect(&self, n: f64) -> Estimate {
        self.cost(n, |likelihood| likelihood.level_variance)
    }

    fn cost(&self, n: f64, variance: fn(&Likelihood) -> f64) -> Estimate {
        let at = self.cells.iter().flat_map(|(weight, cell)| {
            let middle = cell.likelihood.level + cell.shape.ln_at(n);
            let deviation = variance(&cell.likelihood).sqrt();
            self.nodes.iter().map(move |node| (middle + node.t * deviation, weight * node.weight))
        });
        let Estimate { value, low, high } = unsorted_quantiles(&at.collect::<Vec<_>>());
        Estimate { value: value.exp(), low: low.exp(), high: high.exp() }
    }

    pub fn information(&self, n: f64) -> f64 {
        let total: f64 = self.cells.iter().map(|(weight, _)| weight).sum();
        let mean = |value: &dyn Fn(&Cell) -> f64| {
            self.cells.iter().map(|(weight, cell)| weight * value(cell)).sum::<f64>() / total
        };
        let at = |cell: &Cell| cell.likelihood.level + cell.shape.ln_at(n);
        let middle = mean(&at);
        let variance = mean(&|cell| (at(cell) - middle).powi(2) + cell.likelihood.level_variance);
        0.5 * (1.0 + variance / mean(&|cell| cell.likelihood.run_variance)).log2()
    }

    pub fn reach(&self, cost: f64, smallest: f64, largest: f64) -> Estimate {
        let at = self.cells.iter().flat_map(|(weight, cell)| {
            let deviation = cell.likelihood.level_variance.sqrt();
            let size = move |t: f64| {
                size_of(&cell.shape, cost.ln() - cell.likelihood.level - t * deviation, smallest, largest)
            };
            self.nodes.iter().map(move |node| (size(node.t), weight * node.weight))
        });
        unsorted_quantiles(&at.collect::<Vec<_>>())
    }
}

/// The size at which a shape reaches `ln`: 0 below `smallest`, infinite above `largest`.
fn size_of(shape: &Shape, ln: f64, smallest: f64, largest: f64) -> f64 {
    if shape.ln_at(smallest) >= ln {
        return 0.0;
    }
    if shape.ln_at(largest) < ln {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (smallest.ln(), largest.ln());
    while high - low > 1e-5 {
        let middle = f64::midpoint(low, high);
        if shape.ln_at(middle.exp()) < ln { low = middle } else { high = middle }
    }
    f64::midpoint(low, high).exp()
}

/// Ranges of values that are added up before any value is sorted.
const RANGES: usize = 512;

/// Median and 95 % interval of weighted values. Only the values near a quantile are sorted: a prediction has some ten thousand, and a report
/// thousands of predictions.
fn unsorted_quantiles(values: &[(f64, f64)]) -> Estimate {
    let finite = values.iter().map(|(value, _)| *value).filter(|value| value.is_finite());
    let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most): (f64, f64), value| {
        (least.min(value), most.max(value))
    });
    let scale = RANGES as f64 / (most - least);
    // Not below that of a smaller value, also of infinite ones.
    let range_of = |value: f64| match scale.is_finite() && scale > 0.0 {
        true => (((value - least) * scale) as usize).min(RANGES - 1),
        false => 0,
    };
    let mut weights = [0.0; RANGES];
    values.iter().for_each(|(value, weight)| weights[range_of(*value)] += weight);
    let total: f64 = weights.iter().sum();
    let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
    let quantile = |probability: f64| {
        let (mut left, mut at) = (probability * total, 0);
        while at < last && left > weights[at] {
            left -= weights[at];
            at += 1;
        }
        let mut near: Vec<(f64, f64)> = values.iter().filter(|(value, _)| range_of(*value) == at).copied().collect();
        near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        reaching(&near, left)
    };
    Estimate { value: quantile(0.5), low: quantile(0.025), high: quantile(0.975) }
}

/// The first of sorted values up to which the weights add up to `sum`, else the last one.
fn reaching(values: &[(f64, f64)], sum: f64) -> f64 {
    let mut so_far = 0.0;
    let found = values.iter().find(|(_, weight)| {
        so_far += weight;
        so_far >= sum
    });
    found.or(values.last()).map_or(f64::NAN, |(value, _)| *value)
}

/// The same of sorted values.
pub(crate) fn quantiles(values: &[(f64, f64)]) -> Estimate {
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let quantile = |probability: f64| reaching(values, probability * total);
    Estimate { value: quantile(0.5), low: quantile(0.025), high: quantile(0.975) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), Just(f64::INFINITY), -1e3..1e3, -1e-3..1e-3]
    }

    proptest! {
        /// Weights whose sums are exact, so that their order does not matter.
        #[test]
        fn quantiles_of_unsorted_values_are_those_of_sorted_ones(
            values in prop::collection::vec((value(), 1..100_u32), 1..300),
        ) {
            let values: Vec<(f64, f64)> = values.into_iter().map(|(value, weight)| (value, f64::from(weight))).collect();
            let mut sorted = values.clone();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            prop_assert_eq!(unsorted_quantiles(&values), quantiles(&sorted));
        }
    }

    #[test]
    fn no_value_has_no_quantile() {
        assert!(unsorted_quantiles(&[]).value.is_nan());
    }
}
