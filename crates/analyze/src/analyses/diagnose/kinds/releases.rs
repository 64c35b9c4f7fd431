//! What releasing memory costs, for kinds that find who takes it.
//!
//! Another function often releases what one has taken: the caller that gets a container, or the thread that gets a message. Which memory
//! is released where does not show in samples. So each one that takes memory has the part of all releases that it has of all that taking memory
//! costs.

use stepscope_model::StackId;

use crate::analyses::diagnose::seen::Seen;
use crate::query::qualified_name::own_name;
use crate::query::work::Work;

/// One flag per stack: whether memory is released there.
pub(super) fn stacks(seen: &Seen<'_, '_>) -> Vec<bool> {
    const STARTS: [&str; 7] =
        ["free", "cfree", "__libc_free", "_int_free", "operator delete", "munmap", "core::ptr::drop_in_place"];
    const LAST: [&str; 4] = ["_M_release", "_M_dispose", "_Destroy", "__munmap"];
    seen.paths_through(|function| {
        let own = own_name(&function.name);
        let last = own.rsplit("::").next().unwrap_or_default();
        let is_release = last.starts_with('~') || LAST.contains(&last);
        !function.owned && (is_release || STARTS.iter().any(|start| own.starts_with(start)))
    })
}

/// All of these stacks, and their part of releasing memory: what they have of taking it.
pub(super) fn with_their_part(seen: &Seen<'_, '_>, is_one: impl Fn(StackId) -> bool, releasing: &[bool]) -> Vec<f32> {
    let takes = |stack: StackId| {
        let work = seen.work[stack.index()];
        !releasing[stack.index()] && matches!(work, Work::Allocation | Work::GrowthMemory)
    };
    let (all, own) = (seen.sum(takes), seen.sum(|stack| takes(stack) && is_one(stack)));
    let part = own.weight as f32 / all.weight.max(1) as f32;
    let is_release = |stack: StackId| {
        let work = seen.work[stack.index()];
        releasing[stack.index()] && matches!(work, Work::Allocation | Work::ContainerGrowth | Work::GrowthMemory)
    };
    let of_stack = |stack: StackId| match () {
        () if is_one(stack) => 1.0,
        () if is_release(stack) => part,
        () => 0.0,
    };
    (0..releasing.len()).map(|index| of_stack(StackId::from_index(index))).collect()
}
