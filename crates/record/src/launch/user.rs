//! Whose rights a launched program gets.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::LaunchError;

/// Whose rights a launched program gets.
///
/// A program must get no more rights than the user has who started it. Recording more than one's own user space may
/// need `sudo`, but it is the *recorder* that needs it, and a simulator that suddenly runs as root finds another home,
/// leaves files that its user cannot remove, and may do harm. Capabilities that the recorder's file has (`setcap`)
/// need no care: they do not pass through `exec`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunAs {
    /// The user who called us: under `sudo` or `pkexec` the one who called that, with their groups, `HOME`, `USER`,
    /// `LOGNAME` and `XDG_RUNTIME_DIR`; otherwise simply ours.
    #[default]
    Invoker,
    /// Ours, whatever they are: for programs that need root themselves.
    Ourselves,
}

/// Another user, with all that changing to them takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    gid: u32,
    groups: Vec<libc::gid_t>,
    /// Variables to set, or remove, for the program.
    pub(super) environment: Vec<(OsString, Option<OsString>)>,
}

impl RunAs {
    /// The user to change to. `None` to stay who we are.
    pub(super) fn resolve(self) -> Result<Option<User>, LaunchError> {
        // SAFETY: getuid only returns a number.
        if self == RunAs::Ourselves || unsafe { libc::getuid() } != 0 {
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
            let reason = "the user database does not know them".to_owned();
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

    /// Changes the calling process to this user, for good. Returns whether it worked; `errno` says why not.
    ///
    /// # Safety
    /// In a child process of one thread only: the raw system calls change one thread. They are used because after
    /// `fork` nothing else is safe.
    pub(super) unsafe fn become_it(&self) -> bool {
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
    // -1 says that there are more than fit, and that the list is full.
    groups.truncate(if result < 0 { groups.len() } else { usize::try_from(count).unwrap_or(1) });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_of_the_database_is_found_with_groups_and_home() {
        let user = User::find(65534, None).unwrap();
        assert_eq!((user.uid, user.groups.contains(&user.gid)), (65534, true));
        let home = user.environment.iter().find(|(name, _)| name == "HOME").unwrap();
        assert!(home.1.is_some());
    }

    #[test]
    fn a_user_whom_nobody_knows_is_an_error_that_says_so() {
        let error = User::find(3_999_999_999, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot give the program the rights of user 3999999999: the user database does not know them: \
             run as that user, or keep root's rights"
        );
    }
}
