//! `stepscope flamegraph`: a capture as a standalone interactive SVG.

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stepscope_analyze::HeapMeasure;
use stepscope_analyze::compare::tree;
use stepscope_analyze::events::{self, Role};
use stepscope_analyze::{Functions, Selection, analysis, calltree, slow_steps, step_times};
use stepscope_convert::export::{self, Evidence, ExportOptions};
use stepscope_lab::comparison::{CaptureSets, Extent, LabelledTree};
use stepscope_model::{CallTree, Capture, Dimension, EventId, TreeDifference};
use stepscope_view::flamegraph::{self, Colours};

use crate::arguments::comparison::CompareArguments;
use crate::arguments::{LookArguments, percentile, slow_options};
use crate::failure::Failure;
use crate::output::Target;
use crate::{load, progress};

/// Draw a flame graph: an SVG with zoom and search, for any browser, without a network.
#[derive(Debug, Args)]
pub struct Flamegraph {
    /// The capture, or a file that can be imported; `-` for standard input [default: the newest capture in the working
    /// folder]. With --diff, two sides: each a capture, a folder of captures, a pattern in quotes, or several with commas
    /// between.
    #[arg(required_if_eq("diff", "true"), value_name = "CAPTURE")]
    sources: Vec<PathBuf>,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// svg, or folded: the stacks as text.
    #[arg(long, value_enum, default_value_t)]
    format: Form,
    /// Blocked time instead of time on a CPU.
    #[arg(long, conflicts_with_all = ["event", "faults"])]
    off_cpu: bool,
    /// Page faults instead of time on a CPU.
    #[arg(long, conflicts_with = "event")]
    faults: bool,
    /// Heap allocations instead of time on a CPU: their number, temporary ones, their bytes, bytes held at the peak, or bytes
    /// that live at the end.
    #[arg(long, value_enum, value_name = "QUANTITY", conflicts_with_all = ["off_cpu", "event", "faults", "format"])]
    heap: Option<HeapQuantity>,
    /// Show the average cost per step.
    #[arg(long, conflicts_with_all = ["event", "faults", "heap", "format"])]
    per_step: bool,
    /// Slow steps against typical steps, as a differential flame graph. With --off-cpu, the waits of the loop's thread in
    /// them.
    #[arg(long, conflicts_with_all = ["event", "faults", "heap", "format", "per_step"])]
    slow_steps: bool,
    /// Differential flame graph of two captures or sets of captures, before and after: blue costs less, orange costs
    /// more, grey is inconclusive.
    #[arg(long, conflicts_with_all = ["faults", "heap", "format", "per_step", "slow_steps", "by_scope"])]
    diff: bool,
    /// With --diff: compare shares of each side's total instead of costs. Shares are not tested, because if one falls, others
    /// rise.
    #[arg(long, requires = "diff")]
    normalised: bool,
    /// Steps at or above this percentile of step time are slow, 60 to 100 [default: beyond a natural gap in the step times
    /// if there is a clear one, else 95].
    #[arg(long, value_name = "PERCENT", requires = "slow_steps", value_parser = percentile)]
    slow_percentile: Option<f64>,
    /// Group by thread.
    #[arg(long, conflicts_with = "by_thread_name")]
    by_thread: bool,
    /// Group by thread name.
    #[arg(long)]
    by_thread_name: bool,
    /// Group by marked scope; scopes nest.
    #[arg(long, conflicts_with_all = ["by_thread", "by_thread_name"])]
    by_scope: bool,
    /// Start from the leaves: the functions with the highest self cost, with their callers.
    #[arg(long)]
    inverted: bool,
    /// Initial colours; the page can switch them.
    #[arg(long, value_enum, default_value_t)]
    colours: Colouring,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    compare: CompareArguments,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    #[default]
    Svg,
    Folded,
}

/// What a flame graph of the heap shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HeapQuantity {
    Calls,
    Temporary,
    Bytes,
    Peak,
    Leaked,
}

