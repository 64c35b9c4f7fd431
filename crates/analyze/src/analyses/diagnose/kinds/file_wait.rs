//! Steps wait for files or disks.
//!
//! Evidence: blocked time of the loop's thread in calls on files, with the place. Look-alikes: data that has to be on the disk
//! before the step goes on; a first read, which the page cache serves from then on.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::analyses::diagnose::step_waits::step_waits;
use crate::query::wait_class::WaitClass;

pub(super) struct FileWait;

impl Kind for FileWait {
    fn name(&self) -> &'static str {
        "file-wait"
    }

    fn advice(&self) -> &'static str {
        "Leave `fsync` out, or do it for many records at once; read and write on a thread that no step waits for."
    }

    fn confirm(&self) -> &'static str {
        "Record the system calls (`record --with syscalls`): they name the file and the call. Try it on `/dev/shm`."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let found = step_waits(seen, WaitClass::File, |_, _| true).into_iter().map(|wait| {
            let title = format!("`{}` waits for a file or a disk", seen.name(wait.function));
            let text = format!(
                "The loop's thread is blocked there for {} a step, in {} of the steps.",
                ns(wait.ns),
                percent(100.0 * wait.in_steps)
            );
            Found::of_program(title, Some(wait.gain))
                .about(Some(wait.function))
                .sure(Confidence::Strong)
                .because(text, "show --view blocked")
        });
        found.collect()
    }
}
