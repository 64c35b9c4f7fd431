//! Costs in one stage of a batch program: what comes back there, and what a finding says of it.

use stepscope_model::{StackId, ThreadId};

use super::finding::{Found, percent};
use super::seen::Seen;

/// Fewest times that a cost comes back to a thread after other work.
const FEWEST: usize = 12;

/// Least share of the CPU time of the whole run.
const LEAST: f64 = 5.0;

impl Seen<'_, '_> {
    /// Whether these stacks are a good share of a run without steps, in many pieces.
    pub fn is_in_pieces(&self, at: impl Fn(StackId) -> bool) -> bool {
        let Some(pieces) = &self.pieces else { return false };
        self.share(self.sum(&at)) >= LEAST
            && pieces.returns(&at) >= FEWEST
            && pieces.extent(&at).is_some_and(|(first, _)| first >= pieces.from_ns)
    }

    /// Whether these stacks are sampled all the time, or in many pieces.
    pub fn is_repeated(&self, at: impl Fn(StackId) -> bool) -> bool {
        self.is_steady(&at) || self.is_in_pieces(at)
    }

    /// Whether some stacks take turns with others in a thread, many times: what is built there and what is released.
    pub fn take_turns(&self, some: impl Fn(StackId) -> bool, others: impl Fn(StackId) -> bool) -> bool {
        let Some(pieces) = &self.pieces else { return false };
        let of_thread = |samples: &[(ThreadId, u64, StackId)]| {
            let turns = samples.iter().filter_map(|one| match () {
                () if others(one.2) => Some(false),
                () if some(one.2) => Some(true),
                () => None,
            });
            let turns: Vec<bool> = turns.collect();
            turns.windows(2).filter(|pair| pair[1] && !pair[0]).count()
        };
        pieces.samples.chunk_by(|a, b| a.0 == b.0).map(of_thread).sum::<usize>() >= FEWEST
    }
}

/// A finding that says in which part of the run it is, if it is not about all the time.
pub(super) fn with_part(seen: &Seen<'_, '_>, mut found: Found) -> Found {
    const ALWAYS: &str = "all the time";
    const IN_PART: &str = "again and again in a part of the run";
    let without = &found.without;
    let goes = |stack: StackId| without.get(stack.index()).is_some_and(|part| *part == 1.0);
    let Some(pieces) = seen.pieces.as_ref().filter(|_| seen.is_in_pieces(goes) && !seen.is_steady(goes)) else {
        return found;
    };
    let Some((first, last)) = pieces.extent(goes) else { return found };
    let inside = pieces.samples.iter().filter(|one| (first..=last).contains(&one.1));
    let (all, count) = (pieces.samples.len().max(1) as f64, inside.count() as f64);
    let before = pieces.samples.iter().filter(|one| one.1 < first).count() as f64;
    let own = pieces.samples.iter().filter(|one| goes(one.2)).count() as f64;
    let text = format!(
        "It is done between {} and {} of the run's CPU time, where it takes {}, and comes back after other work.",
        percent(100.0 * before / all),
        percent(100.0 * (before + count) / all),
        percent(100.0 * own / count.max(1.0)),
    );
    let replaced = |text: &str| text.replace(&format!(", {ALWAYS}"), "").replace(ALWAYS, IN_PART);
    found.title = replaced(&found.title);
    found.evidence.iter_mut().for_each(|one| one.text = replaced(&one.text));
    found.because(text, "show --view tree")
}