impl HeapQuantity {
    fn measure(self) -> HeapMeasure {
        match self {
            Self::Calls => HeapMeasure::Calls,
            Self::Temporary => HeapMeasure::Temporary,
            Self::Bytes => HeapMeasure::Bytes,
            Self::Peak => HeapMeasure::Peak,
            Self::Leaked => HeapMeasure::Leaked,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Colouring {
    /// By kind of code: native, runtime, allocator, kernel, Python.
    #[default]
    Category,
    /// By module.
    Module,
}

impl Flamegraph {
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let target = Target::of(self.output.as_deref());
        if self.diff {
            return self.draw_difference(&target);
        }
        let sources = load::named_or_newest(std::mem::take(&mut self.sources))?;
        let [path] = sources.as_slice() else {
            let message = "a flame graph is of one capture; two are drawn against each other with --diff";
            return Err(Failure::Usage(message.to_owned()));
        };
        let capture = load::opened(path, &self.look.symbols.import()?)?;
        self.draw_what_there_is(&capture);
        if self.off_cpu || self.slow_steps || self.format == Form::Folded {
            capture.load()?;
        }
        let beside = load::settings_beside(path);
        let filter = self.look.select.filter(&beside.naming);
        if self.by_scope && capture.scopes.is_empty() {
            return Err(Failure::Failed(
                "no scopes were recorded: mark them in the program, or record Gazebo's own with its profiler's adapter \
                 (docs/marks.md)"
                    .to_owned(),
            ));
        }
        if self.format == Form::Folded {
            let owned = self.look.owned.owned(beside.ownership.as_ref())?;
            let capture = super::export::selected(capture, &filter, &owned)?;
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
        // The program ends with this picture: to take its tables apart again would take a tenth of the time.
        let capture = ManuallyDrop::new(capture);
        let functions = ManuallyDrop::new(Functions::of(&capture, &self.look.owned.owned(beside.ownership.as_ref())?));
        let selection = Selection::new(&capture, &functions, &filter)?;
        if self.slow_steps {
            return self.draw_slow_steps(&selection, &target);
        }
        let tree = ManuallyDrop::new(progress::of_step("building the call tree", || self.tree(&selection))?);
        load::check(&capture)?;
        let colours = match self.colours {
            Colouring::Category => Colours::Kind,
            Colouring::Module => Colours::Module,
        };
        let options = flamegraph::Options { colours, growth: None };
        target.write(|out| flamegraph::write_svg(&tree, &options, out).map_err(Failure::writing("the flame graph")))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Without samples, allocations or waits take the place of time on a CPU, unless something else was asked for.
    fn draw_what_there_is(&mut self, capture: &Capture) {
        let asks = self.off_cpu || self.faults || self.slow_steps || self.heap.is_some();
        if asks || !capture.samples.is_empty() {
            return;
        }
        if !capture.allocations.is_empty() && self.format == Form::Svg {
            self.heap = Some(HeapQuantity::Bytes);
            eprintln!("note: There are no samples: the picture is of allocated bytes (`--heap bytes`).");
        } else if !capture.waits.is_empty() {
            self.off_cpu = true;
            eprintln!("note: There are no samples: the picture is of blocked time (`--off-cpu`).");
        }
    }

    fn refuse_what_folded_stacks_cannot_show(&self) -> Result<(), Failure> {
        let asked = [
            (self.inverted, "--inverted"),
            (self.by_thread, "--by-thread"),
            (self.by_thread_name, "--by-thread-name"),
            (self.by_scope, "--by-scope"),
        ];
        match asked.into_iter().find(|(asked, _)| *asked) {
            Some((_, flag)) => Err(Failure::Usage(format!(
                "{flag} is for pictures: folded stacks run from the root to the leaf, each after its thread's name"
            ))),
            None => Ok(()),
        }
    }

    /// The slow steps against typical ones.
    fn draw_slow_steps(&self, selection: &Selection<'_>, target: &Target) -> Result<ExitCode, Failure> {
        let options = slow_options(self.slow_percentile);
        let evidence = if self.off_cpu { calltree::Evidence::Blocked } else { calltree::Evidence::OnCpu };
        let trees = slow_steps::trees(selection, &options, &self.tree_options(), evidence).map_err(Failure::Failed)?;
        self.write_difference(&slow_steps::difference(&trees), target)
    }

    /// Two sides against each other.
    fn draw_difference(&self, target: &Target) -> Result<ExitCode, Failure> {
        let request = self.compare.request(&self.look)?;
        let sets = progress::of_step("reading captures", || CaptureSets::read(&self.sources, &request))?;
        sets.notes().iter().for_each(|note| eprintln!("note: {note}"));
        let scale = if self.normalised { tree::Scale::Normalised } else { tree::Scale::Absolute };
        let evidence = if self.off_cpu { calltree::Evidence::Blocked } else { calltree::Evidence::OnCpu };
        let drawing = tree::Drawing { tree: self.tree_options(), evidence, scale };
        let options = self.compare.options(sets.tolerance())?;
        let extent = Extent { tables: false, trees: Some(drawing) };
        let drawn = progress::of_step("joining call trees", || sets.compare(&request, &options, extent))?.trees;
        let [LabelledTree { difference, .. }] = drawn.as_slice() else {
            let labels: Vec<&str> = drawn.iter().map(|tree| tree.label.as_str()).collect();
            return Err(Failure::Usage(format!(
                "one picture shows one pair, and there are {}: {}; name the captures of two sides of one scenario",
                drawn.len(),
                labels.join(", ")
            )));
        };
        self.write_difference(difference, target)
    }

    fn write_difference(&self, difference: &TreeDifference, target: &Target) -> Result<ExitCode, Failure> {
        target.write(|out| {
            flamegraph::write_difference_svg(difference, &flamegraph::Options::of_difference(), out)
                .map_err(Failure::writing("the flame graph"))
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn tree_options(&self) -> calltree::Options {
        let order = if self.inverted { calltree::Order::LeavesFirst } else { calltree::Order::CallersFirst };
        let grouping = match (self.by_thread, self.by_thread_name, self.by_scope) {
            (true, ..) => calltree::Grouping::Thread,
            (_, true, _) => calltree::Grouping::ThreadName,
            (.., true) => calltree::Grouping::Scope,
            _ => calltree::Grouping::None,
        };
        calltree::Options { order, grouping }
    }

    fn tree(&self, selection: &Selection<'_>) -> Result<CallTree, Failure> {
        let options = self.tree_options();
        if self.per_step {
            let tree = match self.off_cpu {
                true => calltree::off_cpu_per_step(selection, &options),
                false => calltree::of_samples_per_step(selection, &options),
            };
            return tree.ok_or_else(|| Failure::Failed(step_times::no_steps(selection).to_string()));
        }
        if let Some(quantity) = self.heap {
            return match analysis::not_recorded(selection, Dimension::Heap) {
                Some(why) => Err(Failure::Failed(why.to_string())),
                None => Ok(calltree::heap(selection, &options, quantity.measure())),
            };
        }
        Ok(match (self.off_cpu, self.faults) {
            (true, _) => calltree::off_cpu(selection, &options),
            (_, true) => calltree::faults(selection, &options),
            _ => calltree::of_samples(selection, &options),
        })
    }
}

/// The first event of page faults, minor ones before major ones.
fn fault_event(capture: &Capture) -> Option<EventId> {
    let roles = [Role::MinorFaults, Role::Faults, Role::MajorFaults];
    roles.into_iter().find_map(|role| events::of_role(capture, role).next())
}
