//! [`RunStore`]: a store, opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stepscope_model::output_file::write_durably;

use crate::bucket::{self, Bucket};
use crate::layout::{RUN_KEY, encode};
use crate::manifest::{LARGEST_MANIFEST, MANIFEST_FILE, Manifest, SCHEMA};
use crate::place::{Place, StoreError, at};

/// Folder of the runs.
pub(crate) const RUNS: &str = "runs";

/// The file that makes a folder a store.
const STORE_FILE: &str = "stepscope-store.json";

/// A store, whether it exists already or not.
#[derive(Debug, Clone)]
pub struct RunStore {
    pub(crate) place: Place,
}

/// The runs of a store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Those that could be read, by name.
    pub manifests: Vec<Manifest>,
    /// Those that could not, in sentences.
    pub problems: Vec<String>,
}

impl RunStore {
    /// The store in a folder, or at an address `s3://BUCKET/PATH`.
    ///
    /// # Errors
    /// If there is no client for the address.
    pub fn at(place: &str) -> Result<Self, StoreError> {
        if place.starts_with(bucket::SCHEME) {
            let bucket = Bucket::at(place)?;
            let mirror = mirror_folder(bucket.url());
            return Ok(Self { place: Place::Bucket { bucket, mirror } });
        }
        if let Some((scheme, _)) = place.split_once("://") {
            let message = format!("{place}: `{scheme}://` is not supported; a store is a folder or {}", bucket::SCHEME);
            return Err(StoreError::Usage(message));
        }
        Ok(Self { place: Place::Folder(place.into()) })
    }

    /// Its name, as written.
    pub fn name(&self) -> String {
        self.place.name()
    }

    /// Whether it is in a bucket.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, Place::Bucket { .. })
    }

    /// Makes it, unless it exists.
    ///
    /// # Errors
    /// If it cannot be written, a newer program made it, or the folder holds something else.
    pub fn create(&self) -> Result<(), StoreError> {
        match self.open() {
            Err(StoreError::Absent(_)) => {}
            opened => return opened,
        }
        let text = format!("{{\"schema\": {SCHEMA}}}\n");
        match &self.place {
            Place::Folder(folder) => {
                fs::create_dir_all(folder).map_err(at(folder))?;
                let path = folder.join(STORE_FILE);
                write_durably(&path, text.as_bytes()).map_err(at(&path))
            }
            Place::Bucket { bucket, mirror } => {
                fs::create_dir_all(mirror).map_err(at(mirror))?;
                let path = mirror.join(STORE_FILE);
                write_durably(&path, text.as_bytes()).map_err(at(&path))?;
                Ok(bucket.put_file(&path, STORE_FILE)?)
            }
        }
    }

    /// Checks that it exists and can be read. The manifests of a bucket are fetched.
    ///
    /// # Errors
    /// If it does not exist, or a newer program made it.
    pub fn open(&self) -> Result<(), StoreError> {
        if let Place::Bucket { .. } = &self.place {
            self.fetch(&[
                STORE_FILE.to_owned(),
                format!("{RUNS}/*/{MANIFEST_FILE}"),
                format!("{RUNS}/*/_stepscope.toml"),
            ])?;
        }
        let folder = self.place.folder();
        let path = folder.join(STORE_FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match self.is_used() {
                    // Another writer has just created it.
                    true if path.exists() => self.open(),
                    true => Err(StoreError::NotAStore(self.name())),
                    false => Err(StoreError::Absent(self.name())),
                };
            }
            read => read.map_err(at(&path))?,
        };
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| at(&path)(io::Error::other(format!("damaged: {error}"))))?;
        let found = value.get("schema").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if found > u64::from(SCHEMA) {
            return Err(StoreError::TooNew { place: self.name(), found, supported: SCHEMA });
        }
        Ok(())
    }

    /// Whether a folder holds something. A store that another writer is creating has only hidden files at first.
    fn is_used(&self) -> bool {
        let Place::Folder(folder) = &self.place else { return false };
        let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.any(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
    }

    /// Brings files of a bucket to this machine. A store in a folder needs none of this.
    pub(crate) fn fetch(&self, patterns: &[String]) -> Result<(), StoreError> {
        if let Place::Bucket { bucket, mirror } = &self.place {
            fs::create_dir_all(mirror).map_err(at(mirror))?;
            bucket.mirror(mirror, patterns)?;
        }
        Ok(())
    }

    /// Its runs. Open it first.
    ///
    /// # Errors
    /// If the folder of the runs cannot be read.
    pub fn runs(&self) -> Result<Listing, StoreError> {
        let runs = self.runs_folder();
        let mut listing = Listing::default();
        let entries = match fs::read_dir(&runs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
            entries => entries.map_err(at(&runs))?,
        };
        let mut folders: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        for folder in folders {
            match read_manifest(&folder) {
                Ok(manifest) => listing.manifests.push(manifest),
                Err(reason) => listing.problems.push(format!("{}: {reason}. This run is left out.", folder.display())),
            }
        }
        Ok(listing)
    }

    /// The manifest of one run; `None` if it is not in the store, or cannot be read.
    pub fn run(&self, name: &str) -> Option<Manifest> {
        read_manifest(&self.run_folder(name)).ok()
    }

    /// The folder of the runs.
    pub(crate) fn runs_folder(&self) -> PathBuf {
        self.place.folder().join(RUNS)
    }

    /// The folder of a run.
    pub fn run_folder(&self, name: &str) -> PathBuf {
        self.runs_folder().join(format!("{RUN_KEY}={}", encode(name)))
    }
}

/// Reads the manifest in a run's folder. The error is a reason without the path.
fn read_manifest(folder: &Path) -> Result<Manifest, String> {
    let path = folder.join(MANIFEST_FILE);
    let size = fs::symlink_metadata(&path).map_err(|error| format!("{MANIFEST_FILE}: {error}"))?;
    if !size.is_file() || size.len() > LARGEST_MANIFEST {
        return Err(format!("{MANIFEST_FILE}: not a manifest"));
    }
    let text = fs::read(&path).map_err(|error| format!("{MANIFEST_FILE}: {error}"))?;
    let manifest = Manifest::parse(&text).map_err(|reason| format!("{MANIFEST_FILE}: {reason}"))?;
    let expected = format!("{RUN_KEY}={}", encode(&manifest.run));
    match folder.file_name().is_some_and(|name| *name == *expected) {
        true => Ok(manifest),
        false => Err(format!("{MANIFEST_FILE}: of another run, {}", manifest.run)),
    }
}

/// Where the files of a bucket that were read are kept: `$XDG_CACHE_HOME/stepscope/BUCKET`.
fn mirror_folder(url: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    cache.unwrap_or_else(std::env::temp_dir).join("stepscope").join(encode(url))
}
