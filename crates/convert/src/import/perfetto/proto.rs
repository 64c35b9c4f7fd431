//! The part of Perfetto's messages that is read (`protos/perfetto/trace` in its sources). Other fields are skipped.
//!
//! Texts are bytes here: one that is no UTF-8 must not cost its whole packet.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub sequence: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(bool, optional, tag = "41")]
    pub incremental_state_cleared: Option<bool>,
    #[prost(uint32, optional, tag = "42")]
    pub previous_packet_dropped: Option<u32>,
    #[prost(message, optional, tag = "43")]
    pub process_descriptor: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "44")]
    pub thread_descriptor: Option<ThreadDescriptor>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    #[prost(bytes = "vec", optional, tag = "50")]
    pub compressed_packets: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TracePacketDefaults {
    #[prost(message, optional, tag = "11")]
    pub track_event_defaults: Option<TrackEventDefaults>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEventDefaults {
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<EventName>,
}

#[derive(Clone, PartialEq, Message)]
pub struct EventName {
    #[prost(uint64, tag = "1")]
    pub iid: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(message, optional, tag = "6")]
    pub legacy: Option<LegacyEvent>,
    #[prost(int32, tag = "9")]
    pub kind: i32,
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "23")]
    pub name: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct LegacyEvent {
    #[prost(int32, tag = "2")]
    pub phase: i32,
    #[prost(int64, tag = "3")]
    pub duration_us: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub uuid: u64,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    #[prost(bytes = "vec", optional, tag = "10")]
    pub static_name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub command_line: Vec<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int64, tag = "2")]
    pub tid: i64,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    #[prost(int64, optional, tag = "4")]
    pub unit_multiplier: Option<i64>,
    #[prost(bool, tag = "5")]
    pub is_incremental: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub command_line: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, tag = "1")]
    pub tid: i32,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
    #[prost(int32, tag = "3")]
    pub tgid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub primary: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(uint64, tag = "2")]
    pub timestamp: u64,
    #[prost(bool, tag = "3")]
    pub is_incremental: bool,
    #[prost(uint64, optional, tag = "4")]
    pub unit_ns: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
    #[prost(uint32, tag = "8")]
    pub cpus: u32,
    #[prost(bytes = "vec", tag = "17")]
    pub machine_name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(bytes = "vec", tag = "3")]
    pub release: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub machine: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FtraceEventBundle {
    #[prost(uint32, tag = "1")]
    pub cpu: u32,
    #[prost(message, repeated, tag = "2")]
    pub events: Vec<FtraceEvent>,
    #[prost(bool, tag = "3")]
    pub lost_events: bool,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSched>,
    #[prost(int64, tag = "6")]
    pub ftrace_timestamp: i64,
    #[prost(int64, tag = "7")]
    pub boot_timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub intern_table: Vec<Vec<u8>>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub waking_comm_index: Vec<u32>,
    #[prost(uint32, repeated, tag = "12")]
    pub waking_common_flags: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    #[prost(uint64, tag = "1")]
    pub timestamp: u64,
    #[prost(uint32, tag = "2")]
    pub tid: u32,
    #[prost(message, optional, tag = "3")]
    pub print: Option<Print>,
    #[prost(message, optional, tag = "4")]
    pub switch: Option<Switch>,
    #[prost(uint32, tag = "5")]
    pub flags: u32,
    #[prost(message, optional, tag = "11")]
    pub frequency: Option<Frequency>,
    #[prost(message, optional, tag = "17")]
    pub wakeup: Option<Named>,
    #[prost(message, optional, tag = "20")]
    pub waking: Option<Named>,
    #[prost(message, optional, tag = "114")]
    pub wakeup_new: Option<Named>,
    #[prost(message, optional, tag = "235")]
    pub new_task: Option<NewTask>,
    #[prost(message, optional, tag = "236")]
    pub rename: Option<Rename>,
    #[prost(message, optional, tag = "237")]
    pub exec: Option<Named>,
    #[prost(message, optional, tag = "238")]
    pub exit: Option<Named>,
    #[prost(message, optional, tag = "239")]
    pub fork: Option<Fork>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Print {
    #[prost(bytes = "vec", tag = "2")]
    pub text: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Switch {
    #[prost(bytes = "vec", tag = "1")]
    pub prev_comm: Vec<u8>,
    #[prost(int32, tag = "2")]
    pub prev_pid: i32,
    #[prost(int64, tag = "4")]
    pub prev_state: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub next_comm: Vec<u8>,
    #[prost(int32, tag = "6")]
    pub next_pid: i32,
}

/// A thread and its name, or the file that it runs: wake-ups, exits, `sched_process_exec`.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    #[prost(int32, tag = "2")]
    pub tid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct NewTask {
    #[prost(int32, tag = "1")]
    pub tid: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    #[prost(uint64, tag = "3")]
    pub clone_flags: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Rename {
    #[prost(int32, tag = "1")]
    pub tid: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub name: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Fork {
    #[prost(bytes = "vec", tag = "3")]
    pub name: Vec<u8>,
    #[prost(int32, tag = "4")]
    pub tid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Frequency {
    #[prost(uint32, tag = "1")]
    pub khz: u32,
    #[prost(uint32, tag = "2")]
    pub cpu: u32,
}
