//! The kinds of findings, one module each.

mod allocations;
mod barrier;
mod build_headers;
mod build_jobs;
mod build_templates;
mod busy_wait;
mod called_often;
mod copied_texts;
mod copies;
mod decoding;
mod directory_scan;
mod done_twice;
mod effects;
mod failed_look_ups;
mod file_read_again;
mod file_reopened;
mod file_state;
mod file_wait;
mod first_step;
mod fixed_sleep;
mod fixed_start;
mod full_scan;
mod gil_wait;
mod kernel_files;
mod library_calls;
mod linking;
mod list_search;
mod lock_per_item;
mod lock_wait;
mod many_threads;
mod matrix_by_columns;
mod memory;
mod memory_growth;
mod moved_elements;
mod one_thread;
mod openmp;
mod own_parser;
mod page_faults;
mod polling;
mod python_containers;
mod query_per_item;
mod recursion;
mod reference_counts;
mod releases;
mod repeated_work;
mod run_queue;
mod same_data;
mod same_numbers;
mod shared_lines;
pub(super) mod sleep_for_workers;
mod sleep_within;
mod slow_setting;
mod small_arrays;
mod small_messages;
mod small_pieces;
mod small_writes;
mod stalls;
mod superlinear;
mod table_scans;
mod text_conversion;
mod text_keys;
mod text_look_up;
mod threads_each_step;
mod thrown_away;
mod unoptimised;
mod wait_set;
mod woken_in_vain;

use super::Kind;

/// Every kind of finding.
pub(super) static KINDS: &[&dyn Kind] = &[
    &repeated_work::RepeatedWork,
    &same_data::SameData,
    &same_numbers::SameNumbers,
    &effects::ResultsUnchanged,
    &effects::NoEffect,
    &file_reopened::FileReopened,
    &directory_scan::DirectoryScan,
    &kernel_files::KernelFiles,
    &file_read_again::FileReadAgain,
    &failed_look_ups::FailedLookUps,
    &allocations::Allocations,
    &decoding::Decoding,
    &decoding::Encoding,
    &text_conversion::TextConversion,
    &slow_setting::SlowSetting,
    &list_search::ListSearch,
    &matrix_by_columns::MatrixByColumns,
    &text_look_up::TextLookUp,
    &text_keys::TextKeys,
    &copies::Copies,
    &moved_elements::MovedElements,
    &small_arrays::SmallArrays,
    &small_arrays::ListsToArrays,
    &library_calls::SORT,
    &library_calls::HEAPS,
    &library_calls::EXCEPTIONS,
    &library_calls::CASTS,
    &library_calls::CLOCKS,
    &library_calls::TIME_AWAITED,
    &library_calls::PATTERNS,
    &library_calls::GENERATORS,
    &library_calls::PARSERS,
    &own_parser::OwnParser,
    &reference_counts::ReferenceCounts,
    &file_state::FileState,
    &query_per_item::QueryPerItem,
    &small_messages::SmallMessages,
    &small_writes::SmallWrites,
    &stalls::Stalls,
    &first_step::FirstStep,
    &recursion::Recursion,
    &page_faults::PageFaults,
    &barrier::Barrier,
    &lock_wait::LockWait,
    &lock_per_item::LockPerItem,
    &gil_wait::GilWait,
    &shared_lines::FalseSharing,
    &shared_lines::ContendedData,
    &file_wait::FileWait,
    &sleep_within::SleepWithin,
    &fixed_sleep::FixedSleep,
    &one_thread::OneThread,
    &threads_each_step::ThreadsEachStep,
    &many_threads::ManyThreads,
    &woken_in_vain::WokenInVain,
    &small_pieces::SmallPieces,
    &busy_wait::BusyWait,
    &polling::Polling,
    &wait_set::WaitSet,
    &run_queue::RunQueue,
    &linking::Linking,
    &fixed_start::FixedStart,
    &done_twice::DoneTwice,
    &superlinear::Superlinear,
    &full_scan::FullScan,
    &memory::Memory,
    &memory_growth::MemoryGrowth,
    &called_often::CalledOften,
    &unoptimised::Unoptimised,
    &build_headers::HeaderPulledIn,
    &build_headers::Precompile,
    &build_headers::ConfiguredHeader,
    &build_templates::Templates,
    &build_templates::SharedCode,
    &build_jobs::RunsAlone,
    &build_jobs::IdleCpus,
];
