//! Files of `/proc` or `/sys` are read again and again.
//!
//! The kernel makes their content at each read: the network tables of a namespace are written out whole for each process.
//! Evidence: kernel functions that make these files, below one owned function in the steady phase. Look-alikes: a monitor
//! that reads each file once. Recorded system calls tell them apart, so without those the finding is weak and has no gain.
//!
//! With system calls: the tables in `/proc/PID/net` are those of a network namespace, the same for all its processes. Of `n`
//! reads of one in a step, `n - 1` give what is known. The same holds for a file that is read `n` times in a step. If each file
//! is read at most once in a step, there is no finding.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::recorded::{FileUse, Recorded};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::work::Work;
use stepscope_model::StackId;

const LEAST: f64 = 2.0;

/// Least part of the time in these files that gives what is known.
const LEAST_AGAIN: f64 = 0.2;

pub(super) struct KernelFiles;

impl Kind for KernelFiles {
    fn name(&self) -> &'static str {
        "kernel-files-read-again"
    }

    fn advice(&self) -> &'static str {
        "Read each file once per tick and share the content; read only what is used; read less often."
    }

    fn confirm(&self) -> &'static str {
        "Record system calls (`record --with syscalls`): a table of many processes of one namespace in every step confirms it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let reads = |work: Work| work == Work::KernelFile;
        let files = |work: Work| matches!(work, Work::KernelFile | Work::OpenFile | Work::ReadFile | Work::FileState);
        let owners = seen.by_owner(reads).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .filter_map(|(owner, amount)| {
                let title = format!("`{}` reads files of /proc or /sys again and again", seen.name(owner));
                let mut found = Found::of(seen, owner, title, seen.without(owner, files)).sure(Confidence::Weak);
                let share = percent(seen.share(amount));
                let text = format!("The kernel makes their content in {share} of the CPU time.");
                if seen.recorded.has_calls() {
                    return with_calls(seen, owner, found.because(text, explain(seen, owner)));
                }
                // How many of the reads give what an earlier one gave is not in this evidence.
                found.gain = None;
                found.without.clear();
                Some(found.because(text, explain(seen, owner)))
            })
            .collect()
    }
}

/// A finding with the files that are read more than once in a step, and the gain of reading them once; `None` without such
/// files.
fn with_calls(seen: &Seen<'_, '_>, owner: FunctionId, found: Found) -> Option<Found> {
    let of_owner = |stack: StackId| seen.functions().attributed(stack) == Some(owner);
    let files = Recorded::files(seen.selection, seen.recorded.calls(of_owner));
    let of_kernel: Vec<&FileUse<'_>> = files.iter().filter(|one| is_of_kernel(&one.path)).collect();
    let all_ns: u64 = of_kernel.iter().map(|one| one.ns).sum();
    let again = |one: &FileUse<'_>| {
        let different = if is_of_namespace(&one.path) { 1.0 } else { one.files as f64 };
        let times = seen.recorded.per_step(one.opens) / different;
        if times > 1.0 { 1.0 - 1.0 / times } else { 0.0 }
    };
    let again_ns: f64 = of_kernel.iter().map(|one| again(one) * one.ns as f64).sum();
    let most =
        of_kernel.iter().copied().max_by(|a, b| (again(a) * a.ns as f64).total_cmp(&(again(b) * b.ns as f64)))?;
    let part = again_ns / all_ns.max(1) as f64;
    if part < LEAST_AGAIN {
        return None;
    }
    let without: Vec<f32> = found.without.iter().map(|one| one * part as f32).collect();
    let gain = Some(seen.gain(&without));
    let title = match most.files {
        1 => format!("`{}` reads `{}` several times in every step", seen.name(owner), most.path),
        files => format!("`{}` reads `{}` for each of {files} processes in every step", seen.name(owner), most.path),
    };
    let told = format!(
        "It opens `{}` {}; {} of the time gives what an earlier read of the step gave.",
        most.path,
        seen.recorded.told(most.opens, "times"),
        percent(100.0 * part)
    );
    Some(Found { title, without, gain, ..found }.confirmed(told, "show --view syscalls"))
}

fn is_of_kernel(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Whether it is the same file for all processes of a network namespace.
fn is_of_namespace(path: &str) -> bool {
    path.starts_with("/proc/[pid]/net/")
}
