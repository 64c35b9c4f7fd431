//! Builds: what each compiler, linker and configure step cost, how many ran at once, and what the end waited for.
//!
//! A *job* is the outermost process whose command line is that of a compiler, a linker, an archiver, a generator or a configure step,
//! with all that it started: `g++` with its `cc1plus` and `as`, `cmake` with the compilers that it tries. A wrapper such as
//! `ccache` is the job of the command that it wraps. What a build script of Cargo compiles is a job of its own. All other
//! processes (make, shells) are rows of kind `other`, one for each program, so that the rows add up to the whole build.
//!
//! A job lasts from the start of its process to its end. Its CPU time is the sum over its processes, of which those of compilers proper
//! (`cc1plus`, `rustc`, `clang`), assemblers and linkers (`collect2`, `ld`, `lto1`) have columns of their own. A
//! compiler's front end and back end are one process; flags of the compiler tell them apart.
//!
//! *Slots* are the most jobs at one moment. Idle slots are slots less the running jobs, over time.
//!
//! The *path* goes back from the job that ended last: before each job stands the producer of one of its inputs that ended last. A
//! producer is a job whose output an input of the command line names. A job without a producer waited for its slot, if all slots were
//! taken until then: before it stands the job that ended last. Dependencies that no command line names (headers that are
//! generated, response files, order in a makefile) are unknown and not guessed; a note says how much of the time the path
//! leaves open. `alone` is known for all jobs: the time in which no other job ran.

mod headers;
pub(crate) mod jobs;
pub(crate) mod pieces;

use stepscope_model::build_command::{JobOf, Kind};
use stepscope_model::{Capture, Column, Columns, Importance, Kind as ColumnKind, NoteValue, Table, Value, note};

use crate::analysis::{Analysis, ReportSection, View};
pub use crate::query::basis::is_build;
use crate::query::select::Selection;
use jobs::{Build, Job, Used, Waited};

/// Parts of the build's time in the view `build-time`.
const BINS: u64 = 24;

/// A part of a job's CPU time, if its processes were recorded.
fn known(used: &Used, ns: u64) -> Option<u64> {
    (used.known > 0).then_some(ns)
}

/// A row of [`jobs`].
struct Row<'a> {
    name: String,
    kind: Kind,
    job: Option<&'a Job>,
    used: &'a Used,
    is_on_build_path: bool,
}

/// The job of each process of a capture.
pub fn jobs_of_processes(capture: &Capture) -> Vec<Option<JobOf>> {
    let build = Build::of(capture);
    let mut all: Vec<Option<JobOf>> = build
        .job_of
        .iter()
        .map(|job| {
            let work = &build.jobs[(*job)?].work;
            Some(JobOf { job: (*job)?, kind: work.kind.name(), name: work.name.clone() })
        })
        .collect();
    all.resize(capture.processes.len(), None);
    all
}

/// A path as people read it: relative to the build's working directory, if it is below.
pub(crate) fn shown(selection: &Selection<'_>, path: &str) -> String {
    let folder = selection.capture().info.working_directory.as_deref().unwrap_or("/");
    let below = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    below.filter(|_| folder != "/").unwrap_or(path).to_owned()
}

/// The table `build`: one row, the build as a whole.
pub fn summary(selection: &Selection<'_>) -> Table {
    let build = Build::of(selection.capture());
    summary_of(selection, &build)
}

