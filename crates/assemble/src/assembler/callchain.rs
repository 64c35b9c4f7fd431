//! The kernel's call chains: addresses with markers between them that say whose addresses follow.

use crate::kernel_record::RawSample;

/// The parts of a call chain, leaf first.
pub(super) struct Chains {
    pub kernel: Vec<u64>,
    pub user: Vec<u64>,
}

/// Splits a sample's call chain at its markers (`PERF_CONTEXT_*`, the highest 4095 numbers). A sample without a chain has
/// its instruction pointer alone.
pub(super) fn split(sample: &RawSample<'_>) -> Chains {
    const MARKERS: u64 = -4095_i64 as u64;
    const KERNEL: u64 = -128_i64 as u64;
    const USER: u64 = -512_i64 as u64;
    let mut chains = Chains { kernel: Vec::new(), user: Vec::new() };
    let mut context = if sample.in_kernel { KERNEL } else { USER };
    for &address in &sample.callchain {
        match (address >= MARKERS, context) {
            (true, _) => context = address,
            (false, KERNEL) => chains.kernel.push(address),
            (false, USER) => chains.user.push(address),
            (false, _) => {}
        }
    }
    if sample.callchain.is_empty() {
        let chain = if sample.in_kernel { &mut chains.kernel } else { &mut chains.user };
        chain.extend(sample.ip);
    }
    chains
}
