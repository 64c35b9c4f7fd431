//! Messages from one machine to another.
//!
//! A message that its program numbered has its number on both machines, so its stages join by topic and number. A message of ROS 2 was
//! counted by the recorder of its publisher's machine. The recorder of another machine knows the time that the publisher's
//! transport wrote into it, by the publisher's wall clock. The message is the last one of its topic that was published before
//! that time on another machine, at most [`MOST_BEFORE_NS`] earlier, as within one recording. Both times are of one clock, so the
//! error of the alignment plays no part.
//!
//! Clocks are aligned up to an error, so a message may seem to arrive before it is published. If that is by less than the error of
//! the two machines, its early stages are moved to just after the publication and counted, and with them what its threads did next: causes
//! stay before effects. If it is by more, it is counted as impossible, and
//! its stages stay where they are, without a publication.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use stepscope_model::{Capture, FlowEvent, FlowNumber, FlowStage, ThreadId, WallReading};

/// Time from a publication to its source timestamp, at most.
const MOST_BEFORE_NS: u64 = 50_000_000;

/// What a thread does next may be a publication that then arrives early: so often are stages moved, at most.
const ROUNDS: usize = 8;

/// Time and machine of a publication.
type Publication = (u64, usize);

/// A publication: topic, number, and how often this number was published before.
type Published = (Arc<str>, u64, usize);

/// The messages of all machines.
#[derive(Debug, Default)]
pub(super) struct Messages {
    machines: Vec<Machine>,
}

#[derive(Debug, Default)]
struct Machine {
    error_ns: u64,
    /// Its threads in the merged capture.
    threads: Range<usize>,
    /// Publications that its recorder counted, by topic: times in ns since 1970, and numbers.
    published: HashMap<Arc<str>, Vec<(i128, u64)>>,
}

impl Messages {
    /// Adds a machine whose times are still of its own clock, and makes the numbers that its recorder gave its own.
    pub fn add_machine(&mut self, number: u8, capture: &mut Capture, error_ns: u64) {
        let mut machine = Machine { error_ns, ..Machine::default() };
        let wall: &[WallReading] = capture.info.clocks.as_ref().map_or(&[], |clocks| &clocks.wall);
        let unix_ns = |time_ns: u64| {
            let nearest = wall.iter().min_by_key(|reading| reading.time_ns.abs_diff(time_ns))?;
            Some(i128::from(nearest.unix_ns) + i128::from(time_ns) - i128::from(nearest.time_ns))
        };
        for event in capture.flows.iter_mut() {
            let Some(flow) = &mut event.flow else { continue };
            let FlowNumber::Counted { count, .. } = FlowNumber::of(*flow) else { continue };
            *flow = FlowNumber::Counted { machine: number, count }.to_flow();
            if event.stage == FlowStage::Published
                && let Some(unix_ns) = unix_ns(event.time_ns)
            {
                machine.published.entry(event.topic.clone()).or_default().push((unix_ns, *flow));
            }
        }
        machine.published.values_mut().for_each(|published| published.sort_unstable());
        self.machines.push(machine);
    }

    /// The rows that the threads of a machine have in the merged capture.
    pub fn add_threads(&mut self, number: u8, threads: Range<usize>) {
        if let Some(machine) = self.machines.get_mut(usize::from(number)) {
            machine.threads = threads;
        }
    }

    /// Joins the stages of all machines, which are sorted by time on one clock. Gives how many messages arrived early, and how many
    /// impossibly so.
    pub fn join(self, flows: &mut [FlowEvent]) -> (u64, u64) {
        let machine_of = |event: &FlowEvent| -> usize {
            self.machines.iter().position(|machine| machine.threads.contains(&event.thread.index())).unwrap_or(0)
        };
        for event in flows.iter_mut() {
            let Some(FlowNumber::Stamped(unix_ns)) = event.flow.map(FlowNumber::of) else { continue };
            if let Some(flow) = self.stamped(&event.topic, unix_ns, machine_of(event)) {
                event.flow = Some(flow);
            }
        }
        let (mut early, mut impossible) = (HashSet::new(), HashSet::new());
        for round in 0..ROUNDS {
            if !self.delay(flows, machine_of, round == 0, &mut early, &mut impossible) {
                break;
            }
            keep_order_on_threads(flows);
            flows.sort_by_key(|event| event.time_ns);
        }
        (early.len() as u64, impossible.len() as u64)
    }

    /// Moves early stages to just after the publications of their messages. Whether there were any.
    fn delay(
        &self,
        flows: &mut [FlowEvent],
        machine_of: impl Fn(&FlowEvent) -> usize,
        is_first: bool,
        early: &mut HashSet<Published>,
        impossible: &mut HashSet<Published>,
    ) -> bool {
        // Publications of each message, by time.
        let mut published: HashMap<(Arc<str>, u64), Vec<Publication>> = HashMap::new();
        for event in flows.iter().filter(|event| event.stage == FlowStage::Published) {
            let Some(flow) = event.flow else { continue };
            published.entry((event.topic.clone(), flow)).or_default().push((event.time_ns, machine_of(event)));
        }
        let mut is_delayed = false;
        for event in flows.iter_mut().filter(|event| event.stage != FlowStage::Published) {
            let Some(flow) = event.flow else { continue };
            let Some(publications) = published.get(&(event.topic.clone(), flow)) else { continue };
            let after = publications.partition_point(|&(time_ns, _)| time_ns <= event.time_ns);
            let Some(&(next_ns, publisher)) = publications.get(after) else { continue };
            let subscriber = machine_of(event);
            let before = after.checked_sub(1).map(|last| event.time_ns - publications[last].0);
            let ahead_ns = next_ns - event.time_ns;
            // A number may be published again. The nearer publication is the one of this stage.
            if subscriber == publisher || before.is_some_and(|before_ns| before_ns <= ahead_ns) {
                continue;
            }
            let error_ns = self.machines[subscriber].error_ns.saturating_add(self.machines[publisher].error_ns);
            let message = (event.topic.clone(), flow, after);
            if ahead_ns <= error_ns {
                // A stable sort by time then keeps causes before effects.
                event.time_ns = next_ns + 1;
                early.insert(message);
                is_delayed = true;
            } else if before.is_none() && is_first {
                impossible.insert(message);
            }
        }
        is_delayed
    }

    /// The number of the message with this source timestamp, which another machine than this one published.
    fn stamped(&self, topic: &str, unix_ns: u64, subscriber: usize) -> Option<u64> {
        let stamp = i128::from(unix_ns);
        let others = self.machines.iter().enumerate().filter(|(number, _)| *number != subscriber);
        let last = others.filter_map(|(_, machine)| {
            let published = machine.published.get(topic)?;
            let after = published.partition_point(|&(at, _)| at <= stamp);
            published.get(after.checked_sub(1)?)
        });
        let (at, flow) = last.max_by_key(|(at, _)| *at)?;
        (stamp - at <= i128::from(MOST_BEFORE_NS)).then_some(*flow)
    }
}

/// Delays stages that would come before an earlier one of their thread, which was delayed.
fn keep_order_on_threads(flows: &mut [FlowEvent]) {
    let mut latest: HashMap<ThreadId, u64> = HashMap::new();
    for event in flows {
        let latest = latest.entry(event.thread).or_default();
        *latest = event.time_ns.max(*latest);
        event.time_ns = *latest;
    }
}
