//! `stepscope flamegraph`: a capture as a standalone interactive SVG.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::events::{self, Role};
use stepscope_analyze::{Functions, Selection, calltree};
use stepscope_convert::export::{self, Evidence, ExportOptions};
use stepscope_model::{CallTree, Capture, EventId};
use stepscope_view::flamegraph::{self, Colours};

use crate::arguments::{OwnedArguments, SelectArguments};
use crate::failure::Failure;
use crate::output::Target;
use crate::{load, progress};

/// Draw a flame graph: an SVG that zooms and searches in any browser, without a network.
#[derive(Debug, Args)]
pub struct Flamegraph {
    /// The capture, or a file that can be imported; `-` for standard input.
    capture: PathBuf,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// svg, or folded for the stacks as text.
    #[arg(long, value_enum, default_value_t)]
    format: Form,
    /// Blocked time instead of time on a CPU.
    #[arg(long, conflicts_with_all = ["event", "faults"])]
    off_cpu: bool,
    /// Page faults instead of time on a CPU.
    #[arg(long, conflicts_with = "event")]
    faults: bool,
    /// A subtree a thread.
    #[arg(long, conflicts_with = "by_thread_name")]
    by_thread: bool,
    /// A subtree a thread name.
    #[arg(long)]
    by_thread_name: bool,
    /// From the leaves: what cost most by itself, and who called it.
    #[arg(long)]
    inverted: bool,
    /// What colours tell first; the page can change it.
    #[arg(long, value_enum, default_value_t)]
    colours: Colouring,
    #[command(flatten)]
    select: SelectArguments,
    #[command(flatten)]
    owned: OwnedArguments,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    #[default]
    Svg,
    Folded,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Colouring {
    /// Native, runtime, allocator, kernel, Python.
    #[default]
    Category,
    /// The module that the code is in.
    Module,
}

impl Flamegraph {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let capture = load::capture(&self.capture)?;
        let ownership = load::ownership_beside(&self.capture);
        let target = Target::of(self.output.as_deref());
        if self.format == Form::Folded {
            let capture = super::export::selected(capture, &self.select, &self.owned.owned(ownership.as_ref())?)?;
            self.refuse_what_folded_stacks_cannot_show()?;
            let evidence = match (self.off_cpu, self.faults) {
                (true, _) => Some(Evidence::OffCpu),
                (_, true) => fault_event(&capture).map(Evidence::Event),
                _ => events::primary(&capture).map(Evidence::Event),
            };
            let options = ExportOptions { evidence, ..ExportOptions::default() };
            target.write(|out| Ok(export::write(&capture, export::Format::Folded, out, &options)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let functions = Functions::of(&capture, &self.owned.owned(ownership.as_ref())?);
        let selection = Selection::new(&capture, &functions, &self.select.filter())?;
        let tree = progress::of_step("building the call tree", || self.tree(&selection));
        let colours = match self.colours {
            Colouring::Category => Colours::Kind,
            Colouring::Module => Colours::Module,
        };
        let options = flamegraph::Options { colours, growth: None };
        target.write(|out| flamegraph::write_svg(&tree, &options, out).map_err(Failure::writing("the flame graph")))?;
        Ok(ExitCode::SUCCESS)
    }

    fn refuse_what_folded_stacks_cannot_show(&self) -> Result<(), Failure> {
        let asked =
            [(self.inverted, "--inverted"), (self.by_thread, "--by-thread"), (self.by_thread_name, "--by-thread-name")];
        match asked.into_iter().find(|(asked, _)| *asked) {
            Some((_, flag)) => Err(Failure::Usage(format!(
                "{flag} is for pictures: folded stacks run from the root to the leaf, each after its thread's name"
            ))),
            None => Ok(()),
        }
    }

    fn tree(&self, selection: &Selection<'_>) -> CallTree {
        let order = if self.inverted { calltree::Order::LeavesFirst } else { calltree::Order::CallersFirst };
        let grouping = match (self.by_thread, self.by_thread_name) {
            (true, _) => calltree::Grouping::Thread,
            (_, true) => calltree::Grouping::ThreadName,
            _ => calltree::Grouping::None,
        };
        let options = calltree::Options { order, grouping };
        match (self.off_cpu, self.faults) {
            (true, _) => calltree::off_cpu(selection, &options),
            (_, true) => calltree::faults(selection, &options),
            _ => calltree::of_samples(selection, &options),
        }
    }
}

/// The first event of page faults, minor ones before major ones.
fn fault_event(capture: &Capture) -> Option<EventId> {
    let roles = [Role::MinorFaults, Role::Faults, Role::MajorFaults];
    roles.into_iter().find_map(|role| events::of_role(capture, role).next())
}
