//! Headers that many units of a build parse.
//!
//! Evidence: the CPU time of compilers by header, over all units ([`crate::analyses::build`]). A header of another project costs through the project's header
//! that includes it, or through the units themselves. Look-alikes: a header that all units really need; a precompiled header gains then, a
//! forward declaration does not.

use std::collections::BTreeSet;

use stepscope_model::NoteValue;

use crate::analyses::build::jobs::Build;
use crate::analyses::build::pieces::{Piece, Pieces, again_ns, is_of_project};
use crate::analyses::build::shown;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use stepscope_model::build_command;
use stepscope_model::compiler_work::CompilerWork;

/// Fewest units that parse the same header.
const FEWEST: usize = 3;

/// Most findings of a kind.
const MOST: usize = 3;

/// Least share of the CPU time in percent.
const LEAST: f64 = 2.0;

/// Least part of a header's cost that comes through one header.
const MOSTLY: f64 = 0.6;

/// Whether the compiler timed headers, or their cost is an estimate.
fn confidence(seen: &Seen<'_, '_>) -> Confidence {
    let has_intervals = seen.capture().scopes.iter().any(|scope| CompilerWork::of_scope(&scope.name).is_some());
    if has_intervals { Confidence::Strong } else { Confidence::Fair }
}

/// A finding about a header, whose part of the stacks below it goes away.
fn found(seen: &Seen<'_, '_>, headers: &Pieces, piece: &Piece, title: String, gain_ns: f64) -> Found {
    let capture = seen.capture();
    let function = seen.functions().of_frame(piece.frame);
    let mut without: Vec<f32> = Vec::with_capacity(capture.stacks.len());
    for node in &capture.stacks {
        let above = node.parent.map_or(0.0, |parent| without[parent.index()]);
        let is_it = capture.frames[node.frame.index()].function == piece.name;
        without.push(if is_it { 1.0 } else { above });
    }
    let gain = Some(Gain::of_build_cpu(gain_ns, headers.whole_ns as f64));
    let found = Found { without, gain, ..Found::of_program(title, None) };
    found.about(Some(function)).sure(confidence(seen))
}

pub(super) struct HeaderPulledIn;

impl Kind for HeaderPulledIn {
    fn name(&self) -> &'static str {
        "header-pulled-in"
    }

    fn advice(&self) -> &'static str {
        "Forward declare what the including header names of it, and include it in the sources that use it; or move the code that needs it out of the header. If all units need it: precompile it."
    }

    fn effects(&self) -> &'static [&'static str] {
        &["header-parsed-often"]
    }

    fn confirm(&self) -> &'static str {
        "Remove the include, build again and `stepscope compare` the two builds."
    }

    fn is_of_builds(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let headers = Pieces::headers(seen.selection);
        let selection = seen.selection;
        let mut all = Vec::new();
        for piece in headers.all.iter().filter(|piece| !is_of_project(seen.capture(), &piece.name)) {
            let (Some(includer), cost, units) = piece.main_entry() else { continue };
            let is_main = units >= FEWEST && cost as f64 >= MOSTLY * piece.as_entry().0 as f64;
            let gain_ns = again_ns(cost, units);
            if !is_main || gain_ns < headers.whole_ns as f64 * LEAST / 100.0 || all.len() >= MOST {
                continue;
            }
            let (header, above) = (shown(selection, &piece.name), shown(selection, includer));
            let title = format!(
                "`{}` costs {} of {} of CPU time: {units} of {} get it through `{above}`",
                short(&header),
                ns(cost as f64),
                ns(headers.whole_ns as f64),
                NoteValue::plural(headers.compiled(), "unit"),
            );
            let text = format!(
                "A unit parses it for {} on average. Through `{above}` it costs {}; in all {}.",
                ns(piece.cost_ns as f64 / piece.units.len() as f64),
                ns(cost as f64),
                ns(piece.cost_ns as f64),
            );
            all.push(found(seen, &headers, piece, title, gain_ns).because(text, "show --view headers"));
        }
        all
    }
}

/// A header of the system as sources name it: `<regex>` for `/usr/include/c++/12/regex`.
fn short(path: &str) -> &str {
    path.strip_prefix("/usr/include/").map_or(path, |rest| {
        let rest =
            rest.strip_prefix("x86_64-linux-gnu/").or_else(|| rest.strip_prefix("aarch64-linux-gnu/")).unwrap_or(rest);
        match rest.strip_prefix("c++/") {
            Some(versioned) => versioned.split_once('/').map_or(rest, |(_, name)| name),
            None => rest,
        }
    })
}

pub(super) struct Precompile;

