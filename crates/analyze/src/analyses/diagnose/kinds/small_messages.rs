//! Many messages are sent in each step.
//!
//! Evidence: the kernel's sending takes much of the CPU time below one owned function, in all parts of the steady phase.
//! Look-alikes: as many receivers as messages. How many messages go to one receiver, and how large they are, is not in this
//! evidence, so the finding is weak and has no gain. Recorded system calls tell them apart.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::work::Work;

/// Least share of CPU time.
const LEAST: f64 = 20.0;

pub(super) struct SmallMessages;

impl Kind for SmallMessages {
    fn name(&self) -> &'static str {
        "many-messages-each-step"
    }

    fn advice(&self) -> &'static str {
        "Put all that one receiver gets in a step into one message, or send all messages with one `sendmmsg`."
    }

    fn confirm(&self) -> &'static str {
        "Count messages per receiver and step: `strace -f -e sendto,sendmsg`. Two and more small ones confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let sends = |work: Work| work == Work::Send;
        seen.lasting(LEAST, sends)
            .map(|(owner, amount)| {
                let title = format!("`{}` sends many messages {}", seen.name(owner), seen.repeatedly());
                Found::of_program(title, None).about(Some(owner)).sure(Confidence::Weak).because(
                    format!("The kernel's sending takes {} of the CPU time.", percent(seen.share(amount))),
                    explain(seen, owner),
                )
            })
            .collect()
    }
}
