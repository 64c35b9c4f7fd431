//! How right the tool itself is: what it recorded of a program whose costs are known, against what is known.
//!
//! The bundled proving ground has pathologies that can be switched on, and accounts for what it did: by exact counts, and by
//! its threads' own CPU clocks. A *case* is one switch in one phase, run in four *settings*, each several times:
//!
//! - `alone`: this switch slow, all others fast;
//! - `fast`: all fast;
//! - `all`: all slow;
//! - `all-but`: all slow but this one.
//!
//! and in three ways: *recorded*; *timed*, by the program itself around coarse calls, in runs apart, since clocks cost time; and
//! *bare*, with nothing but a clock at its start and its end.
//!
//! # Scores
//! - **Share**: a function's inclusive share of CPU time, recorded against timed. Functions are scored whose calls take
//!   [`COARSE_NS`] and more, of [`LEAST_SHARE_PERCENT`] and more. The error may be 1.5 points, or three standard errors if
//!   these are more: those of both means, from the scatter of their runs, and of the recorded one at least the error of drawing
//!   its number of samples.
//! - **Rank**: the place of the first guilty function in the tool's own [ranking](crate::analyses::rank) by cost; of several runs, the
//!   worst place.
//! - **Gain**: what the profile says that the fix saves, against what it saves. The profile's: what the *seam*, the
//!   functions that both ways pass through, costs more a step than with the fix, of all that a step costs: alone against fast,
//!   and all against all but one. The truth: bare runs of the same (ablation). The program's own clocks
//!   measure the seam's saving in timed runs. This separates savings elsewhere from errors. Where the fix saves wall time
//!   and no CPU time, the same along the [critical path](crate::analyses::critical_path).
//! - **Silence**: in fast settings and in controls, no slow way of any switch may have
//!   [`SILENT_PERCENT`] of the CPU time.
//! - **Diagnosis**: each switch alone: whether the first [finding](crate::analyses::diagnose) has a right kind and names a guilty
//!   function, in the median recording. In fast settings and in controls: no finding above [`CLAIM_PERCENT`].
//! - **Counts**: steps, scopes, context switches, allocations and system calls, recorded against counted by the program and the
//!   kernel.
//! - **Overhead**: CPU time and wall time of a step, recorded over bare.

mod diagnosis;
mod profile;
mod score;
mod tables;

use std::collections::BTreeMap;

use stepscope_model::Phase;

pub use diagnosis::{Answer, Diagnosed, FalseFinding, diagnosed, false_findings};
pub use profile::{Claim, Profile};
pub use score::{Compared, Gain, Share, gains, shares, silences};
pub use tables::tables;

/// Calls that take less are not scored: timing them costs too large a part of what they take.
pub const COARSE_NS: f64 = 50_000.0;

/// Functions with less of the CPU time are not scored.
pub const LEAST_SHARE_PERCENT: f64 = 1.0;

/// Error allowed in a share, in percentage points, whatever its standard error.
pub const SHARE_TOLERANCE: f64 = 1.5;

/// Error allowed in a gain, in percentage points.
pub const GAIN_TOLERANCE: f64 = 5.0;

/// From this share on, a slow way is found where there is none.
pub const SILENT_PERCENT: f64 = 5.0;

/// A guilty function with this share has to be ranked first.
pub const FIRST_PERCENT: f64 = 20.0;

/// A finding with less gain than this is not counted as false where all is fast, percent.
pub const CLAIM_PERCENT: f64 = 3.0;

/// What a fix saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saves {
    /// CPU time.
    Cpu,
    /// Wall time alone.
    Wall,
}

/// Ground truth of a switch. Functions are named as the program's sources name them.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The switch.
    pub name: String,
    /// The phase that it is seen in.
    pub phase: Phase,
    /// The slow way: with all that it calls, the cost of the pathology.
    pub function: String,
    /// What a ranking may put first for it.
    pub guilty: Vec<String>,
    /// Kinds of findings that are right; any if empty.
    pub kinds: Vec<String>,
    /// What both ways pass through, if anything does; none of these functions calls another.
    pub seam: Vec<String>,
    /// What the fix saves.
    pub saves: Saves,
    /// Why the real gain is not that of the seam, where that is known.
    pub downstream: Option<String>,
}

/// What a function's calls took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calls {
    /// Their number.
    pub calls: u64,
    /// CPU time of their threads, ns.
    pub cpu_ns: f64,
}

/// What a program says of one of its own runs, of the phase that matters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// CPU time of all threads, ns.
    pub cpu_ns: f64,
    /// Wall time, ns.
    pub wall_ns: f64,
    /// Steps in it; 1 for a phase that is one thing, as loading.
    pub steps: f64,
    /// Functions that were timed, by name.
    pub functions: BTreeMap<String, Calls>,
}

impl Truth {
    fn cpu_per_step(&self) -> f64 {
        self.cpu_ns / self.steps
    }

    fn wall_per_step(&self) -> f64 {
        self.wall_ns / self.steps
    }
}

/// The runs of one setting.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// What was recorded.
    pub profiles: Vec<Profile>,
    /// What the program said of the recorded runs.
    pub recorded: Vec<Truth>,
    /// What it said of runs in which it timed functions.
    pub timed: Vec<Truth>,
    /// What it said of runs that were left alone.
    pub bare: Vec<Truth>,
}

/// The names that functions have in a build: those of the sources, unless `shown` overrides them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// What the build is called.
    pub name: String,
    /// By the source's name, those that profiles show. `None`: the same.
    pub shown: Option<BTreeMap<String, Vec<String>>>,
}

impl Build {
    /// The names that profiles show for a function.
    pub fn names<'a>(&'a self, function: &'a str) -> Vec<&'a str> {
        match &self.shown {
            None => vec![function],
            Some(shown) => shown.get(function).into_iter().flatten().map(String::as_str).collect(),
        }
    }
}

/// A switch, and all its runs in a build.
#[derive(Debug, Clone)]
pub struct Case {
    /// The switch.
    pub known: Known,
    /// The build.
    pub build: Build,
    /// This one slow.
    pub alone: Runs,
    /// All fast.
    pub fast: Runs,
    /// All slow.
    pub all: Runs,
    /// All slow but this one.
    pub all_but: Runs,
}

impl Case {
    /// The settings by name.
    fn settings(&self) -> [(&'static str, &Runs); 4] {
        [("alone", &self.alone), ("fast", &self.fast), ("all", &self.all), ("all-but", &self.all_but)]
    }
}

/// Something that must stay silent.
#[derive(Debug, Clone)]
pub struct ControlCase {
    /// What it is called.
    pub name: String,
    /// Why one might think that something is wrong there.
    pub why: String,
    /// What else must not be found.
    pub silent: Vec<String>,
    /// Its recordings.
    pub profiles: Vec<Profile>,
}

/// Something counted, by the program and by the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Of which run.
    pub of: String,
    /// What.
    pub what: String,
    /// By the program or the kernel.
    pub program: u64,
    /// By the tool; `None` if it does not record that.
    pub recorded: Option<u64>,
    /// How much they may differ, and why not zero.
    pub may_differ: u64,
    /// What a reader should know.
    pub remark: String,
}

/// Everything that was run.
#[derive(Debug, Clone, Default)]
pub struct Proof {
    /// The switches.
    pub cases: Vec<Case>,
    /// The controls.
    pub controls: Vec<ControlCase>,
    /// The counts.
    pub counts: Vec<Counted>,
}
