//! Flags of `compare`, `ab`, `gate` and `flamegraph --diff`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use stepscope_analyze::Naming;
use stepscope_analyze::comparable::Difference;
use stepscope_analyze::compare::Options;
use stepscope_analyze::compare::renames::Rename;
use stepscope_lab::comparison::Request;
use stepscope_model::Phase;

use super::{LookArguments, PHASES, ReadingArguments, choice, duration};
use crate::failure::Failure;

/// How captures are compared.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Comparison")]
pub struct CompareArguments {
    /// Only this phase [default: steady if there is any].
    #[arg(long, value_parser = choice(PHASES))]
    phase: Option<Phase>,
    /// Only captures of this variant.
    #[arg(long, value_name = "VARIANT")]
    variant: Option<String>,
    /// Treat smaller changes as no change [default: the lab file's tolerance, else 5%].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    tolerance: Option<f64>,
    /// Seed of the resampling; equal seeds give equal intervals [default: 1].
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Do not test rows with fewer samples on both sides together [default: 30].
    #[arg(long, value_name = "SAMPLES")]
    least_count: Option<u64>,
    /// Show costs as measured, not adjusted for the machine's speed where it was recorded.
    #[arg(long)]
    no_speed_adjustment: bool,
    /// A function that was renamed: 'OLD => NEW', each with at most one `*`; repeatable.
    #[arg(long = "rename", value_name = "OLD=>NEW")]
    renames: Vec<Rename>,
    /// File with one rename per line; `#` starts a comment.
    #[arg(long = "renames", value_name = "FILE")]
    rename_file: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
    /// Duration to assume for captures without timestamps, such as folded stacks; costs are then per second.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    assume_duration: Option<Duration>,
    /// Compare recordings of different machines.
    #[arg(long)]
    across_machines: bool,
    /// Compare different kinds of builds, such as debug and release.
    #[arg(long)]
    across_builds: bool,
    /// Compare different scenarios or phases.
    #[arg(long)]
    across_scenarios: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.trim().trim_end_matches('%').trim().parse().ok();
    percent
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| "write a percentage above 0 and up to 100, e.g. 5%".to_owned())
}

impl CompareArguments {
    /// What to compare, and how the captures are read.
    pub fn request(&self, look: &LookArguments) -> Result<Request, Failure> {
        let across = [
            (self.across_machines, Difference::Machine),
            (self.across_builds, Difference::Build),
            (self.across_scenarios, Difference::Scenario),
        ];
        Ok(Request {
            phase: self.phase,
            variant: self.variant.clone(),
            importing: self.reading.options(&look.symbols)?,
            assumed_duration: self.assume_duration,
            across: across.into_iter().filter_map(|(allowed, difference)| allowed.then_some(difference)).collect(),
            owned: look.owned.ownership(None),
            filter: look.select.filter(&Naming::default()),
        })
    }

    /// Options of the statistics. `tolerance` comes from the lab file; the command line overrides it.
    pub fn options(&self, tolerance: Option<f64>) -> Result<Options, Failure> {
        let mut renames = self.renames.clone();
        if let Some(path) = &self.rename_file {
            renames.extend(read_renames(path)?);
        }
        let default = Options::default();
        let tolerance = self.tolerance.map(|percent| percent / 100.0).or(tolerance).unwrap_or(default.tolerance);
        let (seed, least_count) = (self.seed.unwrap_or(default.seed), self.least_count.unwrap_or(default.least_count));
        let adjust_for_speed = !self.no_speed_adjustment;
        Ok(Options { seed, least_count, tolerance, renames, adjust_for_speed, ..default })
    }
}

fn read_renames(path: &Path) -> Result<Vec<Rename>, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.split('#').next().unwrap_or("").trim()));
    let renames = lines.filter(|(_, line)| !line.is_empty());
    let parse =
        |(line, text): (usize, &str)| text.parse().map_err(|error| Failure::Usage(format!("{name}:{line}: {error}")));
    renames.map(parse).collect()
}
