//! Programs whose files are gone, or were never ours, when their functions are named.

mod recorded;

use std::process::{Command, Stdio};
use std::time::Duration;

use recorded::{captured, programs, record_command};
use stepscope_model::Capture;
use stepscope_record::launch::Launch;
use stepscope_record::{Options, RecordError, Recording, Until};

/// Share of the samples, in percent, with one of these functions.
fn share_with(capture: &Capture, functions: &[&str]) -> usize {
    let has = |frame| functions.contains(&capture.function(frame).split('(').next().unwrap_or(""));
    let named = capture.samples.iter().filter(|sample| capture.frames_of(sample.stack).any(has)).count();
    assert!(capture.samples.len() > 100, "{} samples", capture.samples.len());
    named * 100 / capture.samples.len()
}

const SHARES: [&str; 4] = ["fifty", "thirty", "fifteen", "five"];

/// Records a shell script in which `$0` is the program and `$1` is a folder of its own.
fn record_script(test: &str, script: &str) -> Option<Capture> {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = programs.join("WithoutFramePointers");
    let command = ["sh", "-c", script].map(Into::into).into_iter();
    let command = command.chain([program.into_os_string(), folder.path().as_os_str().to_owned()]);
    let (capture, _) = record_command(test, Launch::new(command.collect::<Vec<_>>()))?;
    Some(capture)
}

/// Whether this user may make namespaces.
fn may_unshare(test: &str) -> bool {
    let may = Command::new("unshare")
        .args(["-m", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !may {
        println!("skipped: {test}: this user may not make namespaces (run as root)");
    }
    may
}

#[test]
fn a_program_in_another_mount_namespace_keeps_its_names_after_its_end() {
    const TEST: &str = "a_program_in_another_mount_namespace_keeps_its_names_after_its_end";
    let script = "exec unshare -m sh -c 'mount -t tmpfs none $1 && cp $0 $1/sim && exec $1/sim shares' $0 $1";
    let Some(capture) = may_unshare(TEST).then(|| record_script(TEST, script)).flatten() else { return };
    let share = share_with(&capture, &SHARES);
    println!("named: {share} %");
    assert!(share >= 90, "{share} %: {:?}", capture.info.notes);
}

#[test]
fn a_running_program_in_another_mount_namespace_has_names() {
    const TEST: &str = "a_running_program_in_another_mount_namespace_has_names";
    let Some(programs) = programs().filter(|_| may_unshare(TEST)) else { return };
    let (folder, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = "mount -t tmpfs none $1 && cp $0 $1/sim && exec $1/sim paced 1000000";
    let mut program = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(programs.join("WithoutFramePointers"))
        .arg(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let runs = |path: &str| std::fs::read_link(path).is_ok_and(|path| path.ends_with("sim"));
    let exe = format!("/proc/{}/exe", program.id());
    while !runs(&exe) && program.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let recording = match Recording::attach(program.id(), &Options::default(), log.path()) {
        Err(RecordError::Refused { what, source }) => {
            return println!("skipped: {TEST}: cannot record {what}: {source}");
        }
        recording => recording.unwrap(),
    };
    while recording.progress().cpu_samples < 300 {
        recording.wait(&Until { duration: Some(Duration::from_millis(50)), flag: None });
    }
    recording.stop().unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let capture = captured(log.path());
    let share = share_with(&capture, &["paced", "early", "late", "main"]);
    println!("named: {share} %");
    assert!(share >= 95, "{share} %: {:?}", capture.info.notes);
    let program = capture.modules.iter().find(|module| module.path.ends_with("/sim")).unwrap();
    assert!(program.build_id.is_some(), "{program:?}");
}

#[test]
fn a_program_in_another_root_directory_keeps_its_names() {
    const TEST: &str = "a_program_in_another_root_directory_keeps_its_names";
    let script = "cp ${0%/*}/unwinding-Musl $1/sim || exit 9; chroot $1 /sim sort; rm $1/sim";
    let Some(capture) = record_script(TEST, script) else { return };
    let has_program = capture.modules.iter().any(|module| module.path.ends_with("/sim"));
    if !has_program {
        return println!("skipped: {TEST}: needs root, and musl-gcc (Debian package: musl-tools)");
    }
    let share = share_with(&capture, &["slow_compare"]);
    println!("named: {share} %");
    assert!(share >= 70, "{share} %: {:?}", capture.info.notes);
}

#[test]
fn a_program_that_is_deleted_or_rebuilt_while_it_runs_keeps_its_names() {
    const TEST: &str = "a_program_that_is_deleted_or_rebuilt_while_it_runs_keeps_its_names";
    let rebuild = "cp $0 $1/sim; $1/sim shares & sleep 0.3; cp /bin/true $1/new; mv $1/new $1/sim; wait";
    let delete = "cp $0 $1/sim; $1/sim shares & sleep 0.3; rm $1/sim; wait";
    for script in [rebuild, delete] {
        let Some(capture) = record_script(TEST, script) else { return };
        let share = share_with(&capture, &SHARES);
        println!("{script}: named: {share} %");
        assert!(share >= 80, "{share} %: {:?}", capture.info.notes);
    }
}

#[test]
fn a_map_of_generated_code_in_other_namespaces_is_found_after_the_end() {
    const TEST: &str = "a_map_of_generated_code_in_other_namespaces_is_found_after_the_end";
    // In its own namespaces the program has pid 1 or so, and writes its map to a /tmp of its own.
    let script = "cp $0 $1/sim; cd $1; exec unshare -m -p -f sh -c 'cp sim /dev/shm/sim-$$; mount -t tmpfs none /tmp && cp /dev/shm/sim-$$ /tmp/sim; rm /dev/shm/sim-$$; /tmp/sim generated; exit 0'";
    let Some(capture) = may_unshare(TEST).then(|| record_script(TEST, script)).flatten() else { return };
    let share = share_with(&capture, &["generated_loop"]);
    println!("named: {share} %");
    assert!(share >= 80, "{share} %: {:?}", capture.info.notes);
}
