//! [`Site`]: a folder of published runs.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use stepscope_model::output_file::Change;
use stepscope_model::output_file::{put_folder, write_durably};

use super::publication::{Listed, SCHEMA};
use super::{Prepared, Publication, PublishError, at, index};

/// Folder of the runs.
const RUNS: &str = "runs";

/// What [`Publication`] is written as.
const PUBLICATION_FILE: &str = "publication.json";

/// Publications of other programs may be large, but not this large.
const LARGEST_PUBLICATION: u64 = 64 << 20;

/// Start of the names of folders that are not complete.
const UNFINISHED: &str = ".unfinished-";

/// The process that changes the site holds this lock.
const LOCK: &str = ".lock";

/// A site, whether it exists already or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    folder: PathBuf,
}

/// What publishing a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The run's folder.
    pub folder: PathBuf,
    /// Whether the run was published before.
    pub change: Change,
    /// Files that other published runs have too, and their bytes, which are stored once.
    pub shared: (usize, u64),
    /// Remarks, in sentences.
    pub notes: Vec<String>,
}

impl Site {
    /// The site in this folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The folder that a run would get, and what would become of it. Changes nothing.
    ///
    /// # Errors
    /// If the folder is no site, but has a page of somebody else.
    pub fn plan(&self, prepared: &Prepared) -> Result<(PathBuf, Change), PublishError> {
        self.refuse_others_page()?;
        let listed = self.listed();
        let publication = self.with_note(&listed, &prepared.publication);
        let (name, known) = self.place(&listed, &publication);
        let change = match known {
            None => Change::Added,
            Some(_) if self.is_same(&name, prepared, &publication) => Change::Unchanged,
            Some(_) => Change::Replaced,
        };
        Ok((self.folder.join(RUNS).join(name), change))
    }

    /// Publishes a run, and rewrites the index.
    ///
    /// # Errors
    /// If the site cannot be written. The site is then as it was.
    pub fn publish(&self, prepared: &Prepared) -> Result<Outcome, PublishError> {
        self.refuse_others_page()?;
        let runs = self.folder.join(RUNS);
        fs::create_dir_all(&runs).map_err(at(&runs))?;
        let lock = self.folder.join(LOCK);
        let held = File::create(&lock).map_err(at(&lock))?;
        // File systems without locks have one writer at a time by habit.
        let _ = held.lock();
        self.remove_unfinished();
        let listed = self.listed();
        let publication = self.with_note(&listed, &prepared.publication);
        let (name, known) = self.place(&listed, &publication);
        let folder = runs.join(&name);
        let mut outcome = Outcome { folder, change: Change::Added, shared: (0, 0), notes: Vec::new() };
        if known.is_some() && self.is_same(&name, prepared, &publication) {
            outcome.change = Change::Unchanged;
        } else {
            let new = self.folder.join(format!("{UNFINISHED}{name}"));
            outcome.shared = self.write(&new, &listed, prepared, &publication)?;
            outcome.change = put_folder(&new, &outcome.folder).map_err(at(&outcome.folder))?;
        }
        let listed = self.listed();
        let unreadable = listed
            .iter()
            .filter(|one| one.publication.is_none())
            .map(|one| format!("{RUNS}/{}: of a newer version, or damaged: the index has its link alone", one.name));
        outcome.notes.extend(unreadable);
        self.write_index(&listed)?;
        Ok(outcome)
    }

    /// The published runs, the latest first.
    pub(super) fn listed(&self) -> Vec<Listed> {
        let runs = self.folder.join(RUNS);
        let entries = fs::read_dir(&runs).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
        let read = |name: String| Listed { publication: read(&runs.join(&name).join(PUBLICATION_FILE)), name };
        let mut listed: Vec<Listed> = names.filter(|name| !name.starts_with('.')).map(read).collect();
        let started = |one: &Listed| one.publication.as_ref().map(|one| one.started_at.clone());
        listed.sort_by(|a, b| (started(b), &b.name).cmp(&(started(a), &a.name)));
        listed
    }

    /// The publication, with the note of an earlier one if it has none.
    fn with_note(&self, listed: &[Listed], publication: &Publication) -> Publication {
        let before = listed.iter().filter_map(|one| one.publication.as_ref()).find(|one| one.id == publication.id);
        let note = publication.note.clone().or_else(|| before?.note.clone()).filter(|note| !note.is_empty());
        Publication { note, ..publication.clone() }
    }

