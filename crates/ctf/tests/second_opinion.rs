//! The events of `babeltrace2`: as many, at the same times, with the same values.
//!
//! Traces are drawn, or recorded here with LTTng-UST. More are read from the folder `STEPSCOPE_CTF_TRACES`, if it is set;
//! the sources of babeltrace have some in `tests/data/ctf-traces/succeed`.

mod drawn;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use drawn::{Drawn, metadata, packet};
use stepscope_ctf::{Fields, Reader, Value};

/// Fields of a packet's context that are not those of events.
const OF_PACKETS: &[&str] =
    &["timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded"];

fn has(tool: &str, test: &str) -> bool {
    let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: {test}: {tool} is not installed");
    }
    found
}

/// A line of babeltrace2 or ours without what is only style: braces, blanks, escapes, the base of numbers.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let digits = rest.strip_prefix("0x").unwrap_or("");
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        if let Ok(number) = u64::from_str_radix(&digits[..end], 16) {
            plain.push_str(&number.to_string());
            rest = &digits[end..];
            continue;
        }
        if !"{}, \\".contains(letter) {
            plain.push(letter);
        }
        rest = &rest[letter.len_utf8()..];
    }
    plain
}

fn theirs(trace: &Path) -> Vec<String> {
    let arguments = ["--clock-seconds", "--no-delta", "--fields=emf"];
    let output = Command::new("babeltrace2").args(arguments).arg(trace).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(plain).collect()
}

fn put(line: &mut String, fields: Fields<'_>) {
    for (name, value) in fields.iter().filter(|(name, _)| !OF_PACKETS.contains(name)) {
        *line += &format!(" {name} = ");
        put_value(line, value);
    }
}

fn put_value(line: &mut String, value: Value<'_>) {
    match value {
        Value::Unsigned(value) => *line += &value.to_string(),
        Value::Signed(value) => *line += &value.to_string(),
        Value::Float(value) => *line += &value.to_string(),
        Value::Text(text) => *line += &format!("\"{}\"", String::from_utf8_lossy(text)),
        Value::Enumeration(value) => {
            let labels: Vec<String> = value.labels().map(|label| format!("\"{label}\"")).collect();
            let labels = if labels.is_empty() { "<unknown>".to_owned() } else { labels.join(" ") };
            *line += &format!("( {labels} : container = ");
            put_value(line, value.value());
            line.push(')');
        }
        Value::Struct(fields) => put(line, fields),
        Value::Array(elements) => {
            line.push('[');
            for (at, element) in elements.iter().enumerate() {
                *line += &format!("[{at}] = ");
                put_value(line, element);
            }
            line.push(']');
        }
        _ => line.push('?'),
    }
}

fn ours(trace: &Path) -> (Vec<String>, Reader) {
    let mut reader = Reader::open(trace).unwrap();
    let mut lines = Vec::new();
    while let Some(event) = reader.next_event() {
        let mut line = String::new();
        if let Some(ns) = event.time_ns() {
            line += &format!("[{}.{:09}]", ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
        }
        line += &format!("{}:", event.name());
        for fields in [event.packet_context(), event.stream_context(), event.event_context(), event.fields()] {
            put(&mut line, fields);
        }
        lines.push(plain(&line));
    }
    (lines, reader)
}

/// Compares all events. Events of one time may come in another order.
fn agree(trace: &Path) -> Reader {
    let (ours, reader) = ours(trace);
    let theirs = theirs(trace);
    assert_eq!(ours.len(), theirs.len(), "{}", trace.display());
    let time = |line: &String| line.split(']').next().unwrap_or_default().to_owned();
    assert!(ours.iter().map(time).eq(theirs.iter().map(time)) || ours.iter().all(|line| !line.starts_with('[')));
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    for (ours, theirs) in sorted(ours).into_iter().zip(sorted(theirs)) {
        assert_eq!(ours, theirs, "{}", trace.display());
    }
    reader
}

#[test]
fn drawn_traces_have_the_events_that_babeltrace2_finds() {
    if !has("babeltrace2", "drawn_traces_have_the_events_that_babeltrace2_finds") {
        return;
    }
    for big in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let wrap = 1 << 27;
        let first = [
            packet(big, 0, 0, 5, &[Drawn::All(10), Drawn::Empty(20), Drawn::All(wrap + 3)]),
            packet(big, 1, 0, 2 * wrap, &[Drawn::Empty(2 * wrap + 20), Drawn::All(3 * wrap - 1), Drawn::All(3 * wrap)]),
        ];
        let mut second = packet(big, 0, 0, 1, &[Drawn::All(7), Drawn::Empty(wrap + 2)]);
        // Another instance of the stream.
        second[8..16].fill(1);
        fs::write(folder.path().join("metadata"), metadata(big)).unwrap();
        fs::write(folder.path().join("a"), first.concat()).unwrap();
        fs::write(folder.path().join("b"), second).unwrap();
        assert!(agree(folder.path()).losses().is_empty());
    }
}

