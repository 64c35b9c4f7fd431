//! The kinds of findings, one module each.

mod allocations;
mod barrier;
mod called_often;
mod decoding;
mod directory_scan;
mod done_twice;
mod file_reopened;
mod first_step;
mod fixed_start;
mod full_scan;
mod kernel_files;
mod linking;
mod list_search;
mod lock_wait;
mod many_threads;
mod memory;
mod one_thread;
mod page_faults;
mod polling;
mod query_per_item;
mod recursion;
mod run_queue;
mod small_messages;
mod stalls;
mod superlinear;
mod text_conversion;
mod text_look_up;
mod unoptimised;

use super::Kind;

/// Every kind of finding.
pub(super) static KINDS: &[&dyn Kind] = &[
    &file_reopened::FileReopened,
    &directory_scan::DirectoryScan,
    &kernel_files::KernelFiles,
    &allocations::Allocations,
    &decoding::Decoding,
    &text_conversion::TextConversion,
    &list_search::ListSearch,
    &text_look_up::TextLookUp,
    &query_per_item::QueryPerItem,
    &small_messages::SmallMessages,
    &stalls::Stalls,
    &first_step::FirstStep,
    &recursion::Recursion,
    &page_faults::PageFaults,
    &barrier::Barrier,
    &lock_wait::LockWait,
    &one_thread::OneThread,
    &many_threads::ManyThreads,
    &polling::Polling,
    &run_queue::RunQueue,
    &linking::Linking,
    &fixed_start::FixedStart,
    &done_twice::DoneTwice,
    &superlinear::Superlinear,
    &full_scan::FullScan,
    &memory::Memory,
    &called_often::CalledOften,
    &unoptimised::Unoptimised,
];
