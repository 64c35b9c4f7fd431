//! Which Debian package a file is from, by the lists that `dpkg` keeps.

use std::fs;
use std::path::Path;

/// Lists of the files of each installed package.
const LISTS: &str = "var/lib/dpkg/info";

/// The package that installed `path`, without its architecture. `root` replaces `/`.
pub(crate) fn package_of(root: &Path, path: &Path) -> Option<String> {
    let path = path.to_str()?;
    // Packages may list a file under /lib that is mapped as /usr/lib, and the other way round.
    let names = [path.to_owned(), format!("/usr{path}"), path.strip_prefix("/usr").unwrap_or(path).to_owned()];
    let finders = names.map(|name| memchr::memmem::Finder::new(&format!("\n{name}\n")).into_owned());
    for list in fs::read_dir(root.join(LISTS)).ok()?.flatten() {
        let list = list.path();
        if list.extension().is_none_or(|extension| extension != "list") {
            continue;
        }
        let Ok(files) = fs::read(&list) else { continue };
        if finders.iter().any(|finder| finder.find(&files).is_some()) {
            let package = list.file_stem()?.to_str()?;
            return Some(package.split(':').next().unwrap_or(package).to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_under_either_of_its_names() {
        let root = tempfile::tempdir().unwrap();
        let lists = root.path().join(LISTS);
        fs::create_dir_all(&lists).unwrap();
        fs::write(lists.join("sumo.list"), "/.\n/usr/bin\n/usr/bin/sumo\n/usr/bin/sumo-gui\n").unwrap();
        fs::write(lists.join("libc6:amd64.list"), "/.\n/lib/x86_64-linux-gnu/libc.so.6\n").unwrap();
        fs::write(lists.join("sumo.md5sums"), "\n/usr/bin/other\n").unwrap();
        let package = |path: &str| package_of(root.path(), Path::new(path));
        assert_eq!(package("/usr/bin/sumo").as_deref(), Some("sumo"));
        assert_eq!(package("/usr/lib/x86_64-linux-gnu/libc.so.6").as_deref(), Some("libc6"));
        assert_eq!(package("/usr/bin/su"), None);
        assert_eq!(package("/usr/bin/other"), None);
    }
}
