//! Checking a store: every file of every run against its manifest.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::place::{Place, StoreError};
use crate::publish::checksum;
use crate::store::{RUNS, RunStore};

/// Something that is wrong in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The run, or the folder.
    pub run: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

impl RunStore {
    /// Compares all files with the manifests: in a folder by size and checksum, in a bucket by size. Open the store first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let listing = self.runs()?;
        let mut findings: Vec<Finding> =
            listing.problems.into_iter().map(|problem| Finding { run: String::new(), problem }).collect();
        let sizes = self.sizes()?;
        for manifest in &listing.manifests {
            let problems = self.problems_of(manifest, sizes.as_ref());
            findings.extend(problems.into_iter().map(|problem| Finding { run: manifest.run.clone(), problem }));
        }
        findings.extend(types_that_differ(&listing.manifests));
        if let Some(sizes) = &sizes {
            findings.extend(incomplete(sizes, &listing.manifests, self));
        }
        let abandoned = self.abandoned().into_iter().map(|folder| Finding {
            run: folder.display().to_string(),
            problem: "a writer that was stopped left this; no query reads it, the next `store add` removes it"
                .to_owned(),
        });
        findings.extend(abandoned);
        Ok(findings)
    }

    /// Sizes of all files of a bucket, by their path in the store.
    fn sizes(&self) -> Result<Option<HashMap<String, u64>>, StoreError> {
        match &self.place {
            Place::Folder(_) => Ok(None),
            Place::Bucket { bucket, .. } => Ok(Some(bucket.list("")?.into_iter().collect())),
        }
    }

    fn problems_of(&self, manifest: &Manifest, sizes: Option<&HashMap<String, u64>>) -> Vec<String> {
        let folder = self.run_folder(&manifest.run);
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut problems = Vec::new();
        for file in &manifest.files {
            let found = match sizes {
                Some(sizes) => sizes.get(&format!("{RUNS}/{name}/{}", file.path)).map(|bytes| (*bytes, file.crc32)),
                None => checksum(&folder.join(&file.path)).ok(),
            };
            let wrong = match found {
                None => "missing, or not readable".to_owned(),
                Some((bytes, _)) if bytes != file.bytes => format!("{bytes} bytes, the manifest has {}", file.bytes),
                Some((_, crc32)) if crc32 != file.crc32 => "its checksum differs from the manifest's".to_owned(),
                Some(_) => continue,
            };
            problems.push(format!("{}: {wrong}; add the run again", file.path));
        }
        if sizes.is_none() {
            let listed = |path: &str| path == MANIFEST_FILE || manifest.files.iter().any(|file| file.path == path);
            let others = files_in(&folder, &folder).into_iter().filter(|path| !listed(path));
            problems.extend(others.map(|path| format!("{path}: not in the manifest; queries may read it: remove it")));
        }
        problems
    }
}

/// Runs of a bucket without a manifest: a writer is at work, or was stopped.
fn incomplete(sizes: &HashMap<String, u64>, manifests: &[Manifest], store: &RunStore) -> Vec<Finding> {
    let known: Vec<String> = manifests
        .iter()
        .map(|manifest| store.run_folder(&manifest.run).file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let mut open: Vec<&str> = sizes
        .keys()
        .filter_map(|path| path.strip_prefix("runs/")?.split('/').next())
        .filter(|run| !known.iter().any(|one| one == run))
        .collect();
    open.sort_unstable();
    open.dedup();
    let problem = "incomplete: a writer is at work, or was stopped; queries do not show it; add the run again";
    open.into_iter().map(|run| Finding { run: run.to_owned(), problem: problem.to_owned() }).collect()
}

/// Columns that have another type in some run than in the first one that has them.
fn types_that_differ(manifests: &[Manifest]) -> Vec<Finding> {
    let mut types: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for manifest in manifests {
        for (table, columns) in &manifest.tables {
            for column in columns {
                let first = *types.entry((table, &column.name)).or_insert(&column.kind);
                if first != column.kind {
                    let problem = format!("{table}.{} is a {}, elsewhere a {first}", column.name, column.kind);
                    findings.push(Finding { run: manifest.run.clone(), problem });
                }
            }
        }
    }
    findings
}

/// Paths of all files below a folder, from it.
fn files_in(folder: &Path, root: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_in(&path, root));
        } else {
            found.push(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    found
}
