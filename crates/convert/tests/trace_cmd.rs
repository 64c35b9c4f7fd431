//! `trace-cmd report` has the same events as the import of the same `trace.dat`, and its text leads to the same capture.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::{Capture, Wait};

/// An instance of the kernel's tracer, which ends with this.
struct Instance(PathBuf);

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Instance {
    fn new() -> Result<Self, String> {
        let path = PathBuf::from(format!("/sys/kernel/tracing/instances/stepscope-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("no instance of the tracer: {error}"))?;
        Ok(Self(path))
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        fs::write(self.0.join(file), value).map_err(|error| format!("{file} cannot be set: {error}"))
    }

    /// Writes the pages of each CPU to a file.
    fn pages(&self, folder: &Path) -> Vec<PathBuf> {
        let mut cpus: Vec<_> = fs::read_dir(self.0.join("per_cpu")).unwrap().map(|cpu| cpu.unwrap().path()).collect();
        cpus.sort();
        let mut files = Vec::new();
        for cpu in cpus {
            let file = folder.join(cpu.file_name().unwrap());
            let from = format!("if={}", cpu.join("trace_pipe_raw").display());
            let to = format!("of={}", file.display());
            let _ = Command::new("dd")
                .args([&from, &to, "bs=4096", "iflag=nonblock", "status=none"])
                .stderr(Stdio::null())
                .status();
            files.push(file);
        }
        files
    }
}

fn trace_cmd(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("trace-cmd").args(arguments).output().map_err(|_| "there is no trace-cmd".to_owned())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("trace-cmd {} failed", arguments[0])),
    }
}

/// Records what the machine does for a moment. trace-cmd itself cannot record on a kernel that is locked down.
fn recorded(folder: &Path) -> Result<PathBuf, String> {
    trace_cmd(&["--version"]).or_else(|_| trace_cmd(&["-h"])).or_else(|error| {
        match error.contains("no trace-cmd") {
            true => Err(error),
            false => Ok(String::new()),
        }
    })?;
    let instance = Instance::new()?;
    instance.set("trace_clock", "mono")?;
    instance.set("buffer_size_kb", "4096")?;
    for event in ["sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup", "irq/softirq_entry"] {
        instance.set(&format!("events/{event}/enable"), "1")?;
    }
    instance.set("tracing_on", "1")?;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(5));
    }
    instance.set("tracing_on", "0")?;
    let pages = instance.pages(folder);
    let path = |name: &str| folder.join(name).display().to_string();
    trace_cmd(&["restore", "-c", "-o", &path("part.dat")])?;
    let files: Vec<String> = pages.iter().map(|file| file.display().to_string()).collect();
    let (part, whole) = (path("part.dat"), path("trace.dat"));
    let mut arguments = vec!["restore", "-i", &part, "-o", &whole];
    arguments.extend(files.iter().map(String::as_str));
    trace_cmd(&arguments)?;
    Ok(folder.join("trace.dat"))
}

fn read(path: &Path) -> Capture {
    import(Source::open(path).unwrap(), &ImportOptions::default()).unwrap()
}

/// All events, as the note of the others counts them.
fn events(capture: &Capture) -> Option<usize> {
    let note = capture.info.notes.iter().find(|note| note.contains(" events fill no table"))?;
    note.split(" of ").nth(1)?.split(' ').next()?.replace(',', "").parse().ok()
}

#[test]
fn a_recording_has_the_events_of_trace_cmd_report() {
    let test = "a_recording_has_the_events_of_trace_cmd_report";
    let folder = tempfile::tempdir().unwrap();
    let file = match recorded(folder.path()) {
        Ok(file) => file,
        Err(reason) => return println!("skipped: {test}: {reason}"),
    };
    let capture = read(&file);
    let text = trace_cmd(&["report", "-t", &file.display().to_string()]).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("cpus=") && !line.trim_end().ends_with("is empty"));
    let lines = lines.filter(|line| !line.starts_with("version")).count();
    // Without one of the other events there is no note.
    if let Some(events) = events(&capture) {
        assert_eq!(events, lines);
    }
    let report = folder.path().join("report.txt");
    fs::write(&report, text).unwrap();
    let of_text = read(&report);
    assert!(!capture.waits.is_empty());
    // That text does not say which events interrupts made, so threads seem to be their wakers.
    let waits = |capture: &Capture| -> Vec<_> {
        let row = |wait: Wait| (wait.thread, wait.start_ns, wait.end_ns, wait.state, wait.runnable_ns, wait.cpu);
        capture.waits.iter().map(row).collect()
    };
    for (wait, of_text) in waits(&capture).into_iter().zip(waits(&of_text)) {
        assert_eq!(wait, of_text);
    }
    assert_eq!(capture.waits.len(), of_text.waits.len());
    // The file says how many CPUs there are, and the text does not. Where all are busy, what threads have beyond these is taken off.
    let is_whole = capture.info.losses.unknown_cpu_ns.is_none_or(|ns| ns == 0);
    let ids = |capture: &Capture| -> Vec<_> {
        let cpu_ns = |ns: Option<u64>| ns.filter(|_| is_whole);
        capture.threads.iter().map(|thread| (thread.tid, cpu_ns(thread.cpu_ns), thread.runnable_ns)).collect()
    };
    assert_eq!(ids(&capture), ids(&of_text));
    // Versions and packings that trace-cmd writes itself.
    for (name, arguments) in [
        ("6.dat", &["--file-version", "6"][..]),
        ("zstd.dat", &["--file-version", "7", "--compression", "zstd"]),
        ("zlib.dat", &["--file-version", "7", "--compression", "zlib"]),
    ] {
        let other = folder.path().join(name);
        let (from, to) = (file.display().to_string(), other.display().to_string());
        let converted = trace_cmd(&[&["convert", "-i", &from, "-o", &to], arguments].concat());
        if converted.is_err() || !other.exists() {
            println!("skipped: {test} ({name}): trace-cmd cannot write it");
            continue;
        }
        let bytes = fs::read(&other).unwrap();
        let other = read(&other);
        assert!(other.waits == capture.waits, "{name}");
        assert_eq!(other.threads, capture.threads, "{name}");
        // Version 7 has the table of the CPUs' events at its end, before some texts.
        if name != "6.dat" {
            let cut = folder.path().join(format!("cut-{name}"));
            fs::write(&cut, &bytes[..bytes.len() - 150]).unwrap();
            let cut = read(&cut);
            assert!(cut.waits == capture.waits, "{name}, without its end");
            assert!(cut.info.losses.malformed_records > 0);
        }
    }
}
