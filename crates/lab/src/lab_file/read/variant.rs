//! `[variant.NAME]`: what a variant changes, and the scenarios it applies to.

use std::ops::Range;

use super::super::decode::{Field, Problems};
use super::super::problem::did_you_mean;
use super::super::settings::{BASE, Scenario, Source, Variant};
use super::attach;
use super::values::{Reader, check_name};
use crate::folder_map::FolderMap;

const BUILD: &str = r#"a command, e.g. ["cmake", "--build", "build"], or an array of commands"#;
const FOLDERS: &str = r#"a table of folders and their replacements, e.g. { "build" = "build-fix" }"#;

impl Reader {
    pub(super) fn variants(
        &self,
        field: Option<Field>,
        scenarios: &[Scenario],
        problems: &mut Problems,
    ) -> Vec<Variant> {
        let Some(mut all) = self.section(field, "variant", problems) else { return Vec::new() };
        let named = all.take_all();
        let read = |(name, field): (&str, Field)| self.variant(name, &field, scenarios, problems);
        let variants: Vec<(Variant, Range<usize>)> = named.into_iter().filter_map(read).collect();
        let mut unchanged = variants.iter().filter(|(variant, _)| variant.changes_nothing());
        if let (Some((first, _)), Some((second, span))) = (unchanged.next(), unchanged.next()) {
            let (first, second) = (&first.name, &second.name);
            let message = format!("variants `{first}` and `{second}` are the same: neither changes anything");
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
        let attach = fields.take("attach").and_then(|field| attach::read(&field, problems));
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
        let variant =
            Variant { name, env, command, attach, cwd, program, folders, step, source, scenarios: applies_to };
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
            problems.add(
                span,
                format!("\"{}\" is not a git revision: a revision does not start with `-`", revision.escape_debug()),
            );
        }
        let build = build.map_or_else(Vec::new, |field| self.build(&field, problems));
        Some(Source { folder: self.folder.clone(), revision, build })
    }

    /// One command, or several. Their paths stay as they are, because they are relative to the checkout.
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
            problems.add(field.span(), format!("{} has a command without a program; expected {BUILD}", field.what));
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
}