#[test]
fn traces_of_others_have_the_events_that_babeltrace2_finds() {
    let test = "traces_of_others_have_the_events_that_babeltrace2_finds";
    let Some(folder) = std::env::var_os("STEPSCOPE_CTF_TRACES").map(PathBuf::from) else {
        return eprintln!("skipped: {test}: STEPSCOPE_CTF_TRACES names no folder of traces");
    };
    if !has("babeltrace2", test) {
        return;
    }
    for entry in fs::read_dir(folder).unwrap() {
        agree(&entry.unwrap().path());
    }
}

/// LTTng's daemon with a home of its own. It ends with this.
struct Daemon {
    home: tempfile::TempDir,
    pid: String,
}

impl Daemon {
    fn start() -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let pid_file = home.path().join("pid");
        let started = Command::new("lttng-sessiond")
            .args(["--no-kernel", "--daemonize", "--pidfile"])
            .arg(&pid_file)
            .env("LTTNG_HOME", home.path())
            .env("HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let pid = started.ok().filter(|status| status.success()).and_then(|_| fs::read_to_string(pid_file).ok())?;
        Some(Self { home, pid: pid.trim().to_owned() })
    }

    fn lttng(&self, arguments: &str) -> bool {
        let mut command = Command::new("lttng");
        command.args(arguments.split(' ')).env("LTTNG_HOME", self.home.path()).env("HOME", self.home.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(&self.pid).status();
        let until = Instant::now() + Duration::from_secs(10);
        while Path::new("/proc").join(&self.pid).exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

const PROVIDER: &str = r#"
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER drawn
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"
#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(drawn, all,
    LTTNG_UST_TP_ARGS(int, number, const char *, text, const int *, numbers, unsigned char, length, double, real),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, number, number)
        lttng_ust_field_integer_hex(unsigned long, hex, number)
        lttng_ust_field_string(text, text)
        lttng_ust_field_array(int, array, numbers, 3)
        lttng_ust_field_sequence(int, sequence, numbers, unsigned char, length)
        lttng_ust_field_sequence_text(char, letters, text, unsigned char, length)
        lttng_ust_field_float(double, real, real)
        lttng_ust_field_float(float, single, (float)real)
        lttng_ust_field_integer_network(short, net, (short)number)))
LTTNG_UST_TRACEPOINT_EVENT(drawn, empty, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
#endif
#include <lttng/tracepoint-event.h>
"#;

const PROGRAM: &str = r#"
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"
#include <pthread.h>
static void *run(void *first) {
    int numbers[] = {1, -2, 3, 4, 5};
    for (int i = 0; i < 2000; i++) {
        lttng_ust_tracepoint(drawn, all, (int)(long)first + i, "text", numbers, (unsigned char)(i % 5), i / 4.0);
        if (i % 10 == 0) lttng_ust_tracepoint(drawn, empty);
    }
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long t = 0; t < 3; t++) pthread_create(&threads[t], 0, run, (void *)(t * 100000));
    for (int t = 0; t < 3; t++) pthread_join(threads[t], 0);
}
"#;

#[test]
fn a_recording_of_lttng_has_the_events_that_the_program_made() {
    let test = "a_recording_of_lttng_has_the_events_that_the_program_made";
    if !["babeltrace2", "lttng", "lttng-sessiond", "cc"].into_iter().all(|tool| has(tool, test)) {
        return;
    }
    if !Path::new("/usr/include/lttng/tracepoint.h").exists() {
        return eprintln!("skipped: {test}: liblttng-ust-dev is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("provider.h"), PROVIDER).unwrap();
    fs::write(path("program.c"), PROGRAM).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-I.", "program.c", "-o", "program", "-llttng-ust", "-ldl", "-pthread"]).current_dir(folder.path());
    assert!(compile.status().unwrap().success());
    let Some(daemon) = Daemon::start() else { return eprintln!("skipped: {test}: lttng-sessiond does not start") };
    let output = path("trace").display().to_string();
    let setup = [
        format!("create drawn --output={output}"),
        "enable-channel --userspace drawn --subbuf-size=1M --num-subbuf=8 --blocking-timeout=inf".to_owned(),
        "enable-event --userspace --channel=drawn drawn:*".to_owned(),
        "add-context --userspace --channel=drawn --type=vpid --type=vtid --type=procname".to_owned(),
        "start".to_owned(),
    ];
    for command in &setup {
        assert!(daemon.lttng(command), "lttng {command}");
    }
    let mut program = Command::new(path("program"));
    program.env("LTTNG_HOME", daemon.home.path()).env("HOME", daemon.home.path());
    assert!(
        program
            .env("LTTNG_UST_REGISTER_TIMEOUT", "-1")
            .env("LTTNG_UST_ALLOW_BLOCKING", "1")
            .status()
            .unwrap()
            .success()
    );
    assert!(daemon.lttng("stop") && daemon.lttng("destroy drawn"));
    drop(daemon);
    let reader = agree(folder.path().join("trace").as_path());
    assert!(reader.losses().is_empty(), "{:?}", reader.losses());
    let (lines, _) = ours(folder.path().join("trace").as_path());
    assert_eq!(lines.iter().filter(|line| line.contains("drawn:all")).count(), 6_000);
    assert_eq!(lines.iter().filter(|line| line.contains("drawn:empty")).count(), 600);
}
