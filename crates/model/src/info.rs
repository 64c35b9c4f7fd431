//! `capture.json`: what was recorded, where, of what, at what cost and with which losses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumCount, IntoStaticStr, VariantArray};

use crate::clock::{Clocks, Merged};
use crate::command_line::program_name;
use crate::machine::Machine;

/// Version of the capture's form on disk. Raised when a reader of the old form would misread the new.
pub const SCHEMA: u32 = 1;

/// Everything about a capture that is not a row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaptureInfo {
    /// Version of the form on disk, [`SCHEMA`] when written by this build.
    pub schema: u32,
    /// Program and version that made the capture.
    pub tool: String,
    /// Where the evidence came from.
    pub origin: Origin,
    /// Scenario of the lab file, where one was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Variant of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Phase of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Which of several runs of the same variant this is, from 1, where a scenario was run repeatedly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<u32>,
    /// Where it lies on the axes of a sweep, such as `n` or `cores`. Empty outside of sweeps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, f64>,
    /// The launched command, or that of the process attached to. Empty for imported evidence that does not say.
    #[serde(default)]
    pub command: Vec<String>,
    /// Directory the command ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The environment variables that change how programs run (`LD_*`, `OMP_*`, `GZ_*`, those the lab file sets).
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Wall-clock time at the start, RFC 3339 in UTC. Absent where the source does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Clock of every `_ns` time in the tables, e.g. `CLOCK_MONOTONIC`. Absent if nothing has a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// Recording window on that clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// End of the recording window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Start of the whole recording, if this is a later segment of it. Its steps and scopes may start before the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_start_ns: Option<u64>,
    /// What the recording knows about its clock and the clocks of other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// What the capture was merged from, if it is of several machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// The machine recorded on; absent for imported evidence that does not say. If the capture is merged, all of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// How the program was built, where something says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// What else went on on the machine meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// What each sample may be a sample of. [`EventId`](crate::EventId)s index this list.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Every dimension that was asked for, with what came of it.
    #[serde(default)]
    pub dimensions: BTreeMap<Dimension, DimensionStatus>,
    /// What is known to be missing or damaged.
    #[serde(default)]
    pub losses: Losses,
    /// What the recording itself cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_cost: Option<RecordingCost>,
    /// The function whose calls are the steps, or the loop whose rounds are, if the recorder found it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_step: Option<String>,
    /// The user's own metrics, as the program reported them during the recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_metrics: Vec<OwnMetric>,
    /// Remarks for the reader of any result made from this capture, in full sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A metric that the user defines, such as a latency that the program logs: every value of one recording.
///
/// A comparison shows its `mean`, `median`, `p95` and `p99` as `metric.NAME.mean` and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnMetric {
    /// Name in the lab file's `[metric.NAME]`.
    pub name: String,
    /// Unit of the values. Durations in `ns` and sizes in `bytes` are shown in readable units.
    #[serde(default)]
    pub unit: String,
    /// Which way it should go.
    #[serde(default)]
    pub better: Better,
    /// The finite values, in the order in which the program reported them.
    pub values: Vec<f64>,
}

/// Which way a metric should go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Better {
    /// Less is better, as for costs.
    #[default]
    Lower,
    /// More is better, as for rates.
    Higher,
}

impl Better {
    /// The word used in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Default for CaptureInfo {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            tool: concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            origin: Origin::Recorded,
            scenario: None,
            variant: None,
            phase: None,
            repetition: None,
            sweep: BTreeMap::new(),
            command: Vec::new(),
            working_directory: None,
            environment: BTreeMap::new(),
            started_at: None,
            clock: None,
            start_ns: None,
            end_ns: None,
            recording_start_ns: None,
            clocks: None,
            merged: None,
            machine: None,
            build: None,
            conditions: None,
            events: Vec::new(),
            dimensions: BTreeMap::new(),
            losses: Losses::default(),
            recording_cost: None,
            found_step: None,
            own_metrics: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl CaptureInfo {
    /// Length of the recording window, where times are known.
    pub fn wall_ns(&self) -> Option<u64> {
        Some(self.end_ns?.saturating_sub(self.start_ns?))
    }

    /// The earliest start of steps and scopes. Those that started before it are incomplete.
    pub fn first_interval_ns(&self) -> u64 {
        self.recording_start_ns.or(self.start_ns).unwrap_or(0)
    }

    /// A short name for tables over several captures: `scenario/variant/phase`, as far as they are known.
    pub fn label(&self) -> Option<String> {
        let phase = self.phase.map(|phase| phase.to_string());
        let parts: Vec<&str> =
            [self.scenario.as_deref(), self.variant.as_deref(), phase.as_deref()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("/"))
    }

    /// A short name: the label, else the imported file, else the program.
    pub fn name(&self) -> String {
        if let Some(label) = self.label() {
            return label;
        }
        if let Origin::Imported { file, .. } = &self.origin {
            return file.rsplit('/').next().unwrap_or(file).to_owned();
        }
        program_name(&self.command).unwrap_or("capture").to_owned()
    }
}

/// Where the evidence of a capture came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// Recorded by Stepscope.
    Recorded,
    /// Brought back from the raw log of a recorder that did not finish.
    Recovered,
    /// Read from a file that another tool wrote.
    Imported {
        /// Name of the format, e.g. `folded`, `perf.data`.
        format: String,
        /// The file's name as given; `-` for standard input.
        file: String,
    },
}

