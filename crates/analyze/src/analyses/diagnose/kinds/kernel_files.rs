//! Files of `/proc` or `/sys` are read again and again.
//!
//! The kernel makes their content at each read: the network tables of a namespace are written out whole for each process.
//! Evidence: kernel functions that make these files, below one owned function in the steady phase. Look-alikes: a monitor
//! that reads each file once. Recorded system calls tell them apart, so without those the finding is weak and has no gain, unless the files are
//! those of the own process, which are looked up by the kernel for `/proc/self`: no monitor of other processes does that. What is read from the
//! files is parsed, too; that is part of it.
//!
//! With system calls: the tables in `/proc/PID/net` are those of a network namespace, the same for all its processes. Of `n`
//! reads of one in a step, `n - 1` give what is known. The same holds for a file that is read `n` times in a step. If each file
//! is read at most once in a step, there is no finding.

use crate::Function;
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::recorded::{FileUse, Recorded};
use crate::analyses::diagnose::seen::Seen;
use crate::query::functions::FunctionId;
use crate::query::qualified_name::own_name;
use crate::query::work::Work;
use stepscope_model::{FrameKind, StackId};

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

    fn effects(&self) -> &'static [&'static str] {
        &["values-through-text", "text-parsed-each-step"]
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let own_process = seen.paths_through(looks_up_itself);
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
                found = found.because(text, explain(seen, owner));
                let at_owner = seen.is_at(owner, |_| true);
                let of_itself = seen.sum(|stack| at_owner(stack) && own_process[stack.index()]);
                if of_itself.is_zero() {
                    // How many of the reads give what an earlier one gave is not in this evidence.
                    found.gain = None;
                    found.without.clear();
                    return Some(found);
                }
                let without = seen.without(owner, |work| files(work) || goes_with_text(work));
                let gain = Some(seen.gain(&without));
                let detail = "The kernel looks up the files of the program's own process (`/proc/self`).";
                Some(Found { without, gain, ..found }.sure(Confidence::Fair).because(detail, explain(seen, owner)))
            })
            .collect()
    }
}

/// Whether it is the kernel's function that looks up `/proc/self`.
fn looks_up_itself(function: &Function) -> bool {
    let own = own_name(&function.name);
    let is_one = own.starts_with("proc_self_get_link") || own.starts_with("proc_thread_self_get_link");
    function.kind == FrameKind::Kernel && is_one
}

/// What parsing the text of a file does.
fn goes_with_text(work: Work) -> bool {
    let memory = matches!(work, Work::Allocation | Work::ContainerGrowth | Work::GrowthMemory);
    memory || matches!(work, Work::Formatting | Work::Text | Work::Copy)
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
    let detail = format!(
        "It opens `{}` {}; {} of the time gives what an earlier read of the step gave.",
        most.path,
        seen.recorded.count_text(most.opens, "times"),
        percent(100.0 * part)
    );
    Some(Found { title, without, gain, ..found }.confirmed(detail, "show --view syscalls"))
}

fn is_of_kernel(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Whether it is the same file for all processes of a network namespace.
fn is_of_namespace(path: &str) -> bool {
    path.starts_with("/proc/[pid]/net/")
}
