//! [`ChangeSearch`]: lasting changes in a series of runs.
//!
//! This is E-divisive with a permutation test (Matteson and James, *A Nonparametric Approach for Multiple Change Point
//! Analysis of Multivariate Data*, JASA 109, 2014). MongoDB uses it on continuous benchmarks (Daly et al., *The Use of
//! Change Point Detection to Identify Software Performance Regressions*, ICPE 2020), Hunter on Cassandra's (Fleming et
//! al., ICPE 2023). It assumes no distribution and no number of changes, and also finds changes of scatter.
//!
//! # Statistic
//! The energy distance between the m points before a position and the n points after it, within one segment:
//!
//! ```text
//! q = m n / (m + n) · (2 mean |x - y|  -  mean |x - x'|  -  mean |y - y'|)
//! ```
//!
//! Means are over pairs of points from both sides, or from one. The position with the largest q of all segments is the
//! next candidate. The right end is the end of the segment, as in MongoDB's version; the original also tries earlier
//! ends.
//!
//! # Test
//! The points within each segment are shuffled. p is the share of shuffles, the data included, whose largest q reaches
//! the candidate's. A significant candidate divides its segment and the search continues; it ends at the first
//! candidate that is not significant. So a series without a change has a false one with probability `alpha` at most, at
//! any length.
//!
//! # Limits
//! Points are assumed independent. A slow trend is divided into several steps: a change is real, its position
//! arbitrary. Nothing is found within [`ChangeSearch::least`] points of either end.
//!
//! # Speed
//! In one dimension, the sum of distances to earlier points follows from the number and the sum of the smaller ones,
//! held in a Fenwick tree. The sum to later points follows from the total, which shuffling does not change. A shuffle
//! takes O(n log n) instead of O(n^2). Shuffling stops when the candidate cannot become significant.

use crate::random::SplitMix64;

/// A lasting change in a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first point after the change.
    pub position: usize,
    /// The p-value of the permutation test.
    pub p: f64,
    /// Mean of the points from the previous change (or the start) to this one.
    pub before: f64,
    /// Mean of the points from this change to the next (or the end).
    pub after: f64,
}

/// Parameters of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeSearch {
    /// Significance level: the probability of a false change in a series without one is at most this.
    pub alpha: f64,
    /// Number of shuffles; `1 / (shuffles + 1)` is the smallest p.
    pub shuffles: usize,
    /// Minimum number of points between changes, and between a change and an end; at least 1.
    pub least: usize,
    /// Seed of the generator.
    pub seed: u64,
}

impl Default for ChangeSearch {
    /// Level 0.01, 999 shuffles, segments of 3 points or more.
    fn default() -> Self {
        Self { alpha: 0.01, shuffles: 999, least: 3, seed: 1 }
    }
}

impl ChangeSearch {
    /// The changes of a series, by position. Empty if a value is not finite.
    pub fn find(&self, series: &[f64]) -> Vec<ChangePoint> {
        if !series.iter().all(|value| value.is_finite()) {
            return Vec::new();
        }
        let least = self.least.max(1);
        let mut random = SplitMix64::new(self.seed);
        let mut segments: Vec<Segment> = Segment::new(series, 0, least).into_iter().collect();
        let mut found: Vec<(usize, f64)> = Vec::new();
        while let Some(best) = largest(&segments) {
            let Some(p) = self.significance(&segments, segments[best].energy, least, &mut random) else {
                break;
            };
            let cut = segments.swap_remove(best);
            found.push((cut.start + cut.place, p));
            let (first, second) = series[cut.start..cut.start + cut.points.len()].split_at(cut.place);
            segments.extend(Segment::new(first, cut.start, least));
            segments.extend(Segment::new(second, cut.start + cut.place, least));
        }
        found.sort_unstable_by_key(|(position, _)| *position);
        with_means(series, &found)
    }

    /// The p-value of a candidate, or `None` if it is above the level.
    fn significance(&self, segments: &[Segment], energy: f64, least: usize, random: &mut SplitMix64) -> Option<f64> {
        let all = (self.shuffles + 1) as f64;
        let mut shuffled: Vec<Vec<Point>> = segments.iter().map(|segment| segment.points.clone()).collect();
        let mut reached = 1;
        for _ in 0..self.shuffles {
            if f64::from(reached) / all > self.alpha {
                return None;
            }
            let reaches = shuffled.iter_mut().fold(false, |reaches, points| {
                random.shuffle(points);
                reaches || best_place(points, least).is_some_and(|(_, found)| found >= energy * (1.0 - TIE))
            });
            reached += i32::from(reaches);
        }
        let p = f64::from(reached) / all;
        (p <= self.alpha).then_some(p)
    }
}