/// A part of a scenario's life that is recorded and analysed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// From launch until the scenario is ready.
    Loading,
    /// After it is ready and warmed up, for a duration.
    Steady,
}

/// One kind of evidence.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumCount,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Dimension {
    /// On-CPU samples.
    Cpu,
    /// Blocked time, with the stack blocked at.
    Offcpu,
    /// Context switches and run-queue delay.
    Sched,
    /// Page faults.
    Faults,
    /// Hardware cache events.
    Cache,
    /// Cache lines that several threads use, and write.
    Sharing,
    /// Heap allocations.
    Heap,
    /// System calls.
    Syscalls,
    /// CPU, memory, threads and I/O of each process over time.
    Resources,
    /// Simulation steps.
    Steps,
    /// Memory errors, found by valgrind.
    Memcheck,
    /// Memory errors, found by AddressSanitizer.
    Asan,
    /// Undefined behaviour, found by UndefinedBehaviorSanitizer.
    Ubsan,
    /// Data races, found by ThreadSanitizer.
    Tsan,
}

impl Dimension {
    /// Every dimension, in the order tables show them.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();

    /// The name used in lab files, `capture.json` and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What came of asking for a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum DimensionStatus {
    /// Recorded in full.
    Recorded,
    /// Recorded, but not everything that the dimension can hold.
    Partial {
        /// What is missing and why, one sentence each.
        lacks: Vec<String>,
    },
    /// Not recorded.
    Missing {
        /// Why.
        reason: String,
        /// The command or change that would enable it, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
}

/// What samples are samples of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The source's name for it, e.g. `cpu-clock`, `cycles`, `cpu_core/cycles/`, `minor-faults`.
    pub name: String,
    /// Unit of the samples' weights: `ns`, `cycles`, `misses`, `faults`, `samples`, `weight` where unknown.
    pub unit: String,
    /// How many samples a row stands for.
    pub counts: Counts,
    /// Whether each thread has timers of its own, because the whole machine may not be observed. They take their first
    /// sample after a full period.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_thread: bool,
}

impl Event {
    /// An event of which each row is one sample.
    pub fn sampled(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into(), counts: Counts::OnePerRow, per_thread: false }
    }

    /// An event of which each row is a sum over an unknown number of samples.
    pub fn weighed(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { counts: Counts::Unknown, ..Self::sampled(name, unit) }
    }

    /// Number of samples that a row of this event with this weight stands for, where that is known.
    pub fn count_of(&self, weight: u64) -> Option<u64> {
        match self.counts {
            Counts::OnePerRow => Some(1),
            Counts::Weight => Some(weight),
            Counts::Unknown => None,
        }
    }
}

/// How the number of samples behind a row of `samples` is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Each row is one sample.
    OnePerRow,
    /// The weight is a number of samples (folded stacks that count samples).
    Weight,
    /// Weights are periods that were summed before we saw them: the number of samples is lost, and with it any test
    /// of significance (erratum 1 of the Gazebo study).
    Unknown,
}

