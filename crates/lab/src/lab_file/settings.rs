//! From the text of a lab file to a [`LabFile`]: what each key may hold, and its default.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use stepscope_analyze::Ownership;
use stepscope_assemble::StepTime;
use stepscope_model::{Better, Dimension, Phase};
use toml::de::DeTable;

use super::decode::{Field, Fields, Problems};
use super::limits::{self, Limits, PartialLimits};
use super::problem::{Problem, did_you_mean};
use super::{
    AbSettings, BASE, CompareSettings, Driver, LabFile, MetricSettings, MetricSource, Ready, RecordSettings, Scenario,
    Source, StepSource, StopSettings, Variant,
};
use crate::folder_map::FolderMap;
use crate::step::StepFunction;

const COMMAND: &str =
    r#"an array of program and arguments, e.g. ["gz", "sim", "-s"], or ["sh", "-c", "..."] for a line of shell"#;
const DRIVERS: &str = r#"an array of commands, e.g. [["gz", "topic", "-e", "-t", "/clock"]]"#;
const READY: &str = r#"a table with one condition, e.g. { log = "Loaded world" } or { port = 11345 }"#;
const STEP: &str = r#"{ scope = "..." }, { function = "..." } or "marks""#;
const BUILD: &str = r#"a command, e.g. ["cmake", "--build", "build"], or an array of commands"#;
const FOLDERS: &str = r#"a table of folders and those in their place, e.g. { "build" = "build-fix" }"#;
const MOST_HZ: u64 = 100_000;
const MOST_RUNS: u64 = 1000;

pub(super) fn parse(path: &Path, text: &str) -> Result<LabFile, Vec<Problem>> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text);
    if !syntax_errors.is_empty() {
        // What was made of the rest of the file would only be guesses.
        for error in syntax_errors {
            problems.add(error.span().unwrap_or(0..0), error.message());
        }
        return Err(problems.into_vec());
    }
    let reader = Reader { folder: path.parent().unwrap_or(Path::new("/")).to_owned() };
    let top = Fields::new(String::new(), document.get_ref());
    let lab = reader.lab_file(&path, text, top, &mut problems);
    let problems = problems.into_vec();
    if problems.is_empty() { Ok(lab) } else { Err(problems) }
}

/// Reads tables of a lab file. What is wrong becomes a problem, and a default takes its place.
struct Reader {
    folder: PathBuf,
}

impl Reader {
    fn lab_file(&self, path: &Path, text: &str, mut top: Fields, problems: &mut Problems) -> LabFile {
        let folder_name = self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut name = folder_name.unwrap_or_else(|| "lab".to_owned());
        let mut owned = Ownership::default();
        if let Some(mut project) = self.section(top.take("project"), "project", problems) {
            if let Some(given) = project.take("name").and_then(|field| field.string(problems, "a string")) {
                name = given;
            }
            owned = self.owned(project.take("owned"), problems).unwrap_or_default();
            project.finish(problems);
        }
        let metrics = self.metrics(top.take("metric"), problems);
        let gate = self.section(top.take("gate"), "gate", problems);
        let limits = gate
            .map(|fields| PartialLimits::read(fields, &metrics, problems))
            .unwrap_or_default()
            .over(&Limits::default());
        let mut defaults = ScenarioDefaults {
            record: PartialRecord::default(),
            stop: StopSettings::default(),
            owned,
            limits,
            metrics,
        };
        if let Some(record) = self.section(top.take("record"), "record", problems) {
            defaults.record = self.record(record, problems);
        }
        if let Some(stop) = top.take("stop") {
            defaults.stop = self.stop(&stop, defaults.stop, problems);
        }
        let scenarios = self.scenarios(top.take("scenario"), &defaults, problems);
        let variants = self.variants(top.take("variant"), &scenarios, problems);
        let ab = self.section(top.take("ab"), "ab", problems);
        let ab = ab.map_or_else(AbSettings::default, |fields| self.ab(fields, &variants, problems));
        let compare = self.section(top.take("compare"), "compare", problems);
        let compare = compare.map_or_else(CompareSettings::default, |fields| self.compare(fields, problems));
        top.finish(problems);
        let (path, text) = (path.to_owned(), text.to_owned());
        LabFile { path, text, name, owned: defaults.owned, scenarios, variants, ab, compare, limits: defaults.limits }
    }

