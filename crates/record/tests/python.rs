//! Python functions at their place among native frames.

mod recorded;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use stepscope_model::Capture;
use stepscope_record::launch::Launch;
use stepscope_record::{Options, PythonFunctions, Recording, Until};

use recorded::{captured, record_command_with};

/// Each CPython from 3.9 to 3.13 in `PATH` and below `~/.pyenv`. Empty, with a line, if there is none.
fn pythons(test: &str) -> Vec<PathBuf> {
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&folders).filter(|folder| !folder.ends_with(".pyenv/shims"));
    let versions = std::env::home_dir().unwrap_or_default().join(".pyenv/versions");
    let installed = std::fs::read_dir(versions).into_iter().flatten().flatten().map(|folder| folder.path().join("bin"));
    for folder in in_path.chain(installed) {
        for name in ["python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13"] {
            let program = folder.join(name);
            const ABOUT: &str = "import sys; v = sys.version_info; sys.implementation.name == 'cpython' \
                                 and (3, 9) <= v < (3, 14) and 'free' not in sys.version and print(sys.version, sys.prefix)";
            let Ok(output) = Command::new(&program).args(["-c", ABOUT]).output() else { continue };
            let version = String::from_utf8_lossy(&output.stdout).into_owned();
            if !version.is_empty() && found.iter().all(|(_, known)| *known != version) {
                found.push((program, version));
            }
        }
    }
    if found.is_empty() || !cfg!(target_arch = "x86_64") {
        println!("skipped: {test}: needs CPython 3.9 to 3.13 and x86-64");
        return Vec::new();
    }
    found.into_iter().map(|(program, _)| program).collect()
}

fn with_python() -> Options {
    // Enough samples for shares within 2 points.
    Options { python: PythonFunctions::Always, frequency_hz: 3_989, ..Options::default() }
}

fn shares_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth/shares.py")
}

/// Percent of the CPU samples under `run` that have each of these names, and the percent of those stacks with `main`.
fn shares(capture: &Capture, wanted: &[&str]) -> (Vec<f64>, f64) {
    let stacks: Vec<Vec<&str>> = capture
        .samples
        .iter()
        .filter(|sample| ["cpu-clock", "cycles"].contains(&&*capture.event(sample.event).name))
        .map(|sample| capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect())
        .filter(|names: &Vec<&str>| names.iter().any(|name| name.starts_with("py::run:")))
        .collect();
    assert!(stacks.len() > 300, "{} samples: {:?}", stacks.len(), capture.info.notes);
    let percent = |holds: &dyn Fn(&Vec<&str>) -> bool| {
        stacks.iter().filter(|names| holds(names)).count() as f64 * 100.0 / stacks.len() as f64
    };
    let name_of = |wanted: &str| format!("py::{wanted}:");
    let shares = wanted.iter().map(|wanted| {
        let start = name_of(wanted);
        percent(&|names| names.iter().any(|name| name.starts_with(&start)))
    });
    (shares.collect(), percent(&|names| names.iter().any(|name| ["main", "_start", "Py_BytesMain"].contains(name))))
}

fn has_true_shares(capture: &Capture, python: &Path) {
    let frame = |name: &str| {
        let start = format!("py::{name}:");
        capture.frames.iter().find(|frame| frame.function.starts_with(&start))
    };
    // 3.9 and 3.10 have no qualified names.
    let names = match frame("World.physics") {
        Some(_) => ["World.physics", "World.sensors", "render"],
        None => ["physics", "sensors", "render"],
    };
    let (shares, rooted) = shares(capture, &names);
    let places = names.map(|name| frame(name).and_then(|frame| Some((frame.file.as_deref()?, frame.line?))));
    let file = shares_program();
    assert_eq!(places.map(|place| place.map(|(file, _)| Path::new(file))), [Some(file.as_path()); 3]);
    assert!(
        places.iter().zip([13..=15, 17..=19, 22..=24]).all(|(place, lines)| lines.contains(&place.unwrap().1)),
        "{places:?}"
    );
    println!("{}: {shares:.1?} %, {rooted:.1} % up to main", python.display());
    for (share, truth) in shares.iter().zip([70.0, 20.0, 10.0]) {
        assert!((share - truth).abs() <= 2.0, "{}: {shares:?}", python.display());
    }
    assert!(rooted >= 99.0, "{}: {rooted} %", python.display());
}

