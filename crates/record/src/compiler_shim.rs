//! The program between GCC's driver and its compiler, which takes the compiler's report of its times out of standard error.
//!
//! `gcc -wrapper SHIM,ARGUMENT,FOLDER` starts `SHIM ARGUMENT FOLDER cc1plus ...` instead of `cc1plus ...`. All that the compiler writes to standard error
//! passes, except for the lists of `-H` and the table of `-ftime-report`, which go to a file in the folder.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The first argument of the shim.
pub const ARGUMENT: &str = "--compiler-report";

/// Where the shim with this process id writes.
pub(crate) fn report(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("gcc-{pid}.report"))
}

/// Runs as the shim, if the command line says so.
pub fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let (folder, program) = (PathBuf::from(arguments.next()?), arguments.next()?);
    Some(compile(&folder, &program, arguments.collect()).unwrap_or_else(|error| {
        eprintln!("stepscope: {}: {error}", program.to_string_lossy());
        ExitCode::FAILURE
    }))
}

fn compile(folder: &Path, program: &OsString, arguments: Vec<OsString>) -> std::io::Result<ExitCode> {
    let mut command = Command::new(program);
    command.args(&arguments);
    let name = Path::new(program).file_name().unwrap_or_default();
    let is_compiler = ["cc1", "cc1plus", "cc1obj", "cc1objplus"].iter().any(|compiler| name == *compiler);
    if !is_compiler {
        return Err(command.exec());
    }
    // SAFETY: the call only asks.
    if unsafe { libc::isatty(libc::STDERR_FILENO) } == 1 && !has_colour(&arguments) {
        command.arg("-fdiagnostics-color=always");
    }
    let mut compiler = command.stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(compiler.stderr.take().expect("standard error is a pipe"));
    let mut kept = Vec::new();
    let mut filter = Filter::default();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if filter.takes(&line) {
            kept.extend_from_slice(&line);
        } else {
            let mut stderr = std::io::stderr().lock();
            stderr.write_all(&line)?;
        }
        line.clear();
    }
    let status = compiler.wait()?;
    if !kept.is_empty() {
        // Without the report, the build is still right.
        let _ = fs::write(report(folder, std::process::id()), &kept);
    }
    if let Some(signal) = status.signal() {
        // The driver says which signal ended its compiler.
        // SAFETY: the signal goes to this process.
        unsafe { libc::raise(signal) };
    }
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

fn has_colour(arguments: &[OsString]) -> bool {
    arguments.iter().any(|one| one.as_bytes().starts_with(b"-fdiagnostics-color"))
}

/// Tells the lines of a report from those of a compiler's messages.
#[derive(Debug, Default)]
struct Filter {
    within: Option<Section>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// The list of files that need include guards.
    Guards,
    /// The table of times.
    Times,
}

impl Filter {
    fn takes(&mut self, line: &[u8]) -> bool {
        let text = line.trim_ascii_end();
        if text.starts_with(b"Multiple include guards may be useful for:") {
            self.within = Some(Section::Guards);
            return true;
        }
        if text.starts_with(b"Time variable ") {
            self.within = Some(Section::Times);
            return true;
        }
        match self.within {
            Some(Section::Times) => {
                if text.trim_ascii_start().starts_with(b"TOTAL") {
                    self.within = None;
                }
                true
            }
            Some(Section::Guards) if is_path(text) => true,
            _ if is_header(text) => true,
            // An empty line stands before the table.
            _ => text.is_empty(),
        }
    }
}

/// `.. /usr/include/math.h`; `! x.gch` and `x x.gch` name precompiled headers.
fn is_header(line: &[u8]) -> bool {
    let dots = line.iter().take_while(|byte| **byte == b'.').count();
    let is_precompiled = line.starts_with(b"! ") || line.starts_with(b"x ");
    (dots > 0 && line.get(dots) == Some(&b' ')) || (is_precompiled && line.ends_with(b"ch"))
}

fn is_path(line: &[u8]) -> bool {
    line.contains(&b'/') || (line.contains(&b'.') && !line.contains(&b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_taken_and_messages_pass() {
        let text = "\
. a.h
.. /usr/include/math.h
a.cpp: In function 'int f()':
a.cpp:3:5: warning: unused variable 'x'
    3 | int x;
      |     ^
... c.h
Multiple include guards may be useful for:
/usr/include/c++/12/cstddef

Time variable                                   usr           sys          wall           GGC
 phase setup                        :   0.00 (  0%)   0.00 (  0%)   0.01 (  0%)  1803k (  1%)
 TOTAL                              :   3.13          1.88          6.62          234M
a.cpp:9:1: note: last
";
        let mut filter = Filter::default();
        let passed: Vec<&str> = text.lines().filter(|line| !filter.takes(line.as_bytes())).collect();
        assert_eq!(
            passed,
            [
                "a.cpp: In function 'int f()':",
                "a.cpp:3:5: warning: unused variable 'x'",
                "    3 | int x;",
                "      |     ^",
                "a.cpp:9:1: note: last",
            ]
        );
    }
}
