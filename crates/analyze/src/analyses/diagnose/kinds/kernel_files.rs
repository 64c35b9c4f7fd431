//! Files of `/proc` or `/sys` are read again and again.
//!
//! The kernel makes their content at each read: the network tables of a namespace are written out whole for each process.
//! Evidence: kernel functions that make these files, below one owned function in the steady phase. Look-alikes: a monitor
//! that reads each file once. Recorded system calls tell them apart, so without those the finding is weak and has no gain.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

const LEAST: f64 = 2.0;

pub(super) struct KernelFiles;

impl Kind for KernelFiles {
    fn name(&self) -> &'static str {
        "kernel-files-read-again"
    }

    fn advice(&self) -> &'static str {
        "Read each file once per tick and share the content; read only what is used; read less often."
    }

    fn confirm(&self) -> &'static str {
        "Count the paths: `strace -f -e openat`. Equal tables of many processes of one namespace confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let reads = |work: Work| work == Work::KernelFile;
        let files = |work: Work| matches!(work, Work::KernelFile | Work::OpenFile | Work::ReadFile | Work::FileState);
        let owners = seen.by_owner(reads).into_iter().filter(|(_, amount)| seen.share(*amount) >= LEAST);
        owners
            .map(|(owner, amount)| {
                let title = format!("`{}` reads files of /proc or /sys again and again", seen.name(owner));
                let mut found = Found::of(seen, owner, title, seen.without(owner, files)).sure(Confidence::Weak);
                // How many of the reads give what an earlier one gave is not in this evidence.
                found.gain = None;
                found.without.clear();
                found.because(
                    format!("The kernel makes their content in {} of the CPU time.", percent(seen.share(amount))),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}
