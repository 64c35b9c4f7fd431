//! The soak test (`./dev soak MINUTES`): recordings in random order and under bad conditions, each held to what must be true of
//! every capture.
//!
//! It drives the program as users do. `trials` has the kinds of recording, `invariants` what must hold. Every trial has a
//! number of its own, made from the seed, so that `STEPSCOPE_SOAK_SEED` repeats a run in the same order with the same
//! choices. What the machine makes of them differs from run to run.

mod invariants;
mod trials;
mod workbench;

use std::time::{Duration, Instant};

use trials::{TRIALS, Verdict};
use workbench::{Trial, User, Workbench};

/// Minutes of the run. Without this variable, the test does nothing.
const MINUTES: &str = "STEPSCOPE_SOAK_MINUTES";
const SEED: &str = "STEPSCOPE_SOAK_SEED";
/// Only trials whose name contains this.
const ONLY: &str = "STEPSCOPE_SOAK_ONLY";

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}: not a number")))
}

#[test]
#[ignore = "runs for minutes: ./dev soak MINUTES"]
fn recordings_under_bad_conditions_hold_their_invariants() {
    let duration = Duration::from_secs_f64(60.0 * variable(MINUTES).unwrap_or(2.0));
    let seed = variable(SEED).unwrap_or_else(|| fastrand::u64(..));
    let only: String = variable(ONLY).unwrap_or_default();
    println!("{SEED}={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let workbench = match Workbench::new() {
        Ok(workbench) => workbench,
        Err(reason) => return println!("skipped: the soak test: {reason}"),
    };
    let users = User::all(&workbench);
    let mut chosen: Vec<_> = TRIALS
        .iter()
        .flat_map(|kind| users.iter().map(move |&user| (kind, user)))
        .filter(|(kind, user)| kind.name.contains(&only) && (user.has_all_rights() || !kind.needs_root))
        .collect();
    for kind in TRIALS.iter().filter(|kind| !chosen.iter().any(|(chosen, _)| chosen.name == kind.name)) {
        println!("skipped: soak: {}: needs root", kind.name);
    }
    let start = Instant::now();
    let (mut trials, mut failures) = (0, Vec::new());
    while start.elapsed() < duration && !chosen.is_empty() {
        random.shuffle(&mut chosen);
        for (kind, user) in &chosen {
            if start.elapsed() >= duration {
                break;
            }
            trials += 1;
            let mut trial = Trial::new(&workbench, trials, *user, fastrand::Rng::with_seed(random.u64(..)));
            let verdict = (kind.run)(&mut trial).and_then(|said| trial.leaves_nothing().map(|()| said));
            let at = start.elapsed().as_secs();
            match verdict {
                Ok(Verdict::Held(said)) => println!("{at:>4} s  {trials:>4}  {} as {user}: {said}", kind.name),
                Ok(Verdict::Skipped(why)) => println!("skipped: soak: {} as {user}: {why}", kind.name),
                Err(broken) => {
                    let kept = trial.keep();
                    println!(
                        "{at:>4} s  {trials:>4}  {} as {user}: BROKEN: {broken}\n      see {}",
                        kind.name,
                        kept.display()
                    );
                    failures.push(format!("{} as {user}: {broken}", kind.name));
                }
            }
        }
    }
    println!("{trials} trials in {} s, {} broken", start.elapsed().as_secs(), failures.len());
    assert!(failures.is_empty(), "{SEED}={seed}:\n{}", failures.join("\n"));
}
