//! Which calls of a function repeat an earlier one.

use std::hash::{Hash as _, Hasher as _};
use std::mem;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::interpreter::{Asked, Done};
use crate::memory::{ADDRESS, Memory, Ranges};
use crate::scans::{Readings, Trial};
use crate::{Mathematics, Replays, Stop};

/// Words of content from which on calls for different objects can be the same: fewer are the same by chance.
const CONTENT: usize = 8;

/// One word of this number may differ: a counter, the time.
const ONE_OF: usize = 40;

/// Most words that may differ.
const MOST_DIFFER: usize = 2;

/// Least instructions per word that is read or written: what only copies or clears memory is not done again in vain, because others
/// may have changed the copy.
const LEAST_PER_WORD: u64 = 3;

/// Least instructions of a call: a shorter one costs no more than to look up its result.
const LEAST_INSTRUCTIONS: u64 = 150;

/// Least part of what a call writes that has to be there already.
const KEPT: f64 = 0.95;

/// Part of a function's work that leaves its state as it is, from which on the program may be at rest.
const RESTS: f64 = 0.9;

/// Different arguments whose calls are all replayed, at most.
const WATCHED: usize = 48;

/// Instructions that are run for one function, about. The longer a call takes, the fewer different arguments are watched, so that each
/// comes several times.
const AFFORDABLE: u64 = 20_000_000;

/// Calls with the same arguments that should come.
const TIMES: u64 = 6;

/// Every 64th of the other calls is.
const OTHERS: u64 = 64;

/// Different arguments that are kept.
const MOST_KEYS: usize = 1 << 20;

/// Words of different calls that are kept, for later ones to be compared with.
const MOST_KEPT: usize = 32 << 20;

/// A call that was replayed.
struct Call {
    inputs: Vec<u64>,
    outputs: Vec<u64>,
}

/// The calls of one function.
#[derive(Default)]
pub struct Calls {
    is_inlined: bool,
    /// Bits of the general registers that calls have read so far.
    reads: u32,
    /// Hashes of the arguments of all calls.
    keys: FxHashSet<u64>,
    /// Those whose calls are replayed.
    watched: FxHashSet<u64>,
    /// Whether a call with the arguments of the current one was replayed.
    is_known: bool,
    seen: u64,
    /// Calls with the arguments of an earlier one.
    recurring: u64,
    /// Instructions of replayed calls, and of those that repeat another.
    work: [u64; 2],
    /// The same of calls with the arguments of another that was replayed.
    known_work: [u64; 2],
    /// Hashes of calls, with all addresses.
    exact: FxHashSet<u64>,
    /// By path and numbers of words.
    alike: FxHashMap<(u64, usize, usize), Vec<Call>>,
    /// Words in these.
    kept: usize,
    instructions: Vec<u64>,
    repeated_bytes: Vec<[u64; 2]>,
    readings: Readings,
    /// Instructions of calls that write what is there already.
    kept_work: u64,
    kept_words: Vec<u64>,
    /// Of these calls, those that read most of it before.
    kept_updates: usize,
    /// Answers of calls that leave memory as it was.
    answers: FxHashSet<u64>,
    /// Numbers that mathematical functions were asked about.
    asked: FxHashSet<u64>,
    /// Calls of these, their work, and that for the numbers of an earlier one: in all calls, and in those with the arguments of another.
    mathematics: [[u64; 3]; 2],
    replays: Replays,
}

impl Calls {
    /// No calls yet. `is_inlined`: their first registers hold more than arguments.
    pub fn new(is_inlined: bool) -> Self {
        Self { is_inlined, ..Self::default() }
    }

    /// What is known so far.
    pub fn replays(&self) -> &Replays {
        &self.replays
    }

    /// Whether to replay a call that begins with these registers.
    pub fn wants(&mut self, general: &[u64; 16], ranges: &Ranges) -> bool {
        self.seen += 1;
        let mut key = FxHasher::default();
        for (number, value) in general.iter().enumerate().filter(|(number, _)| self.reads >> number & 1 != 0) {
            // Registers of inlined code also hold what is counted around it.
            if !self.is_inlined || ranges.writable(*value).is_some() {
                (number, value).hash(&mut key);
            }
        }
        let key = key.finish();
        let is_new = self.keys.len() < MOST_KEYS && self.keys.insert(key);
        self.recurring += u64::from(!is_new);
        let is_watched = self.watched.contains(&key);
        self.is_known = is_watched;
        let costs = self.instructions.last().copied().unwrap_or(0).max(1);
        let affordable = (AFFORDABLE / costs / TIMES).clamp(1, WATCHED as u64) as usize;
        if self.watched.len() < affordable {
            self.watched.insert(key);
            return true;
        }
        is_watched || self.seen.is_multiple_of(OTHERS)
    }

    /// The call could not be replayed.
    pub fn failed(&mut self, reason: &Stop) {
        self.replays.stopped = Some(reason.to_string());
    }

    /// Whether a change of a [`Trial`] had another result.
    pub fn tried(&mut self, mattered: bool) {
        self.readings.tried(mattered);
    }