impl Kind for Precompile {
    fn name(&self) -> &'static str {
        "header-parsed-often"
    }

    fn advice(&self) -> &'static str {
        "Precompile it: `target_precompile_headers(TARGET PRIVATE <HEADER>)` in CMake, `-include-pch` or a `.gch` elsewhere. Loading it costs a little in each unit. Headers that change often do not belong in it."
    }

    fn confirm(&self) -> &'static str {
        "Build with the precompiled header and `stepscope compare` the two builds."
    }

    fn is_of_builds(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let headers = Pieces::headers(seen.selection);
        let is_large = |ns: f64| ns >= headers.whole_ns as f64 * LEAST / 100.0;
        // A header of the project costs mostly what it includes, which has a finding of its own.
        let counts = |piece: &&Piece| {
            let (cost, units) = piece.as_entry();
            let is_worth = !is_of_project(seen.capture(), &piece.name) || piece.own_ns >= piece.cost_ns / 2;
            units >= FEWEST && is_large(again_ns(cost, units)) && is_worth
        };
        let one = |piece: &Piece| {
            let (cost_ns, units) = piece.as_entry();
            let title = format!(
                "{units} of {} parse `{}` again and again: {} of {} of CPU time",
                NoteValue::plural(headers.compiled(), "unit"),
                short(&shown(seen.selection, &piece.name)),
                ns(cost_ns as f64),
                ns(headers.whole_ns as f64),
            );
            let each = ns(cost_ns as f64 / units as f64);
            let text =
                format!("A unit parses it for {each} on average, with all that it includes; once would be enough.");
            found(seen, &headers, piece, title, again_ns(cost_ns, units)).because(text, "show --view headers")
        };
        headers.all.iter().filter(counts).take(MOST).map(one).collect()
    }
}

pub(super) struct ConfiguredHeader;

impl Kind for ConfiguredHeader {
    fn name(&self) -> &'static str {
        "configured-header"
    }

    fn advice(&self) -> &'static str {
        "Give values that change (version, commit, date) a header of their own that few sources include, and write it only when its content changes."
    }

    fn confirm(&self) -> &'static str {
        "Configure again without a change and build: nothing should compile."
    }

    fn is_of_builds(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let capture = seen.capture();
        let build = Build::of(capture);
        let Some(configured) = build.jobs.iter().find(|job| job.work.kind == build_command::Kind::Configure) else {
            return Vec::new();
        };
        // Names of headers that the configure step makes: `configure_file(config.h.in ...)`.
        let made: BTreeSet<&str> = capture
            .frames
            .iter()
            .filter_map(|frame| {
                let input = frame.function.strip_prefix("configure_file(")?.strip_suffix(')')?;
                let name = input.rsplit('/').next()?;
                Some(name.strip_suffix(".in").or_else(|| name.strip_suffix(".cmake")).unwrap_or(name))
            })
            .collect();
        let headers = Pieces::headers(seen.selection);
        let compiled_again: BTreeSet<usize> = (build.job_of.iter().enumerate())
            .filter(|(_, job)| {
                job.is_some_and(|job| build.jobs[job].made_before && build.jobs[job].start_ns >= configured.start_ns)
            })
            .map(|(process, _)| process)
            .collect();
        let name_of = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let is_made = |piece: &&Piece| made.contains(name_of(&piece.name).as_str());
        let mut all = Vec::new();
        for piece in headers.all.iter().filter(is_made) {
            let again: BTreeSet<usize> = piece.units.intersection(&compiled_again).copied().collect();
            if again.len() < FEWEST || again.len() * 2 < headers.units {
                continue;
            }
            let cost: u64 = (0..build.jobs.len())
                .filter(|job| again.iter().any(|process| build.job_of[*process] == Some(*job)))
                .map(|job| build.jobs[job].used.cpu_ns)
                .sum();
            let header = shown(seen.selection, &piece.name);
            let title = format!(
                "`{header}` from `configure_file` is in {} of {} that were compiled again: {} of {} of CPU time",
                again.len(),
                NoteValue::plural(headers.compiled(), "unit"),
                ns(cost as f64),
                ns(headers.whole_ns as f64)
            );
            let share = percent(100.0 * cost as f64 / headers.whole_ns.max(1) as f64);
            let text = format!(
                "The configure step ran in this build, and units with that header are {share} of its CPU time. If its content did not change, none of them needed compiling."
            );
            let gain = Gain::of_build_cpu(cost as f64, headers.whole_ns as f64);
            let function: FunctionId = seen.functions().of_frame(piece.frame);
            all.push(
                Found::of_program(title, Some(gain))
                    .about(Some(function))
                    .sure(Confidence::Weak)
                    .because(text, "show --view headers"),
            );
        }
        all.truncate(1);
        all
    }
}
