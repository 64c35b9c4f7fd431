//! One folder in place of another: a second build folder, or another checkout of the same repository.
//!
//! A scenario names its files in many places: program, arguments, directory, environment, drivers, the file of its step
//! function. To run it with the files of another folder, every path that lies in the first folder is taken from the
//! second. What is a path is decided by these rules, which are documented for users in `docs/lab-file.md`:
//!
//! - a text without `/` is none: `build` may be the name of a target;
//! - a relative one starts from the directory that the program runs in. Where that directory moves too, it is left as
//!   it is, if it leads to the right place from there;
//! - in `--option=PATH` and `NAME=PATH` the part after the first `=` is looked at, and in values of variables each part
//!   between colons, as in `LD_LIBRARY_PATH`.

use std::path::{Component, Path, PathBuf};

/// Folders that others stand in for. Where several hold a path, the innermost one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderMap {
    folders: Vec<(PathBuf, PathBuf)>,
}

impl FolderMap {
    /// Each pair is a folder and the one in its place, both absolute.
    pub fn new(folders: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Self {
        let mut folders: Vec<(PathBuf, PathBuf)> =
            folders.into_iter().map(|(from, to)| (normal(&from), normal(&to))).collect();
        folders.sort_by_key(|(from, _)| std::cmp::Reverse(from.components().count()));
        Self { folders }
    }

    /// Whether nothing is moved.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Where an absolute path has gone, if it lies in a folder that is moved.
    pub fn path(&self, path: &Path) -> Option<PathBuf> {
        let path = normal(path);
        self.folders.iter().find_map(|(from, to)| {
            let inside = path.strip_prefix(from).ok()?;
            Some(if inside.as_os_str().is_empty() { to.clone() } else { to.join(inside) })
        })
    }

    /// Replaces a path that lies in a folder that is moved.
    pub fn replace(&self, path: &mut PathBuf) {
        if let Some(moved) = self.path(path) {
            *path = moved;
        }
    }

    /// A command that ran in `old`, changed to run in `new`.
    pub fn command(&self, command: &mut [String], old: &Path, new: &Path) {
        for word in command {
            let moved = self.text(word, old, new).or_else(|| {
                let (name, path) = word.split_once('=')?;
                Some(format!("{name}={}", self.text(path, old, new)?))
            });
            if let Some(moved) = moved {
                *word = moved;
            }
        }
    }

    /// The value of a variable of a program that ran in `old`, changed to run in `new`.
    pub fn parts(&self, value: &str, old: &Path, new: &Path) -> String {
        let parts = value.split(':').map(|part| self.text(part, old, new).unwrap_or_else(|| part.to_owned()));
        parts.collect::<Vec<_>>().join(":")
    }

    /// What stands for a text that is a path: `None` if it may stay.
    fn text(&self, text: &str, old: &Path, new: &Path) -> Option<String> {
        if !text.contains('/') {
            return None;
        }
        let meant = normal(&old.join(text));
        let moved = self.path(&meant);
        let wanted = moved.as_ref().unwrap_or(&meant);
        if normal(&new.join(text)) == *wanted {
            return None;
        }
        // What only looks like a path, such as an address, does not lead anywhere.
        let leads = moved.is_some() || meant.exists();
        leads.then(|| wanted.to_str().map(str::to_owned))?
    }
}

/// The path without `.` and `..`, as it is written: links are not followed, for files that are not there yet.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_folders_in_each_other_the_inner_one_counts() {
        let both =
            FolderMap::new([("/repo", "/tree"), ("/repo/build", "/fast")].map(|(from, to)| (from.into(), to.into())));
        assert_eq!(both.path(Path::new("/repo/build/../build/sim")), Some("/fast/sim".into()));
        assert_eq!(both.path(Path::new("/repo/src")), Some("/tree/src".into()));
        assert_eq!(both.path(Path::new("/repo")), Some("/tree".into()));
        assert_eq!(both.path(Path::new("/other")), None);
    }
}
