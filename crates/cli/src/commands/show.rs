//! `stepscope show`: one analysis of a capture, as a table.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::{
    Functions, Selection, calltree, critical_path, faults, hotspots, resources, sched, scopes, slow_steps, step_times,
    summary, threads, tree, wall,
};
use stepscope_model::Table;

use crate::arguments::{LookArguments, percentile, slow_options};
use crate::failure::Failure;
use crate::load;
use crate::output::TableArguments;

/// Show a capture, or a file of another tool, as tables.
#[derive(Debug, Args)]
pub struct Show {
    /// The capture, or a file that can be imported; `-` for standard input.
    capture: PathBuf,
    /// What to show.
    #[arg(long, value_enum, default_value_t)]
    view: View,
    /// For slow-steps: this percentile of the steps' times and above, 60 to 100 [default: beyond a natural gap in the
    /// times if there is a clear one, else 95].
    #[arg(long, value_name = "PERCENT", value_parser = percentile)]
    slow_percentile: Option<f64>,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    output: TableArguments,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum View {
    /// What each function costs: by itself, with its callees, as the nearest owned caller.
    #[default]
    Hotspots,
    /// CPU time and top function of each thread.
    Threads,
    /// The same for each thread name.
    ThreadNames,
    /// How each thread spent its life: running, runnable, blocked by class.
    Wall,
    /// The same for each thread name.
    WallNames,
    /// Blocked time by the owned function that waited.
    Blocked,
    /// Run-queue delays and context switches of each thread.
    Sched,
    /// Page faults by function.
    Faults,
    /// CPU, memory, threads and I/O of each process.
    Resources,
    /// Every counter of each process.
    Counters,
    /// The call tree as text.
    Tree,
    /// The call tree from the leaves.
    InvertedTree,
    /// Which owned function was charged for which leaf.
    Edges,
    /// How long steps take, what they are made of, whether they grow, which stall.
    Steps,
    /// What happens in the slowest steps that does not happen in typical ones.
    SlowSteps,
    /// What the program's named scopes take, and whether they run or wait in it.
    Scopes,
    /// What steps wait for, whichever thread does it, and what could be gained.
    CriticalPath,
    /// The capture in a row: times, coverage, losses.
    Summary,
    /// What was recorded, and why the rest was not.
    Dimensions,
}

impl Show {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let capture = load::capture_with(&self.capture, &self.look.symbols.import()?)?;
        let functions =
            Functions::of(&capture, &self.look.owned.owned(load::ownership_beside(&self.capture).as_ref())?);
        let selection = Selection::new(&capture, &functions, &self.look.select.filter())?;
        self.output.print(self.view.tables(&selection, &slow_options(self.slow_percentile)))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl View {
    fn tables(self, selection: &Selection<'_>, slow: &slow_steps::Options) -> Vec<Table> {
        let inverted = calltree::Options { order: calltree::Order::LeavesFirst, ..calltree::Options::default() };
        vec![match self {
            View::Hotspots => hotspots::table(selection, &hotspots::Options::default()),
            View::Threads => threads::table(selection),
            View::ThreadNames => threads::by_name(selection),
            View::Wall => wall::table(selection, wall::Grouping::Thread),
            View::WallNames => wall::table(selection, wall::Grouping::ThreadName),
            View::Blocked => wall::callers(selection),
            View::Sched => sched::table(selection, &sched::Options::default()),
            View::Faults => faults::table(selection),
            View::Resources => resources::table(selection),
            View::Counters => resources::counters(selection),
            View::Tree => tree::table(selection, &tree::Options::default()),
            View::InvertedTree => tree::table(selection, &tree::Options { tree: inverted, ..tree::Options::default() }),
            View::Edges => hotspots::edges(selection),
            View::Steps => return step_times::tables(selection),
            View::SlowSteps => return slow_steps::tables(selection, slow),
            View::Scopes => scopes::table(selection),
            View::CriticalPath => return critical_path::tables(selection),
            View::Summary => summary::table(std::slice::from_ref(selection)),
            View::Dimensions => summary::dimensions(std::slice::from_ref(selection)),
        }]
    }
}
