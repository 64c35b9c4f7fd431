//! Checks a capture that was read from untrusted bytes, so that all other code may index without checks.

use super::{Capture, Counter, Sample, Scope, Step, SystemCalls};
use crate::allocation::{Allocation, AllocationBurst};
use crate::call_times::CallTimes;
use crate::data_access::DataAccess;
use crate::event_count::EventCount;
use crate::flow::FlowEvent;
use crate::ids::{ModuleId, ProcessId, StackId, ThreadId};
use crate::memory_error::MemoryError;
use crate::wait::Wait;
use crate::waits::PackedWait;

impl Capture {
    /// Checks that every handle refers to a row, that parents come before children, that intervals do not end before
    /// they start. What a reader of untrusted bytes must call.
    ///
    /// # Errors
    /// The first broken rule, in a sentence that names the table and the row.
    pub fn check(&self) -> Result<(), String> {
        for (row, thread) in self.threads.iter().enumerate() {
            refers("threads", row, "process", thread.process.map(ProcessId::index), self.processes.len())?;
        }
        for (row, frame) in self.frames.iter().enumerate() {
            refers("frames", row, "module", frame.module.map(ModuleId::index), self.modules.len())?;
        }
        for (row, node) in self.stacks.iter().enumerate() {
            refers("stacks", row, "frame", Some(node.frame.index()), self.frames.len())?;
            refers("stacks", row, "a parent that must come before it,", node.parent.map(StackId::index), row)?;
        }
        // Rows that are still on disk are checked when they are read.
        let handles = self.handles();
        handles.check_allocations(&self.allocations)?;
        handles.check_bursts(&self.allocation_bursts)?;
        handles.check_call_times(&self.call_times)?;
        handles.check_data_accesses(&self.data_accesses)?;
        handles.check_event_counts(&self.event_counts)?;
        handles.check_flows(self.flows.in_memory())?;
        handles.check_memory_errors(&self.memory_errors)?;
        handles.check_samples(self.samples.in_memory())?;
        handles.check_waits(self.waits.0.in_memory())?;
        handles.check_steps(self.steps.in_memory())?;
        handles.check_scopes(self.scopes.in_memory())?;
        handles.check_counters(self.counters.in_memory())?;
        handles.check_system_calls(self.system_calls.in_memory())
    }

    /// How many rows the tables have that long tables refer to.
    pub(crate) fn handles(&self) -> Handles {
        Handles {
            processes: self.processes.len(),
            threads: self.threads.len(),
            stacks: self.stacks.len(),
            events: self.info.events.len(),
        }
    }
}

/// How many rows the tables have that long tables refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handles {
    processes: usize,
    pub threads: usize,
    stacks: usize,
    events: usize,
}

impl Handles {
    pub fn check_samples(self, samples: &[Sample]) -> Result<(), String> {
        for (row, sample) in samples.iter().enumerate() {
            refers("samples", row, "thread", Some(sample.thread.index()), self.threads)?;
            refers("samples", row, "stack", sample.stack.map(StackId::index), self.stacks)?;
            refers("samples", row, "event", Some(sample.event.index()), self.events)?;
        }
        Ok(())
    }

    pub fn check_waits(self, waits: &[PackedWait]) -> Result<(), String> {
        for (row, &wait) in waits.iter().enumerate() {
            let wait = Wait::from(wait);
            refers("waits", row, "thread", Some(wait.thread.index()), self.threads)?;
            refers("waits", row, "stack", wait.stack.map(StackId::index), self.stacks)?;
            refers("waits", row, "waker", wait.waker.map(ThreadId::index), self.threads)?;
            refers("waits", row, "waker stack", wait.waker_stack.map(StackId::index), self.stacks)?;
            interval("waits", row, wait.start_ns, wait.end_ns)?;
        }
        Ok(())
    }

    pub fn check_steps(self, steps: &[Step]) -> Result<(), String> {
        for (row, step) in steps.iter().enumerate() {
            refers("steps", row, "thread", Some(step.thread.index()), self.threads)?;
            interval("steps", row, step.start_ns, step.end_ns)?;
        }
        Ok(())
    }

    pub fn check_scopes(self, scopes: &[Scope]) -> Result<(), String> {
        for (row, scope) in scopes.iter().enumerate() {
            refers("scopes", row, "thread", Some(scope.thread.index()), self.threads)?;
            interval("scopes", row, scope.start_ns, scope.end_ns)?;
        }
        Ok(())
    }

