//! Tracepoints, as tracefs describes them.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A tracepoint that can be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tracepoint {
    /// What `perf_event_attr.config` takes.
    pub id: u64,
    /// Its `format` file.
    format: String,
}

/// The file system of tracepoints, readable.
#[derive(Debug)]
pub(crate) struct Tracefs {
    path: PathBuf,
    /// What keeps it mounted, if nothing else does.
    _mounted: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds it where it is mounted, or mounts it at no path.
    pub fn find() -> io::Result<Self> {
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            match fs::metadata(Path::new(root).join("events")) {
                Err(other) if other.kind() == io::ErrorKind::NotFound => {}
                Err(other) => error = other,
                Ok(_) => return Ok(Self { path: root.into(), _mounted: None }),
            }
        }
        let mounted = detached_mount(c"tracefs").map_err(|_| error)?;
        Ok(Self { path: format!("/proc/self/fd/{}", mounted.as_raw_fd()).into(), _mounted: Some(mounted) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A tracepoint of it.
    pub fn tracepoint(&self, group: &str, name: &str) -> io::Result<Tracepoint> {
        let directory = self.path.join("events").join(group).join(name);
        let id = fs::read_to_string(directory.join("id"))?;
        let id = id.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Tracepoint { id, format: fs::read_to_string(directory.join("format"))? })
    }
}

impl Tracepoint {
    /// Finds a tracepoint. Fails where tracefs is not readable (it is root's alone by default).
    ///
    /// Where tracefs is not mounted, and we may mount, it is mounted for this look only, at no path: the system stays
    /// as it is.
    pub fn find(group: &str, name: &str) -> io::Result<Self> {
        Tracefs::find()?.tracepoint(group, name)
    }

    /// Offset of a field in the raw data.
    pub fn offset_of(&self, field: &str) -> Option<usize> {
        self.format.lines().find_map(|line| {
            let mut parts = line.trim().split(';').map(str::trim);
            let declared = parts.next()?.strip_prefix("field:")?;
            if declared.split_whitespace().last()? != field {
                return None;
            }
            parts.find_map(|part| part.strip_prefix("offset:"))?.parse().ok()
        })
    }
}

/// Mounts a file system without a place in the tree of files; it is gone when the descriptor is closed.
fn detached_mount(kind: &std::ffi::CStr) -> io::Result<OwnedFd> {
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    let descriptor = |result: libc::c_long| match result {
        // SAFETY: the call succeeded, so the descriptor is new and ours alone.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) }),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the name is a C string; the last argument are flags (close on exec).
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1) })?;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: this command takes no key and no value.
    let created =
        unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, nothing, nothing, 0) };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: only numbers are passed: close on exec, no attributes.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let format = "\
name: sched_waking
ID: 312
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
";
        let tracepoint = Tracepoint { id: 312, format: format.into() };
        assert_eq!(tracepoint.offset_of("pid"), Some(24));
        assert_eq!(tracepoint.offset_of("id"), None);
    }
}