/// How a program was built: what must be equal for two captures to say something about the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The kind of build, in the build system's words and lower case: `release`, `relwithdebinfo`, `debug`, `-O2`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What says so: the cache of CMake, the folder of Cargo, the compiler's note in the debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_by: Option<String>,
    /// Revision of the source, where the lab built it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// What else went on on the machine during a recording: what changes results without being in the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// CPU time that neither the recorded processes nor the recorder used, in all processes and the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_cpu_ns: Option<u64>,
    /// CPU time that the hypervisor gave to other guests while this one wanted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stolen_ns: Option<u64>,
    /// The hottest CPU sensor at the start, in thousandths of a degree Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_temperature_mc: Option<i64>,
    /// The same at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_temperature_mc: Option<i64>,
    /// Frequency governor at the end, where there is one. That at the start is the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_governor: Option<String>,
}

/// What is known to be missing from a capture, or damaged in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Records that the kernel dropped because a ring was full.
    pub lost_records: u64,
    /// System calls of threads that no record introduced, because it was lost. No table has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_calls: Option<u64>,
    /// Times the kernel throttled sampling.
    pub throttled: u64,
    /// Samples taken, of any event.
    pub samples: u64,
    /// Samples whose stack ends before a root.
    pub truncated_stacks: u64,
    /// Samples whose stack was continued beyond the copied bytes, by frame pointers or by reading memory.
    pub continued_stacks: u64,
    /// Samples whose stack has a caller that was guessed, because code without unwind tables called.
    pub guessed_stacks: u64,
    /// Samples of 32-bit code, whose callers come from frame pointers alone.
    pub stacks_of_32_bit_code: u64,
    /// Samples whose stack was too deep to keep its middle.
    pub shortened_stacks: u64,
    /// Distinct addresses for which no function name was found.
    pub unnamed_addresses: u64,
    /// Exact on-CPU time of all threads, from context-switch records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time_ns: Option<u64>,
    /// Time for which lost context-switch records leave open whether a thread ran. `cpu_time_ns` does not include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_cpu_ns: Option<u64>,
    /// Samples that a damaged raw log lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_samples: Option<u64>,
    /// Time off the CPU of which a damaged raw log lost the waits. `unknown_cpu_ns` does not include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_wait_ns: Option<u64>,
    /// CPU time of the recorded threads by the kernel's own account (`rusage` at exit, else `schedstat`), where it is
    /// known. `cpu_time_ns` is exact if it agrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_cpu_ns: Option<u64>,
    /// Time that the on-CPU samples stand for by their timers, where their unit is ns. `sampled_ns / cpu_time_ns` is the
    /// coverage. The weights of samples are exact running time, and add up to `cpu_time_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled_ns: Option<u64>,
    /// Time beyond `sampled_ns` that weights stand for, where each thread has timers of its own: kernel time, and time of
    /// threads that ended before a sample was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_sample_ns: Option<u64>,
    /// CPU time in the frame `[not sampled]`, for which no sample can stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sampled_ns: Option<u64>,
    /// On-CPU time of threads without samples, because they lived shorter than the sampling period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsampled_thread_ns: Option<u64>,
    /// Lines or records of an imported file that could not be read.
    pub malformed_records: u64,
    /// Marks (scopes, steps, counters) that programs made and had no room for.
    pub lost_marks: u64,
    /// Period to which off-CPU stacks were thinned at high switch rates; 1 or absent means every switch has its stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offcpu_stack_period: Option<u64>,
    /// Waits that were added up in the kernel, because their threads switched very often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregated_waits: Option<u64>,
    /// Stacks at switches that were taken although their place had one already: each checks that a place has one stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_stacks: Option<u64>,
    /// Those of `checked_stacks` that were another stack than the last one of the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differing_stacks: Option<u64>,
    /// Sampled accesses to cache lines that one thread alone used. Their places are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_accesses: Option<u64>,
    /// Sampled accesses to data that had no room, because too many places were accessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_accesses: Option<u64>,
}

impl Losses {
    /// Sampled weight over what could have been sampled (exact thread CPU time); erratum 3 of the Gazebo study.
    pub fn coverage(&self) -> Option<f64> {
        let cpu = self.cpu_time_ns.filter(|&ns| ns > 0)?;
        Some(self.sampled_ns? as f64 / cpu as f64)
    }
}

/// What a recording cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingCost {
    /// CPU time of the recorder itself, while recording.
    pub cpu_ns: u64,
    /// The part of `cpu_ns` that measured the machine's speed.
    #[serde(default)]
    pub speed_probe_cpu_ns: u64,
    /// CPU time spent afterwards, naming addresses and writing tables.
    pub finish_cpu_ns: u64,
    /// Bytes of the raw log.
    pub log_bytes: u64,
}
