//! How a subcommand fails.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use stepscope_lab::source::SourceError;

/// Why a subcommand failed; decides the exit code.
#[derive(Debug)]
pub enum Failure {
    /// The request makes no sense (exit code 2).
    Usage(String),
    /// It could not be done (exit code 1).
    Failed(String),
    /// The user interrupted it before there was anything to keep (exit code 130).
    #[cfg(feature = "record")]
    Interrupted(String),
    /// The reader of the output closed it, as `head` does; nothing is printed.
    ReaderGone,
}

impl Failure {
    /// Prints the message on standard error; gives the exit code.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            Failure::Usage(message) => (message, 2),
            Failure::Failed(message) => (message, 1),
            #[cfg(feature = "record")]
            Failure::Interrupted(message) => (message, 130),
            Failure::ReaderGone => return ExitCode::SUCCESS,
        };
        eprintln!("stepscope: {message}");
        ExitCode::from(code)
    }

    /// Output that could not be written.
    pub fn writing(what: &str) -> impl FnOnce(io::Error) -> Failure + '_ {
        move |error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Failed(format!("{what}: {error}")),
        }
    }
}

/// Typed errors of the crates below already say what happened, where, and what to do.
impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let source_error = (&error as &dyn Error).downcast_ref::<SourceError>();
        match source_error {
            Some(SourceError::Usage(message)) => Failure::Usage(message.clone()),
            _ if reader_is_gone(&error) => Failure::ReaderGone,
            _ => Failure::Failed(with_sources(&error)),
        }
    }
}

/// Whether writing failed because the reader closed the pipe, as `head` does.
fn reader_is_gone(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn with_sources(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("reading the world")]
    struct Outer(#[source] io::Error);

    #[test]
    fn sources_are_added_unless_the_message_holds_them() {
        let error = Outer(io::Error::other("no such shape"));
        assert_eq!(with_sources(&error), "reading the world: no such shape");
    }
}
