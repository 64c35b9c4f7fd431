//! [`StoreSource`]: captures of a store by the values of their keys, as written on the command line.

use std::path::PathBuf;

use glob::Pattern;

use crate::layout::{KEYS, REPETITION, RUN_KEY};
use crate::manifest::{Manifest, StoredCapture};
use crate::place::StoreError;
use crate::store::RunStore;

/// The start of a source that is in a store.
pub const PREFIX: &str = "store:";

/// Which captures of which store: `store:DIR/scenario=shapes/date=2026-11-*`.
///
/// The part before the first `KEY=` is the store. The keys are those of the folders in a store, in any order. A value is a glob.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSource {
    /// The store.
    pub place: String,
    conditions: Vec<(String, Pattern)>,
}

impl StoreSource {
    /// Reads a source. `None` if it does not start with [`PREFIX`].
    ///
    /// # Errors
    /// If a key is unknown, or a value is not a glob.
    pub fn parse(text: &str) -> Option<Result<Self, StoreError>> {
        Some(Self::parse_after_prefix(text.strip_prefix(PREFIX)?))
    }

    fn parse_after_prefix(text: &str) -> Result<Self, StoreError> {
        let is_key = |part: &str| {
            KEYS.iter()
                .chain(&[RUN_KEY, REPETITION])
                .any(|key| part.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')))
        };
        let parts: Vec<&str> = text.split('/').collect();
        let first = parts.iter().position(|part| is_key(part)).unwrap_or(parts.len());
        let place = parts[..first].join("/");
        let mut conditions = Vec::new();
        for part in parts[first..].iter().filter(|part| !part.is_empty()) {
            let known = || {
                let keys = KEYS.iter().chain(&[RUN_KEY, REPETITION]).copied().collect::<Vec<_>>().join(", ");
                StoreError::Usage(format!("{PREFIX}{text}: `{part}` is not KEY=VALUE; the keys are {keys}"))
            };
            let (key, value) = part.split_once('=').filter(|_| is_key(part)).ok_or_else(known)?;
            let pattern = Pattern::new(value)
                .map_err(|error| StoreError::Usage(format!("{PREFIX}{text}: `{value}`: {error}")))?;
            conditions.push((key.to_owned(), pattern));
        }
        match place.is_empty() {
            true => Err(StoreError::Usage(format!("{PREFIX}{text}: write {PREFIX}DIR/KEY=VALUE/..."))),
            false => Ok(Self { place, conditions }),
        }
    }

    fn matches(&self, run: &str, capture: &StoredCapture) -> bool {
        self.conditions.iter().all(|(key, pattern)| {
            let value = match key.as_str() {
                RUN_KEY => run.to_owned(),
                REPETITION => capture.repetition.to_string(),
                key => {
                    let position = KEYS.iter().position(|one| *one == key).expect("keys were checked");
                    capture.cell.values()[position].to_owned()
                }
            };
            pattern.matches(&value)
        })
    }

    /// Folders of the captures, in the order of their starts. Those of a bucket are fetched first.
    ///
    /// # Errors
    /// If the store cannot be read, nothing matches, or a capture was added without samples.
    pub fn captures(&self) -> Result<Vec<PathBuf>, StoreError> {
        let store = RunStore::at(&self.place)?;
        store.open()?;
        let mut manifests = store.runs()?.manifests;
        manifests.sort_by(|a, b| (&a.started_at, &a.run).cmp(&(&b.started_at, &b.run)));
        let of_run = |manifest: &Manifest| -> Vec<(String, StoredCapture)> {
            let captures = manifest.captures.iter().filter(|capture| self.matches(&manifest.run, capture));
            captures.map(|capture| (manifest.run.clone(), capture.clone())).collect()
        };
        let found: Vec<(String, StoredCapture)> = manifests.iter().flat_map(of_run).collect();
        let usage = |message: String| Err(StoreError::Usage(format!("{}: {message}", self.place)));
        if found.is_empty() {
            return usage("no capture has these keys; `stepscope store list` shows what there is".to_owned());
        }
        let (whole, without): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, capture)| capture.samples);
        if whole.is_empty() {
            let (run, _) = &without[0];
            return usage(format!(
                "these {} captures were added without samples, e.g. of {run}; add their runs again with --samples, or query \
                 their tables",
                without.len()
            ));
        }
        let paths: Vec<(String, String)> =
            whole.into_iter().map(|(run, capture)| (run, capture.cell.capture_folder(capture.repetition))).collect();
        store.fetch_captures(&paths)?;
        Ok(paths.into_iter().map(|(run, path)| store.run_folder(&run).join(path)).collect())
    }
}

impl RunStore {
    fn fetch_captures(&self, captures: &[(String, String)]) -> Result<(), StoreError> {
        let runs = self.runs_folder();
        let pattern = |(run, path): &(String, String)| {
            let folder = self.run_folder(run);
            let inside = folder.strip_prefix(runs.parent().unwrap_or(&runs)).unwrap_or(&folder);
            format!("{}/{path}/*", inside.display())
        };
        let patterns: Vec<String> = captures.iter().map(pattern).collect();
        // A command line has room for some hundred of them.
        patterns.chunks(200).try_for_each(|patterns| self.fetch(patterns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Cell;

    fn capture(scenario: &str, date: &str) -> StoredCapture {
        let cell = Cell { scenario: scenario.into(), date: date.into(), ..Cell::default() };
        StoredCapture { id: "a".into(), cell, repetition: 2, samples: true, entry: serde_json::Value::Null }
    }

    #[test]
    fn keys_follow_the_store_in_any_order_and_values_are_globs() {
        let parsed =
            StoreSource::parse("store:/data/runs/date=2026-11-*/scenario=shapes/repetition=2").unwrap().unwrap();
        assert_eq!(parsed.place, "/data/runs");
        assert!(parsed.matches("r", &capture("shapes", "2026-11-25")));
        assert!(!parsed.matches("r", &capture("shapes", "2026-12-01")));
        assert!(!parsed.matches("r", &capture("crowd", "2026-11-25")));
        let all = StoreSource::parse("store:s3://bucket/lab").unwrap().unwrap();
        assert_eq!(all.place, "s3://bucket/lab");
        assert!(all.matches("r", &capture("crowd", "")));
    }

    #[test]
    fn other_sources_and_unknown_keys_are_reported() {
        assert_eq!(StoreSource::parse("stepscope-runs/latest").map(|_| ()), None);
        let error = StoreSource::parse("store:d/scenario=a/colour=red").unwrap().unwrap_err();
        assert!(error.to_string().contains("`colour=red` is not KEY=VALUE; the keys are project, scenario"), "{error}");
        assert!(StoreSource::parse("store:").unwrap().is_err());
    }
}
