//! Whether memory that a part of a run takes is kept, for kinds about what is made for each item of a batch.
//!
//! Memory that is kept has to come from somewhere: its pages are touched for the first time, and the kernel's faults cost about as much as
//! filling them. What is made from the same memory again and again has next to none. Large blocks go back to the kernel and fault
//! again; then unmapping them shows it.

use stepscope_model::{FrameKind, StackId};

use crate::Function;
use crate::analyses::diagnose::seen::{Seen, is_of_kernel};
use crate::query::frame_kind::kernel_name;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;

/// Least part of a cost that faults are, if its memory is kept.
const KEPT: f64 = 0.1;

/// Least part of faults that unmapping is, if the memory is not kept.
const UNMAPPED: f64 = 0.05;

/// Whether the memory of what is made at these stacks is used again for the next.
pub(super) fn is_used_again(seen: &Seen<'_, '_>, at: impl Fn(StackId) -> bool) -> bool {
    const FAULTS: [&str; 4] = ["asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault"];
    let faults = seen.paths_through(|function| is_of_kernel(function, &FAULTS));
    let (all, faulting) = (seen.sum(&at), seen.sum(|stack| at(stack) && faults[stack.index()]));
    (faulting.weight as f64) < KEPT * all.weight as f64 || is_unmapped(seen, &at, faulting)
}

/// Whether memory goes back to the kernel in turns with the faults at these stacks. Memory that is kept goes back once.
fn is_unmapped(seen: &Seen<'_, '_>, at: impl Fn(StackId) -> bool, faulting: Amount) -> bool {
    let unmaps = unmaps(seen);
    let unmapping = seen.sum(|stack| unmaps[stack.index()]);
    unmapping.weight as f64 >= UNMAPPED * faulting.weight as f64 && seen.take_turns(at, |stack| unmaps[stack.index()])
}

/// One flag per stack: whether memory is unmapped there, also by making the heap smaller.
pub(super) fn unmaps(seen: &Seen<'_, '_>) -> Vec<bool> {
    const UNMAPS: [&str; 6] = [
        "do_vmi_munmap",
        "do_vmi_align_munmap",
        "__do_munmap",
        "do_madvise",
        "unmap_region",
        "vms_complete_munmap_vmas",
    ];
    seen.paths_through(|function| maps(function) || is_of_kernel(function, &UNMAPS))
}

/// Whether it is the kernel's call that maps or unmaps memory.
pub(super) fn maps(function: &Function) -> bool {
    const CALLS: [&str; 4] = ["sys_mmap", "sys_munmap", "sys_madvise", "ksys_mmap_pgoff"];
    let own = own_name(&function.name);
    let name = kernel_name(&own);
    let name = name.strip_prefix("__x64_").or_else(|| name.strip_prefix("__arm64_")).unwrap_or(name);
    function.kind == FrameKind::Kernel && CALLS.contains(&name)
}