    /// The name of a publication's folder, and the run that is there. Runs of one second and name get a number.
    fn place<'l>(&self, listed: &'l [Listed], publication: &Publication) -> (String, Option<&'l Publication>) {
        let is_this = |one: &&Listed| one.publication.as_ref().is_some_and(|known| known.id == publication.id);
        if let Some(one) = listed.iter().find(is_this) {
            return (one.name.clone(), one.publication.as_ref());
        }
        let plain = publication.folder_name();
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let is_free = |name: &String| !self.folder.join(RUNS).join(name).exists();
        let name = [plain.clone()].into_iter().chain(numbered).find(is_free).expect("some number is free");
        (name, None)
    }

    /// Whether a run is published with the same bytes.
    fn is_same(&self, name: &str, prepared: &Prepared, publication: &Publication) -> bool {
        let folder = self.folder.join(RUNS).join(name);
        // The text, because numbers that are read from it may differ in their last digit.
        holds(&folder.join(PUBLICATION_FILE), &json(publication))
            && prepared.files.iter().all(|(path, bytes)| holds(&folder.join(path), bytes))
    }

    /// Writes a run's folder; gives the number and bytes of the files that are links to those of other runs.
    fn write(
        &self,
        folder: &Path,
        listed: &[Listed],
        prepared: &Prepared,
        publication: &Publication,
    ) -> Result<(usize, u64), PublishError> {
        let mut shared = (0, 0);
        for (path, bytes) in prepared.files.iter() {
            let target = folder.join(path);
            let parent = target.parent().expect("a file in a folder");
            fs::create_dir_all(parent).map_err(at(parent))?;
            if self.link_to_equal(listed, bytes, &target) {
                shared = (shared.0 + 1, shared.1 + bytes.len() as u64);
            } else {
                write_new(&target, bytes).map_err(at(&target))?;
            }
        }
        let page = folder.join("index.html");
        write_new(&page, index::of_run(publication).as_bytes()).map_err(at(&page))?;
        let file = folder.join(PUBLICATION_FILE);
        write_new(&file, &json(publication)).map_err(at(&file))?;
        Ok(shared)
    }

    /// Makes a hard link to a file of another run with the same bytes, if there is one. Small files are not worth a look.
    fn link_to_equal(&self, listed: &[Listed], bytes: &[u8], target: &Path) -> bool {
        const SMALLEST: usize = 512;
        if bytes.len() < SMALLEST {
            return false;
        }
        let files = listed.iter().filter_map(|one| Some((one, one.publication.as_ref()?)));
        let mut equal = files
            .flat_map(|(one, publication)| publication.files.iter().map(move |file| (one, file)))
            .filter(|(_, file)| file.bytes == bytes.len() as u64 && is_inside(&file.path))
            .map(|(one, file)| self.folder.join(RUNS).join(&one.name).join(&file.path));
        equal.any(|path| holds(&path, bytes) && fs::hard_link(&path, target).is_ok())
    }

    /// Fails if the page that would become the list of runs is somebody else's.
    fn refuse_others_page(&self) -> Result<(), PublishError> {
        let path = self.index_page();
        // Where there is no page, or none can be, writing says what is wrong.
        match fs::read(&path) {
            Ok(page) if !index::is_of_site(&String::from_utf8_lossy(&page)) => Err(PublishError::NotOurs(path)),
            _ => Ok(()),
        }
    }

    fn index_page(&self) -> PathBuf {
        self.folder.join("index.html")
    }

    fn write_index(&self, listed: &[Listed]) -> Result<(), PublishError> {
        let path = self.index_page();
        write_durably(&path, index::of_site(listed).as_bytes()).map_err(at(&path))
    }

    /// Removes what interrupted publications left. Only who holds the lock may.
    fn remove_unfinished(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes())) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a path of a publication, which somebody else may have written, stays in its folder.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

fn read(path: &Path) -> Option<Publication> {
    let is_usual = fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LARGEST_PUBLICATION);
    let value: serde_json::Value = serde_json::from_slice(&is_usual.then(|| fs::read(path).ok())??).ok()?;
    let schema = value.get("schema")?.as_u64()?;
    (schema <= u64::from(SCHEMA)).then(|| serde_json::from_value(value).ok())?
}

fn json(publication: &Publication) -> Vec<u8> {
    serde_json::to_vec_pretty(publication).expect("a publication has only text keys")
}

fn holds(path: &Path, bytes: &[u8]) -> bool {
    let is_as_long = fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() == bytes.len() as u64);
    is_as_long && fs::read(path).is_ok_and(|found| found == bytes)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