fn summary_of(selection: &Selection<'_>, build: &Build) -> Table {
    let wall_ns = build.end_ns - build.start_ns;
    let is_known = build.jobs.iter().any(|job| job.used.known > 0);
    let of_jobs = |value: fn(&Used) -> u64| {
        move |build: &Build| is_known.then(|| build.jobs.iter().map(|job| value(&job.used)).sum::<u64>())
    };
    let busy_ns: u64 = build.jobs.iter().map(Job::wall_ns).sum();
    let slots = build.most_jobs() as u64;
    let share = move |ns: u64, of: u64| (of > 0).then(|| 100.0 * ns as f64 / of as f64);
    let part = |value: fn(&Used) -> Option<i64>| {
        move |build: &Build| build.jobs.iter().filter_map(|job| value(&job.used)).reduce(i64::saturating_add)
    };
    let rows: Vec<&Build> = if build.jobs.is_empty() { Vec::new() } else { vec![build] };
    let mut table = Columns::<Build>::new()
        .duration("wall", "Time of the build.", move |_| wall_ns)
        .duration("cpu", "CPU time of all its processes.", move |build| is_known.then(|| build.cpu_ns()))
        .duration("cpu_compile", "CPU time of compilers: front end and back end.", of_jobs(|used| used.compiler_ns))
        .duration("cpu_front_end", "CPU time of front ends, where compilers say it.", part(|used| used.front_end_ns))
        .duration("cpu_templates", "Of it, instantiation of templates.", part(|used| used.templates_ns))
        .duration("cpu_back_end", "CPU time of back ends, where compilers say it.", part(|used| used.back_end_ns))
        .duration("cpu_assemble", "CPU time of assemblers.", of_jobs(|used| used.assembler_ns))
        .duration("cpu_link", "CPU time of linkers.", of_jobs(|used| used.linker_ns))
        .duration("cpu_waited", "Time that jobs waited for a CPU.", of_jobs(|used| used.runnable_ns))
        .count("build_jobs", "jobs", "Jobs.", |build| build.jobs.len() as u64)
        .number("jobs_average", "jobs", "Jobs that ran at once, on average.", move |_| {
            (wall_ns > 0).then(|| busy_ns as f64 / wall_ns as f64)
        })
        .count("slots", "jobs", "Most jobs that ran at once.", move |_| slots)
        .percentage("idle_slots", "Share of the slots in which no job ran.", move |_| {
            share((slots * wall_ns).saturating_sub(busy_ns), slots * wall_ns)
        })
        .duration("alone", "Time in which a single job ran.", |build| {
            build.jobs.iter().map(|job| job.alone_ns).sum::<u64>()
        })
        .bytes("rss_peak", "Largest resident memory of one process.", |build| {
            build.jobs.iter().filter_map(|job| job.used.peak_rss).max()
        })
        .essential("wall cpu cpu_compile cpu_link jobs_average slots idle_slots")
        .table("build", "Build", rows);
    if build.jobs.is_empty() {
        table.note(note!(Limit, "No compiler or linker ran in this capture; fix: `stepscope build -- make`."));
        return table;
    }
    let alone = build.jobs.iter().max_by_key(|job| job.alone_ns).filter(|job| job.alone_ns > 0);
    if let Some(job) = alone.filter(|_| slots > 1) {
        table.note(note!(
            Fact,
            "{} ran alone for {}, the longest of all jobs; {} waited meanwhile.",
            NoteValue::names([shown(selection, &job.work.name).as_str()], 1),
            NoteValue::ns(job.alone_ns),
            NoteValue::plural(slots as usize - 1, "slot"),
        ));
    }
    if build.unknown > 0 {
        table.note(note!(Loss, "{} have an unknown CPU time.", NoteValue::plural(build.unknown, "process")));
    }
    let failed = build.jobs.iter().filter(|job| job.exit_status.is_some_and(|status| status != 0)).count();
    if failed > 0 {
        table.note(note!(Fact, "{} failed.", NoteValue::plural(failed, "job")));
    }
    table
}

/// The table `build_jobs`: one row for each job, the longest first, and one for each other program.
pub fn jobs(selection: &Selection<'_>) -> Table {
    jobs_of(selection, &Build::of(selection.capture()))
}

