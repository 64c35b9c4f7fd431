//! What compilers, configure steps and build tools say of their own times.
//!
//! | format | written by | has |
//! |---|---|---|
//! | `clang-time-trace` | clang's `-ftime-trace` | intervals of headers, templates, functions, front end and back end of one unit |
//! | `gcc-time-report` | GCC's `-ftime-report`, with `-H` also the tree of headers | CPU time of phases and passes of one unit |
//! | `cmake-profile` | CMake's `--profiling-output` with `google-trace` | intervals of commands with file and line |
//! | `ninja-log` | ninja's `.ninja_log` | start and end of each command of the last build |
//! | `cargo-timings` | `cargo build --timings` | start, front end and end of each crate |
//!
//! The first three become a [`WorkTree`], which a recording of a build uses too. The others become processes without CPU time.

mod cargo_timings;
mod clang_trace;
mod cmake_profile;
mod gcc_report;
mod ninja_log;
#[cfg(test)]
mod tests;
mod work_tree;

pub use cargo_timings::CargoTimings;
pub use clang_trace::ClangTrace;
pub use cmake_profile::CmakeProfile;
pub use gcc_report::GccReport;
pub use ninja_log::NinjaLog;
pub use work_tree::{WorkTree, module};

use stepscope_model::{Capture, Event, Process, Thread};

use super::{ImportError, Input, Malformed, json};

/// Reads a file of one process' times.
fn read_tree(
    input: Input<'_>,
    format: &'static str,
    parse: impl FnOnce(&[u8], &mut Malformed) -> WorkTree,
) -> Result<Capture, ImportError> {
    let file = input.name().to_owned();
    let bytes = json::read_all(input)?;
    let mut malformed = Malformed::default();
    let tree = parse(&bytes, &mut malformed);
    let mut capture = Capture::default();
    let is_empty = tree.is_empty();
    if !is_empty {
        let unit = file.rsplit('/').next().unwrap_or(&file);
        let unit = unit.strip_suffix(".json").unwrap_or(unit);
        let (start_ns, end_ns) = tree.window().map_or((None, None), |(start, end)| (Some(start), Some(end)));
        (capture.info.start_ns, capture.info.end_ns) = (start_ns, end_ns);
        let (pid, command_line) = (1, unit.to_owned());
        let process = Process { pid, start_ns, end_ns, command_line, ..Process::default() };
        let process = Some(capture.add_process(process));
        let name = unit.to_owned();
        let thread = capture.add_thread(Thread { tid: pid, process, name, start_ns, end_ns, ..Thread::default() });
        let event = capture.add_event(Event::weighed(tree.event(), "ns"));
        tree.add_samples(&mut capture, thread, None, event, None);
        tree.add_scopes(&mut capture, thread, 0);
    }
    capture.info.notes.extend(tree.note().map(str::to_owned));
    malformed.settle(&mut capture, &file, format, !is_empty)?;
    Ok(capture)
}
