//! [`Gain`]: what a change would gain at most.

use stepscope_stats::Estimate;

/// How a gain was estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GainBasis {
    /// Time on the critical path of steps.
    CriticalPath,
    /// CPU time per step of all threads: wake-ups were not recorded, so the critical path is unknown.
    StepCpu,
    /// CPU time of the phase.
    PhaseCpu,
    /// CPU time of a build.
    BuildCpu,
    /// Wall time of a build.
    BuildWall,
    /// Waiting time of steps.
    Waiting,
    /// Waiting time of a thread in a recording without steps.
    PhaseWaiting,
    /// Time within system calls.
    SystemCalls,
    /// A share of the samples, whose costs are no times.
    Share,
}

impl GainBasis {
    pub fn name(self) -> &'static str {
        match self {
            Self::CriticalPath => "critical path",
            Self::StepCpu => "CPU per step",
            Self::PhaseCpu => "CPU of the phase",
            Self::BuildCpu => "CPU of the build",
            Self::BuildWall => "time of the build",
            Self::Waiting => "waits of steps",
            Self::PhaseWaiting => "waits of a thread",
            Self::SystemCalls => "time in system calls",
            Self::Share => "share of samples",
        }
    }

    /// Whether it is a gain per step, and not of a phase or of all samples.
    pub fn is_per_step(self) -> bool {
        matches!(self, Self::CriticalPath | Self::StepCpu | Self::Waiting)
    }
}

/// Gains of loading below this are left out, in ns.
const SHORT_NS: f64 = 10_000_000.0;

/// What a change would gain at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gain {
    /// Time per step, or of the phase where there are no steps, in ns. The interval is that of sampling, and of repetition
    /// where there are several captures.
    pub time: Estimate,
    /// The length of a step, or of the phase.
    pub whole_ns: f64,
    pub basis: GainBasis,
}

/// An estimate with the interval of sampling, from the number of samples that it rests on.
pub(super) fn sampled(value: f64, samples: u64) -> Estimate {
    let error = 1.96 / (samples.max(1) as f64).sqrt();
    Estimate { value, low: value * (1.0 - error).max(0.0), high: value * (1.0 + error) }
}

impl Gain {
    /// A gain of waiting time per step, known exactly.
    pub fn of_waiting(ns: f64, whole_ns: f64) -> Self {
        Self::exact(ns, whole_ns, GainBasis::Waiting)
    }

    /// A gain of a thread's waiting time in a recording without steps, known exactly.
    pub fn of_phase_waiting(ns: f64, whole_ns: f64) -> Self {
        Self::exact(ns, whole_ns, GainBasis::PhaseWaiting)
    }

    /// A gain of time within system calls, known exactly.
    pub fn of_calls(ns: f64, whole_ns: f64) -> Self {
        Self::exact(ns, whole_ns, GainBasis::SystemCalls)
    }

    /// A gain of CPU time of a build, known exactly.
    pub fn of_build_cpu(ns: f64, whole_ns: f64) -> Self {
        Self::exact(ns, whole_ns, GainBasis::BuildCpu)
    }

    /// A gain of a build's length, known exactly.
    pub fn of_build_wall(ns: f64, whole_ns: f64) -> Self {
        Self::exact(ns, whole_ns, GainBasis::BuildWall)
    }

    fn exact(ns: f64, whole_ns: f64, basis: GainBasis) -> Self {
        let ns = ns.min(whole_ns);
        Self { time: Estimate { value: ns, low: ns, high: ns }, whole_ns, basis }
    }

    /// The time, if it is one.
    pub fn known_time(&self) -> Option<Estimate> {
        (self.basis != GainBasis::Share).then_some(self.time)
    }

    /// Whether it is less time than anybody waits for.
    pub fn is_short(&self) -> bool {
        self.known_time().is_some_and(|time| time.value < SHORT_NS)
    }

    /// In percent of the step or the phase.
    pub fn share(&self) -> Estimate {
        self.time.times(100.0 / self.whole_ns.max(1.0))
    }
}
