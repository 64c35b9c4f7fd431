//! `stepscope show`: one analysis of a capture, as tables.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, CommandFactory as _, FromArgMatches};
use stepscope_analyze::analyses::view_named;
use stepscope_analyze::analysis::{self, AnalysisOption, OptionValues, View};
use stepscope_analyze::{ANALYSES, Analysis, Functions, Selection};

use crate::arguments::LookArguments;
use crate::failure::Failure;
use crate::load;
use crate::output::TableArguments;

/// Show a capture, or a file of another tool, as tables.
#[derive(Debug, Args)]
pub struct Show {
    /// The capture, or a file that can be imported; `-` for standard input [default: the newest capture in the working folder].
    capture: Option<PathBuf>,
    #[command(flatten)]
    view: ViewArguments,
    #[command(flatten)]
    look: LookArguments,
    #[command(flatten)]
    output: TableArguments,
}

impl Show {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let source = load::named_or_newest(Vec::from_iter(self.capture))?.remove(0);
        let capture = load::opened(&source, &self.look.symbols.import()?)?;
        let beside = load::settings_beside(&source);
        let functions = Functions::of(&capture, &self.look.owned.owned(beside.ownership.as_ref())?);
        let selection = Selection::new(&capture, &functions, &self.look.select.filter(&beside.naming))?;
        let ViewArguments { analysis, view, options, .. } = self.view.suited_to(&selection);
        let tables = analysis::tables(analysis, view, &selection, &options);
        load::check(&capture)?;
        self.output.print(tables)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// `--view NAME` and the options of the analyses, as [`ANALYSES`] declares them.
struct ViewArguments {
    analysis: &'static Analysis,
    view: &'static View,
    options: OptionValues,
    is_default: bool,
}

/// What takes the place of the default view where nothing was recorded for it.
const OTHER_DEFAULTS: [&str; 6] = ["heap", "memory-errors", "syscalls", "wall", "scopes", "counters"];

impl ViewArguments {
    /// Without `--view`, the first view of what the capture has.
    fn suited_to(self, selection: &Selection<'_>) -> Self {
        let lacks = |analysis: &Analysis| {
            analysis.needs.iter().any(|&dimension| analysis::not_recorded(selection, dimension).is_some())
        };
        if !self.is_default || !lacks(self.analysis) {
            return self;
        }
        let mut others = OTHER_DEFAULTS.into_iter().filter_map(view_named);
        let has_rows = |view: &View| (view.tables)(selection, &self.options).iter().any(|table| !table.rows.is_empty());
        match others.find(|(analysis, view)| !lacks(analysis) && has_rows(view)) {
            Some((analysis, view)) => Self { analysis, view, ..self },
            None => self,
        }
    }
}

impl std::fmt::Debug for ViewArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ViewArguments").field("view", &self.view.name).field("options", &self.options).finish()
    }
}

fn options() -> impl Iterator<Item = (&'static Analysis, &'static AnalysisOption)> {
    ANALYSES.iter().flat_map(|analysis| analysis.options.iter().map(move |option| (analysis, option)))
}

/// A view, by its name; help and completions show its question.
#[derive(Clone)]
struct ViewParser(PossibleValuesParser);

fn view_parser() -> ViewParser {
    let views = ANALYSES.iter().flat_map(|analysis| analysis.views);
    ViewParser(PossibleValuesParser::new(views.map(|view| PossibleValue::new(view.name).help(view.question))))
}

impl TypedValueParser for ViewParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        self.0.parse_ref(command, arg, value).map_err(|mut error| {
            if let Some(command) = crate::CommandLine::command().find_subcommand(value) {
                let tip = format!("`stepscope {} CAPTURE` is a command, not a view", command.get_name());
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

impl Args for ViewArguments {
    fn augment_args(command: Command) -> Command {
        let view = Arg::new("view")
            .long("view")
            .value_name("VIEW")
            .help("What to show; without CPU samples the first of heap, memory-errors, syscalls, wall, scopes and counters that has rows")
            .value_parser(view_parser())
            .default_value("hotspots");
        let of_analysis = |(analysis, option): (&Analysis, &'static AnalysisOption)| {
            let doc = option.doc.trim_end_matches('.');
            Arg::new(option.name)
                .long(option.name)
                .value_name(option.value)
                .value_parser(|text: &str| option.parse(text))
                .help(format!("For {}: {doc} [default: {}]", analysis.name(), option.default))
        };
        command.arg(view).args(options().map(of_analysis))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ViewArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let name = matches.get_one::<String>("view").expect("a view is the default");
        let (analysis, view) = view_named(name).expect("the parser accepts names of views only");
        let mut values = OptionValues::default();
        for (owner, option) in options() {
            let Some(value) = matches.get_one::<f64>(option.name) else { continue };
            if owner.name() != analysis.name() {
                let message = format!("--{} is an option of --view {}\n", option.name, owner.name());
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
            }
            values.set(option, *value);
        }
        let is_default = matches.value_source("view") != Some(ValueSource::CommandLine);
        Ok(Self { analysis, view, options: values, is_default })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