fn jobs_of(selection: &Selection<'_>, build: &Build) -> Table {
    let path = build.path();
    let of_job = |(index, job): (usize, &'_ Job)| (index, job.wall_ns());
    let mut order: Vec<(usize, u64)> = build.jobs.iter().enumerate().map(of_job).collect();
    order.sort_by_key(|&(index, wall_ns)| (std::cmp::Reverse(wall_ns), index));
    let jobs = order.into_iter().map(|(index, _)| {
        let job = &build.jobs[index];
        let name = shown(selection, &job.work.name);
        Row {
            name,
            kind: job.work.kind,
            job: Some(job),
            used: &job.used,
            is_on_build_path: path.iter().any(|&(job, _)| job == index),
        }
    });
    let others = build.others.iter().map(|(name, used)| {
        let name = format!("({name})");
        Row { name, kind: Kind::Other, job: None, used, is_on_build_path: false }
    });
    let start_ns = build.start_ns;
    Columns::<Row<'_>>::new()
        .text(
            "job",
            "What is built: the source file, or the output of a link. Other programs are in parentheses.",
            |row| row.name.as_str().into(),
        )
        .text(
            "job_kind",
            "compile, link, compile and link, archive, preprocess, generate, configure, build script or other.",
            |row| row.kind.name().into(),
        )
        .duration("wall", "From its start to its end.", |row| row.job.map(Job::wall_ns))
        .duration("cpu", "CPU time of all its processes.", |row| known(row.used, row.used.cpu_ns))
        .duration("cpu_front_end", "CPU time of the front end, if the compiler says it.", |row| row.used.front_end_ns)
        .duration("cpu_templates", "Of it, instantiation of templates.", |row| row.used.templates_ns)
        .duration("cpu_back_end", "CPU time of the back end, if the compiler says it.", |row| row.used.back_end_ns)
        .duration("cpu_compile", "CPU time of compilers: front end and back end.", |row| {
            known(row.used, row.used.compiler_ns)
        })
        .duration("cpu_assemble", "CPU time of assemblers.", |row| known(row.used, row.used.assembler_ns))
        .duration("cpu_link", "CPU time of linkers.", |row| known(row.used, row.used.linker_ns))
        .duration("cpu_waited", "Time that first threads of its processes waited for a CPU.", |row| {
            known(row.used, row.used.runnable_ns)
        })
        .duration("alone", "Time in which no other job ran.", |row| row.job.map(|job| job.alone_ns))
        .bytes("rss_peak", "Largest resident memory of one of its processes.", |row| row.used.peak_rss)
        .bytes("io_read", "Bytes fetched from storage.", |row| row.used.read)
        .bytes("io_written", "Bytes to be sent to storage.", |row| row.used.written)
        .count("major_faults", "faults", "Page faults that read from storage.", |row| row.used.major_faults)
        .count("processes", "processes", "Processes.", |row| row.used.processes)
        .flag("on_build_path", "Whether the build's end waited for it: see the view `build-path`.", |row| {
            row.is_on_build_path
        })
        .with(Column::duration("job_start", "Start, from that of the build."), move |row| {
            row.job.map(|job| job.start_ns.saturating_sub(start_ns)).into()
        })
        .with(
            Column::new("exit_status", ColumnKind::Number, "", "Exit code, or 128 + signal.").at(Importance::Detail),
            |row| row.job.and_then(|job| job.exit_status).into(),
        )
        .essential("job job_kind wall cpu rss_peak")
        .detail("io_read io_written major_faults processes job_start")
        .table("build_jobs", "Jobs of the build, the longest first", jobs.chain(others).collect::<Vec<_>>())
}

/// The table `build_time`: how many jobs ran in each part of the build.
pub fn over_time(selection: &Selection<'_>) -> Table {
    struct Bin {
        start_ns: u64,
        length_ns: u64,
        busy_ns: u64,
        linking_ns: u64,
        longest: Option<(u64, usize)>,
    }
    let build = Build::of(selection.capture());
    let slots = build.most_jobs() as f64;
    let wall_ns = build.end_ns - build.start_ns;
    let edge = |bin: u64| build.start_ns + (u128::from(wall_ns) * u128::from(bin) / u128::from(BINS)) as u64;
    let count = if build.jobs.is_empty() { 0 } else { BINS };
    let bins = (0..count).map(|bin| {
        let (start, end) = (edge(bin), edge(bin + 1));
        let inside = |job: &Job| job.end_ns.min(end).saturating_sub(job.start_ns.max(start));
        let links = |job: &&Job| matches!(job.work.kind, Kind::Link | Kind::CompileAndLink);
        let longest = build.jobs.iter().enumerate().map(|(index, job)| (inside(job), index)).max();
        Bin {
            start_ns: start - build.start_ns,
            length_ns: end - start,
            busy_ns: build.jobs.iter().map(inside).sum(),
            linking_ns: build.jobs.iter().filter(links).map(inside).sum(),
            longest: longest.filter(|(ns, _)| *ns > 0),
        }
    });
    let average = |ns: u64, bin: &Bin| (bin.length_ns > 0).then(|| ns as f64 / bin.length_ns as f64);
    Columns::<Bin>::new()
        .duration("time_start", "Start of this part, from that of the build.", |bin| bin.start_ns)
        .number("jobs_average", "jobs", "Jobs that ran, on average.", move |bin| average(bin.busy_ns, bin))
        .number("jobs_linking", "jobs", "Those of them that link.", move |bin| average(bin.linking_ns, bin))
        .number("jobs_idle", "jobs", "Slots without a job, on average.", move |bin| {
            average(bin.busy_ns, bin).map(|jobs| slots - jobs)
        })
        .text("job", "The job that ran longest in it.", |bin| {
            bin.longest.map_or(Value::Missing, |(_, job)| shown(selection, &build.jobs[job].work.name).into())
        })
        .table("build_time", "Jobs over time", bins.collect::<Vec<_>>())
}

/// The table `build_path`: the jobs that the end of the build waited for.
pub fn path(selection: &Selection<'_>) -> Table {
    struct Stage<'a> {
        job: &'a Job,
        waited: Waited,
        gap_ns: u64,
    }
    let build = Build::of(selection.capture());
    let path = build.path();
    let mut before_ns = build.start_ns;
    let stages = path.iter().map(|&(index, waited)| {
        let job = &build.jobs[index];
        let gap_ns = job.start_ns.saturating_sub(before_ns);
        before_ns = job.end_ns;
        Stage { job, waited, gap_ns }
    });
    let stages: Vec<Stage<'_>> = stages.collect();
    let mut table = Columns::<Stage<'_>>::new()
        .text("job", "The job.", |stage| shown(selection, &stage.job.work.name).into())
        .text("job_kind", "What it does.", |stage| stage.job.work.kind.name().into())
        .text(
            "waited_for",
            "What it waited for: an input that the job before made, or its slot. Missing where unknown.",
            |stage| match stage.waited {
                Waited::Input => "input".into(),
                Waited::Slot => "slot".into(),
                Waited::Unknown => Value::Missing,
            },
        )
        .duration("gap", "Time before it in which no job of the path ran.", |stage| stage.gap_ns)
        .duration("wall", "From its start to its end.", |stage| stage.job.wall_ns())
        .duration("cpu", "CPU time of all its processes.", |stage| stage.job.used.cpu_ns)
        .table("build_path", "What the end of the build waited for", &stages);
    if let [first, ..] = &stages[..] {
        let wall_ns = build.end_ns - build.start_ns;
        let known_ns: u64 = stages.iter().map(|stage| stage.job.wall_ns()).sum();
        table.note(note!(
            Fact,
            "Jobs of the path ran for {} ({} of the build); {} before its first job, of which it is unknown what it waited for.",
            NoteValue::ns(known_ns),
            NoteValue::percent(100.0 * known_ns as f64 / wall_ns.max(1) as f64),
            NoteValue::ns(first.gap_ns),
        ));
        let for_slots = stages.iter().filter(|stage| stage.waited == Waited::Slot).count();
        if for_slots > 0 {
            table.note(note!(
                Fact,
                "{} of {} jobs of the path waited for a slot: with more slots, and CPUs for them, they begin earlier.",
                NoteValue::number(for_slots as u64),
                NoteValue::number(stages.len() as u64),
            ));
        }
    }
    table
}

