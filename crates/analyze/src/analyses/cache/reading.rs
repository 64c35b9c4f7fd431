//! [`Reading`]: the sums of events, and what follows from them.

use stepscope_model::EventCount;

use super::{HIGH_IPC, LOW_IPC, MANY_BRANCH_MISSES, MANY_MPKI, SOME_MPKI};
use crate::query::events::{self, Role};

/// What an event counts, as far as rates need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Cycles,
    Instructions,
    References,
    Misses,
    FirstLevelReferences,
    FirstLevelMisses,
    Branches,
    BranchMisses,
    Slots,
    Retiring,
    BadSpeculation,
    FrontEnd,
    BackEnd,
}

const COUNT: usize = Quantity::BackEnd as usize + 1;

impl Quantity {
    /// The quantity of an event, and a number of the set that it belongs to: several sets count the same, so only one is taken.
    pub fn of(event: &str, unit: &str) -> Option<(Self, u8)> {
        let name = events::plain_name(event);
        let top_down = ["topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound", "slots"];
        if let Some(found) = top_down.iter().position(|known| *known == name) {
            use Quantity::{BackEnd, BadSpeculation, FrontEnd, Retiring, Slots};
            return Some(([Retiring, BadSpeculation, FrontEnd, BackEnd, Slots][found], 0));
        }
        let set = u8::from(name.starts_with("LLC-"));
        match events::role_of(event, unit) {
            Role::Cpu if unit == "cycles" => Some((Self::Cycles, u8::from(name.starts_with("ref-")))),
            Role::Instructions => Some((Self::Instructions, 0)),
            Role::CacheReferences => Some((Self::References, set)),
            Role::CacheMisses => Some((Self::Misses, set)),
            Role::DataReferences => Some((Self::FirstLevelReferences, 0)),
            Role::FirstLevelMisses => Some((Self::FirstLevelMisses, 0)),
            Role::Branches => Some((Self::Branches, 0)),
            Role::BranchMisses => Some((Self::BranchMisses, 0)),
            _ => None,
        }
    }
}

/// The kind of core that an event is of: `cpu_core` of `cpu_core/cycles/`; empty if the source has only one kind.
pub fn core_of(event: &str) -> &str {
    match event.split_once('/') {
        Some((core, rest)) if rest.contains('/') || !rest.is_empty() => core,
        _ => "",
    }
}

/// Sums of events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// By quantity; of two sets that count the same, each has its own sum.
    sums: [[Option<u128>; 2]; COUNT],
    /// The least part of the time in which an event had a counter.
    counted: Option<f64>,
}

impl Reading {
    /// Adds a weight of an event.
    pub fn add(&mut self, (quantity, set): (Quantity, u8), weight: u64) {
        let sum = &mut self.sums[quantity as usize][usize::from(set)];
        *sum = Some(sum.unwrap_or(0) + u128::from(weight));
    }