#[test]
fn python_functions_have_their_true_shares_and_lines() {
    const TEST: &str = "python_functions_have_their_true_shares_and_lines";
    for python in pythons(TEST) {
        let program = shares_program();
        let launch = Launch::new([python.as_os_str(), program.as_os_str(), "2000".as_ref()]);
        let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
        has_true_shares(&capture, &python);
    }
}

#[test]
fn a_forked_child_has_the_names_of_its_parent() {
    const TEST: &str = "a_forked_child_has_the_names_of_its_parent";
    let Some(python) = pythons(TEST).into_iter().next() else { return };
    let program = shares_program();
    let arguments = ["-c", "exec \"$@\"; :", "sh"].map(AsRef::as_ref);
    let words = [python.as_os_str(), program.as_os_str(), "2000".as_ref(), "fork".as_ref()];
    // A shell starts Python.
    let launch = Launch::new(std::iter::once("sh".as_ref()).chain(arguments).chain(words));
    let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
    has_true_shares(&capture, &python);
}

fn has_trampolines(python: &PathBuf) -> bool {
    let asked = Command::new(python).args(["-c", "import sys; sys.activate_stack_trampoline('perf')"]).output();
    asked.is_ok_and(|output| output.status.success())
}

#[test]
fn a_program_that_names_its_functions_for_perf_starts_and_has_them() {
    const TEST: &str = "a_program_that_names_its_functions_for_perf_starts_and_has_them";
    let Some(python) = pythons(TEST).into_iter().find(has_trampolines) else {
        return println!("skipped: {TEST}: needs CPython 3.12 or later");
    };
    let program = shares_program();
    let launch =
        Launch::new([python.as_os_str(), "-X".as_ref(), "perf".as_ref(), program.as_os_str(), "2000".as_ref()]);
    let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
    // Its own trampolines name functions, without lines.
    let (shares, rooted) = shares(&capture, &["World.physics", "World.sensors", "render"]);
    for (share, truth) in shares.iter().zip([70.0, 20.0, 10.0]) {
        assert!((share - truth).abs() <= 2.0, "{}: {shares:?}", python.display());
    }
    assert!(rooted >= 99.0, "{}: {rooted} %", python.display());
}