/// Relative difference up to which energies count as equal, because they are summed in different orders.
const TIE: f64 = 1e-9;

fn largest(segments: &[Segment]) -> Option<usize> {
    (0..segments.len())
        .filter(|index| segments[*index].energy > 0.0)
        .max_by(|a, b| segments[*a].energy.total_cmp(&segments[*b].energy))
}

fn with_means(series: &[f64], found: &[(usize, f64)]) -> Vec<ChangePoint> {
    let mean = |range: std::ops::Range<usize>| series[range.clone()].iter().sum::<f64>() / range.len() as f64;
    let position = |index: Option<usize>, otherwise: usize| {
        index.and_then(|index| found.get(index)).map_or(otherwise, |(position, _)| *position)
    };
    let point = |(index, (place, p)): (usize, &(usize, f64))| ChangePoint {
        position: *place,
        p: *p,
        before: mean(position(index.checked_sub(1), 0)..*place),
        after: mean(*place..position(Some(index + 1), series.len())),
    };
    found.iter().enumerate().map(point).collect()
}

/// A value of a segment.
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    value: f64,
    /// Its rank among the values of its segment.
    rank: u32,
    /// Sum of its distances to all of them, which shuffling does not change.
    distances: f64,
}

/// A part of the series without a change so far, and its best candidate.
struct Segment {
    start: usize,
    points: Vec<Point>,
    place: usize,
    energy: f64,
}

impl Segment {
    /// `None` if it is too short to divide.
    fn new(values: &[f64], start: usize, least: usize) -> Option<Self> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
        // Values minus the smallest one: their sums keep the digits in which they differ.
        let smallest = order.first().map_or(0.0, |first| values[*first]);
        let mut points = vec![Point::default(); values.len()];
        let (mut below, mut above) = (0.0, values.iter().map(|value| value - smallest).sum::<f64>());
        for (rank, index) in order.into_iter().enumerate() {
            let value = values[index] - smallest;
            above -= value;
            let larger = values.len() - rank - 1;
            let distances = value * rank as f64 - below + above - value * larger as f64;
            points[index] = Point { value, rank: rank as u32, distances };
            below += value;
        }
        let (place, energy) = best_place(&points, least)?;
        Some(Self { start, points, place, energy })
    }
}

/// The position with the largest energy, and that energy. `None` if there are too few points.
fn best_place(points: &[Point], least: usize) -> Option<(usize, f64)> {
    if points.len() < 2 * least {
        return None;
    }
    let all = points.iter().map(|point| point.distances).sum::<f64>() / 2.0;
    let mut tree = Fenwick { nodes: vec![(0, 0.0); points.len() + 1], total: 0.0 };
    // Sums of the distances between all pairs of points before the position, and after it.
    let (mut before, mut after, mut best) = (0.0, all, None);
    for (earlier, point) in points[..points.len() - least].iter().enumerate() {
        let to_earlier = tree.distances(*point, earlier);
        tree.add(*point);
        before += to_earlier;
        after -= point.distances - to_earlier;
        let place = earlier + 1;
        if place >= least {
            let energy = energy(before, after, all, [place, points.len() - place]);
            best = best.filter(|(_, largest)| *largest >= energy).or(Some((place, energy)));
        }
    }
    best
}

/// The energy distance of two sides of these sizes, from sums of pair distances.
fn energy(before: f64, after: f64, all: f64, sizes: [usize; 2]) -> f64 {
    let [m, n] = sizes.map(|size| size as f64);
    let mean = |sum: f64, n: f64| if n > 1.0 { sum / (n * (n - 1.0) / 2.0) } else { 0.0 };
    m * n / (m + n) * (2.0 * (all - before - after) / (m * n) - mean(before, m) - mean(after, n))
}

/// Number and sum of the values below a rank (Fenwick, *A New Data Structure for Cumulative Frequency Tables*, 1994).
struct Fenwick {
    /// Node 0 has no values.
    nodes: Vec<(u32, f64)>,
    total: f64,
}

impl Fenwick {
    /// Sum of the distances from a point to the `others` points in the tree.
    fn distances(&self, point: Point, others: usize) -> f64 {
        let (mut node, mut smaller, mut sum) = (point.rank as usize, 0, 0.0);
        while node > 0 {
            smaller += self.nodes[node].0;
            sum += self.nodes[node].1;
            node &= node - 1;
        }
        let larger = others as f64 - f64::from(smaller);
        (f64::from(smaller) - larger) * point.value - sum + (self.total - sum)
    }

