//! The composite score of a function in one scenario.
//!
//! Thresholds are applied to exact values: a share is compared as a fraction of whole numbers, never after rounding
//! (erratum 8 of the Gazebo study: 9.96 %, shown as 10.0 %, moved to another band).

use std::fmt;

use stepscope_model::Dimension;

/// A part of a whole, in any unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The part.
    pub part: u128,
    /// The whole.
    pub whole: u128,
}

impl Part {
    /// Whether it is more than `percent` % of the whole, exactly.
    pub fn exceeds(self, percent: u128) -> bool {
        self.part.saturating_mul(100) > self.whole.saturating_mul(percent)
    }

    /// Whether it is `percent` % of the whole or more, exactly.
    pub fn reaches(self, percent: u128) -> bool {
        self.reaches_permille(percent * 10)
    }

    /// Whether it is `permille` thousandths of the whole or more, exactly.
    pub fn reaches_permille(self, permille: u128) -> bool {
        self.whole > 0 && self.part.saturating_mul(1_000) >= self.whole.saturating_mul(permille)
    }
}

/// The study's cost floor, in thousandths: a function below it has no points for cache misses, a caller below it none for
/// blocked time.
const FLOOR_PERMILLE: u128 = 5;

/// A function's figures in a scenario; the outer `None` where the dimension was not recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Attributed weight.
    pub cpu: Option<Part>,
    /// Attributed cache misses; the inner `None` where none of the function's were sampled.
    pub misses: Option<Option<Part>>,
    /// Place among the callers with most blocked time; the inner `None` where it never blocked.
    pub blocked_place: Option<Option<u64>>,
    /// Its blocked time, as a part of wall time; `None` if that is unknown.
    pub blocked: Option<Part>,
    /// Attributed hits of lines that another core had modified.
    pub modified_hits: Option<Part>,
    /// Whether it runs on a thread with scheduler delay.
    pub delayed: Option<bool>,
}

impl Evidence {
    /// Share of cache misses over share of CPU. `None` where either was not measured.
    pub fn cache_ratio(&self) -> Option<f64> {
        let (cpu, misses) = (self.cpu?, self.misses??);
        // Multiplied out, so that ratios of small numbers are exact.
        let below = misses.whole as f64 * cpu.part as f64;
        (below > 0.0).then(|| misses.part as f64 * cpu.whole as f64 / below)
    }

    fn points(&self, dimension: Dimension) -> Option<u32> {
        match dimension {
            Dimension::Cpu => self.cpu.map(|cpu| match cpu {
                _ if cpu.exceeds(10) => 40,
                _ if cpu.reaches(5) => 25,
                _ if cpu.reaches(1) => 10,
                _ => 0,
            }),
            Dimension::Cache => self.misses.map(|_| match self.cache_ratio() {
                _ if !self.cpu.is_some_and(|cpu| cpu.reaches_permille(FLOOR_PERMILLE)) => 0,
                Some(ratio) if ratio > 2.0 => 20,
                Some(ratio) if ratio > 1.3 => 10,
                _ => 0,
            }),
            Dimension::Offcpu => self.blocked_place.map(|place| match place {
                _ if self.blocked.is_some_and(|blocked| !blocked.reaches_permille(FLOOR_PERMILLE)) => 0,
                Some(1..=5) => 15,
                Some(6..=10) => 8,
                _ => 0,
            }),
            Dimension::Sharing => self.modified_hits.map(|hits| match hits {
                _ if hits.exceeds(5) => 15,
                _ if hits.reaches(1) => 8,
                _ => 0,
            }),
            Dimension::Sched => self.delayed.map(|delayed| if delayed { 10 } else { 0 }),
            _ => None,
        }
    }
}

/// The dimensions of the score, each with the most that it can give.
pub const MOST: [(Dimension, u32); 5] = [
    (Dimension::Cpu, 40),
    (Dimension::Cache, 20),
    (Dimension::Offcpu, 15),
    (Dimension::Sharing, 15),
    (Dimension::Sched, 10),
];

/// A composite score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Score {
    /// The points.
    pub points: u32,
    /// The points that the recorded dimensions can give at most.
    pub reachable: u32,
    /// Each recorded dimension with its points and the most that it can give.
    pub by_dimension: Vec<(Dimension, u32, u32)>,
}

