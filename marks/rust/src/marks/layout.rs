//! The layout of a segment, see `docs/marks-format.md`.

use std::sync::atomic::{AtomicU32, AtomicU64};

pub const HEADER_BYTES: usize = 4096;
/// Offsets of mappings are multiples of 64 KiB, the largest page size.
pub const NAMES_BYTES: usize = (1 << 20) - HEADER_BYTES;
pub const RINGS_MAX: usize = 8192;
pub const DIRECTORY_AT: usize = HEADER_BYTES + NAMES_BYTES;
pub const RINGS_AT: usize = DIRECTORY_AT + RINGS_MAX * size_of::<Entry>();
/// Memory for names is allocated in pieces of this many bytes.
pub const NAMES_STEP: usize = 16 << 10;

/// Records in a ring.
pub const RING_RECORDS: u64 = 32_768;
pub const RECORD_WORDS: usize = 3;
pub const RECORD_BYTES: usize = RECORD_WORDS * 8;
/// Bytes of a ring.
pub const RING_BYTES: usize = RING_RECORDS as usize * RECORD_BYTES;

/// The header of a segment. The recorder writes its own line, this program the others.
#[repr(C)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub header_bytes: u32,
    pub pid: u32,
    pub clock: u32,
    pub process_start_ticks: u64,
    pub pid_namespace: u64,
    pub created_ticks: u64,
    pub created_ns: u64,
    reserved: u64,
    pub recording: AtomicU32,
    pub recorder_pid: u32,
    pub recorder_start_ticks: u64,
    pub recorder_token: u64,
    pub beat_ns: AtomicU64,
    reserved_recorder: [u64; 4],
    pub ended: AtomicU32,
    pub ring_count: AtomicU32,
    pub names_end: AtomicU64,
    pub names_lost: AtomicU64,
    pub marks_lost: AtomicU64,
    reserved_program: [u64; 4],
    pub names_at: u64,
    pub names_bytes: u64,
    pub directory_at: u64,
    pub rings_max: u64,
    pub rings_at: u64,
    pub ring_stride: u64,
    pub ring_records: u64,
}

/// A ring's entry in the directory: one cache line written by this program, one by the recorder.
#[repr(C)]
pub struct Entry {
    pub head: AtomicU64,
    pub dropped: AtomicU64,
    pub tid: AtomicU32,
    pub state: AtomicU32,
    reserved: [u64; 5],
    pub tail: AtomicU64,
    pub tail_again: AtomicU64,
    reserved_tail: [u64; 6],
}

const _: () = assert!(size_of::<Header>() == 248 && size_of::<Entry>() == 128);
