//! `println!` and `eprintln!` for output whose reader may be gone, as `head` is after its last line.
//!
//! Those of the standard library panic then, and a recording that is going on would lose its capture.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

macro_rules! println {
    ($($text:tt)*) => { crate::print::to_output(format_args!($($text)*)) };
}

macro_rules! eprintln {
    () => { crate::print::to_errors(format_args!("")) };
    ($($text:tt)*) => { crate::print::to_errors(format_args!($($text)*)) };
}

/// Prints a line on standard output. Ends the program if that fails, unless the reader is gone.
pub fn to_output(text: Arguments<'_>) {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            to_errors(format_args!("stepscope: standard output: {error}"));
            std::process::exit(1);
        }
        _ => {}
    }
}

/// Prints a line on standard error. Nothing can report that this fails.
pub fn to_errors(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
