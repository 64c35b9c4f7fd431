//! `[scenario.NAME]`: a program, when it is ready, its drivers and its steps.

use std::collections::BTreeMap;

use stepscope_analyze::Ownership;
use stepscope_assemble::StepTime;

use super::super::decode::{Field, Problems};
use super::super::limits::{Limits, PartialLimits};
use super::super::metric::MetricSettings;
use super::super::settings::{Driver, Ready, Scenario, StepSource, StopSettings};
use super::attach;
use super::record::PartialRecord;
use super::values::{COMMAND, Reader, check_name};
use crate::step::StepFunction;

const DRIVERS: &str = r#"an array of commands, e.g. [["gz", "topic", "-e", "-t", "/clock"]]"#;
const READY: &str = r#"a table with one condition, e.g. { log = "Loaded world" } or { port = 11345 }"#;
const STEP: &str = r#"{ scope = "..." }, { function = "..." } or "marks""#;

/// Settings that scenarios inherit.
pub(super) struct ScenarioDefaults {
    pub(super) record: PartialRecord,
    pub(super) stop: StopSettings,
    pub(super) owned: Ownership,
    pub(super) limits: Limits,
    pub(super) metrics: Vec<MetricSettings>,
}

impl Reader {
    pub(super) fn scenarios(
        &self,
        field: Option<Field>,
        defaults: &ScenarioDefaults,
        problems: &mut Problems,
    ) -> Vec<Scenario> {
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
        let attach = fields.take("attach");
        let attaches = attach.is_some();
        let attach = attach.and_then(|field| attach::read(&field, problems));
        let command = fields.take("command");
        let launches = command.is_some();
        if !launches && !attaches {
            problems.add(
                field.key_span.clone(),
                format!("{place} needs a `command`: {COMMAND}; or `attach`: {}", attach::ATTACH),
            );
        }
        let command = match command {
            Some(field) => self.command(&field, problems),
            None => attaches.then(Vec::new),
        };
        let cwd = self.directory(fields.take("cwd"), problems).unwrap_or_else(|| self.folder.clone());
        let env = self.env(fields.take("env"), problems);
        let ready = fields.take("ready");
        let says_ready = ready.is_some();
        let ready_span = ready.as_ref().map(|field| field.key_span.clone());
        let ready = ready.and_then(|field| self.ready(&field, problems));
        let drivers = fields.take("drivers");
        let drivers = drivers.map_or_else(Vec::new, |field| self.drivers(&field, problems));
        let step = fields.take("step").and_then(|field| self.step(&field, problems));
        let record = fields.take("record");
        let record = self.section(record, &format!("scenario.{name}.record"), problems);
        let record = record.map(|fields| self.record(fields, problems)).unwrap_or_default();
        if let (true, Some(span)) = (attaches, ready_span) {
            if !launches {
                let message = "`ready` is for a `command`. Processes that already run are recorded at once; \
                               `warmup_s` of `record = { steady = ... }` waits before that";
                problems.add(span, message);
            } else if matches!(ready, Some(Ready::Steps(_))) {
                let message = "`ready` cannot count steps with `attach`, which records nothing before: \
                               use `log`, `port`, `file` or `after_s`";
                problems.add(span, message);
            }
        }
        if attaches && record.needs_ready(&PartialRecord::default()) {
            let message = format!("{place} has no loading phase: `attach` records processes that already run");
            problems.add(field.key_span.clone(), message);
        } else if !says_ready && record.needs_ready(&defaults.record) {
            let message =
                format!("{place} records its loading phase but has no `ready`, which ends it. Add `ready`: {READY}");
            problems.add(field.key_span.clone(), message);
        }
        let counts_steps = record.steps.or(defaults.record.steps).is_some();
        if counts_steps && step.is_none() {
            let message = format!("{place} has a steady phase of a number of steps, but no `step`. Add `step`: {STEP}");
            problems.add(field.key_span.clone(), message);
        }
        let record = record.over(&defaults.record).settled(step.is_some(), ready.is_some() && !attaches);
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
            attach,
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

    fn drivers(&self, field: &Field, problems: &mut Problems) -> Vec<Driver> {
        let Some(items) = field.items(problems, DRIVERS) else { return Vec::new() };
        if items.first().is_some_and(Field::is_string) {
            problems.add(field.span(), format!("{} is one command; expected {DRIVERS}", field.what));
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

    fn ready(&self, field: &Field, problems: &mut Problems) -> Option<Ready> {
        if field.is_string() {
            field.refuse(problems, READY);
            return None;
        }
        let mut fields = field.table(problems, "`ready`".to_owned(), READY)?;
        let mut found: Vec<Option<Ready>> = Vec::new();
        if let Some(field) = fields.take("log") {
            found.push(field.string(problems, "text in a line of the output").map(Ready::Log));
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
            problems.add(field.span(), "`ready` has several conditions; keep the one that is met last");
        }
        if found.is_empty() {
            problems.add(field.span(), format!("`ready` has no condition; expected {READY}"));
        }
        found.into_iter().next().flatten()
    }

    pub(super) fn step(&self, field: &Field, problems: &mut Problems) -> Option<StepSource> {
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
}

/// The simulated time of a step: an argument of its function, or the length of all steps.
fn step_time(time: Option<Field>, dt: Option<Field>, problems: &mut Problems) -> Option<StepTime> {
    const TIME: &str = "an argument with the simulated time, e.g. \"%di:s64 ns\" or \"+8(%di):f64 s\"";
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
        (Some(time), Some(_)) => problems.add(time.span(), "`step` takes either `time` or `dt_s`".to_owned()),
        (None, None) => {}
    }
    None
}
