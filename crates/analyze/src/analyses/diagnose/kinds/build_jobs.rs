//! Jobs of a build that nothing else runs beside, and CPUs that no job uses.
//!
//! Evidence: the start and end of each job ([`crate::analyses::build`]). Look-alikes: other programs that used the CPUs meanwhile.

use stepscope_model::NoteValue;
use stepscope_model::build_command;

use crate::analyses::build::jobs::{Build, Job};
use crate::analyses::build::shown;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;

/// Least share of the build's time in percent.
const LEAST: f64 = 5.0;

pub(super) struct RunsAlone;

impl Kind for RunsAlone {
    fn name(&self) -> &'static str {
        "job-runs-alone"
    }

    fn advice(&self) -> &'static str {
        "A link: use `mold` or `lld`, split debug information (`-gsplit-dwarf`), link fewer objects. A unit: divide it, or let the build start it first. A configure step: see `--view configure`."
    }

    fn confirm(&self) -> &'static str {
        "Build again with the change and `stepscope compare` the two builds."
    }

    fn is_of_builds(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let build = Build::of(seen.capture());
        let (wall_ns, slots) = (build.end_ns - build.start_ns, build.most_jobs());
        let mut jobs: Vec<&Job> = build.jobs.iter().collect();
        jobs.sort_by_key(|job| std::cmp::Reverse(job.alone_ns));
        let is_large = |job: &&Job| 100.0 * job.alone_ns as f64 >= LEAST * wall_ns as f64;
        if slots < 2 {
            return Vec::new();
        }
        let one = |job: &Job| {
            let name = shown(seen.selection, &job.work.name);
            let verb = match job.work.kind {
                build_command::Kind::Link | build_command::Kind::CompileAndLink => "Linking",
                build_command::Kind::Configure => "The step",
                build_command::Kind::Compile => "Compiling",
                _ => "Making",
            };
            let title = format!(
                "{verb} `{name}` ran alone for {} of {}: {} waited",
                ns(job.alone_ns as f64),
                ns(wall_ns as f64),
                NoteValue::plural(slots - 1, "slot")
            );
            let share = percent(100.0 * job.alone_ns as f64 / wall_ns.max(1) as f64);
            let text = format!("No other job ran for {share} of the build's time. More jobs do not shorten that.");
            let gain = job.alone_ns as f64 * (slots - 1) as f64 / slots as f64;
            let found = Found::of_program(title, Some(Gain::of_build_wall(gain, wall_ns as f64)));
            found.sure(Confidence::Strong).because(text, "show --view build-path")
        };
        // Kind and function identify a finding, and a job has no function.
        jobs.into_iter().filter(is_large).take(1).map(one).collect()
    }
}

pub(super) struct IdleCpus;

impl Kind for IdleCpus {
    fn name(&self) -> &'static str {
        "cpus-without-jobs"
    }

    fn advice(&self) -> &'static str {
        "Give the build as many jobs as the machine has CPUs (`make -j$(nproc)`, `cmake --build b -j`). If jobs lack memory, see the column rss_peak first."
    }

    fn confirm(&self) -> &'static str {
        "Build with more jobs, and see the column idle_slots of `--view build`."
    }

    fn is_of_builds(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let build = Build::of(seen.capture());
        let (wall_ns, slots) = (build.end_ns - build.start_ns, build.most_jobs() as f64);
        let cpus = seen.capture().info.machine.as_ref().map_or(0, |machine| machine.cores);
        let in_parallel: u64 = build.jobs.iter().map(Job::wall_ns).sum();
        // Jobs that need each other's outputs run one after the other, on any number of CPUs.
        let least = (in_parallel as f64 / f64::from(cpus).max(1.0)).max(build.longest_chain_ns() as f64);
        let gain = (wall_ns as f64 - least - (wall_ns as f64 - in_parallel as f64 / slots).max(0.0)).max(0.0);
        if f64::from(cpus) < slots * 1.5
            || build.jobs.len() < 2 * cpus as usize
            || 100.0 * gain < LEAST * wall_ns as f64
        {
            return Vec::new();
        }
        let title = format!("At most {} ran at once on {cpus} CPUs", NoteValue::plural(slots as usize, "job"));
        let text = format!(
            "{} jobs took {} together, in a build of {}.",
            build.jobs.len(),
            ns(in_parallel as f64),
            ns(wall_ns as f64)
        );
        let found = Found::of_program(title, Some(Gain::of_build_wall(gain, wall_ns as f64)));
        vec![found.sure(Confidence::Fair).because(text, "show --view build-time")]
    }
}
