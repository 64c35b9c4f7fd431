//! Many messages are sent or received in each step, or one thing after the other is asked of another process.
//!
//! Evidence: the kernel's sending, or its receiving, takes much of the CPU time below one owned function, in all parts of the steady phase.
//! Look-alikes: as many receivers as messages. How many messages go to one receiver, and how large they are, is not in this
//! evidence, so the finding is weak and has no gain. Recorded system calls tell them apart.
//!
//! A thread that sends and receives below one owned function, for a good part of its CPU time, and is blocked there hundreds of times a second, asks
//! and waits for each answer. Look-alikes: two processes that change steps; those do so once for each step.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, explain, percent};
use crate::analyses::diagnose::seen::{Seen, is_of_kernel};
use crate::query::functions::FunctionId;
use crate::query::wait_class::{Classes, WaitClass};
use crate::query::work::Work;
use stepscope_model::{Sample, StackId, WaitState};

/// Least share of CPU time.
const LEAST: f64 = 20.0;

/// Least share of all CPU time that the kernel's work for questions and answers takes, the least part of their threads' CPU time, and the least part
/// of it that sending and receiving each are.
const LEAST_OF_QUESTIONS: f64 = 5.0;
const LEAST_OF_THREADS: f64 = 15.0;
const EACH: f64 = 0.15;

/// Fewest waits for answers a second, and in each step.
const ANSWERS: f64 = 300.0;
const ANSWERS_PER_STEP: f64 = 5.0;

/// Functions that send and receive: two of the kernel, the others of the C library.
const SENDS: [&str; 6] = ["__sys_sendto", "__sys_sendmsg", "send", "__libc_send", "sendto", "sendmsg"];
const RECEIVES: [&str; 6] = ["__sys_recvfrom", "__sys_recvmsg", "recv", "__libc_recv", "recvfrom", "recvmsg"];

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
        "Count messages per receiver and step: `record --with syscalls`, then `show --view syscalls`. Two and more small ones confirm it."
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
        let one_way = of(Work::Receive, "receives", "receiving").chain(of(Work::Send, "sends", "sending"));
        let questions = questions(seen);
        let asks = |one: &Found| questions.iter().any(|asked| asked.function == one.function);
        let others: Vec<Found> = one_way.filter(|one| !asks(one)).collect();
        questions.iter().cloned().chain(others).collect()
    }
}

/// Functions that ask another process, and wait for each answer.
fn questions(seen: &Seen<'_, '_>) -> Vec<Found> {
    // What the kernel does while it sends and receives includes switches and wake-ups.
    let [sends, receives] = [&SENDS, &RECEIVES].map(|names| {
        seen.paths_through(|function| {
            is_of_kernel(function, &names[..2]) || (!function.owned && names[2..].contains(&&*function.name))
        })
    });
    let messages: Vec<bool> = sends.iter().zip(&receives).map(|(sends, receives)| *sends || *receives).collect();
    let owner_at = |flags: &[bool], stack: StackId| seen.owner(stack).filter(|_| flags[stack.index()]);
    let found =
        seen.lasting_by(LEAST_OF_QUESTIONS, |stack| owner_at(&messages, stack)).filter_map(|(owner, amount)| {
            let part = |flags: &[bool]| seen.sum(|stack| owner_at(flags, stack) == Some(owner)).weight as f64;
            if part(&sends).min(part(&receives)) < EACH * amount.weight as f64 {
                return None;
            }
            let of_threads = share_of_threads(seen, |stack| owner_at(&messages, stack) == Some(owner))?;
            let answers = answers_per_second(seen, owner)?;
            let per_step = seen.steps().map(|(_, step_ns)| answers * step_ns / 1e9);
            if of_threads < LEAST_OF_THREADS || answers < ANSWERS || per_step.is_some_and(|one| one < ANSWERS_PER_STEP)
            {
                return None;
            }
            let title = format!(
                "`{}` exchanges one message after the other with another process, and waits for each",
                seen.name(owner)
            );
            let text = format!(
                "It waits for {answers:.0} messages a second. Sending and receiving take {} of its thread's CPU time.",
                percent(of_threads)
            );
            let found = Found::of_program(title, None).about(Some(owner)).sure(Confidence::Fair);
            Some(found.because(text, "show --view wall"))
        });
    found.collect()
}

