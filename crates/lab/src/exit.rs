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
    match signal_hook::low_level::signal_name(signal) {
        Some("SIGKILL") => "SIGKILL (by someone, or for lack of memory)".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("signal {signal}"),
    }
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
