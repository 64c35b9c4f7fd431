//! Processes that already run, as `/proc` shows them.

use std::collections::BTreeMap;

use object::Object as _;
use object::read::ReadCache;
use stepscope_assemble::{InitialMapping, InitialProcess, InitialState, InitialThread};

use crate::live::open_mapped;
use crate::proc::{self, Backing, State};

/// A running process, as `/proc` shows it.
pub(super) fn present(pid: u32) -> Option<InitialProcess> {
    let threads = proc::threads(pid).ok()?.into_iter().filter_map(|tid| {
        let stat = proc::thread_stat(pid, tid).ok().filter(|stat| !stat.state.has_ended())?;
        let state = if stat.state == State::Running { InitialState::Runnable } else { InitialState::Blocked };
        Some(InitialThread { tid, name: stat.name, state })
    });
    let mut threads: Vec<_> = threads.collect();
    threads.sort_by_key(|thread| thread.tid != pid);
    // A thread that has ended has no mappings, even if it is the first.
    let mappings = proc::maps(threads.first()?.tid).unwrap_or_default();
    let mappings = mappings.into_iter().filter(|mapping| mapping.access.execute).map(|mapping| {
        let path = match mapping.backing {
            Backing::Anonymous => String::new(),
            Backing::File { path, deleted } => {
                let path = path.to_string_lossy().into_owned();
                if deleted { path + " (deleted)" } else { path }
            }
            Backing::Special(name) => name,
        };
        let build_id = (mapping.inode != 0).then(|| build_id(&path, pid)).flatten();
        InitialMapping { range: mapping.start..mapping.end, offset: mapping.offset, path, build_id }
    });
    let parent_pid = proc::stat(pid).ok().map(|stat| stat.parent);
    (!threads.is_empty()).then(|| InitialProcess { pid, parent_pid, threads, mappings: mappings.collect() })
}

/// The build-id of a mapped file. The kernel reports it only for files that are mapped while it records.
fn build_id(path: &str, pid: u32) -> Option<Vec<u8>> {
    let file = ReadCache::new(open_mapped(path, pid)?);
    let elf = object::File::parse(&file).ok()?;
    Some(elf.build_id().ok()??.to_owned())
}

/// Command, working directory, and the environment variables that affect performance.
pub(super) fn program_of(pid: u32) -> (Vec<String>, Option<String>, BTreeMap<String, String>) {
    const MATTER: [&str; 12] =
        ["LD_", "OMP_", "GZ_", "IGN_", "ROS_", "RMW_", "GOMP_", "KMP_", "OPENBLAS_", "MALLOC_", "PYTHON", "RUST_"];
    let environment = proc::environment(pid).unwrap_or_default();
    let matters = |name: &str| MATTER.iter().any(|prefix| name.starts_with(prefix));
    (
        proc::command_line(pid).unwrap_or_default(),
        proc::working_directory(pid).ok().map(|path| path.to_string_lossy().into_owned()),
        environment.into_iter().filter(|(name, _)| matters(name)).collect(),
    )
}
