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

    /// The points of the first of these thousandths that it reaches.
    fn grade(self, grades: [(u128, u32); 2]) -> u32 {
        grades.into_iter().find(|(permille, _)| self.reaches_permille(*permille)).map_or(0, |(_, points)| points)
    }

    /// Whether it is `permille` thousandths of the whole or more, exactly.
    pub fn reaches_permille(self, permille: u128) -> bool {
        self.whole > 0 && self.part.saturating_mul(1_000) >= self.whole.saturating_mul(permille)
    }
}

/// The study's cost floor, in thousandths of the CPU time: a function below it has no points for cache misses, allocations and
/// system calls. A caller with less of the wall time has none for blocked time.
pub(crate) const FLOOR_PERMILLE: u128 = 5;

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
    /// Its allocations.
    pub heap: Option<Heap>,
    /// Its system calls.
    pub system_calls: Option<SystemCalls>,
}

/// What a function's allocations cost, [estimated](allocation_cost), as parts of the CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// Of all its allocations.
    pub all: Part,
    /// Of the temporary ones.
    pub temporary: Part,
}

/// A function's system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCalls {
    /// Time within those that do not wait for others, as a part of the CPU time.
    pub time: Part,
    /// Whether there are [many](MANY_CALLS) of them.
    pub are_many: bool,
}

/// What an allocation and its release cost at least, in ns: glibc's own cost where its caches hold the block.
const ALLOCATION_NS: f64 = 40.0;

/// What writing an allocated byte costs, in ns.
const BYTE_NS: f64 = 0.1;

/// Calls in a step, or in a millisecond without steps, that are many.
pub const MANY_CALLS: f64 = 10.0;

/// An estimate of what allocations cost, in ns.
pub fn allocation_cost(calls: f64, bytes: f64) -> f64 {
    calls * ALLOCATION_NS + bytes * BYTE_NS
}

impl Evidence {
    /// Share of cache misses over share of CPU. `None` where either was not measured.
    pub fn cache_ratio(&self) -> Option<f64> {
        let (cpu, misses) = (self.cpu?, self.misses??);
        // Multiplied out, so that ratios of small numbers are exact.
        let below = misses.whole as f64 * cpu.part as f64;
        (below > 0.0).then(|| misses.part as f64 * cpu.whole as f64 / below)
    }

    fn is_below_floor(&self) -> bool {
        !self.cpu.is_some_and(|cpu| cpu.reaches_permille(FLOOR_PERMILLE))
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
                _ if self.is_below_floor() => 0,
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
            Dimension::Heap => self.heap.map(|heap| match heap {
                _ if self.is_below_floor() => 0,
                heap => heap.all.grade([(50, 6), (10, 3)]) + heap.temporary.grade([(10, 4), (5, 2)]),
            }),
            Dimension::Syscalls => self.system_calls.map(|calls| match calls {
                _ if self.is_below_floor() => 0,
                calls => {
                    let are_many = calls.are_many && calls.time.reaches_permille(FLOOR_PERMILLE);
                    calls.time.grade([(50, 6), (10, 3)]) + if are_many { 4 } else { 0 }
                }
            }),
            Dimension::Sched => self.delayed.map(|delayed| if delayed { 10 } else { 0 }),
            _ => None,
        }
    }
}

/// The dimensions of the score, each with the most that it can give.
pub const MOST: [(Dimension, u32); 7] = [
    (Dimension::Cpu, 40),
    (Dimension::Cache, 20),
    (Dimension::Offcpu, 15),
    (Dimension::Sharing, 15),
    (Dimension::Sched, 10),
    (Dimension::Heap, 10),
    (Dimension::Syscalls, 10),
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

    #[test]
    fn allocations_and_system_calls_count_by_what_they_cost_and_not_below_the_floor() {
        let cpu = |part| Some(Part { part, whole: 1_000 });
        let heap = |cpu_part, all, temporary| {
            let part = |part| Part { part, whole: 1_000 };
            let heap = Some(Heap { all: part(all), temporary: part(temporary) });
            Evidence { cpu: cpu(cpu_part), heap, ..Evidence::default() }.points(Dimension::Heap).unwrap()
        };
        assert_eq!([heap(100, 9, 4), heap(100, 10, 0), heap(100, 50, 5), heap(100, 50, 10)], [0, 3, 8, 10]);
        assert_eq!([heap(4, 50, 10), heap(5, 50, 10)], [0, 10]);
        let calls = |cpu_part, time, are_many| {
            let system_calls = Some(SystemCalls { time: Part { part: time, whole: 1_000 }, are_many });
            Evidence { cpu: cpu(cpu_part), system_calls, ..Evidence::default() }.points(Dimension::Syscalls).unwrap()
        };
        assert_eq!(
            [calls(100, 4, true), calls(100, 5, true), calls(100, 10, false), calls(100, 50, true)],
            [0, 4, 3, 10]
        );
        assert_eq!([calls(4, 50, true), calls(5, 50, true)], [0, 10]);
        assert_eq!(allocation_cost(1_000.0, 64_000.0), 46_400.0);
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
    fn everything_at_once_is_a_hundred_and_twenty_and_the_evidence_is_named() {
        let part = Part { part: 6, whole: 100 };
        let all = Evidence {
            cpu: Some(Part { part: 11, whole: 100 }),
            misses: Some(Some(Part { part: 90, whole: 100 })),
            blocked_place: Some(Some(5)),
            blocked: Some(Part { part: 6, whole: 100 }),
            modified_hits: Some(Part { part: 6, whole: 100 }),
            delayed: Some(true),
            heap: Some(Heap { all: part, temporary: part }),
            system_calls: Some(SystemCalls { time: part, are_many: true }),
        };
        let score = Score::of(&all);
        assert_eq!((score.points, score.reachable), (120, 120));
        assert_eq!(
            score.to_string(),
            "cpu 40/40, cache 20/20, offcpu 15/15, sharing 15/15, sched 10/10, heap 10/10, syscalls 10/10"
        );
    }

    #[test]
    fn places_from_six_to_ten_give_less_and_later_ones_nothing() {
        let at = |place| Score::of(&Evidence { blocked_place: Some(place), ..Evidence::default() }).points;
        assert_eq!([at(Some(1)), at(Some(6)), at(Some(10)), at(Some(11)), at(None)], [15, 8, 8, 0, 0]);
    }
}