    fn check_allocations(self, allocations: &[Allocation]) -> Result<(), String> {
        for (row, allocation) in allocations.iter().enumerate() {
            refers("allocations", row, "process", Some(allocation.process.index()), self.processes)?;
            refers("allocations", row, "thread", allocation.thread.map(ThreadId::index), self.threads)?;
            refers("allocations", row, "stack", allocation.stack.map(StackId::index), self.stacks)?;
            interval("allocations", row, allocation.start_ns, allocation.end_ns)?;
        }
        Ok(())
    }

    fn check_bursts(self, bursts: &[AllocationBurst]) -> Result<(), String> {
        for (row, burst) in bursts.iter().enumerate() {
            refers("allocation_bursts", row, "process", Some(burst.process.index()), self.processes)?;
            refers("allocation_bursts", row, "thread", burst.thread.map(ThreadId::index), self.threads)?;
            refers("allocation_bursts", row, "stack", burst.stack.map(StackId::index), self.stacks)?;
            interval("allocation_bursts", row, burst.start_ns, burst.end_ns)?;
        }
        Ok(())
    }

    fn check_call_times(self, times: &[CallTimes]) -> Result<(), String> {
        for (row, times) in times.iter().enumerate() {
            refers("syscall_times", row, "thread", Some(times.thread.index()), self.threads)?;
            refers("syscall_times", row, "stack", times.stack.map(StackId::index), self.stacks)?;
            interval("syscall_times", row, times.from_ns, times.until_ns)?;
        }
        Ok(())
    }

    fn check_data_accesses(self, accesses: &[DataAccess]) -> Result<(), String> {
        for (row, access) in accesses.iter().enumerate() {
            refers("data_accesses", row, "thread", Some(access.thread.index()), self.threads)?;
            refers("data_accesses", row, "stack", access.stack.map(StackId::index), self.stacks)?;
        }
        Ok(())
    }

    fn check_event_counts(self, counts: &[EventCount]) -> Result<(), String> {
        for (row, count) in counts.iter().enumerate() {
            refers("event_counts", row, "thread", count.thread.map(ThreadId::index), self.threads)?;
            if let (Some(start), Some(end)) = (count.start_ns, count.end_ns) {
                interval("event_counts", row, start, end)?;
            }
        }
        Ok(())
    }

    pub fn check_flows(self, flows: &[FlowEvent]) -> Result<(), String> {
        for (row, event) in flows.iter().enumerate() {
            refers("flows", row, "thread", Some(event.thread.index()), self.threads)?;
        }
        Ok(())
    }

    fn check_memory_errors(self, errors: &[MemoryError]) -> Result<(), String> {
        for (row, error) in errors.iter().enumerate() {
            refers("memory_errors", row, "process", error.process.map(ProcessId::index), self.processes)?;
            for stack in [error.stack, error.allocated, error.other] {
                refers("memory_errors", row, "stack", stack.map(StackId::index), self.stacks)?;
            }
        }
        Ok(())
    }

    pub fn check_counters(self, counters: &[Counter]) -> Result<(), String> {
        for (row, counter) in counters.iter().enumerate() {
            refers("counters", row, "process", counter.process.map(ProcessId::index), self.processes)?;
            refers("counters", row, "thread", counter.thread.map(ThreadId::index), self.threads)?;
        }
        Ok(())
    }

    pub fn check_system_calls(self, calls: &[SystemCalls]) -> Result<(), String> {
        for (row, calls) in calls.iter().enumerate() {
            refers("syscalls", row, "thread", Some(calls.thread.index()), self.threads)?;
            refers("syscalls", row, "stack", calls.stack.map(StackId::index), self.stacks)?;
            interval("syscalls", row, calls.start_ns, calls.end_ns)?;
        }
        Ok(())
    }
}

fn refers(table: &str, row: usize, what: &str, index: Option<usize>, len: usize) -> Result<(), String> {
    match index {
        Some(index) if index >= len => {
            Err(format!("{table} row {row} refers to {what} {index}, of which there are {len}"))
        }
        _ => Ok(()),
    }
}

fn interval(table: &str, row: usize, start: u64, end: u64) -> Result<(), String> {
    if end < start {
        return Err(format!("{table} row {row} ends at {end} ns before it starts at {start} ns"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::StackNode;
    use super::*;

    #[test]
    fn a_parent_after_its_child_is_refused_by_check() {
        let mut capture = Capture::default();
        let frame = capture.intern_function("a");
        capture.stacks.push(StackNode { parent: Some(StackId(0)), frame });
        assert_eq!(
            capture.check().unwrap_err(),
            "stacks row 0 refers to a parent that must come before it, 0, of which there are 0"
        );
    }
}
