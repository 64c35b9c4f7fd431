//! Variants of another revision: checked out, built, run from there, and gone afterwards, whatever happens.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::Bed;
use stepscope_lab::checkout::{CheckoutError, Checkouts};
use stepscope_lab::event::Event;
use stepscope_lab::execution::Context;
use stepscope_lab::lab_file::{LabFile, Trial, TrialFilter};
use stepscope_lab::outcome::Outcome;
use stepscope_lab::revision::WorkingTree;
use stepscope_lab::run::Run;
use stepscope_model::disk;

/// What git printed; `None` if there is no git.
fn try_git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    command.args(["-c", "protocol.file.allow=always"]).args(arguments);
    let output = command.output().ok()?;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    try_git(folder, arguments).unwrap()
}

/// A repository with a simulator in `lab/`: a script that `build.sh` makes of `source`, and that says which it is of.
/// Its first commit is tagged `v1`. `None`, with the line that says so, where there is no git.
fn repository(test: &str, bed: &Bed) -> Option<PathBuf> {
    let root = bed.folder.path().join("repo");
    let lab = root.join("lab");
    fs::create_dir_all(&lab).unwrap();
    if try_git(&root, &["init", "--quiet"]).is_none() {
        println!("skipped: {test}: there is no git");
        return None;
    }
    fs::write(
        lab.join("build.sh"),
        "mkdir -p build; (echo '#!/bin/sh'; cat source; echo exec sleep 60) > build/sim\n\
                                     chmod +x build/sim; echo built\n",
    )
    .unwrap();
    fs::write(root.join(".gitignore"), "build/\nruns/\n").unwrap();
    fs::write(lab.join("source"), "echo old $PWD $0 $1\n").unwrap();
    git(&root, &["add", "."]);
    git(&root, &["commit", "--quiet", "-m", "old"]);
    git(&root, &["tag", "v1"]);
    fs::write(lab.join("source"), "echo new $PWD $0 $1\n").unwrap();
    git(&root, &["commit", "--quiet", "-am", "new"]);
    assert!(Command::new("sh").arg("build.sh").current_dir(&lab).status().unwrap().success());
    Some(root)
}

const LAB: &str = r#"
[record]
steady = { warmup_s = 0, duration_s = 0.05 }

[scenario.a]
command = ["./build/sim", "build/world"]
ready = { log_regex = "^(old|new) " }

[variant.new]

[variant.old]
revision = "v1"
build = ["sh", "build.sh"]
"#;