    fn ab(&self, mut fields: Fields, variants: &[Variant], problems: &mut Problems) -> AbSettings {
        let default = AbSettings::default();
        let baseline = fields.take("baseline");
        let candidate = fields.take("candidate");
        if let (Some(candidate), Some(same)) = (&candidate, &baseline) {
            let name = |field: &Field| field.string(&mut Problems::new(""), "");
            if name(candidate).is_some_and(|name_of| Some(name_of) == name(same)) {
                problems.add(candidate.span(), "`candidate` is the baseline itself: name another variant");
            }
        }
        let mut times = |name, range| fields.take(name).and_then(|field| field.integer(problems, range));
        let runs = times("runs", 1..=MOST_RUNS);
        let warm = times("warm", 0..=MOST_RUNS);
        let number = |times: Option<u64>, otherwise| times.map_or(otherwise, |times| times as u32);
        let ab = AbSettings {
            baseline: baseline.and_then(|field| self.variant_name(&field, variants, problems)),
            candidate: candidate.and_then(|field| self.variant_name(&field, variants, problems)),
            runs: number(runs, default.runs),
            warm: number(warm, default.warm),
        };
        fields.finish(problems);
        ab
    }

    fn variant_name(&self, field: &Field, variants: &[Variant], problems: &mut Problems) -> Option<String> {
        let name = field.string(problems, "the name of a variant")?;
        let unnamed = variants.iter().all(|variant| !variant.changes_nothing()).then_some(BASE);
        let known = || variants.iter().map(|variant| variant.name.as_str()).chain(unnamed);
        if !known().any(|known| known == name) {
            problems.add(field.span(), format!("there is no [variant.{name}]{}", did_you_mean(&name, known())));
        }
        Some(name)
    }

    fn compare(&self, mut fields: Fields, problems: &mut Problems) -> CompareSettings {
        const TOLERANCE: &str = r#"percent, e.g. "5%""#;
        let mut compare = CompareSettings::default();
        if let Some(field) = fields.take("tolerance")
            && let Some(text) = field.string(problems, TOLERANCE)
        {
            match limits::percent(&text).filter(|percent| (0.0..=100.0).contains(percent)) {
                Some(percent) => compare.tolerance_percent = percent,
                None => problems.add(field.span(), format!("{} must be {TOLERANCE}, up to 100%", field.what)),
            }
        }
        fields.finish(problems);
        compare
    }

