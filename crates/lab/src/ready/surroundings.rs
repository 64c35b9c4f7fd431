//! The state of the system for ready conditions: files and listening ports.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stepscope_record::proc::ProcessTree;

/// Access to the system.
pub trait Surroundings {
    /// The state of the file at `path`; `None` if there is none.
    fn file(&mut self, path: &Path) -> Option<FileState>;

    /// Sockets that listen on TCP `port` in a network namespace that a process of the scenario is in.
    fn listeners(&mut self, port: u16) -> Vec<Listener>;
}

/// Properties that change when a file is written or replaced. Times alone are not enough: the clock of a file system ticks
/// only every few milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    /// Device and inode.
    pub identity: (u64, u64),
    /// Size.
    pub bytes: u64,
    /// Time of the last change of its content.
    pub modified_ns: i128,
}

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The scenario's process that holds it; `None` for another program, such as a server of an earlier run.
    pub pid: Option<u32>,
}

/// The system, seen from a scenario's process tree.
///
/// Ports are looked up in `/proc/PID/net/tcp`. This works in the network namespace of the scenario (`unshare -n`),
/// distinguishes its sockets from those of other programs, and makes no connection that the program must serve.
#[derive(Debug)]
pub struct TreeSurroundings {
    tree: Option<ProcessTree>,
}

impl TreeSurroundings {
    /// Before the launch there is no tree, and no port is open.
    pub fn before_launch() -> Self {
        Self { tree: None }
    }

    /// The surroundings of a running scenario.
    pub fn of(tree: ProcessTree) -> Self {
        Self { tree: Some(tree) }
    }
}

impl Surroundings for TreeSurroundings {
    fn file(&mut self, path: &Path) -> Option<FileState> {
        let metadata = fs::metadata(path).ok()?;
        Some(FileState {
            identity: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        })
    }

    fn listeners(&mut self, port: u16) -> Vec<Listener> {
        let Some(tree) = &mut self.tree else { return Vec::new() };
        tree.refresh();
        let pids: Vec<u32> = tree.members().filter(|member| !member.is_zombie()).map(|member| member.pid()).collect();
        // One process of each namespace shows all its sockets.
        let by_namespace: BTreeMap<PathBuf, u32> =
            pids.iter().filter_map(|&pid| Some((fs::read_link(format!("/proc/{pid}/ns/net")).ok()?, pid))).collect();
        let listening: BTreeSet<u64> =
            by_namespace.values().flat_map(|pid| listening_sockets_beside(*pid, port)).collect();
        if listening.is_empty() {
            return Vec::new();
        }
        let held: Vec<(u32, BTreeSet<u64>)> = pids.iter().map(|&pid| (pid, sockets_held_by(pid))).collect();
        let holder = |socket: u64| held.iter().find(|(_, sockets)| sockets.contains(&socket)).map(|&(pid, _)| pid);
        listening.into_iter().map(|socket| Listener { pid: holder(socket) }).collect()
    }
}

/// Inodes of the sockets that listen on `port` in the network namespace of a process.
fn listening_sockets_beside(pid: u32, port: u16) -> Vec<u64> {
    let tables =
        ["tcp", "tcp6"].into_iter().filter_map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok());
    tables.flat_map(|table| listening_sockets(&table, port)).collect()
}

/// Inodes of the sockets that listen on `port` in the text of `/proc/net/tcp` or `tcp6`: columns `sl local_address
/// rem_address st tx:rx tr:when retrnsmt uid timeout inode`, addresses as hexadecimal `IP:PORT`, state `0A` is LISTEN.
fn listening_sockets(table: &str, port: u16) -> Vec<u64> {
    let listening = |line: &str| {
        let mut columns = line.split_ascii_whitespace();
        let (_, local_port) = columns.nth(1)?.rsplit_once(':')?;
        let state = columns.nth(1)?;
        let inode = columns.nth(5)?.parse().ok()?;
        (state == "0A" && u16::from_str_radix(local_port, 16) == Ok(port)).then_some(inode)
    };
    table.lines().skip(1).filter_map(listening).collect()
}

/// Inodes of the sockets among the descriptors of a process.
fn sockets_held_by(pid: u32) -> BTreeSet<u64> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| socket_of(fs::read_link(descriptor.path()).ok()?.into_os_string())).collect()
}

/// 4711 for `socket:[4711]`.
fn socket_of(link: OsString) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const TABLE: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5001 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 5002 1 0000 20 4 30 10 -1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5003 1 0000 100 0 0 10 0
   3: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 5004 1 0 100
   4: a broken line";

    #[test]
    fn only_a_listening_socket_of_the_port_counts() {
        assert_eq!(listening_sockets(TABLE, 8080), [5001, 5004]);
        assert_eq!(listening_sockets(TABLE, 22), [5003]);
        assert_eq!(listening_sockets("", 22), Vec::<u64>::new());
        assert_eq!(socket_of("socket:[5001]".into()), Some(5001));
        assert_eq!(socket_of("pipe:[5001]".into()), None);
    }

    #[test]
    fn a_port_of_another_program_does_not_count() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut ours = TreeSurroundings::of(ProcessTree::of(std::process::id()));
        assert_eq!(ours.listeners(port), [Listener { pid: Some(std::process::id()) }]);

        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut others = TreeSurroundings::of(ProcessTree::of(child.id()));
        let seen = others.listeners(port);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen, [Listener { pid: None }]);

        drop(listener);
        assert_eq!(ours.listeners(port), []);
        assert_eq!(TreeSurroundings::before_launch().listeners(port), []);
    }

    #[test]
    fn a_file_that_is_written_again_with_the_same_size_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ready");
        let mut surroundings = TreeSurroundings::before_launch();
        assert_eq!(surroundings.file(&path), None);
        fs::write(&path, "1").unwrap();
        let first = surroundings.file(&path);
        fs::write(folder.path().join("new"), "2").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(first.is_some());
        assert_ne!(surroundings.file(&path), first);
    }
}