fn lab(root: &Path, text: &str) -> LabFile {
    LabFile::parse(&root.join("lab/stepscope.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

fn trial_of(root: &Path, text: &str, variant: &str) -> Trial {
    let selection = TrialFilter { variants: vec![variant.to_owned()], ..TrialFilter::default() };
    lab(root, text).trials(&selection).unwrap().remove(0)
}

/// Worktrees that git knows of besides the repository's own.
fn worktrees(root: &Path) -> usize {
    git(root, &["worktree", "list", "--porcelain"]).lines().filter(|line| line.starts_with("worktree ")).count() - 1
}

#[test]
fn a_revision_is_built_once_run_from_its_own_checkout_and_removed() {
    let bed = Bed::new();
    let test = "a_revision_is_built_once_run_from_its_own_checkout_and_removed";
    let Some(root) = repository(test, &bed) else { return };
    let lab = lab(&root, &LAB.replace("[variant.new]", "[scenario.b]\ncommand = ['./build/sim']\n[variant.new]"));
    let trials = lab.trials(&TrialFilter::default()).unwrap();
    let mut run = Run::create(&root.join("runs"), &lab, &trials).unwrap();
    let mut builds = 0;
    let mut listener = |event: &Event<'_>| builds += usize::from(matches!(event, Event::Building { .. }));
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener };
    run.record(&trials, &mut context).unwrap();
    assert_eq!(run.outcomes().collect::<Vec<_>>(), [&Outcome::Recorded; 4]);
    assert_eq!((builds, worktrees(&root)), (1, 0));
    assert!(!root.join(".git/stepscope").exists());
    assert_eq!(git(&root, &["status", "--porcelain"]), "");

    let lab_folder = root.join("lab").display().to_string();
    let output = |variant: &str| fs::read_to_string(run.folder().join(format!("a/{variant}/output.log"))).unwrap();
    assert_eq!(output("new"), format!("new {lab_folder} {lab_folder}/./build/sim build/world\n"));
    let old = output("old");
    let words: Vec<&str> = old.split_whitespace().collect();
    assert_eq!((words[0], words[3]), ("old", "build/world"));
    assert!(words[1].starts_with(root.join(".git/stepscope").to_str().unwrap()) && words[1].ends_with("/lab"), "{old}");
    assert_eq!(words[2], format!("{}/build/sim", words[1]));
    assert_eq!(fs::read_to_string(run.folder().join("build-old.log")).unwrap(), "built\n");

    let commit = git(&root, &["rev-parse", "v1"]);
    let capture = |variant: &str| disk::read(&run.folder().join(format!("a/{variant}/steady"))).unwrap();
    assert_eq!(capture("old").info.build.unwrap().revision, Some(commit.clone()));
    assert_eq!(capture("new").info.build, None);
    let info = run.info().unwrap();
    assert_eq!(info.trials[1].revision, Some(commit));
    let head = git(&root, &["rev-parse", "HEAD"]);
    assert_eq!(info.working_tree, Some(WorkingTree { revision: head, changed_files: 0 }));
}

/// What preparing the trial of a variant says.
fn prepared(bed: &Bed, root: &Path, text: &str, checkouts: &mut Checkouts) -> Result<Trial, String> {
    let mut trial = trial_of(root, text, "old");
    let mut listener = |_: &Event<'_>| {};
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener };
    checkouts.prepare(&mut trial, bed.folder.path(), &mut context).map_err(|error| error.to_string())?;
    Ok(trial)
}

#[test]
fn errors_say_what_to_do_and_leave_no_files() {
    let bed = Bed::new();
    let Some(root) = repository("errors_say_what_to_do_and_leave_no_files", &bed) else { return };
    let error = |text: &str| prepared(&bed, &root, text, &mut Checkouts::default()).unwrap_err();
    let unknown = error(&LAB.replace("\"v1\"", "\"v9\""));
    assert!(unknown.starts_with("`v9` is not a revision of ") && unknown.contains("git fetch"), "{unknown}");
    let failed = error(&LAB.replace("[\"sh\", \"build.sh\"]", "['sh', '-c', 'echo no compiler; exit 3']"));
    assert!(failed.contains("exited with status 3") && failed.contains("build-old.log"), "{failed}");
    let missing = error(&LAB.replace("[\"sh\", \"build.sh\"]", "['no-such-builder']"));
    assert!(missing.contains("no-such-builder"), "{missing}");
    assert_eq!((worktrees(&root), root.join(".git/stepscope").exists()), (0, false));

    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("lab")).unwrap();
    let outside = prepared(&bed, elsewhere.path(), LAB, &mut Checkouts::default()).unwrap_err();
    assert!(outside.contains("is in no git repository"), "{outside}");

    fs::create_dir(root.join("newer")).unwrap();
    let newer = LabFile::parse(&root.join("newer/stepscope.toml"), LAB).unwrap();
    let selection = TrialFilter { variants: vec!["old".into()], ..TrialFilter::default() };
    let mut trial = newer.trials(&selection).unwrap().remove(0);
    let mut listener = |_: &Event<'_>| {};
    let mut context = Context { recorder: &bed.recorder, interrupt: &bed.interrupt, listener: &mut listener };
    let error = Checkouts::default().prepare(&mut trial, bed.folder.path(), &mut context).unwrap_err();
    assert!(matches!(&*error, CheckoutError::NoFolder { folder, .. } if folder == Path::new("newer")), "{error}");
}

