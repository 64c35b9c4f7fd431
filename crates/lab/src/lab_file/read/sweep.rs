//! `[sweep]`: one axis of sizes, one of CPUs, and how they are run.

use std::collections::BTreeMap;

use super::super::decode::{Field, Fields, Problems};
use super::super::limits;
use super::super::settings::Scenario;
use super::super::sweep::{CORES, SizeAxis, SweepSettings};
use super::values::{Reader, check_name};

const SIZES: &str = "an array of positive numbers, e.g. [500, 1000, 2000, 4000]";
const MOST_POINTS: usize = 100;
const MOST_RUNS: u64 = 1000;
const PRECISION: &str = r#"percent, e.g. "10%""#;

impl Reader {
    pub(super) fn sweep(&self, mut fields: Fields, scenarios: &[Scenario], problems: &mut Problems) -> SweepSettings {
        let mut sweep =
            SweepSettings { folder: self.folder.join(".stepscope").join("sweep"), ..SweepSettings::default() };
        if let Some(field) = fields.take("runs")
            && let Some(runs) = field.integer(problems, 1..=MOST_RUNS)
        {
            sweep.runs = runs as u32;
        }
        sweep.budget = fields.take("budget_s").and_then(|field| field.seconds(problems));
        if let Some(field) = fields.take("precision")
            && let Some(text) = field.string(problems, PRECISION)
        {
            match limits::percent(&text).filter(|percent| (0.0..=100.0).contains(percent)) {
                Some(percent) => sweep.precision_percent = percent,
                None => problems.add(field.span(), format!("{} must be {PRECISION}, up to 100%", field.what)),
            }
        }
        if let Some(field) = fields.take("files") {
            sweep.files = self.templates(&field, problems);
        }
        if let Some(field) = fields.take(CORES) {
            let values = sizes(&field, problems);
            if values.iter().any(|cores| cores.fract() != 0.0 || *cores > 1024.0) {
                problems.add(field.span(), "`cores` in [sweep] must be whole numbers from 1 to 1024");
            }
            sweep.cores = values.into_iter().map(|cores| cores as u32).collect();
        }
        for (name, field) in fields.take_all() {
            check_name("sweep axis", name, field.key_span.clone(), problems);
            if let Some(axis) = &sweep.size {
                let message = format!("[sweep] has one axis of sizes: `{}` and `{name}` are two", axis.name);
                problems.add(field.key_span.clone(), message);
                continue;
            }
            let values = sizes(&field, problems);
            sweep.size = Some(SizeAxis { name: name.to_owned(), values });
            if !scenarios.iter().any(|scenario| sweep.applies_to(scenario)) {
                let message = format!("no scenario has `{{{name}}}` in its command, environment or drivers");
                problems.add(field.key_span.clone(), message);
            }
        }
        sweep
    }

    fn templates(&self, field: &Field, problems: &mut Problems) -> BTreeMap<String, std::path::PathBuf> {
        let expected = r#"a table of templates, e.g. { world = "worlds/crowd.sdf.in" }"#;
        let Some(mut fields) = field.table(problems, field.what.clone(), expected) else { return BTreeMap::new() };
        let mut templates = BTreeMap::new();
        for (name, field) in fields.take_all() {
            check_name("file of a sweep", name, field.key_span.clone(), problems);
            if let Some(path) = field.string(problems, "the path of a template") {
                templates.insert(name.to_owned(), self.folder.join(path));
            }
        }
        templates
    }
}

/// Positive numbers, ascending, without repetition.
fn sizes(field: &Field, problems: &mut Problems) -> Vec<f64> {
    let Some(items) = field.items(problems, SIZES) else { return Vec::new() };
    if items.is_empty() || items.len() > MOST_POINTS {
        problems.add(field.span(), format!("{} must have 1 to {MOST_POINTS} values: {SIZES}", field.what));
    }
    let mut values: Vec<f64> = Vec::new();
    for item in items {
        let Some(value) = item.positive(problems) else { continue };
        if values.contains(&value) {
            problems.add(item.span(), format!("{value} is there twice"));
        } else {
            values.push(value);
        }
    }
    values.sort_by(f64::total_cmp);
    values
}