    /// The table `[name]`.
    fn section<'t>(&self, field: Option<Field<'t>>, name: &str, problems: &mut Problems) -> Option<Fields<'t>> {
        field?.table(problems, format!("[{name}]"), &format!("a table: [{name}]"))
    }

    fn scenarios(&self, field: Option<Field>, defaults: &ScenarioDefaults, problems: &mut Problems) -> Vec<Scenario> {
        const NONE: &str = "a lab file needs at least one scenario: [scenario.NAME] with command = [...]";
        let Some(field) = field else {
            problems.add(0..0, NONE);
            return Vec::new();
        };
        let Some(mut all) = field.table(problems, "[scenario]".to_owned(), "tables: [scenario.NAME]") else {
            return Vec::new();
        };
        let named = all.take_all();
        if named.is_empty() {
            problems.add(field.key_span.clone(), NONE);
        }
        let read = |(name, field): (&str, Field)| self.scenario(name, &field, defaults, problems);
        named.into_iter().filter_map(read).collect()
    }

    fn scenario(
        &self,
        name: &str,
        field: &Field,
        defaults: &ScenarioDefaults,
        problems: &mut Problems,
    ) -> Option<Scenario> {
        check_name("scenario", name, field.key_span.clone(), problems);
        let place = format!("[scenario.{name}]");
        let mut fields = field.table(problems, place.clone(), &format!("a table: {place} with command = [...]"))?;
        let axis = fields.take("axis").and_then(|field| field.string(problems, "a sentence in quotes"));
        let command = fields.take("command");
        if command.is_none() {
            problems.add(field.key_span.clone(), format!("{place} needs a `command`: {COMMAND}"));
        }
        let command = command.and_then(|field| self.command(&field, problems));
        let cwd = self.directory(fields.take("cwd"), problems).unwrap_or_else(|| self.folder.clone());
        let env = self.env(fields.take("env"), problems);
        let ready = fields.take("ready");
        let says_ready = ready.is_some();
        let ready = ready.and_then(|field| self.ready(&field, problems));
        let drivers = fields.take("drivers");
        let drivers = drivers.map_or_else(Vec::new, |field| self.drivers(&field, problems));
        let step = fields.take("step").and_then(|field| self.step(&field, problems));
        let record = fields.take("record");
        let record = self.section(record, &format!("scenario.{name}.record"), problems);
        let record = record.map(|fields| self.record(fields, problems)).unwrap_or_default();
        if !says_ready && record.needs_ready(&defaults.record) {
            let message =
                format!("{place} records its loading phase, but does not say when it ends: add `ready`, {READY}");
            problems.add(field.key_span.clone(), message);
        }
        let counts_steps = record.steps.or(defaults.record.steps).is_some();
        if counts_steps && step.is_none() {
            let message = format!("{place} is steady for a number of steps, but has no `step`: {STEP}");
            problems.add(field.key_span.clone(), message);
        }
        let record = record.over(&defaults.record).settled(step.is_some(), ready.is_some());
        let stop = fields.take("stop");
        let stop = stop.map_or(defaults.stop, |field| self.stop(&field, defaults.stop, problems));
        let owned = self.owned(fields.take("owned"), problems).unwrap_or_else(|| defaults.owned.clone());
        let gate = self.section(fields.take("gate"), &format!("scenario.{name}.gate"), problems);
        let limits = gate.map(|fields| PartialLimits::read(fields, &defaults.metrics, problems)).unwrap_or_default();
        let limits = limits.over(&defaults.limits);
        fields.finish(problems);
        Some(Scenario {
            name: name.to_owned(),
            axis,
            command: command?,
            cwd,
            env,
            ready,
            drivers,
            step,
            record,
            stop,
            owned,
            limits,
            metrics: defaults.metrics.clone(),
        })
    }

    fn variants(&self, field: Option<Field>, scenarios: &[Scenario], problems: &mut Problems) -> Vec<Variant> {
        let Some(mut all) = self.section(field, "variant", problems) else { return Vec::new() };
        let named = all.take_all();
        let read = |(name, field): (&str, Field)| self.variant(name, &field, scenarios, problems);
        let variants: Vec<(Variant, Range<usize>)> = named.into_iter().filter_map(read).collect();
        let mut unchanged = variants.iter().filter(|(variant, _)| variant.changes_nothing());
        if let (Some((first, _)), Some((second, span))) = (unchanged.next(), unchanged.next()) {
            let (first, second) = (&first.name, &second.name);
            let message = format!("neither variant `{first}` nor `{second}` changes anything: they are the same");
            problems.add(span.clone(), message);
        }
        variants.into_iter().map(|(variant, _)| variant).collect()
    }

    fn variant(
        &self,
        name: &str,
        field: &Field,
        scenarios: &[Scenario],
        problems: &mut Problems,
    ) -> Option<(Variant, Range<usize>)> {
        check_name("variant", name, field.key_span.clone(), problems);
        let place = format!("[variant.{name}]");
        let mut fields = field.table(problems, place.clone(), &format!("a table: {place}"))?;
        let env = self.env(fields.take("env"), problems);
        let command = fields.take("command").and_then(|field| self.command(&field, problems));
        let cwd = self.directory(fields.take("cwd"), problems);
        let program = fields.take("program").and_then(|field| {
            if command.is_some() {
                problems.add(
                    field.key_span.clone(),
                    "`program` takes the place of the first word of the scenario's command, and `command` of all of \
                     it: keep one of them",
                );
            }
            let program = field.string(problems, "the name or path of a program")?;
            Some(if program.contains('/') { self.resolve(&program) } else { program })
        });
        let folders = self.folders(fields.take("folders"), problems);
        let step = fields.take("step").and_then(|field| self.step(&field, problems));
        let source = self.source(fields.take("revision"), fields.take("build"), problems);
        let applies_to = fields.take("scenarios").and_then(|field| {
            let items = field.items(problems, "an array of names of scenarios")?;
            Some(items.iter().filter_map(|item| self.scenario_name(item, scenarios, problems)).collect())
        });
        fields.finish(problems);
        let name = name.to_owned();
        let variant = Variant { name, env, command, cwd, program, folders, step, source, scenarios: applies_to };
        if variant.name == BASE && !variant.changes_nothing() {
            let message = "`base` is the name of the scenarios as they are written: \
                           give this variant another name, or leave it empty";
            problems.add(field.key_span.clone(), message);
        }
        Some((variant, field.key_span.clone()))
    }

    fn folders(&self, field: Option<Field>, problems: &mut Problems) -> FolderMap {
        let Some(field) = field else { return FolderMap::default() };
        let Some(mut fields) = field.table(problems, field.what.clone(), FOLDERS) else { return FolderMap::default() };
        let mut pairs = Vec::new();
        for (from, to) in fields.take_all() {
            if from.is_empty() {
                problems
                    .add(to.key_span.clone(), format!("the name of a folder must not be empty; expected {FOLDERS}"));
            }
            if let Some(to) = to.string(problems, "the path of a folder") {
                pairs.push((self.folder.join(from), self.folder.join(to)));
            }
        }
        FolderMap::new(pairs)
    }

    fn source(&self, revision: Option<Field>, build: Option<Field>, problems: &mut Problems) -> Option<Source> {
        let Some(revision) = revision else {
            if let Some(build) = build {
                let message = "`build` is for a variant with a `revision`, which is built in a checkout of its own; \
                               other variants are taken as they are";
                problems.add(build.key_span, message);
            }
            return None;
        };
        let span = revision.span();
        let revision = revision.string(problems, r#"a git revision, e.g. "main""#)?;
        if revision.starts_with('-') {
            problems
                .add(span, format!("\"{}\" is no git revision: one does not start with `-`", revision.escape_debug()));
        }
        let build = build.map_or_else(Vec::new, |field| self.build(&field, problems));
        Some(Source { folder: self.folder.clone(), revision, build })
    }

    /// One command, or several. Their programs are found from the checkout, so paths are left as they are.
    fn build(&self, field: &Field, problems: &mut Problems) -> Vec<Vec<String>> {
        let Some(items) = field.items(problems, BUILD) else { return Vec::new() };
        let words = |items: Vec<Field>, problems: &mut Problems| -> Vec<String> {
            items.iter().filter_map(|item| item.text(problems, "a string")).collect()
        };
        let commands: Vec<Vec<String>> = match items.first() {
            Some(first) if first.is_string() => vec![words(items, problems)],
            _ => {
                let each = |item: &Field| Some(words(item.items(problems, BUILD)?, problems));
                items.iter().filter_map(each).collect()
            }
        };
        if commands.iter().any(|command| command.first().is_none_or(String::is_empty)) {
            problems.add(field.span(), format!("{} holds a command without a program; expected {BUILD}", field.what));
        }
        commands
    }

    fn scenario_name(&self, item: &Field, scenarios: &[Scenario], problems: &mut Problems) -> Option<String> {
        let name = item.string(problems, "the name of a scenario")?;
        let known = || scenarios.iter().map(|scenario| scenario.name.as_str());
        if !scenarios.is_empty() && !known().any(|known| known == name) {
            problems.add(item.span(), format!("there is no [scenario.{name}]{}", did_you_mean(&name, known())));
        }
        Some(name)
    }

    fn record(&self, mut fields: Fields, problems: &mut Problems) -> PartialRecord {
        let dimensions = fields.take("dimensions").and_then(|field| self.dimensions(&field, problems));
        let frequency_hz = fields.take("frequency_hz").and_then(|field| field.integer(problems, 1..=MOST_HZ));
        let phases = fields.take("phases").and_then(|field| self.phases(&field, problems));
        let mut partial = PartialRecord { dimensions, frequency_hz, phases, ..PartialRecord::default() };
        let loading = fields.take("loading");
        let expected = "a table, e.g. { timeout_s = 120 }";
        if let Some(mut loading) = loading.and_then(|field| field.table(problems, "`loading`".to_owned(), expected)) {
            partial.loading_timeout = loading.take("timeout_s").and_then(|field| field.seconds(problems));
            loading.finish(problems);
        }
        let steady = fields.take("steady");
        let expected = "a table, e.g. { warmup_s = 5, duration_s = 30 }";
        if let Some(mut steady) = steady.and_then(|field| field.table(problems, "`steady`".to_owned(), expected)) {
            partial.warmup = steady.take("warmup_s").and_then(|field| field.seconds(problems));
            partial.steps = steady.take("steps").and_then(|field| field.integer(problems, 1..=u64::MAX));
            partial.duration = steady.take("duration_s").and_then(|field| {
                let duration = field.seconds(problems)?;
                if duration.is_zero() {
                    problems.add(
                        field.span(),
                        r#"nothing is recorded in 0 s: to leave the steady phase out, write phases = ["loading"]"#,
                    );
                }
                Some(duration)
            });
            steady.finish(problems);
        }
        fields.finish(problems);
        partial
    }

    fn dimensions(&self, field: &Field, problems: &mut Problems) -> Option<Vec<Dimension>> {
        self.choices(field, "dimension", &Dimension::ALL.map(|dimension| (dimension.name(), dimension)), problems)
    }

    fn phases(&self, field: &Field, problems: &mut Problems) -> Option<Vec<Phase>> {
        let known = [("loading", Phase::Loading), ("steady", Phase::Steady)];
        let mut phases = self.choices(field, "phase", &known, problems)?;
        phases.sort_unstable();
        Some(phases)
    }

    /// An array of names out of `known`, at least one, without repetition.
    fn choices<T: Copy + PartialEq>(
        &self,
        field: &Field,
        kind: &str,
        known: &[(&str, T)],
        problems: &mut Problems,
    ) -> Option<Vec<T>> {
        let names: Vec<&str> = known.iter().map(|&(name, _)| name).collect();
        let list = names.join("\", \"");
        let items = field.items(problems, &format!("an array of \"{list}\""))?;
        if items.is_empty() {
            problems.add(field.span(), format!("{} must name at least one {kind}: \"{list}\"", field.what));
        }
        let mut chosen = Vec::new();
        for item in items {
            let Some(name) = item.string(problems, &format!("a {kind}: \"{list}\"")) else { continue };
            match known.iter().find(|&&(known, _)| known == name) {
                Some(&(_, choice)) if chosen.contains(&choice) => {
                    problems.add(item.span(), format!("\"{name}\" is there twice"));
                }
                Some(&(_, choice)) => chosen.push(choice),
                None => {
                    let hint = did_you_mean(&name, names.iter().copied());
                    let hint = if hint.is_empty() { format!("; known: \"{list}\"") } else { hint };
                    problems.add(item.span(), format!("there is no {kind} \"{name}\"{hint}"));
                }
            }
        }
        Some(chosen)
    }

    fn stop(&self, field: &Field, default: StopSettings, problems: &mut Problems) -> StopSettings {
        let expected = "a table, e.g. { interrupt_s = 5, terminate_s = 5 }";
        let Some(mut fields) = field.table(problems, "`stop`".to_owned(), expected) else { return default };
        let interrupt = fields.take("interrupt_s").and_then(|field| field.seconds(problems));
        let terminate = fields.take("terminate_s").and_then(|field| field.seconds(problems));
        fields.finish(problems);
        StopSettings {
            interrupt: interrupt.unwrap_or(default.interrupt),
            terminate: terminate.unwrap_or(default.terminate),
        }
    }

    fn owned(&self, field: Option<Field>, problems: &mut Problems) -> Option<Ownership> {
        let field = field?;
        let expected = r#"a table, e.g. { namespaces = ["gz::"], modules = ["libgz-*"], sources = ["src/**"] }"#;
        let mut fields = field.table(problems, "`owned`".to_owned(), expected)?;
        let namespaces = self.patterns(fields.take("namespaces"), problems, |namespaces| Ownership {
            namespaces,
            ..Ownership::default()
        });
        let modules =
            self.patterns(fields.take("modules"), problems, |modules| Ownership { modules, ..Ownership::default() });
        let sources =
            self.patterns(fields.take("sources"), problems, |sources| Ownership { sources, ..Ownership::default() });
        let not_owned = self
            .patterns(fields.take("not_owned"), problems, |not_owned| Ownership { not_owned, ..Ownership::default() });
        fields.finish(problems);
        Some(Ownership { namespaces, modules, sources, not_owned }.relative_to(&self.folder))
    }

    /// Patterns that are understood as `ownership` of them.
    fn patterns(
        &self,
        field: Option<Field>,
        problems: &mut Problems,
        ownership: impl Fn(Vec<String>) -> Ownership,
    ) -> Vec<String> {
        let items = field.and_then(|field| field.items(problems, "an array of patterns")).unwrap_or_default();
        let mut patterns = Vec::new();
        for item in items {
            let Some(pattern) = item.string(problems, "a pattern") else { continue };
            match ownership(vec![pattern.clone()]).compile() {
                Ok(_) => patterns.push(pattern),
                Err(error) => problems.add(item.span(), error.to_string()),
            }
        }
        patterns
    }

    fn command(&self, field: &Field, problems: &mut Problems) -> Option<Vec<String>> {
        let items = field.items(problems, COMMAND)?;
        let Some((program, arguments)) = items.split_first() else {
            problems.add(field.span(), format!("{} must not be empty; expected {COMMAND}", field.what));
            return None;
        };
        let program = program.string(problems, "the name or path of a program")?;
        // What a shell would look for in PATH is left to the search in PATH; a path starts from the lab file.
        let program = if program.contains('/') { self.resolve(&program) } else { program };
        let arguments = arguments.iter().filter_map(|argument| argument.text(problems, "a string"));
        Some(std::iter::once(program).chain(arguments).collect())
    }

    fn drivers(&self, field: &Field, problems: &mut Problems) -> Vec<Driver> {
        let Some(items) = field.items(problems, DRIVERS) else { return Vec::new() };
        if items.first().is_some_and(Field::is_string) {
            problems
                .add(field.span(), format!("{} holds one command where commands are expected: {DRIVERS}", field.what));
            return Vec::new();
        }
        items.iter().filter_map(|item| self.driver(item, problems)).collect()
    }

    fn driver(&self, item: &Field, problems: &mut Problems) -> Option<Driver> {
        if !item.is_table() {
            let command = self.command(item, problems)?;
            return Some(Driver { command, cwd: None, env: BTreeMap::new() });
        }
        let mut fields = item.table(problems, item.what.clone(), COMMAND)?;
        let command = fields.take("command");
        if command.is_none() {
            problems.add(item.span(), format!("{} needs a `command`: {COMMAND}", item.what));
        }
        let command = command.and_then(|field| self.command(&field, problems));
        let cwd = self.directory(fields.take("cwd"), problems);
        let env = self.env(fields.take("env"), problems);
        fields.finish(problems);
        Some(Driver { command: command?, cwd, env })
    }

    fn env(&self, field: Option<Field>, problems: &mut Problems) -> BTreeMap<String, String> {
        let expected = r#"a table of strings, e.g. { OMP_NUM_THREADS = "1" }"#;
        let Some(field) = field else { return BTreeMap::new() };
        let Some(mut fields) = field.table(problems, field.what.clone(), expected) else { return BTreeMap::new() };
        let mut env = BTreeMap::new();
        for (name, value) in fields.take_all() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("\"{}\" cannot be the name of a variable", name.escape_debug());
                problems.add(value.key_span.clone(), message);
            }
            if let Some(value) = value.text(problems, "a string in quotes") {
                env.insert(name.to_owned(), value);
            }
        }
        env
    }

    fn ready(&self, field: &Field, problems: &mut Problems) -> Option<Ready> {
        if field.is_string() {
            field.refuse(problems, READY);
            return None;
        }
        let mut fields = field.table(problems, "`ready`".to_owned(), READY)?;
        let mut found: Vec<Option<Ready>> = Vec::new();
        if let Some(field) = fields.take("log") {
            found.push(field.string(problems, "text that a line of the output holds").map(Ready::Log));
        }
        if let Some(field) = fields.take("log_regex") {
            found.push(self.regex(&field, problems).map(Ready::LogRegex));
        }
        if let Some(field) = fields.take("port") {
            let port = field.integer(problems, 1..=65535);
            found.push(port.map(|port| Ready::Port(u16::try_from(port).expect("checked to be at most 65535"))));
        }
        if let Some(field) = fields.take("file") {
            found.push(field.string(problems, "a path").map(|path| Ready::File(self.folder.join(path))));
        }
        if let Some(field) = fields.take("steps") {
            found.push(field.integer(problems, 1..=u64::MAX).map(Ready::Steps));
        }
        if let Some(field) = fields.take("after_s") {
            found.push(field.seconds(problems).map(Ready::After));
        }
        fields.finish(problems);
        if found.len() > 1 {
            problems.add(field.span(), "`ready` holds more than one condition; keep the one that comes last in time");
        }
        if found.is_empty() {
            problems.add(field.span(), format!("`ready` holds no condition; expected {READY}"));
        }
        found.into_iter().next().flatten()
    }

    fn regex(&self, field: &Field, problems: &mut Problems) -> Option<Regex> {
        let pattern = field.string(problems, "a regular expression that a line of the output matches")?;
        match Regex::new(&pattern) {
            Ok(regex) => Some(regex),
            Err(error) => {
                // The last line says what is wrong; those before draw the place in the pattern.
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                problems.add(field.span(), format!("{} is not a regular expression: {reason}", field.what));
                None
            }
        }
    }

    fn step(&self, field: &Field, problems: &mut Problems) -> Option<StepSource> {
        if field.is_string() {
            let name = field.string(problems, STEP)?;
            if name != "marks" {
                problems.add(field.span(), format!("{} must be {STEP}", field.what));
            }
            return Some(StepSource::Marks);
        }
        let mut fields = field.table(problems, "`step`".to_owned(), STEP)?;
        let scope = fields.take("scope");
        let function = fields.take("function");
        let module = fields.take("module").and_then(|module| module.string(problems, "the path of a file"));
        let module = module.map(|module| self.folder.join(module));
        let time = step_time(fields.take("time"), fields.take("dt_s"), problems);
        fields.finish(problems);
        match (scope, function) {
            (Some(scope), None) => scope.string(problems, "the name of a scope").map(StepSource::Scope),
            (None, Some(function)) => {
                let name = function.string(problems, "the name of a function")?;
                Some(StepSource::Function(StepFunction { name, module, time }))
            }
            _ => {
                problems.add(field.span(), format!("`step` must be one of {STEP}"));
                None
            }
        }
    }

    fn metrics(&self, field: Option<Field>, problems: &mut Problems) -> Vec<MetricSettings> {
        let Some(mut all) = self.section(field, "metric", problems) else { return Vec::new() };
        let named = all.take_all();
        named.into_iter().filter_map(|(name, field)| self.metric(name, &field, problems)).collect()
    }

    fn metric(&self, name: &str, field: &Field, problems: &mut Problems) -> Option<MetricSettings> {
        const SOURCE: &str = r#"log = "latency: {value} ms", csv = "FILE" with column = "NAME", or counter = "NAME""#;
        check_name("metric", name, field.key_span.clone(), problems);
        let mut fields = field.table(problems, format!("[metric.{name}]"), &format!("a table with {SOURCE}"))?;
        let mut sources = Vec::new();
        if let Some(log) = fields.take("log")
            && let Some(pattern) = log.string(problems, r#"a text with {value}, e.g. "latency: {value} ms""#)
        {
            match pattern.split_once("{value}") {
                Some((before, after)) if !(before.is_empty() && after.is_empty()) => {
                    sources.push(MetricSource::Log { before: before.to_owned(), after: after.to_owned() });
                }
                _ => {
                    problems.add(log.span(), "`log` must hold {value} and text beside it, e.g. \"latency: {value} ms\"")
                }
            }
        }
        let column = fields.take("column").and_then(|field| field.string(problems, "the header of a column"));
        if let Some(csv) = fields.take("csv")
            && let Some(file) = csv.string(problems, "the path of a CSV file")
        {
            match column {
                Some(column) => sources.push(MetricSource::Csv { file: self.folder.join(file), column }),
                None => problems.add(csv.span(), "`csv` needs a `column`: the header of the column with the values"),
            }
        }
        if let Some(counter) = fields.take("counter").and_then(|field| field.string(problems, "the name of a counter"))
        {
            sources.push(MetricSource::Counter(counter));
        }
        let unit = fields.take("unit").and_then(|field| field.string(problems, r#"a unit, e.g. "ms""#));
        let better = fields.take("better").and_then(|field| {
            let text = field.string(problems, r#""lower" or "higher""#)?;
            match text.as_str() {
                "lower" => Some(Better::Lower),
                "higher" => Some(Better::Higher),
                _ => {
                    problems.add(field.span(), r#"`better` must be "lower" or "higher""#);
                    None
                }
            }
        });
        fields.finish(problems);
        if sources.len() != 1 {
            problems.add(field.key_span.clone(), format!("[metric.{name}] needs one source: {SOURCE}"));
        }
        Some(MetricSettings::new(name, sources.pop()?, unit, better.unwrap_or_default()))
    }

    fn directory(&self, field: Option<Field>, problems: &mut Problems) -> Option<PathBuf> {
        Some(self.folder.join(field?.string(problems, "the path of a directory")?))
    }

    /// A path as text, from the lab file's folder.
    fn resolve(&self, path: &str) -> String {
        // The folder's name may be no UTF-8, and then a path into it has no form as text: it is left as it was.
        self.folder.join(path).to_str().map_or_else(|| path.to_owned(), str::to_owned)
    }
}

/// The simulated time of a step: an argument of its function, or a length that all steps have.
fn step_time(time: Option<Field>, dt: Option<Field>, problems: &mut Problems) -> Option<StepTime> {
    const TIME: &str = "an argument that tells the simulated time, e.g. \"%di:s64 ns\" or \"+8(%di):f64 s\"";
    match (time, dt) {
        (Some(time), None) => {
            let span = time.span();
            match time.string(problems, TIME)?.parse() {
                Ok(argument) => return Some(StepTime::Argument(argument)),
                Err(error) => problems.add(span, format!("{error}")),
            }
        }
        (None, Some(dt)) => {
            let step_ns = dt.seconds(problems)?.as_nanos() as u64;
            return Some(StepTime::Every { step_ns });
        }
        (Some(time), Some(_)) => problems.add(time.span(), "`step` takes one of `time` and `dt_s`".to_owned()),
        (None, None) => {}
    }
    None
}

/// Names become names of folders, columns of tables and words on the command line.
fn check_name(kind: &str, name: &str, span: Range<usize>, problems: &mut Problems) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts_well = !name.starts_with('-');
    if name.is_empty() || name.len() > 100 || !starts_well || !name.chars().all(allowed) {
        let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
        let message = format!(
            "\"{shown}\" cannot name a {kind}: use letters, digits, `_` and `-`, at most 100, not starting with `-`"
        );
        problems.add(span, message);
    }
}

/// What scenarios take from the sections above them.
struct ScenarioDefaults {
    record: PartialRecord,
    stop: StopSettings,
    owned: Ownership,
    limits: Limits,
    metrics: Vec<MetricSettings>,
}

/// The keys of a `[record]` that are given.
#[derive(Clone, Default)]
struct PartialRecord {
    dimensions: Option<Vec<Dimension>>,
    frequency_hz: Option<u64>,
    phases: Option<Vec<Phase>>,
    loading_timeout: Option<Duration>,
    warmup: Option<Duration>,
    duration: Option<Duration>,
    steps: Option<u64>,
}

impl PartialRecord {
    /// Whether these keys of a scenario cannot be followed without a `ready`: the scenario itself asks for the loading
    /// phase, or no other phase is recorded.
    fn needs_ready(&self, general: &PartialRecord) -> bool {
        let asks_itself = self.phases.as_ref().is_some_and(|phases| phases.contains(&Phase::Loading));
        let phases = self.phases.as_ref().or(general.phases.as_ref());
        asks_itself || phases.is_some_and(|phases| *phases == [Phase::Loading])
    }

    /// These keys, and where they are not given, those of `general`.
    fn over(self, general: &PartialRecord) -> Self {
        Self {
            dimensions: self.dimensions.or_else(|| general.dimensions.clone()),
            frequency_hz: self.frequency_hz.or(general.frequency_hz),
            phases: self.phases.or_else(|| general.phases.clone()),
            loading_timeout: self.loading_timeout.or(general.loading_timeout),
            warmup: self.warmup.or(general.warmup),
            duration: self.duration.or(general.duration),
            steps: self.steps.or(general.steps),
        }
    }

    /// With defaults where nothing is given.
    fn settled(self, has_step: bool, has_ready: bool) -> RecordSettings {
        let default = RecordSettings::default();
        let mut dimensions = self.dimensions.unwrap_or(default.dimensions);
        if has_step && !dimensions.contains(&Dimension::Steps) {
            dimensions.push(Dimension::Steps);
        }
        let mut phases = self.phases.unwrap_or(default.phases);
        if !has_ready {
            // Nothing says when loading is over, so there is no such phase to record.
            phases = vec![Phase::Steady];
        }
        RecordSettings {
            dimensions,
            frequency_hz: self.frequency_hz.unwrap_or(default.frequency_hz),
            phases,
            loading_timeout: self.loading_timeout.unwrap_or(default.loading_timeout),
            warmup: self.warmup.unwrap_or(default.warmup),
            duration: self.duration.unwrap_or(default.duration),
            steps: self.steps,
        }
    }
}