    /// Adds the call that [`wants`](Self::wants) chose. Changes of its memory may be worth a trial.
    pub fn add(&mut self, done: Done, mut memory: Memory<'_>) -> Option<Trial> {
        self.add_effects(&done, &memory);
        let outputs = memory.outputs();
        let mut inputs = mem::take(&mut memory.inputs);
        let trial = self.readings.add(&done, &inputs, &memory.places, &outputs);
        if self.replays.followed == 0 {
            // Keys until now were of no argument at all.
            (self.seen, self.recurring) = (1, 0);
            self.keys.clear();
            self.watched.clear();
        }
        self.replays.followed += 1;
        self.instructions.push(done.instructions);
        self.reads |= done.reads;
        let mut exact = memory.exact.clone();
        done.path.hash(&mut exact);
        done.arguments.hash(&mut exact);
        outputs.hash(&mut exact);
        let is_same = !self.exact.insert(exact.finish());
        let words = (inputs.len() + outputs.len()) as u64;
        let is_work = done.instructions >= LEAST_INSTRUCTIONS && done.instructions >= words * LEAST_PER_WORD;
        // Words that are no address, and not zero, which is everywhere.
        let content = inputs.iter().filter(|word| **word != ADDRESS && **word != 0).count();
        // Arguments belong to the inputs, but for vector registers if the results are known: instructions that set one half of such a
        // register seem to read the other.
        let general = done.reads.count_ones() as usize;
        let counted = if outputs.len() >= CONTENT { general } else { done.arguments.len() };
        inputs.extend(done.arguments[..counted].iter().map(|value| memory.without_address(*value)));
        let bytes = [inputs.len() as u64 * 8, outputs.len() as u64 * 8];
        let repeats = if content >= CONTENT {
            let alike = self.alike.entry((done.path, inputs.len(), outputs.len())).or_default();
            // Results in registers are unknown: where they could be all, no word may differ.
            let allowed = if outputs.len() >= CONTENT { MOST_DIFFER } else { 0 };
            let same = |one: &[u64], other: &[u64]| same(one, other, allowed);
            let found = is_same || alike.iter().any(|one| same(&one.inputs, &inputs) && same(&one.outputs, &outputs));
            let more = inputs.len() + outputs.len();
            if !found && self.kept + more <= MOST_KEPT {
                self.kept += more;
                alike.push(Call { inputs, outputs });
            }
            found
        } else {
            // A function of its arguments alone: what it writes is its result.
            is_same && outputs.len() <= CONTENT
        };
        // A state that stays as it is belongs to a program at rest.
        let rests = memory.is_update();
        if !rests {
            self.add_mathematics(&done.mathematics);
        }
        let repeats = repeats && is_work && !rests;
        let again = if repeats { done.instructions } else { 0 };
        let add = |sums: &mut [u64; 2]| *sums = [sums[0] + done.instructions, sums[1] + again];
        add(&mut self.work);
        if self.is_known {
            add(&mut self.known_work);
        }
        if repeats {
            self.replays.repeated += 1;
            self.repeated_bytes.push(bytes);
        }
        trial
    }

    fn add_effects(&mut self, done: &Done, memory: &Memory<'_>) {
        let left = memory.left();
        // Registers that inlined code has its results in are not known.
        if left.words == left.same && !self.is_inlined {
            self.replays.effects.silent += 1;
            self.answers.extend(done.answer);
        }
        let is_kept = left.words >= CONTENT as u64 && left.near as f64 >= KEPT * left.words as f64;
        if is_kept && done.instructions >= left.words * LEAST_PER_WORD {
            self.replays.effects.kept += 1;
            self.kept_work += done.instructions;
            self.kept_words.push(left.words);
            self.kept_updates += usize::from(memory.is_update());
        }
    }

    fn add_mathematics(&mut self, all: &[Asked]) {
        for one in all.iter().take(MOST_KEYS.saturating_sub(self.asked.len())) {
            let again = if self.asked.insert(one.key) { 0 } else { one.instructions };
            let sums = &mut self.mathematics[usize::from(self.is_known)];
            *sums = [sums[0] + 1, sums[1] + one.instructions, sums[2] + again];
        }
    }

    /// Sums up.
    pub fn finish(mut self) -> Replays {
        let median = |values: &mut Vec<u64>| {
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        // Of calls with other arguments than those that are watched, few are replayed: they repeat others as often as these do.
        let estimated = ratio(self.recurring, self.seen) * ratio(self.known_work[1], self.known_work[0]);
        self.replays.part = ratio(self.work[1], self.work[0]).max(estimated);
        self.replays.instructions = median(&mut self.instructions);
        let column = |at: usize| self.repeated_bytes.iter().map(|bytes| bytes[at]).collect::<Vec<u64>>();
        self.replays.input_bytes = median(&mut column(0));
        self.replays.output_bytes = median(&mut column(1));
        self.replays.scans = self.readings.finish();
        let effects = &mut self.replays.effects;
        effects.kept_part = ratio(self.kept_work, self.work[0]);
        effects.kept_bytes = median(&mut self.kept_words) * 8;
        effects.answers = self.answers.len();
        // A state that always stays as it is belongs to a program at rest.
        if self.kept_updates * 2 > effects.kept && effects.kept_part > RESTS {
            (effects.kept, effects.kept_part) = (0, 0.0);
        }
        // Calls with watched arguments come more often here than in the program.
        let [others, known] = self.mathematics.map(|[_, work, again]| ratio(again, work));
        self.replays.mathematics = Mathematics {
            calls: self.mathematics.iter().map(|[calls, ..]| *calls as usize).sum(),
            different: self.asked.len(),
            part: others.max(ratio(self.recurring, self.seen) * known),
        };
        self.replays
    }
}

/// Whether all words are the same, but for one of many or `most` of very many.
fn same(one: &[u64], other: &[u64], most: usize) -> bool {
    let allowed = (one.len() / ONE_OF).min(most);
    let differ = one.iter().zip(other).filter(|(one, other)| one != other);
    one.len() == other.len() && differ.take(allowed + 1).count() <= allowed
}
