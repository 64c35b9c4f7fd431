//! [`Manifest`]: what belongs to a run in a store.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::layout::Cell;

/// Version of the form of a store, of its manifests and of its tables. It rises when a reader of the old form would misread the
/// new one: a column that changes its meaning, unit or type. New tables and new columns do not raise it.
pub const SCHEMA: u32 = 1;

/// Name of the file.
pub(crate) const MANIFEST_FILE: &str = "_manifest.json";

/// Manifests are read whole; larger ones are not ours.
pub(crate) const LARGEST_MANIFEST: u64 = 64 << 20;

/// What belongs to a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the form.
    pub schema: u32,
    /// Name of the run in the store.
    pub run: String,
    /// Name of the project.
    pub project: String,
    /// Program and version that added it.
    pub tool: String,
    /// Start, RFC 3339 in UTC; empty if unknown.
    #[serde(default)]
    pub started_at: String,
    /// Its captures.
    #[serde(default)]
    pub captures: Vec<StoredCapture>,
    /// The columns of each table.
    #[serde(default)]
    pub tables: BTreeMap<String, Vec<TableColumn>>,
    /// Its files, except the manifest.
    #[serde(default)]
    pub files: Vec<StoredFile>,
}

/// A capture of a run in a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCapture {
    /// What distinguishes it from all other captures: start, machine, scenario, variant, phase and repetition.
    pub id: String,
    /// Its partition.
    #[serde(flatten)]
    pub cell: Cell,
    /// Number of the repetition, from 1; 1 without repetitions.
    pub repetition: u32,
    /// Whether the capture itself is in the store, with its samples.
    pub samples: bool,
    /// What the history keeps of it.
    #[serde(default)]
    pub entry: serde_json::Value,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// `text`, `number` or `flag`: `STRING`, `DOUBLE` and `BOOLEAN` in Parquet.
    #[serde(rename = "type")]
    pub kind: String,
    /// Unit of its values; empty for names and flags.
    #[serde(default)]
    pub unit: String,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Path from the run's folder.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its checksum.
    pub crc32: u32,
}

impl Manifest {
    /// The manifest of a run without captures.
    pub fn new(run: &str, project: &str) -> Self {
        Self {
            schema: SCHEMA,
            run: run.to_owned(),
            project: project.to_owned(),
            tool: concat!("stepscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..Self::default()
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// A reason, without the path: it is damaged, of a newer program, or names a file outside of its run.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            #[serde(default)]
            schema: u64,
        }
        let Version { schema } = serde_json::from_slice(text).map_err(|error| format!("damaged: {error}"))?;
        if schema > u64::from(SCHEMA) {
            return Err(format!("schema {schema} is newer than this program reads ({SCHEMA}); use a newer stepscope"));
        }
        let manifest: Self = serde_json::from_slice(text).map_err(|error| format!("damaged: {error}"))?;
        match manifest.files.iter().find(|file| !is_inside(&file.path)) {
            Some(file) => Err(format!("damaged: `{}` is not a path inside of the run", file.path)),
            None => Ok(manifest),
        }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Whether a path, which somebody else may have written, stays in its folder.
fn is_inside(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_names_a_path_outside_of_its_run_is_refused() {
        let mut manifest = Manifest::new("r", "p");
        manifest.files.push(StoredFile { path: "table=a/part.parquet".into(), bytes: 1, crc32: 2 });
        let text = |manifest: &Manifest| serde_json::to_vec(manifest).unwrap();
        assert_eq!(Manifest::parse(&text(&manifest)).unwrap(), manifest);
        for path in ["../x", "/etc/passwd", "a/../../b", ""] {
            manifest.files[0].path = path.into();
            assert!(Manifest::parse(&text(&manifest)).unwrap_err().contains("inside of the run"), "{path}");
        }
    }

    #[test]
    fn a_newer_schema_is_refused_and_an_older_one_with_fewer_keys_is_read() {
        assert!(Manifest::parse(br#"{"schema": 9}"#).unwrap_err().contains("newer"));
        let old = Manifest::parse(br#"{"schema": 1, "run": "r", "project": "p", "tool": "t"}"#).unwrap();
        assert_eq!((old.run.as_str(), old.captures.len(), old.tables.len()), ("r", 0, 0));
    }
}
