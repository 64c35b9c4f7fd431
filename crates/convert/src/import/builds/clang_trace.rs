//! clang's `-ftime-trace`.
//!
//! One JSON object with Chrome's trace events, one file a unit. Events are complete (`X`), or, for sources since LLVM 18, pairs (`b`, `e`).
//! `Total ...` events are sums and left out. Passes are left out too: their time is that of the function they work on.

use std::collections::HashMap;
use std::sync::Arc;

use stepscope_model::Capture;
use stepscope_model::compiler_work::CompilerWork;

use super::super::{Head, ImportError, ImportOptions, Input, InputFormat, Malformed, json};
use super::work_tree::{Span, WorkTree};

/// What clang's `-ftime-trace` writes.
pub struct ClangTrace;

impl InputFormat for ClangTrace {
    fn name(&self) -> &'static str {
        "clang-time-trace"
    }

    fn describe(&self) -> &'static str {
        "clang's -ftime-trace: times of headers, templates, front end and back end of one unit."
    }

    fn recognises(&self, head: Head<'_>) -> bool {
        let bytes = head.bytes.trim_ascii_start();
        let has = |text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
        let names = ["Source", "ExecuteCompiler", "Frontend", "ParseClass", "InstantiateFunction", "OptFunction"];
        bytes.starts_with(b"{")
            && has("\"traceEvents\"")
            && names.iter().any(|name| has(&format!("\"name\":\"{name}\"")))
    }

    fn read(&self, input: Input<'_>, _: &ImportOptions) -> Result<Capture, ImportError> {
        super::read_tree(input, self.name(), parse)
    }
}

impl WorkTree {
    /// Reads clang's `-ftime-trace`. Times are from the compiler's start. Damaged events are left out.
    pub fn of_clang_trace(bytes: &[u8]) -> Self {
        parse(bytes, &mut Malformed::default())
    }
}

fn parse(bytes: &[u8], malformed: &mut Malformed) -> WorkTree {
    let file = json::value(bytes, malformed).unwrap_or_default();
    let events = file["traceEvents"].as_array().map_or(&[][..], Vec::as_slice);
    let mut spans = Vec::new();
    let mut open: HashMap<u64, Vec<(u64, &str)>> = HashMap::new();
    for event in events {
        let name = event["name"].as_str().unwrap_or_default();
        let Some(work) = work(name) else { continue };
        let (id, time) = (event["id"].as_u64().unwrap_or(0), event["ts"].as_u64());
        let mut detail = event["args"]["detail"].as_str().unwrap_or_default();
        let times = match (event["ph"].as_str(), time) {
            (Some("X"), Some(start)) => event["dur"].as_u64().map(|length| (start, start.saturating_add(length))),
            (Some("b"), Some(start)) => {
                open.entry(id).or_default().push((start, detail));
                continue;
            }
            (Some("e"), Some(end)) => {
                let start = open.get_mut(&id).and_then(Vec::pop).filter(|(start, _)| *start <= end);
                start.map(|(start, of_start)| {
                    detail = of_start;
                    (start, end)
                })
            }
            _ => None,
        };
        let Some((start, end)) = times else {
            malformed.add(1, format_args!("an event `{name}` lacks its times"));
            continue;
        };
        let is_header = work == CompilerWork::Header;
        let name: Arc<str> = match work {
            CompilerWork::FrontEnd => "front end".into(),
            CompilerWork::BackEnd => "back end".into(),
            CompilerWork::Header => plain_path(detail).into(),
            CompilerWork::Code => stepscope_symbolize::demangle(detail).into(),
            _ if detail.is_empty() => lower(name).into(),
            _ => detail.into(),
        };
        let file = is_header.then(|| name.clone());
        let in_ns = |micros: u64| micros.saturating_mul(1000);
        spans.push(Span { work, name, file, line: None, start_ns: in_ns(start), end_ns: in_ns(end) });
    }
    WorkTree::of_spans("time", spans)
}

fn work(name: &str) -> Option<CompilerWork> {
    Some(match name {
        "Frontend" => CompilerWork::FrontEnd,
        "Backend" => CompilerWork::BackEnd,
        "Source" => CompilerWork::Header,
        "ParseClass" | "ParseTemplate" | "ParseFunctionDefinition" | "ParseDeclarationOrFunctionDefinition" => {
            CompilerWork::Parsing
        }
        "InstantiateClass" | "InstantiateFunction" | "PerformPendingInstantiations" => CompilerWork::Template,
        "OptFunction" | "CodeGen Function" => CompilerWork::Code,
        _ => return None,
    })
}

fn lower(name: &str) -> String {
    match name {
        "PerformPendingInstantiations" => "pending instantiations".to_owned(),
        other => other.to_owned(),
    }
}

/// A path without `.` and `..`, by its text alone: `/usr/include/c++/12/map` for `/usr/bin/../include/c++/12/map`.
pub(super) fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." if !parts.is_empty() || path.starts_with("./") => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => _ = parts.pop(),
            "" if !parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}