impl Score {
    /// The score of this evidence.
    pub fn of(evidence: &Evidence) -> Self {
        let known = MOST.iter().filter_map(|(dimension, most)| Some((*dimension, evidence.points(*dimension)?, *most)));
        let by_dimension: Vec<(Dimension, u32, u32)> = known.collect();
        Self {
            points: by_dimension.iter().map(|(_, points, _)| points).sum(),
            reachable: by_dimension.iter().map(|(.., most)| most).sum(),
            by_dimension,
        }
    }
}

impl fmt::Display for Score {
    /// `cpu 40/40, offcpu 0/15`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (dimension, points, most)) in self.by_dimension.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{dimension} {points}/{most}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(part: u128, whole: u128) -> u32 {
        Score::of(&Evidence { cpu: Some(Part { part, whole }), ..Evidence::default() }).points
    }

    /// Erratum 8.
    #[test]
    fn shares_are_compared_exactly_and_never_rounded_first() {
        assert_eq!(cpu(10_000_000_000_000_001, 100_000_000_000_000_000), 40, "a hair above 10 %");
        assert_eq!(cpu(10, 100), 25, "exactly 10 %");
        assert_eq!(cpu(9_996, 100_000), 25, "9.996 %, shown as 10.0 %");
        assert_eq!(cpu(5, 100), 25, "exactly 5 %");
        assert_eq!(cpu(4_999, 100_000), 10);
        assert_eq!(cpu(1, 100), 10, "exactly 1 %");
        assert_eq!(cpu(999, 100_000), 0);
        assert_eq!(cpu(0, 0), 0);
    }

    #[test]
    fn the_cache_ratio_is_share_over_share() {
        let ratio = |misses: u128| {
            let evidence = Evidence {
                cpu: Some(Part { part: 10, whole: 100 }),
                misses: Some(Some(Part { part: misses, whole: 1_000 })),
                ..Evidence::default()
            };
            (evidence.cache_ratio().unwrap(), evidence.points(Dimension::Cache).unwrap())
        };
        assert_eq!([ratio(130).1, ratio(131).1, ratio(200).1, ratio(201).1], [0, 10, 10, 20]);
        assert_eq!(ratio(150).0, 1.5);
    }

    #[test]
    fn evidence_below_the_cost_floor_gives_no_points() {
        let cache = |part: u128| {
            let cpu = Some(Part { part, whole: 100_000 });
            let misses = Some(Some(Part { part: 10, whole: 100 }));
            Score::of(&Evidence { cpu, misses, ..Evidence::default() }).points
        };
        assert_eq!([cache(1), cache(499), cache(500)], [0, 0, 20]);
        let off_cpu = |part: u128| {
            let blocked = Some(Part { part, whole: 1_000 });
            Score::of(&Evidence { blocked_place: Some(Some(1)), blocked, ..Evidence::default() }).points
        };
        assert_eq!([off_cpu(4), off_cpu(5)], [0, 15]);
    }

    /// Erratum 5.
    #[test]
    fn no_data_is_not_zero() {
        let cpu = Some(Part { part: 50, whole: 100 });
        let unsampled = Evidence { cpu, misses: Some(None), ..Evidence::default() };
        assert_eq!((unsampled.cache_ratio(), Score::of(&unsampled).reachable), (None, 60));
        let unrecorded = Evidence { cpu, ..Evidence::default() };
        assert_eq!((unrecorded.cache_ratio(), Score::of(&unrecorded).reachable), (None, 40));
    }

    #[test]
    fn everything_at_once_is_a_hundred_and_the_evidence_is_named() {
        let all = Evidence {
            cpu: Some(Part { part: 11, whole: 100 }),
            misses: Some(Some(Part { part: 90, whole: 100 })),
            blocked_place: Some(Some(5)),
            blocked: Some(Part { part: 6, whole: 100 }),
            modified_hits: Some(Part { part: 6, whole: 100 }),
            delayed: Some(true),
        };
        let score = Score::of(&all);
        assert_eq!((score.points, score.reachable), (100, 100));
        assert_eq!(score.to_string(), "cpu 40/40, cache 20/20, offcpu 15/15, sharing 15/15, sched 10/10");
    }

    #[test]
    fn places_from_six_to_ten_give_less_and_later_ones_nothing() {
        let at = |place| Score::of(&Evidence { blocked_place: Some(place), ..Evidence::default() }).points;
        assert_eq!([at(Some(1)), at(Some(6)), at(Some(10)), at(Some(11)), at(None)], [15, 8, 8, 0, 0]);
    }
}
