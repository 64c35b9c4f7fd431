//! The user whose rights a launched program gets.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::LaunchError;

/// The user whose rights a launched program gets.
///
/// A program must not get more rights than the user who started it. Recording the kernel may need `sudo`, but only the
/// *recorder* needs it. A simulator that runs as root finds another home directory, leaves files that its user cannot
/// remove, and may do harm. Capabilities of the recorder's file (`setcap`) do not pass through `exec`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunAs {
    /// The user who started stepscope. Under `sudo` or `pkexec`, the user who called that, with their groups, `HOME`,
    /// `USER`, `LOGNAME` and `XDG_RUNTIME_DIR`.
    #[default]
    Invoker,
    /// The recorder's own user: for programs that need root themselves.
    Recorder,
}

/// Another user, with everything needed to become that user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    gid: u32,
    groups: Vec<libc::gid_t>,
    /// Environment variables to set or remove for the program.
    pub(super) environment: Vec<(OsString, Option<OsString>)>,
}

impl RunAs {
    /// The user to become; `None` keeps the current one.
    pub(super) fn resolve(self) -> Result<Option<User>, LaunchError> {
        // SAFETY: getuid only returns a number.
        if self == RunAs::Recorder || unsafe { libc::getuid() } != 0 {
            return Ok(None);
        }
        let variable = |name| std::env::var(name).ok()?.parse::<u32>().ok();
        match variable("SUDO_UID").or_else(|| variable("PKEXEC_UID")) {
            None | Some(0) => Ok(None),
            Some(uid) => User::find(uid, variable("SUDO_GID")).map(Some),
        }
    }
}

impl User {
    fn find(uid: u32, gid: Option<u32>) -> Result<Self, LaunchError> {
        let mut buffer = vec![0; 16 << 10];
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: entry, buffer and found are writable; the buffer's length is passed.
        let result =
            unsafe { libc::getpwuid_r(uid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found) };
        if result != 0 || found.is_null() {
            let reason = "no such user in the user database".to_owned();
            return Err(LaunchError::User { uid, reason });
        }
        // SAFETY: found is not null, so the entry is filled in, and its strings point into the buffer.
        let (entry, name, home) = unsafe {
            let entry = entry.assume_init();
            (entry, CStr::from_ptr(entry.pw_name).to_owned(), CStr::from_ptr(entry.pw_dir).to_owned())
        };
        let gid = gid.unwrap_or(entry.pw_gid);
        let text = |text: &CString| Some(OsStr::from_bytes(text.as_bytes()).to_owned());
        let runtime = format!("/run/user/{uid}");
        let environment = vec![
            ("HOME".into(), text(&home)),
            ("USER".into(), text(&name)),
            ("LOGNAME".into(), text(&name)),
            ("XDG_RUNTIME_DIR".into(), Path::new(&runtime).is_dir().then(|| runtime.into())),
        ];
        Ok(Self { uid, gid, groups: groups(&name, gid), environment })
    }

    /// Changes the calling process to this user, permanently. Returns whether it worked; `errno` says why not.
    ///
    /// # Safety
    /// Only in a single-threaded child process: the raw system calls change one thread. The C library's functions are
    /// not async-signal-safe, so they cannot be used after `fork`.
    pub(super) unsafe fn switch_to(&self) -> bool {
        // SAFETY: the list of groups is valid for its length.
        unsafe {
            libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()) == 0
                && libc::syscall(libc::SYS_setresgid, self.gid, self.gid, self.gid) == 0
                && libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid) == 0
        }
    }
}

/// All groups of a user; at least the primary one.
fn groups(name: &CStr, gid: u32) -> Vec<libc::gid_t> {
    let mut groups = vec![gid; 1 << 10];
    let mut count = groups.len() as i32;
    // SAFETY: at most `count` groups are written, and count is the list's length.
    let result = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
    // -1: there are more groups than fit, and the list is full.
    groups.truncate(if result < 0 { groups.len() } else { usize::try_from(count).unwrap_or(1) });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_user_has_groups_and_a_home() {
        let user = User::find(65534, None).unwrap();
        assert_eq!((user.uid, user.groups.contains(&user.gid)), (65534, true));
        let home = user.environment.iter().find(|(name, _)| name == "HOME").unwrap();
        assert!(home.1.is_some());
    }

    #[test]
    fn an_unknown_user_is_an_error_that_says_so() {
        let error = User::find(3_999_999_999, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot run the program as user 3999999999: no such user in the user database: run stepscope as that user, \
             or keep root's rights"
        );
    }
}