/// The part of the CPU time of these stacks' threads that is at these stacks, in percent.
fn share_of_threads(seen: &Seen<'_, '_>, at: impl Fn(StackId) -> bool) -> Option<f64> {
    let is_at = |sample: &&Sample| sample.stack.is_some_and(&at);
    let mut threads: Vec<_> = seen.selection.samples().filter(is_at).map(|sample| sample.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let sum = |samples: &mut dyn Iterator<Item = &Sample>| samples.map(|one| u128::from(one.weight)).sum::<u128>();
    let all = sum(&mut seen.selection.samples().filter(|sample| threads.contains(&sample.thread)));
    (all > 0).then(|| 100.0 * sum(&mut seen.selection.samples().filter(is_at)) as f64 / all as f64)
}

/// How often a thread is blocked on the network below a function, per second.
fn answers_per_second(seen: &Seen<'_, '_>, owner: FunctionId) -> Option<f64> {
    let (wall, mut classes) = (seen.selection.wall_ns()?, Classes::new(seen.capture(), seen.functions()));
    let mut most = 0;
    for (thread, _) in seen.selection.threads() {
        let mut answers = 0;
        for wait in seen.waits(thread).filter(|wait| wait.state == WaitState::Blocked) {
            let is_answer =
                |stack: StackId| seen.owner(stack) == Some(owner) && classes.of(stack) == WaitClass::Network;
            answers += if wait.stack.is_some_and(is_answer) { u64::from(wait.count) } else { 0 };
        }
        most = most.max(answers);
    }
    Some(most as f64 * 1e9 / wall.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::analyses::diagnose::tests::found;
    use crate::drawn::Drawing;
    use stepscope_model::Event;

    /// A thread for 200 ms that sends and receives for some twentieths of each ms, and is blocked in some of these.
    fn asks(parts: u64, blocked_every_ms: u64) -> Vec<String> {
        const SEND: &str = "sim::Ask;send;__sys_sendto [kernel];wake_up_q [kernel]";
        const RECEIVE: &str = "sim::Ask;recv;__sys_recvfrom [kernel];schedule [kernel]";
        let mut text = String::new();
        let mut drawing = Drawing::new().window(0..200_000_000).lived("main", 0..200_000_000, 200_000_000);
        for ms in 0..200 {
            for part in 0..20 {
                let stack = match part {
                    _ if part >= parts => "sim::Move",
                    _ if part % 2 == 0 => SEND,
                    _ => RECEIVE,
                };
                let _ = writeln!(text, "@{} main;sim::Step;{stack} 50000", ms * 1_000_000 + part * 50_000 + 20_000);
            }
            if ms % blocked_every_ms == 0 {
                let start = ms * 1_000_000 + 60_000;
                drawing = drawing.blocked("main", start..start + 20_000, &format!("sim::Step;{RECEIVE}"));
            }
        }
        let drawing = drawing.folded(Event::sampled("cpu-clock", "ns"), &text);
        found(&drawing.capture).into_iter().filter(|row| row.starts_with("many")).collect()
    }

    #[test]
    fn who_asks_and_waits_for_each_answer_is_found_and_who_rarely_waits_is_not() {
        assert_eq!(asks(6, 1), ["many-messages-each-step | sim::Ask | -"]);
        assert!(asks(6, 20).is_empty(), "fifty answers a second: {:?}", asks(6, 20));
        assert!(asks(1, 1).is_empty(), "it only sends: {:?}", asks(1, 1));
    }
}
