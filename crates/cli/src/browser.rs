//! Opens an address in the user's browser.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::thread;

/// The program that desktops have for it.
const OPENER: &str = "xdg-open";

/// What became of opening a browser.
#[derive(Debug, PartialEq)]
pub enum Opened {
    /// It is being opened.
    Yes,
    /// There is no display, as in a session through ssh.
    NoDisplay,
    /// The reason, in words.
    Failed(String),
}

/// Opens the address with `xdg-open`, if there is a display. If that fails later, `failed` gets the reason.
pub fn open(address: &str, failed: impl FnOnce(String) + Send + 'static) -> Opened {
    if !has_display(|name| env::var_os(name)) {
        return Opened::NoDisplay;
    }
    let silent = || Stdio::null();
    let started = Command::new(OPENER).arg(address).stdin(silent()).stdout(silent()).stderr(silent()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Opened::Failed(format!("{OPENER} is missing (Debian package: xdg-utils)"));
        }
        Err(error) => return Opened::Failed(format!("{OPENER}: {error}")),
    };
    // It may last as long as the browser.
    thread::spawn(move || match child.wait() {
        Ok(status) if !status.success() => failed(format!("{OPENER} found no browser ({status})")),
        _ => {}
    });
    Opened::Yes
}

fn has_display(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_is_a_variable_with_a_value() {
        let of =
            |name: &'static str, value: &'static str| has_display(move |asked| (asked == name).then(|| value.into()));
        assert!(of("DISPLAY", ":0"));
        assert!(of("WAYLAND_DISPLAY", "wayland-0"));
        assert!(!of("DISPLAY", ""));
        assert!(!of("TERM", "xterm"));
    }
}
