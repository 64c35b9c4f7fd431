//! Files that appear whole or not at all.
//!
//! A regular file is written beside its name and renamed over it, so that readers find the old content or the new. All else
//! is written into: renaming over `/dev/null` would break the machine, and over a FIFO its reader would wait for ever.
//!
//! | the path is | what happens |
//! |---|---|
//! | new | the file appears when it is complete |
//! | a regular file | replaced when the new content is complete; mode and owner stay |
//! | a regular file with hard links, of another owner, a mount point, or in a folder that cannot be written | overwritten when the new content is complete |
//! | a symlink | followed, also where its target does not exist yet |
//! | a device, a FIFO | written into as the content comes |
//! | `/dev/stdout`, `/dev/stderr`, `/proc/self/fd/1`, ... | written to that descriptor, at its position |

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::{Builder, TempPath};

/// As many symlinks as the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// A file that is being written. Without [`finish`](Self::finish), a regular file stays as it was.
#[derive(Debug)]
pub struct OutputFile {
    out: BufWriter<File>,
    /// `None` for what is written as it comes.
    whole: Option<Whole>,
}

/// How a complete file gets its name.
#[derive(Debug)]
struct Whole {
    target: PathBuf,
    /// The name of the new content; `None` if it has none, since the folder cannot be written.
    part: Option<TempPath>,
    /// The file that is there.
    existing: Option<File>,
}

impl OutputFile {
    /// Opens `path` for writing.
    ///
    /// # Errors
    /// If the path is a folder, or cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = match resolve(path)? {
            Resolved::Descriptor(file) => return Ok(Self { out: BufWriter::new(file), whole: None }),
            Resolved::Path(target) => target,
        };
        let existing = match OpenOptions::new().write(true).open(&target) {
            Ok(file) if !file.metadata()?.is_file() => return Ok(Self { out: BufWriter::new(file), whole: None }),
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (file, part) = match (part_beside(&target), &existing) {
            (Ok((file, part)), _) => (file, Some(part)),
            (Err(_), Some(_)) => (tempfile::tempfile()?, None),
            (Err(error), None) => return Err(error),
        };
        Ok(Self { out: BufWriter::new(file), whole: Some(Whole { target, part, existing }) })
    }

    /// Whether this makes or replaces a regular file.
    pub fn is_regular(&self) -> bool {
        self.whole.is_some()
    }

    /// Gives a complete file its name.
    ///
    /// # Errors
    /// If the rest cannot be written, or the name cannot be given.
    pub fn finish(self) -> io::Result<()> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.whole.map_or(Ok(()), |whole| whole.put_in_place(file))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes `bytes` to `path` whole, and waits until they are on the disk.
///
/// # Errors
/// As for [`OutputFile`].
pub fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes)?;
    if file.is_regular() {
        file.flush()?;
        file.out.get_ref().sync_all()?;
    }
    file.finish()
}

/// What became of a folder that was put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It was there before, and something differs.
    Replaced,
    /// It was there before with the same content.
    Unchanged,
}

/// Moves a folder to its place on the same file system. A reader finds the old folder or the new one.
///
/// # Errors
/// If a name cannot be given. The place is then as it was.
pub fn put_folder(new: &Path, place: &Path) -> io::Result<Change> {
    // A folder that is not empty is never overwritten.
    match fs::rename(new, place) {
        Ok(()) => return Ok(Change::Added),
        Err(error) if !place.is_dir() => return Err(error),
        Err(_) => {}
    }
    match renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
        // The old one has the other's name now.
        Ok(()) => fs::remove_dir_all(new)?,
        // Some file systems cannot exchange.
        Err(_) => {
            let old = new.with_extension("old");
            fs::rename(place, &old)?;
            fs::rename(new, place)?;
            fs::remove_dir_all(old)?;
        }
    }
    Ok(Change::Replaced)
}

impl Whole {
    fn put_in_place(self, mut new: File) -> io::Result<()> {
        let Some(mut existing) = self.existing else {
            let part = self.part.expect("a file that is new has a part beside it");
            return part.persist(self.target).map_err(|error| error.error);
        };
        if let Some(part) = self.part
            && can_stand_for(&new, &existing)
            && part.persist(&self.target).is_ok()
        {
            return Ok(());
        }
        new.rewind()?;
        existing.set_len(0)?;
        io::copy(&mut new, &mut existing).map(drop)
    }
}

/// Gives `new` the mode and owner of `existing`. False if that is impossible, or if other names lead to the file.
fn can_stand_for(new: &File, existing: &File) -> bool {
    let (Ok(new_is), Ok(existing_is)) = (new.metadata(), existing.metadata()) else { return false };
    let same_owner = (new_is.uid(), new_is.gid()) == (existing_is.uid(), existing_is.gid());
    // The owner first: changing it clears bits of the mode.
    existing_is.nlink() == 1
        && (same_owner || fchown(new, Some(existing_is.uid()), Some(existing_is.gid())).is_ok())
        && new.set_permissions(existing_is.permissions()).is_ok()
}

