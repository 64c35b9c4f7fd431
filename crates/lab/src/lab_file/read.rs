//! From the text of a lab file to a [`LabFile`].

mod attach;
mod categories;
mod metric;
mod process_names;
mod record;
mod scenario;
mod sweep;
mod values;
mod variant;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use stepscope_analyze::{Naming, Ownership};
use toml::de::DeTable;

use self::record::PartialRecord;
use self::scenario::ScenarioDefaults;
use self::values::Reader;
use super::decode::{Field, Fields, Problems};
use super::limits::{self, Limits, PartialLimits};
use super::problem::{LabFileError, Problem, did_you_mean};
use super::settings::{AbSettings, BASE, CompareSettings, LabFile, StopSettings, Variant};
use super::sweep::SweepSettings;

/// Larger files are not lab files.
const LARGEST_BYTES: u64 = 4 << 20;

const MOST_RUNS: u64 = 1000;

impl LabFile {
    /// Reads and checks a lab file.
    ///
    /// # Errors
    /// If it cannot be read; or all its errors, with line, column and expectation.
    pub fn read(path: &Path) -> Result<Self, LabFileError> {
        Self::parse(path, &text_of(path)?)
    }

    /// Reads a copy of a lab file. Its relative paths start from the folder of `original`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_copy(copy: &Path, original: &Path) -> Result<Self, LabFileError> {
        Self::parse(original, &text_of(copy)?)
    }

    /// Checks the text of the lab file at `path`. Its relative paths start from that file's folder.
    ///
    /// # Errors
    /// All its errors.
    pub fn parse(path: &Path, text: &str) -> Result<Self, LabFileError> {
        parse(path, text).map_err(|problems| LabFileError::Wrong { path: path.to_owned(), problems })
    }
}

fn text_of(path: &Path) -> Result<String, LabFileError> {
    let unreadable = |source| LabFileError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST_BYTES {
        let bytes = std::fs::metadata(path).map_or(bytes.len() as u64, |metadata| metadata.len());
        return Err(LabFileError::TooLarge { path: path.to_owned(), bytes, limit: LARGEST_BYTES });
    }
    String::from_utf8(bytes)
        .map_err(|error| LabFileError::NotText { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })
}

fn parse(path: &Path, text: &str) -> Result<LabFile, Vec<Problem>> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text);
    if !syntax_errors.is_empty() {
        // After a syntax error, other errors would be guesses.
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
        let process_names = self.section(top.take("process_names"), "process_names", problems);
        let categories = self.section(top.take("categories"), "categories", problems);
        let naming = Naming {
            processes: process_names.map(|fields| process_names::read(fields, problems)).unwrap_or_default(),
            categories: categories.map(|fields| categories::read(fields, problems)).unwrap_or_default(),
        };
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
        let sweep = self.section(top.take("sweep"), "sweep", problems);
        let sweep = sweep.map_or_else(SweepSettings::default, |fields| self.sweep(fields, &scenarios, problems));
        top.finish(problems);
        let (path, text) = (path.to_owned(), text.to_owned());
        LabFile {
            path,
            text,
            name,
            owned: defaults.owned,
            naming,
            scenarios,
            variants,
            ab,
            compare,
            sweep,
            limits: defaults.limits,
        }
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
}