#[test]
fn a_running_program_that_names_its_functions_is_attached_to_with_them() {
    const TEST: &str = "a_running_program_that_names_its_functions_is_attached_to_with_them";
    let Some(python) = pythons(TEST).into_iter().find(has_trampolines) else {
        return println!("skipped: {TEST}: needs CPython 3.12 or later");
    };
    let named = "import runpy, sys; sys.activate_stack_trampoline('perf'); \
                 sys.argv = sys.argv[1:]; print(flush=True); runpy.run_path(sys.argv[0], run_name='__main__')";
    let mut program = Command::new(python)
        .args(["-c", named])
        .arg(shares_program())
        .arg("1000000")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its line says that it runs.
    std::io::Read::read_exact(&mut program.stdout.take().unwrap(), &mut [0]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recorded = Recording::attach(program.id(), &with_python(), folder.path()).map(|recording| {
        while recording.progress().cpu_samples < 500 {
            recording.wait(&Until { duration: Some(Duration::from_millis(50)), flag: None });
        }
        recording.stop().unwrap();
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let capture = recorded.map(|()| captured(folder.path()));
    let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", program.id()));
    let capture = match capture {
        Ok(capture) => capture,
        Err(error) => return println!("skipped: {TEST}: {error}"),
    };
    let names = ["World.physics", "World.sensors", "render"];
    let (shares, _) = shares(&capture, &names);
    assert!(shares[0] > shares[1] && shares[1] > 5.0, "{shares:?}");
    let says = |note: &String| note.contains("sys.activate_stack_trampoline");
    assert!(capture.info.notes.iter().any(says) || cfg!(not(target_arch = "x86_64")), "{:?}", capture.info.notes);
}

#[test]
fn a_program_without_python_is_said_to_have_none() {
    const TEST: &str = "a_program_without_python_is_said_to_have_none";
    let Some((capture, _)) = record_command_with(TEST, Launch::new(["sleep", "0.1"]), &with_python()) else { return };
    let notes = &capture.info.notes;
    assert!(
        notes.iter().any(|note| note.starts_with("No Python functions were recorded"))
            || cfg!(not(target_arch = "x86_64")),
        "{notes:?}"
    );
}

/// Percent of the CPU samples under a Python function by the line that runs of it.
fn line_shares(capture: &Capture, function: &str) -> BTreeMap<u32, f64> {
    let start = format!("py::{function}:");
    let mut lines: BTreeMap<u32, f64> = BTreeMap::new();
    let mut total = 0.0;
    for sample in &capture.samples {
        if !["cpu-clock", "cycles"].contains(&&*capture.event(sample.event).name) {
            continue;
        }
        let frames = capture.frames_of(sample.stack).map(|frame| &capture.frames[frame.index()]);
        if let Some(frame) = { frames }.find(|frame| frame.function.starts_with(&start)) {
            *lines.entry(frame.line.unwrap_or(0)).or_default() += 1.0;
            total += 1.0;
        }
    }
    assert!(total > 150.0, "{total} samples of {function}");
    lines.into_iter().map(|(line, count)| (line, count * 100.0 / total)).collect()
}

#[test]
fn the_lines_that_run_have_their_true_shares() {
    const TEST: &str = "the_lines_that_run_have_their_true_shares";
    let mut wrong = Vec::new();
    for python in pythons(TEST) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth/lines.py");
        let launch = Launch::new([python.as_os_str(), program.as_os_str(), "100".as_ref()]);
        let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
        // Of work of the interpreter itself, a part has no line: 10 %, and 40 % with Debian's 3.11.
        type Lines<'a> = (&'a [u32], f64);
        let truths: [(&str, f64, &[Lines<'_>]); 3] = [
            ("step", 5.0, &[(&[15], 70.0), (&[16], 20.0), (&[17, 18], 10.0)]),
            ("run", 5.0, &[(&[27], 25.0), (&[28], 75.0)]),
            ("count", 30.0, &[(&[33, 34], 75.0)]),
        ];
        for (function, tolerance, truth) in truths {
            let shares = line_shares(&capture, function);
            println!("{}: {function}: {shares:.1?} %", python.display());
            for (lines, share) in truth {
                let found: f64 = lines.iter().filter_map(|line| shares.get(line)).sum();
                if (found - share).abs() > tolerance {
                    wrong.push(format!("{}: {function}: {shares:.1?}", python.display()));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// A program that CPython runs below the library, which prints what it computes.
fn output_below_the_library(test: &str, python: &Path, program: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output");
    let to_file = "import sys; sys.stdout = open(sys.argv[1], 'w')\n";
    let program = format!("{to_file}{program}");
    let launch = Launch::new([python.as_os_str(), "-c".as_ref(), program.as_ref(), output.as_os_str()]);
    let (capture, _) = record_command_with(test, launch, &with_python())?;
    let exit = capture.processes.iter().find_map(|process| process.exit_status);
    assert_eq!(exit, Some(0), "{}", python.display());
    Some(std::fs::read_to_string(output).unwrap())
}

#[test]
fn recursion_goes_as_deep_as_without_the_library() {
    const TEST: &str = "recursion_goes_as_deep_as_without_the_library";
    // From 3.11 on, only memory limits it, also in threads with small stacks.
    const PROGRAM: &str = "
import threading
inlines = sys.version_info >= (3, 11)
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
def generated(n): yield from (generated(n - 1) if n else (1,))
print(depth(900), next(generated(200)))
sys.setrecursionlimit(100000)
print(depth(60000 if inlines else 5000))
threading.stack_size(256 << 10)
thread = threading.Thread(target=lambda: print(depth(20000 if inlines else 300)))
thread.start()
thread.join()
print(depth(900))
try:
    sys.setrecursionlimit(1000)
    depth(1001)
except RecursionError:
    print('limit')
";
    for python in pythons(TEST) {
        let Some(output) = output_below_the_library(TEST, &python, PROGRAM) else { return };
        let expected = ["900 1\n60000\n20000\n900\nlimit\n", "900 1\n5000\n300\n900\nlimit\n"];
        assert!(expected.contains(&&*output), "{}: {output}", python.display());
    }
}

#[test]
fn an_evaluator_that_is_installed_later_works_as_without_the_library() {
    const TEST: &str = "an_evaluator_that_is_installed_later_works_as_without_the_library";
    const EVALUATOR: &str = "
        extern void *PyInterpreterState_Get(void), *_PyInterpreterState_GetEvalFrameFunc(void *);
        extern void _PyInterpreterState_SetEvalFrameFunc(void *, void *(*)(void *, void *, int));
        extern void *_PyEval_EvalFrameDefault(void *, void *, int);
        static void *(*before)(void *, void *, int);
        static long frames;
        static void *count(void *thread, void *frame, int throws) { ++frames; return _PyEval_EvalFrameDefault(thread, frame, throws); }
        void install(void) {
            before = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
            _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), count);
        }
        long restore(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), before); return frames; }";
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("evaluator.c"), folder.path().join("evaluator.so"));
    std::fs::write(&source, EVALUATOR).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: {TEST}: needs a C compiler");
        return;
    }
    let program = format!(
        "
import ctypes
other = ctypes.PyDLL({library:?})
def function(): return 1
other.install()
total = sum(function() for _ in range(1000))
counted = other.restore()
print(total, counted >= 1000, other.restore() == counted)
"
    );
    for python in pythons(TEST) {
        let Some(output) = output_below_the_library(TEST, &python, &program) else { return };
        assert_eq!(output, "1000 True True\n", "{}", python.display());
    }
}

#[test]
fn a_program_that_embeds_python_shows_its_functions_if_asked() {
    const TEST: &str = "a_program_that_embeds_python_shows_its_functions_if_asked";
    const PROGRAM: &str = r#"
        extern void Py_Initialize(void);
        extern int PyRun_SimpleString(const char *), Py_FinalizeEx(void);
        int main(int count, char **words) {
            Py_Initialize();
            int failed = PyRun_SimpleString(words[1]);
            return Py_FinalizeEx() || failed;
        }"#;
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("sim.c"), folder.path().join("sim"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut tried = false;
    for python in pythons(TEST) {
        let code = "import sys, sysconfig; v = sysconfig.get_config_var; print(v('LDLIBRARY'), v('LIBDIR'), sys.base_prefix, sep='\\n')";
        let Ok(output) = Command::new(&python).args(["-c", code]).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let [library, folder, home] = lines[..] else { continue };
        if !library.ends_with(".so") {
            continue;
        }
        let mut cc = Command::new("cc");
        cc.arg("-o").args([&program, &source]).arg(format!("-L{folder}")).arg(format!("-l:{library}"));
        if !cc.arg(format!("-Wl,-rpath,{folder}")).status().is_ok_and(|status| status.success()) {
            continue;
        }
        tried = true;
        let text = std::fs::read_to_string(shares_program()).unwrap();
        let text = format!("import sys; sys.argv = ['sim', '500']\n{text}");
        let launch = Launch::new([program.as_os_str(), text.as_ref()]);
        let launch = launch.env("PYTHONHOME", home);
        let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
        let has = |name: &str| capture.frames.iter().any(|frame| frame.function.starts_with(name));
        assert!(has("py::render:") && has("py::run:"), "{}: {:?}", python.display(), capture.info.notes);
        assert_eq!(capture.processes[0].exit_status, Some(0));
    }
    if !tried {
        println!("skipped: {TEST}: needs a C compiler and a libpython with its link");
    }
}

#[test]
fn functions_called_after_the_recording_make_no_map() {
    const TEST: &str = "functions_called_after_the_recording_make_no_map";
    let Some(python) = pythons(TEST).into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let over = folder.path().join("over");
    let code = "import os, sys\ndef work(): return sum(range(2000))\ndef late(): return 1\n\
                while not os.path.exists(sys.argv[1]): work()\nlate()";
    let launch = Launch::new([python.as_os_str(), "-c".as_ref(), code.as_ref(), over.as_os_str()]);
    let (mut launched, recording) = match Recording::launch(launch, &with_python(), &folder.path().join("capture")) {
        Ok(launched) => launched,
        Err(error) => return println!("skipped: {TEST}: {error}"),
    };
    while recording.progress().cpu_samples < 50 {
        recording.wait(&Until { duration: Some(Duration::from_millis(50)), flag: None });
    }
    let map = PathBuf::from(format!("/tmp/stepscope-python-{}.map", launched.pid()));
    assert!(map.exists(), "{}", map.display());
    recording.stop().unwrap();
    std::fs::write(&over, "").unwrap();
    assert!(launched.wait_for(Duration::from_secs(60)).unwrap().is_some());
    assert!(!map.exists(), "{}: left behind", map.display());
}

#[test]
fn no_map_stays_behind() {
    const TEST: &str = "no_map_stays_behind";
    let Some(python) = pythons(TEST).into_iter().next() else { return };
    let launch = Launch::new([python.as_os_str(), shares_program().as_os_str(), "20".as_ref()]);
    let Some((capture, _)) = record_command_with(TEST, launch, &with_python()) else { return };
    assert!(capture.frames.iter().any(|frame| frame.function.starts_with("py::")), "{:?}", capture.info.notes);
    for process in &capture.processes {
        let map = PathBuf::from(format!("/tmp/stepscope-python-{}.map", process.pid));
        assert!(!map.exists(), "{}", map.display());
    }
}