/// A new file beside `target`, with the mode of new files.
fn part_beside(target: &Path) -> io::Result<(File, TempPath)> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "not a file name");
    let name = target.file_name().ok_or_else(no_name)?.to_string_lossy();
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Names have 255 bytes at most; those of parts need no more than to be recognised.
    let stem: String = name.chars().take(40).collect();
    let permissions = fs::Permissions::from_mode(0o666);
    let mut builder = Builder::new();
    let builder = builder.permissions(permissions);
    Ok(builder.prefix(&format!(".{stem}.")).suffix(".part").tempfile_in(folder)?.into_parts())
}

enum Resolved {
    Path(PathBuf),
    Descriptor(File),
}

/// Follows symlinks by hand, since the last one may lead to a file that does not exist yet.
fn resolve(path: &Path) -> io::Result<Resolved> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Ok(Resolved::Path(path));
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let real_folder = folder.canonicalize()?;
        if real_folder.starts_with("/proc") {
            return descriptor(&path, &real_folder).map(Resolved::Descriptor);
        }
        path = folder.join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Opens a link in `/proc`. It stands for an open file, which has a position, and perhaps no name.
fn descriptor(path: &Path, folder: &Path) -> io::Result<File> {
    let ours = Path::new("/proc/self/fd").canonicalize().is_ok_and(|ours| ours == folder);
    match path.file_name().and_then(|name| name.to_str()) {
        Some("1") if ours => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Some("2") if ours => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        _ => OpenOptions::new().append(true).open(path),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::io::Read as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let mut file = OutputFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    fn make_node(path: &Path, mode: libc::mode_t, device: libc::dev_t) -> bool {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a path that ends with 0.
        unsafe { libc::mknod(path.as_ptr(), mode, device) == 0 }
    }

    fn is_root() -> bool {
        // SAFETY: only reads the user of the process.
        unsafe { libc::geteuid() == 0 }
    }

    #[test]
    fn a_file_appears_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(file);
        assert_eq!(names(folder.path()), Vec::<String>::new());
        write(&path, "whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(names(folder.path()), ["report.html"]);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "old").unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["report.html"]);
    }

    #[test]
    fn a_device_is_written_into_and_stays_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("null");
        // The device number of /dev/null; the node is ours.
        if !make_node(&device, libc::S_IFCHR | 0o666, libc::makedev(1, 3)) || OutputFile::create(&device).is_err() {
            println!("skipped: a_device_is_written_into_and_stays_a_device: needs the right to make and open devices");
            return;
        }
        let link = folder.path().join("link");
        symlink("null", &link).unwrap();
        for path in [&device, &link] {
            write(path, "text").unwrap();
            assert!(fs::metadata(&device).unwrap().file_type().is_char_device());
        }
        assert_eq!(names(folder.path()), ["link", "null"]);
    }

    #[test]
    fn a_fifo_is_written_into() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(make_node(&fifo, libc::S_IFIFO | 0o600, 0));
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::read_to_string(fifo).unwrap()
        });
        write(&fifo, "text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["fifo"]);
    }

    #[test]
    fn symlinks_are_followed_also_to_files_that_do_not_exist_yet() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("elsewhere")).unwrap();
        symlink("second", at("first")).unwrap();
        symlink("elsewhere/report.html", at("second")).unwrap();
        for text in ["new", "again"] {
            write(&at("first"), text).unwrap();
            assert_eq!(fs::read_to_string(at("elsewhere/report.html")).unwrap(), text);
            assert!(fs::symlink_metadata(at("first")).unwrap().is_symlink());
        }
        assert_eq!(names(&at("elsewhere")), ["report.html"]);
        symlink("circle", at("circle")).unwrap();
        assert!(write(&at("circle"), "text").is_err());
    }

    #[test]
    fn mode_and_owner_of_an_existing_file_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "a longer text that was there before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let owner = is_root().then_some(12345);
        std::os::unix::fs::chown(&path, owner, owner).unwrap();
        let before = fs::metadata(&path).unwrap();
        write(&path, "new").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_ne!(after.ino(), before.ino(), "replaced, so that readers see the old file or the new one");
    }

    #[test]
    fn a_new_file_has_the_mode_that_the_system_gives_new_files() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        write(&ours, "").unwrap();
        fs::write(&plain, "").unwrap();
        assert_eq!(fs::metadata(ours).unwrap().mode(), fs::metadata(plain).unwrap().mode());
    }

    #[test]
    fn all_hard_links_show_the_new_content() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        fs::write(&first, "a longer text that was there before").unwrap();
        fs::hard_link(&first, &second).unwrap();
        write(&first, "new").unwrap();
        assert_eq!(fs::read_to_string(second).unwrap(), "new");
        assert_eq!(names(folder.path()), ["first", "second"]);
    }

    #[test]
    fn a_link_of_proc_is_written_at_the_end_of_the_open_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
        open.write_all(b"before ").unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(open.as_file()));
        write(Path::new(&link), "after").unwrap();
        let mut text = String::new();
        open.rewind().unwrap();
        open.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before after");
    }

    #[test]
    fn folders_and_files_without_a_folder_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path(), "text").is_err());
        assert!(write(&folder.path().join("absent/report.html"), "text").is_err());
        assert!(write(Path::new("/"), "text").is_err());
    }
}
