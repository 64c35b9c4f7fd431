//! Many messages are sent or received in each step.
//!
//! Evidence: the kernel's sending, or its receiving, takes much of the CPU time below one owned function, in all parts of the steady phase.
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
        "Put all that one receiver gets in a step into one message, or send all messages with one `sendmmsg`. Send nobody what it drops: filter at \
         the sender, or in the kernel (a connected socket, a multicast group for each topic, a socket filter)."
    }

    fn confirm(&self) -> &'static str {
        "Count messages per receiver and step: `strace -f -e sendto,sendmsg`. Two and more small ones confirm it."
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        if seen.is_loading() {
            return Vec::new();
        }
        let of = |work: Work, does: &'static str, subject: &'static str| {
            seen.lasting(LEAST, move |one| one == work).map(move |(owner, amount)| {
                let title = format!("`{}` {does} many messages {}", seen.name(owner), seen.repeatedly());
                Found::of_program(title, None).about(Some(owner)).sure(Confidence::Weak).because(
                    format!("The kernel's {subject} takes {} of the CPU time.", percent(seen.share(amount))),
                    explain(seen, owner),
                )
            })
        };
        of(Work::Receive, "receives", "receiving").chain(of(Work::Send, "sends", "sending")).collect()
    }
}
