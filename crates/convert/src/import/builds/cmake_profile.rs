//! CMake's `--profiling-output` in the format `google-trace`: a JSON array of starts (`B`) and ends (`E`) of commands.

use std::sync::Arc;

use serde_json::Value;
use stepscope_model::Capture;
use stepscope_model::compiler_work::CompilerWork;

use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, json};
use super::work_tree::{Span, WorkTree};

/// What CMake's `--profiling-output` writes.
pub struct CmakeProfile;

impl InputFormat for CmakeProfile {
    fn name(&self) -> &'static str {
        "cmake-profile"
    }

    fn describe(&self) -> &'static str {
        "CMake's --profiling-output with --profiling-format=google-trace: commands of a configure step."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        let bytes = head.bytes.trim_ascii_start();
        let has = |text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
        bytes.starts_with(b"[") && (has("\"cat\" : \"cmake\"") || has("\"cat\":\"cmake\""))
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        super::read_tree(input, self.name(), parse)
    }
}

impl WorkTree {
    /// Reads CMake's profile. Times are those of its steady clock.
    pub fn of_cmake_profile(bytes: &[u8]) -> Self {
        parse(bytes, &mut Malformed::default())
    }
}

fn parse(bytes: &[u8], malformed: &mut Malformed) -> WorkTree {
    let file = json::value(bytes, malformed).unwrap_or_default();
    let mut spans: Vec<Span> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut last = 0;
    for event in file.as_array().map_or(&[][..], Vec::as_slice) {
        let Some(ns) = event["ts"].as_u64().map(|micros| micros.saturating_mul(1000)) else {
            malformed.add(1, "an event lacks its time");
            continue;
        };
        last = ns.max(last);
        match event["ph"].as_str() {
            Some("B") => {
                open.push(spans.len());
                spans.push(started(event, ns));
            }
            Some("E") => match open.pop() {
                Some(index) => spans[index].end_ns = ns.max(spans[index].start_ns),
                None => malformed.add(1, "an end has no start"),
            },
            _ => {}
        }
    }
    // What was cut lasts up to the last event.
    for index in open {
        spans[index].end_ns = last.max(spans[index].start_ns);
    }
    WorkTree::of_spans("time", spans)
}

/// A command, named as it is called: `find_package(Boost)`.
fn started(event: &Value, ns: u64) -> Span {
    let args = &event["args"];
    let command = event["name"].as_str().unwrap_or("command");
    let first = args["functionArgs"].as_str().and_then(|text| text.split(' ').next()).unwrap_or_default();
    // The name of what is looked for, included or tried; of other commands, arguments would only divide the sum.
    const NAMED: [&str; 14] = [
        "find_package",
        "find_library",
        "find_program",
        "find_path",
        "find_file",
        "include",
        "add_subdirectory",
        "try_compile",
        "try_run",
        "configure_file",
        "project",
        "check_include_file",
        "check_symbol_exists",
        "execute_process",
    ];
    let name: Arc<str> = match NAMED.contains(&command) && !first.is_empty() {
        true => format!("{command}({first})").into(),
        false => command.into(),
    };
    let place = args["location"].as_str().and_then(|text| text.rsplit_once(':'));
    let (file, line) = place.map_or((None, None), |(file, line)| (Some(file.into()), line.parse().ok()));
    Span { work: CompilerWork::Configure, name, file, line, start_ns: ns, end_ns: ns }
}
