//! How a program ended, in words.

use stepscope_record::launch::Exit;

/// `exited with status 3`, `was killed by SIGSEGV`.
pub(crate) fn how_it_ended(exit: &Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by {}", signal_name(signal)),
        (None, None) => "ended".to_owned(),
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL (by someone, or for lack of memory)",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_shows_its_status_or_the_name_of_its_signal() {
        let exit = |code, signal| Exit { code, signal, usage: Default::default() };
        assert_eq!(how_it_ended(&exit(Some(3), None)), "exited with status 3");
        assert_eq!(how_it_ended(&exit(None, Some(libc::SIGSEGV))), "was killed by SIGSEGV");
        assert_eq!(how_it_ended(&exit(None, Some(63))), "was killed by signal 63");
    }
}