    fn add(&mut self, point: Point) {
        self.total += point.value;
        let mut node = point.rank as usize + 1;
        while node < self.nodes.len() {
            self.nodes[node] = (self.nodes[node].0 + 1, self.nodes[node].1 + point.value);
            node += node & node.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(random: &mut SplitMix64, n: usize, level: f64) -> Vec<f64> {
        (0..n).map(|_| level + random.below(1_000) as f64 / 1_000.0).collect()
    }

    fn positions(series: &[f64]) -> Vec<usize> {
        ChangeSearch::default().find(series).iter().map(|point| point.position).collect()
    }

    #[test]
    fn the_energy_is_that_of_the_definition() {
        let values = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        let segment = Segment::new(&values, 0, 1).unwrap();
        // The best position is after the third point: 9 / 6 · (2 · 1 - 0 - 0).
        assert_eq!((segment.place, segment.energy), (3, 3.0));
        assert!(segment.points.iter().all(|point| point.distances == 3.0));
        let values = [5.0, 1.0, 4.0, 4.0, 0.0, 9.0];
        let pairs = |values: &[f64]| -> f64 {
            values.iter().enumerate().flat_map(|(i, x)| values[..i].iter().map(move |y| (x - y).abs())).sum()
        };
        let naive = |place: usize| {
            let (first, second) = values.split_at(place);
            energy(pairs(first), pairs(second), pairs(&values), [first.len(), second.len()])
        };
        let best = (2..=4).map(|place| (place, naive(place))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let segment = Segment::new(&values, 0, 2).unwrap();
        assert_eq!(segment.place, best.0);
        assert!((segment.energy - best.1).abs() < 1e-12);
    }

    #[test]
    fn planted_changes_are_found_at_their_positions() {
        let mut random = SplitMix64::new(2);
        let series: Vec<f64> = [(40, 10.0), (25, 13.0), (35, 11.0)]
            .into_iter()
            .flat_map(|(n, level)| noise(&mut random, n, level))
            .collect();
        let found = ChangeSearch::default().find(&series);
        assert_eq!(found.iter().map(|point| point.position).collect::<Vec<_>>(), [40, 65]);
        assert!(found.iter().all(|point| point.p <= 0.01));
        assert!((found[0].after / found[0].before - 13.5 / 10.5).abs() < 0.02, "{found:?}");
        assert_eq!(found[0].after, found[1].before);
    }

    #[test]
    fn one_outlier_is_no_change() {
        let mut random = SplitMix64::new(3);
        let mut series = noise(&mut random, 60, 10.0);
        series[30] = 1e4;
        assert_eq!(positions(&series), [0_usize; 0]);
        // It hides no change either.
        series[45..].iter_mut().for_each(|value| *value += 5.0);
        assert_eq!(positions(&series), [45]);
    }

    #[test]
    fn a_trend_is_divided_into_steps() {
        let mut random = SplitMix64::new(4);
        let series: Vec<f64> = noise(&mut random, 100, 10.0)
            .iter()
            .enumerate()
            .map(|(index, value)| value + index as f64 / 20.0)
            .collect();
        assert!(positions(&series).len() >= 2);
    }

    #[test]
    fn constant_short_and_infinite_series_have_no_change() {
        assert_eq!(positions(&[0.1; 50]), [0_usize; 0]);
        assert_eq!(positions(&[1.0, 1.0, 5.0, 5.0]), [0_usize; 0]);
        assert_eq!(positions(&[]), [0_usize; 0]);
        assert_eq!(positions(&[f64::NAN; 20]), [0_usize; 0]);
    }

    #[test]
    fn a_step_between_constants_is_exact() {
        let series: Vec<f64> = (0..12).map(|index| if index < 5 { 7.0 } else { 8.0 }).collect();
        let found = ChangeSearch::default().find(&series);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].position, found[0].before, found[0].after), (5, 7.0, 8.0));
    }

    #[test]
    fn false_changes_are_as_rare_as_alpha() {
        let mut random = SplitMix64::new(5);
        let search = ChangeSearch { alpha: 0.05, shuffles: 199, ..ChangeSearch::default() };
        let found = (0..400).filter(|_| !search.find(&noise(&mut random, 30, 1.0)).is_empty()).count();
        assert!((8..=32).contains(&found), "{found} of 400");
    }

    #[test]
    fn equal_seeds_find_equal_changes() {
        let mut random = SplitMix64::new(6);
        let series: Vec<f64> = (0..60).flat_map(|step| noise(&mut random, 4, f64::from(step % 7))).collect();
        assert_eq!(ChangeSearch::default().find(&series), ChangeSearch::default().find(&series));
    }
}
