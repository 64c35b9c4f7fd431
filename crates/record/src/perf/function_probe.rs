//! A tracepoint of our own at a function. It records arguments of the calls.
//!
//! The uprobes of `perf_event_open` record only the call; those of tracefs also fetch arguments. Tracefs uprobes have
//! names, are visible to the whole machine, and stay until they are removed. The recorder that made one removes it; if
//! that recorder was killed, the next one does.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::tracepoint::{Tracefs, Tracepoint};

const GROUP: &str = "stepscope";
/// The tracepoint, removed when dropped. Its events must be closed by then.
#[derive(Debug)]
pub(crate) struct FunctionProbe {
    tracefs: Tracefs,
    name: String,
    pub tracepoint: Tracepoint,
}

impl FunctionProbe {
    /// Sets a tracepoint at `offset` in the file `module`, which records `arguments`: their names, and where they are, as the kernel
    /// writes it.
    pub fn new<A: AsRef<str>>(module: &Path, offset: u64, arguments: &[(&str, A)]) -> io::Result<Self> {
        let tracefs = Tracefs::find()?;
        remove_orphans(&tracefs);
        let name = new_name();
        let module = module.to_str().filter(|path| !path.contains(char::is_whitespace)).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the path of its file must have no spaces to fetch arguments")
        })?;
        let fetched: String = arguments.iter().map(|(name, place)| format!(" {name}={}", place.as_ref())).collect();
        command(&tracefs, &format!("p:{GROUP}/{name} {module}:{offset:#x}{fetched}"))?;
        // From here on the tracepoint is there and must go again.
        match tracefs.tracepoint(GROUP, &name) {
            Ok(tracepoint) => Ok(Self { tracefs, name, tracepoint }),
            Err(error) => {
                let _ = command(&tracefs, &format!("-:{GROUP}/{name}"));
                Err(error)
            }
        }
    }

    /// Where an argument is in the raw data.
    pub fn offset_of(&self, argument: &str) -> io::Result<usize> {
        self.tracepoint.offset_of(argument).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for FunctionProbe {
    fn drop(&mut self) {
        let _ = command(&self.tracefs, &format!("-:{GROUP}/{}", self.name));
    }
}

fn control(tracefs: &Tracefs) -> PathBuf {
    tracefs.path().join("uprobe_events")
}

fn command(tracefs: &Tracefs, command: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(control(tracefs))?.write_all(command.as_bytes())
}

/// A name that no other recorder has, and that tells whose it is.
fn new_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("call_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Removes what recorders left that were killed.
fn remove_orphans(tracefs: &Tracefs) {
    let Ok(listed) = fs::read_to_string(control(tracefs)) else { return };
    for name in orphans(&listed, |pid| Path::new(&format!("/proc/{pid}")).exists()) {
        let _ = command(tracefs, &format!("-:{GROUP}/{name}"));
    }
}

/// Names in a list of probes (`p:GROUP/NAME PATH:OFFSET ...`, a line each) whose makers are not alive.
fn orphans(listed: &str, is_alive: impl Fn(u32) -> bool) -> Vec<&str> {
    let names = listed.lines().filter_map(|line| {
        let name = line.split_whitespace().next()?.strip_prefix("p:")?.strip_prefix(GROUP)?.strip_prefix('/')?;
        let pid = name.strip_prefix("call_")?.split('_').next()?.parse().ok()?;
        (!is_alive(pid)).then_some(name)
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probes_of_recorders_that_have_ended_are_orphans() {
        let listed = "\
p:stepscope/call_10_0 /usr/bin/sim:0x0000000000001139 time=%di:s64
p:stepscope/call_11_3 /usr/bin/sim:0x0000000000001139 time=%di:s64
p:probe_sim/call_10_0 /usr/bin/sim:0x0000000000001139
r:stepscope/call_10_1 /usr/bin/sim:0x0000000000001139
p:stepscope/other /usr/bin/sim:0x0000000000001139
";
        assert_eq!(orphans(listed, |pid| pid == 11), ["call_10_0"]);
    }
}