/// Builds.
pub const ANALYSIS: Analysis = Analysis {
    title: "Builds",
    views: &[
        View {
            name: "build",
            question: "Which compilers, linkers and configure steps cost the build most?",
            tables: |selection, _| {
                let build = Build::of(selection.capture());
                vec![summary_of(selection, &build), jobs_of(selection, &build)]
            },
        },
        View {
            name: "headers",
            question: "Which headers cost the build most, and which header brings them in?",
            tables: |selection, _| vec![headers::headers(selection)],
        },
        View {
            name: "templates",
            question: "Which templates and functions cost the compilers most?",
            tables: |selection, _| headers::templates(selection),
        },
        View {
            name: "configure",
            question: "Which commands and files of a configure step cost most?",
            tables: |selection, _| headers::configure(selection),
        },
        View {
            name: "build-time",
            question: "How many jobs of the build ran at once, and when were slots idle?",
            tables: |selection, _| vec![over_time(selection)],
        },
        View {
            name: "build-path",
            question: "Which chain of jobs did the end of the build wait for?",
            tables: |selection, _| vec![path(selection)],
        },
    ],
    report: |selection| {
        let build = Build::of(selection.capture());
        if build.jobs.is_empty() {
            return Vec::new();
        }
        let tables =
            vec![summary_of(selection, &build), jobs_of(selection, &build), path(selection), over_time(selection)];
        let mut sections: Vec<ReportSection> = ReportSection::of_rows("Build", tables).into_iter().collect();
        let headers = headers::headers(selection);
        sections.extend(ReportSection::of_rows("Headers of the build", vec![headers]));
        sections.extend(ReportSection::of_rows("Templates and code of the build", headers::templates(selection)));
        sections.extend(ReportSection::of_rows("Configure steps", headers::configure(selection)));
        sections
    },
    ..Analysis::NONE
};

#[cfg(test)]
mod header_tests;
#[cfg(test)]
mod tests;