    /// Adds a count. One that was not counted leaves the sum unknown if it is the only one.
    pub fn add_count(&mut self, count: &EventCount) {
        let Some(quantity) = Quantity::of(&count.event, &count.unit) else { return };
        let Some(value) = count.count else { return };
        self.add(quantity, value);
        if let (Some(enabled), Some(running)) = (count.enabled_ns.filter(|enabled| *enabled > 0), count.running_ns) {
            let part = running as f64 * 100.0 / enabled as f64;
            self.counted = Some(self.counted.map_or(part, |least| least.min(part)));
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.sums.as_flattened_mut().iter_mut().zip(other.sums.as_flattened()) {
            *sum = match (*sum, more) {
                (None, None) => None,
                (sum, more) => Some(sum.unwrap_or(0) + more.unwrap_or(0)),
            };
        }
        self.counted = self.counted.into_iter().chain(other.counted).reduce(f64::min);
    }

    pub fn is_empty(&self) -> bool {
        self.sums.as_flattened().iter().all(Option::is_none)
    }

    pub fn counted(&self) -> Option<f64> {
        self.counted
    }

    /// The sum; `None` if it was not counted.
    pub fn sum(&self, quantity: Quantity) -> Option<u128> {
        let [first, second] = self.sums[quantity as usize];
        first.or(second)
    }

    /// Two quantities of the same set: loads that missed are not set against all accesses.
    fn pair(&self, part: Quantity, whole: Quantity) -> Option<(u128, u128)> {
        let (parts, wholes) = (self.sums[part as usize], self.sums[whole as usize]);
        let pair = parts.into_iter().zip(wholes).find_map(|(part, whole)| Some((part?, whole?)))?;
        (pair.1 > 0).then_some(pair)
    }

    fn percent(&self, part: Quantity, whole: Quantity) -> Option<f64> {
        self.pair(part, whole).map(|(part, whole)| part as f64 * 100.0 / whole as f64)
    }

    fn per(&self, part: Quantity, whole: Quantity) -> Option<f64> {
        let whole = self.sum(whole).filter(|whole| *whole > 0)?;
        Some(self.sum(part)? as f64 / whole as f64)
    }

    /// Instructions.
    pub fn instructions(&self) -> Option<u128> {
        self.sum(Quantity::Instructions)
    }

    /// Instructions per cycle.
    pub fn ipc(&self) -> Option<f64> {
        self.per(Quantity::Instructions, Quantity::Cycles)
    }

    /// Last-level misses in percent of accesses.
    pub fn miss_rate(&self) -> Option<f64> {
        self.percent(Quantity::Misses, Quantity::References)
    }

    /// First-level misses in percent of accesses.
    pub fn first_level_miss_rate(&self) -> Option<f64> {
        self.percent(Quantity::FirstLevelMisses, Quantity::FirstLevelReferences)
    }

    /// Last-level misses per 1,000 instructions.
    pub fn mpki(&self) -> Option<f64> {
        self.per(Quantity::Misses, Quantity::Instructions).map(|rate| rate * 1000.0)
    }

    /// Mispredicted branches in percent.
    pub fn branch_miss_rate(&self) -> Option<f64> {
        self.percent(Quantity::BranchMisses, Quantity::Branches)
    }

    /// A part of the issue slots in percent. Without `slots`, the four parts are the whole.
    pub fn slots(&self, part: Quantity) -> Option<f64> {
        use Quantity::{BackEnd, BadSpeculation, FrontEnd, Retiring, Slots};
        let all = || [Retiring, BadSpeculation, FrontEnd, BackEnd].into_iter().map(|part| self.sum(part)).sum();
        let whole: u128 = self.sum(Slots).or_else(all).filter(|whole| *whole > 0)?;
        Some(self.sum(part)? as f64 * 100.0 / whole as f64)
    }

    /// How well the CPU is used, in plain words; empty if too little is known.
    pub fn assessment(&self) -> &'static str {
        const TOP_DOWN: [(Quantity, &str); 3] = [
            (Quantity::BackEnd, "back end: waits for memory or execution units"),
            (Quantity::FrontEnd, "front end: waits for instructions"),
            (Quantity::BadSpeculation, "bad speculation: work of mispredicted branches is thrown away"),
        ];
        let parts = TOP_DOWN.iter().filter_map(|(part, words)| Some((self.slots(*part)?, *words)));
        if let Some((part, words)) = parts.max_by(|a, b| a.0.total_cmp(&b.0)) {
            return if part >= 25.0 { words } else { "retiring: the CPU is well used" };
        }
        let misses = |least: f64| self.mpki().is_some_and(|mpki| mpki >= least);
        match self.ipc() {
            _ if misses(MANY_MPKI) => "memory-bound: many cache misses",
            Some(ipc) if ipc < LOW_IPC && misses(SOME_MPKI) => "memory-bound: low IPC, with cache misses",
            Some(ipc) if ipc < LOW_IPC && self.branch_miss_rate().is_some_and(|rate| rate >= MANY_BRANCH_MISSES) => {
                "low IPC: branch mispredictions"
            }
            Some(ipc) if ipc < LOW_IPC => "low IPC, but few last-level misses: dependent work, or other caches",
            Some(ipc) if ipc >= HIGH_IPC => "high IPC: the CPU is well used",
            Some(_) => "moderate IPC",
            None if misses(SOME_MPKI) => "some cache misses",
            None if self.mpki().is_some() => "few cache misses",
            None => "",
        }
    }
}