#[test]
fn an_interrupt_ends_the_build_with_all_that_it_started_and_removes_the_checkout() {
    let bed = Bed::new();
    let test = "an_interrupt_ends_the_build_with_all_that_it_started_and_removes_the_checkout";
    let Some(root) = repository(test, &bed) else { return };
    let (building, built) = (bed.folder.path().join("building"), bed.folder.path().join("built"));
    let build = format!("sleep 4321 & touch {}; sleep 4322; touch {}", building.display(), built.display());
    let text = LAB.replace("[\"sh\", \"build.sh\"]", &format!("['sh', '-c', '{build}']"));
    let mut trial = trial_of(&root, &text, "old");
    let interrupt = &bed.interrupt;
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !building.exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            interrupt.store(true, Ordering::Relaxed);
        });
        let mut listener = |_: &Event<'_>| {};
        let mut context = Context { recorder: &bed.recorder, interrupt, listener: &mut listener };
        Checkouts::default().prepare(&mut trial, bed.folder.path(), &mut context).unwrap_err()
    });
    assert_eq!(error.outcome(), Outcome::Interrupted);
    assert!(!built.exists(), "it did not wait for the build");
    assert_eq!(worktrees(&root), 0);
    let sleeps = Command::new("pgrep").args(["-f", "^sleep 432[12]$"]).output();
    assert!(sleeps.is_err() || sleeps.unwrap().stdout.is_empty(), "the build's own processes are ended");
}

#[test]
fn files_left_by_a_crash_are_removed_and_files_in_use_stay() {
    let bed = Bed::new();
    let test = "files_left_by_a_crash_are_removed_and_files_in_use_stay";
    let Some(root) = repository(test, &bed) else { return };
    let folder = root.join(".git/stepscope");
    let one = stepscope_record::proc::stat(1).unwrap().start_ticks;
    // Process 1 lives, but began at another time than the first of these says.
    let names = [format!("1-{}-1-old", one + 1), format!("1-{one}-1-old"), "4194303-5-1-old".to_owned()];
    for name in &names {
        git(&root, &["worktree", "add", "--quiet", "--detach", folder.join(name).to_str().unwrap(), "v1"]);
    }
    fs::create_dir(folder.join("mine")).unwrap();
    let mut checkouts = Checkouts::default();
    let trial = prepared(&bed, &root, LAB, &mut checkouts).unwrap();
    assert!(trial.checkout.unwrap().tree.join("lab/build/sim").is_file());
    let there: Vec<bool> = names.iter().map(|name| folder.join(name).exists()).collect();
    assert_eq!(there, [false, true, false]);
    drop(checkouts);
    assert_eq!(worktrees(&root), 1);
    assert!(folder.join("mine").is_dir());
}

#[test]
fn submodules_are_checked_out_and_a_changed_working_tree_is_noted() {
    let bed = Bed::new();
    let test = "submodules_are_checked_out_and_a_changed_working_tree_is_noted";
    let Some(root) = repository(test, &bed) else { return };
    let module = bed.folder.path().join("module");
    fs::create_dir(&module).unwrap();
    git(&module, &["init", "--quiet"]);
    fs::write(module.join("physics"), "g = 9.81\n").unwrap();
    git(&module, &["add", "."]);
    git(&module, &["commit", "--quiet", "-m", "physics"]);
    git(&root, &["submodule", "--quiet", "add", module.to_str().unwrap(), "physics"]);
    git(&root, &["config", "protocol.file.allow", "always"]);
    git(&root, &["commit", "--quiet", "-am", "physics"]);
    let mut checkouts = Checkouts::default();
    // Submodules by path are refused by default since 2022; a user has them from a server.
    let text = LAB.replace("\"v1\"", "\"HEAD\"");
    match prepared(&bed, &root, &text, &mut checkouts) {
        Ok(trial) => assert!(trial.checkout.unwrap().tree.join("physics/physics").is_file()),
        Err(error) => assert!(error.contains("git submodule update failed"), "{error}"),
    }
    drop(checkouts);
    assert_eq!(worktrees(&root), 0);
    fs::write(root.join("lab/source"), "echo changed\n").unwrap();
    assert_eq!(WorkingTree::of(&root.join("lab")).unwrap().changed_files, 1);
}
