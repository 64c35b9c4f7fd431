//! Files drawn as lines of text.

use std::fmt::Write as _;
use std::io::Write as _;

use stepscope_model::{Capture, WaitState};

use super::Compression;
use crate::import::ftrace::waits_of;
use crate::{ImportError, ImportOptions, Source, import};

const PAGE_BYTES: usize = 4096;

/// Events with their fields: `s` for a name of 16 bytes, `t` for a text to the end, `i` for 32 bits, `l` for 64.
const EVENTS: &[(&str, &str)] = &[
    ("sched_switch", "s:prev_comm i:prev_pid i:prev_prio l:prev_state s:next_comm i:next_pid"),
    ("sched_waking", "s:comm i:pid"),
    ("sched_process_fork", "s:child_comm i:child_pid"),
    ("task_newtask", "i:pid s:comm l:clone_flags"),
    ("sched_process_exit", "s:comm i:pid"),
    ("print", "l:ip t:buf"),
    ("funcgraph_entry", "l:func i:depth"),
    ("funcgraph_exit", "l:func i:depth"),
    ("cpu_frequency", "i:state i:cpu_id"),
    ("irq_handler_entry", "i:irq"),
];

fn size(kind: &str) -> usize {
    match kind {
        "s" => 16,
        "i" => 4,
        "l" => 8,
        _ => 0,
    }
}

fn formats() -> Vec<String> {
    let mut formats = Vec::new();
    for (id, (name, fields)) in EVENTS.iter().enumerate() {
        let mut text = format!(
            "name: {name}\nID: {}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
            id + 1
        );
        let mut at = 8;
        for field in fields.split(' ') {
            let (kind, name) = field.split_once(':').unwrap();
            let declared = match kind {
                "s" => format!("char {name}[16]"),
                "t" => format!("char {name}[]"),
                "i" => format!("int {name}"),
                _ => format!("unsigned long {name}"),
            };
            let size = size(kind);
            writeln!(text, "\tfield:{declared};\toffset:{at};\tsize:{size};\tsigned:{};", u8::from(kind == "i"))
                .unwrap();
            at += size;
        }
        formats.push(text + "\nprint fmt: \"x\"\n");
    }
    formats
}

/// The ring buffers of two CPUs, from lines of `TIME CPU TID[!] EVENT ARGUMENT...`, by time; `!` marks an interrupt. `LOST n`
/// in place of a thread starts a page before which events were lost.
fn buffers(drawn: &str) -> [Vec<u8>; 2] {
    let mut cpus = [Ring::default(), Ring::default()];
    for line in drawn.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [time, cpu, who, event, arguments @ ..] = &words[..] else { panic!("{line}") };
        let time: u64 = time.parse().unwrap();
        let ring = &mut cpus[cpu.parse::<usize>().unwrap()];
        if *who == "LOST" {
            ring.new_page(time, event.parse().ok());
            continue;
        }
        let (tid, is_interrupt) = (who.trim_end_matches('!'), who.ends_with('!'));
        let id = EVENTS.iter().position(|(name, _)| name == event).unwrap_or_else(|| panic!("no event {event}"));
        let mut data = (id as u16 + 1).to_le_bytes().to_vec();
        data.extend([if is_interrupt { 8 } else { 0 }, 0]);
        data.extend(tid.parse::<i32>().unwrap().to_le_bytes());
        for (field, argument) in EVENTS[id].1.split(' ').zip(arguments) {
            match &field[..1] {
                "s" => {
                    let mut name = argument.as_bytes().to_vec();
                    name.resize(16, 0);
                    data.extend(name);
                }
                "t" => data.extend(argument.replace('_', " ").bytes().chain([b'\n', 0])),
                "i" => data.extend(argument.parse::<i32>().unwrap().to_le_bytes()),
                _ => data.extend(argument.parse::<u64>().unwrap().to_le_bytes()),
            }
        }
        ring.add(time, data);
    }
    cpus.map(|ring| ring.bytes())
}

/// A ring buffer: pages with their time, the count of events lost before, and their events.
#[derive(Default)]
struct Ring {
    pages: Vec<(u64, Option<u64>, bool, Vec<u8>)>,
    now: u64,
}

impl Ring {
    fn new_page(&mut self, time: u64, lost: Option<u64>) {
        self.pages.push((time, lost, true, Vec::new()));
        self.now = time;
    }

    fn add(&mut self, time: u64, mut data: Vec<u8>) {
        data.resize(data.len().next_multiple_of(4), 0);
        let is_full = |page: &(u64, Option<u64>, bool, Vec<u8>)| page.3.len() + data.len() + 24 > PAGE_BYTES - 16 - 8;
        if self.pages.last().is_none_or(is_full) {
            self.pages.push((time, None, false, Vec::new()));
            self.now = time;
        }
        let page = &mut self.pages.last_mut().unwrap().3;
        let mut delta = time - self.now;
        self.now = time;
        if delta >= 1 << 27 {
            page.extend((30 | (delta as u32) << 5).to_le_bytes());
            page.extend(((delta >> 27) as u32).to_le_bytes());
            delta = 0;
        }
        let words = data.len() / 4;
        if words <= 28 {
            page.extend((words as u32 | (delta as u32) << 5).to_le_bytes());
        } else {
            page.extend(((delta as u32) << 5).to_le_bytes());
            page.extend((data.len() as u32 + 4).to_le_bytes());
        }
        page.extend(data);
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (time, lost, has_gap, mut page) in self.pages {
            bytes.extend(time.to_le_bytes());
            let flags = if has_gap { 1u64 << 31 } else { 0 } | if lost.is_some() { 1 << 30 } else { 0 };
            bytes.extend((page.len() as u64 | flags).to_le_bytes());
            page.extend(lost.unwrap_or(0).to_le_bytes());
            page.resize(PAGE_BYTES - 16, 0);
            bytes.extend(page);
        }
        bytes
    }
}

fn zero_ended(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t \
                           commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

const KALLSYMS: &str = "0000000000001000 T vfs_read\n0000000000001100 t do_it\n0000000000002000 D data\n";
const COMMANDS: &str = "11 sim\n77 other name\n";

fn page_layout() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, text) in [("header_page", HEADER_PAGE), ("header_event", "")] {
        bytes.extend(zero_ended(name));
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.bytes());
    }
    bytes
}

/// `print` and the function graph are formats of ftrace itself; the rest are of one system.
fn event_formats() -> Vec<u8> {
    let formats = formats();
    let mut bytes = 1u32.to_le_bytes().to_vec();
    bytes.extend(zero_ended("all"));
    bytes.extend((formats.len() as u32).to_le_bytes());
    for format in formats {
        bytes.extend((format.len() as u64).to_le_bytes());
        bytes.extend(format.bytes());
    }
    bytes
}

fn sized(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text.bytes());
    bytes
}

fn head(version: &str) -> Vec<u8> {
    let mut bytes = b"\x17\x08\x44tracing".to_vec();
    bytes.extend(zero_ended(version));
    bytes.extend([0, 8]);
    bytes.extend((PAGE_BYTES as u32).to_le_bytes());
    bytes
}

fn option(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(content);
    bytes
}

fn version_6(drawn: &str, options: &[u8]) -> Vec<u8> {
    let mut file = head("6");
    file.extend(page_layout());
    file.extend(0u32.to_le_bytes());
    file.extend(event_formats());
    file.extend(sized(KALLSYMS));
    file.extend(sized(""));
    file.extend((COMMANDS.len() as u64).to_le_bytes());
    file.extend(COMMANDS.bytes());
    file.extend(2u32.to_le_bytes());
    file.extend(b"options  \0");
    file.extend(options);
    file.extend([0, 0]);
    file.extend(b"flyrecord\0");
    let buffers = buffers(drawn);
    let mut at = (file.len() + 32).next_multiple_of(PAGE_BYTES);
    for buffer in &buffers {
        file.extend((at as u64).to_le_bytes());
        file.extend((buffer.len() as u64).to_le_bytes());
        at += buffer.len();
    }
    file.resize(file.len().next_multiple_of(PAGE_BYTES), 0);
    buffers.iter().for_each(|buffer| file.extend(buffer));
    file
}

fn packed(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => zstd::encode_all(bytes, 1).unwrap(),
        _ => bytes.to_vec(),
    }
}

fn piece(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    let packed = packed(compression, bytes);
    let mut piece = (packed.len() as u32).to_le_bytes().to_vec();
    piece.extend((bytes.len() as u32).to_le_bytes());
    piece.extend(packed);
    piece
}

fn section(compression: Compression, id: u16, content: &[u8]) -> Vec<u8> {
    let is_packed = compression != Compression::None && id != 0;
    let content = if is_packed { piece(compression, content) } else { content.to_vec() };
    let mut section = id.to_le_bytes().to_vec();
    section.extend(u16::from(is_packed).to_le_bytes());
    section.extend(0u32.to_le_bytes());
    section.extend((content.len() as u64).to_le_bytes());
    section.extend(content);
    section
}

/// The start of a file, where it has the place of its options, and the options that name its parts.
fn described_7(compression: Compression) -> (Vec<u8>, usize, Vec<u8>) {
    let mut file = head("7");
    let name = match compression {
        Compression::Zlib => "zlib",
        Compression::Zstd => "zstd",
        _ => "none",
    };
    file.extend(zero_ended(name));
    file.extend(zero_ended("1.0"));
    let first_options = file.len();
    file.extend([0; 8]);
    let mut options = Vec::new();
    let commands: Vec<u8> = (COMMANDS.len() as u64).to_le_bytes().into_iter().chain(COMMANDS.bytes()).collect();
    for (id, content) in [(16, page_layout()), (18, event_formats()), (19, sized(KALLSYMS)), (21, commands)] {
        options.extend(option(id, &(file.len() as u64).to_le_bytes()));
        file.extend(section(compression, id, &content));
    }
    (file, first_options, options)
}

/// A file as trace-cmd lays it out, cut before the table of the CPUs' events: each CPU starts at a page.
fn version_7_without_table(drawn: &str, compression: Compression) -> Vec<u8> {
    let (mut file, first_options, mut options) = described_7(compression);
    let at = file.len() as u64;
    file[first_options..first_options + 8].copy_from_slice(&at.to_le_bytes());
    options.extend(option(8, &2u32.to_le_bytes()));
    options.extend(option(0, &(1u64 << 40).to_le_bytes()));
    file.extend(section(compression, 0, &options));
    file.extend(3u16.to_le_bytes());
    file.extend([0; 14]);
    for bytes in buffers(drawn) {
        file.resize(file.len().next_multiple_of(PAGE_BYTES), 0);
        match compression {
            Compression::None => file.extend(bytes),
            _ => {
                let pieces: Vec<Vec<u8>> =
                    bytes.chunks(2 * PAGE_BYTES).map(|bytes| piece(compression, bytes)).collect();
                file.extend((pieces.len() as u32).to_le_bytes());
                file.extend(pieces.concat());
            }
        }
    }
    file
}

fn version_7(drawn: &str, compression: Compression, options: &[u8]) -> Vec<u8> {
    let (mut file, first_options, of_parts) = described_7(compression);
    let mut all = [options, &of_parts].concat();
    let mut buffer = 0u64.to_le_bytes().to_vec();
    buffer.extend(zero_ended(""));
    buffer.extend(zero_ended("mono"));
    buffer.extend((PAGE_BYTES as u32).to_le_bytes());
    buffer.extend(2u32.to_le_bytes());
    for (cpu, bytes) in buffers(drawn).into_iter().enumerate() {
        let mut size = bytes.len();
        let bytes = match compression {
            Compression::None => bytes,
            _ => {
                let pieces: Vec<Vec<u8>> =
                    bytes.chunks(2 * PAGE_BYTES).map(|bytes| piece(compression, bytes)).collect();
                // As trace-cmd does, the size is that of the pieces without their count.
                size = pieces.iter().map(Vec::len).sum();
                (pieces.len() as u32).to_le_bytes().into_iter().chain(pieces.concat()).collect()
            }
        };
        buffer.extend((cpu as u32).to_le_bytes());
        buffer.extend((file.len() as u64).to_le_bytes());
        buffer.extend((size as u64).to_le_bytes());
        file.extend(bytes);
    }
    let last_options = file.len() as u64;
    file.extend(section(compression, 0, &[option(3, &buffer), option(0, &0u64.to_le_bytes())].concat()));
    let at = file.len() as u64;
    file[first_options..first_options + 8].copy_from_slice(&at.to_le_bytes());
    all.extend(option(0, &last_options.to_le_bytes()));
    file.extend(section(compression, 0, &all));
    file
}

fn read(file: &[u8]) -> Capture {
    import(Source::stream("it", file), &ImportOptions::default()).unwrap()
}

fn scopes(capture: &Capture) -> Vec<String> {
    let shown = |scope: &stepscope_model::Scope| {
        let tid = capture.threads[scope.thread.index()].tid;
        format!("{tid} {}-{} {} {}", scope.start_ns, scope.end_ns, scope.depth, scope.name)
    };
    capture.scopes.iter().map(shown).collect()
}

const SWITCHES: &str = "
    100 0 0 sched_switch swapper/0 0 120 0 sim 11
    150 0 11 sched_switch sim 11 120 1 swapper/0 0
    160 1 0 sched_switch swapper/1 0 120 0 net 20
    170 1 20 sched_waking sim 11
    175 1 20! sched_waking deamon 12
    190 0 0 sched_switch swapper/0 0 120 0 sim 11
    200 0 11 sched_switch sim 11 120 256 other 30
    1000000230 0 30 sched_switch other 30 120 0 sim 11
    1000000250 1 20 sched_switch net 20 120 2 daemon 12";

#[test]
fn all_versions_and_packings_have_the_same_waits() {
    let file = version_6(SWITCHES, &[]);
    let expected = read(&file);
    assert_eq!(
        waits_of(&expected, 11),
        [
            (150, 190, WaitState::Blocked, Some(20), Some(20)),
            (200, 1_000_000_230, WaitState::Preempted, Some(1_000_000_030), None),
        ]
    );
    // An interrupt woke it, and it took another name meanwhile.
    assert_eq!(waits_of(&expected, 12), [(100, 1_000_000_250, WaitState::Blocked, Some(1_000_000_075), None)]);
    let named = expected.threads.iter().find(|thread| thread.tid == 12).unwrap();
    assert_eq!((named.name.as_str(), named.names.len()), ("daemon", 2));
    assert_eq!(expected.info.machine.as_ref().unwrap().cores, 2);
    for compression in [Compression::None, Compression::Zlib, Compression::Zstd] {
        let capture = read(&version_7(SWITCHES, compression, &[]));
        assert_eq!(capture.waits, expected.waits, "{compression:?}");
        assert_eq!(capture.threads, expected.threads, "{compression:?}");
        assert_eq!(capture.info.clock.as_deref(), Some("CLOCK_MONOTONIC"));
        assert_eq!(capture.info.losses, expected.info.losses);
    }
}

#[test]
fn functions_and_marks_become_scopes_and_readings() {
    let capture = read(&version_6(
        "10 0 11 funcgraph_entry 4096 0
         12 0 11 funcgraph_entry 4352 1
         13 0 11 print 0 B|9|load_map
         20 0 11 print 0 E|9
         22 0 11 funcgraph_exit 4352 1
         25 0 11 print 0 C|9|queue|4
         26 0 11 print 0 hello
         30 0 11 funcgraph_exit 4096 0
         31 1 0 funcgraph_entry 4096 0
         40 0 11 cpu_frequency 2400000 1",
        &[],
    ));
    assert_eq!(scopes(&capture), ["11 10-30 0 vfs_read", "11 12-22 1 do_it", "11 13-20 2 load map"]);
    let readings: Vec<_> = capture.counters.iter().map(|it| (it.time_ns, it.name.to_string(), it.value)).collect();
    assert_eq!(readings, [(25, "queue".to_owned(), 4), (40, "cpu1_frequency_khz".to_owned(), 2_400_000)]);
    let thread = capture.threads.iter().find(|thread| thread.tid == 11).unwrap();
    assert_eq!((thread.name.as_str(), capture.processes[thread.process.unwrap().index()].pid), ("sim", 9));
    let notes = capture.info.notes.join("\n");
    assert!(notes.contains("1 of 10 events fill no table: print (1)."), "{notes}");
}

#[test]
fn new_tasks_say_which_threads_belong_to_a_process() {
    let capture = read(&version_6(
        "10 0 5 task_newtask 50 shell 17
         11 0 5 sched_process_fork shell 50
         20 0 50 task_newtask 51 shell 69376
         21 0 50 sched_process_fork shell 51
         30 0 5 sched_switch shell 5 120 1 shell 51
         40 0 51 sched_process_exit shell 51
         41 0 51 sched_switch shell 51 120 64 shell 5",
        &[],
    ));
    let lives: Vec<_> = capture
        .threads
        .iter()
        .filter(|thread| thread.tid >= 50)
        .map(|thread| {
            (thread.tid, capture.processes[thread.process.unwrap().index()].pid, thread.start_ns, thread.end_ns)
        })
        .collect();
    assert_eq!(lives, [(50, 50, Some(10), Some(41)), (51, 50, Some(20), Some(41))]);
}

#[test]
fn lost_events_are_counted_and_end_what_is_known_of_a_cpu() {
    let capture = read(&version_6(
        "100 0 0 sched_switch swapper/0 0 120 0 sim 11
         500 0 LOST 7
         500 0 0 sched_waking sim 11
         600 0 0 sched_switch swapper/0 0 120 0 sim 11
         700 0 11 sched_switch sim 11 120 1 swapper/0 0",
        &option(2, b"CPU: 0\nentries: 5\noverrun: 9\ndropped events: 2\0"),
    ));
    assert_eq!(capture.info.losses.lost_records, 11);
    assert_eq!(waits_of(&capture, 11), [(100, 600, WaitState::Blocked, Some(100), None)]);
    assert!(capture.info.notes[0].starts_with("The tracer lost 11 events, "), "{:?}", capture.info.notes);
}

#[test]
fn times_of_a_counter_become_nanoseconds() {
    let mut counter = 3u32.to_le_bytes().to_vec();
    counter.extend(1u32.to_le_bytes());
    counter.extend(50u64.to_le_bytes());
    let options = [option(14, &counter), option(7, b"1000\0")].concat();
    for file in [version_6(SWITCHES, &options), version_7(SWITCHES, Compression::None, &options)] {
        let capture = read(&file);
        assert_eq!(capture.info.start_ns, Some(100 * 3 / 2 - 50 + 1000));
    }
}

#[test]
fn a_truncated_file_keeps_what_is_whole_and_says_what_is_lost() {
    let file = version_6(SWITCHES, &[]);
    let whole = read(&file);
    let capture = read(&file[..file.len() - PAGE_BYTES + 60]);
    assert!(capture.waits.len() < whole.waits.len());
    assert_eq!(waits_of(&capture, 11).len(), 2, "the first CPU is whole");
    assert!(capture.info.losses.malformed_records >= 1);
    let notes = capture.info.notes.join("\n");
    assert!(notes.contains("The trace is damaged in "), "{notes}");
    // A damaged page costs itself alone.
    let mut damaged = file.clone();
    let page = file.len() - PAGE_BYTES;
    damaged[page + 16] = 28;
    damaged[page + 8] = 20;
    let capture = read(&damaged);
    assert_eq!(waits_of(&capture, 11).len(), 2);
    assert_eq!(capture.info.losses.malformed_records, 1);
}

#[test]
fn a_file_of_version_7_without_its_end_keeps_the_events() {
    for compression in [Compression::None, Compression::Zlib, Compression::Zstd] {
        let whole = read(&version_7(SWITCHES, compression, &[]));
        let file = version_7_without_table(SWITCHES, compression);
        let capture = read(&file);
        let waits = |capture: &Capture| [10, 11, 20].map(|tid| waits_of(capture, tid));
        assert_eq!(waits(&capture), waits(&whole), "{compression:?}");
        assert!(capture.info.losses.malformed_records >= 1);
        let notes = capture.info.notes.join("\n");
        assert!(notes.contains("the table of the CPUs' events"), "{notes}");
        for end in 0..file.len() {
            let _ = import(Source::stream("cut", &file[..end]), &ImportOptions::default());
        }
    }
}

#[test]
fn a_file_without_events_and_one_of_another_version_are_errors() {
    let error = |file: &[u8]| import(Source::stream("it", file), &ImportOptions::default()).unwrap_err();
    assert!(matches!(error(&version_6("", &[])), ImportError::Nothing { .. }));
    let other = error(&head("8")).to_string();
    assert!(other.contains("has version 8, of which only 6 and 7 are known"), "{other}");
}

#[test]
fn the_text_in_place_of_events_is_read_as_text() {
    let mut file = version_6("", &[]);
    let at = memchr::memmem::find(&file, b"flyrecord\0").unwrap();
    file.truncate(at);
    file.extend(b"latency  \0# tracer: nop\n  a-5 [000] d... 1.000001: tracing_mark_write: B|5|x\n");
    file.extend(b"  a-5 [000] d... 1.000002: tracing_mark_write: E|5\n");
    assert_eq!(scopes(&read(&file)), ["5 1000001000-1000002000 0 x"]);
}

/// The seeds of the fuzz target are these files; `BLESS=1` writes them.
#[test]
fn the_seeds_of_the_fuzz_target_are_current() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/trace_dat");
    for (name, file) in
        [("version_6.dat", version_6(SWITCHES, &[])), ("zstd.dat", version_7(SWITCHES, Compression::Zstd, &[]))]
    {
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(folder.join(name), &file).unwrap();
        }
        assert!(std::fs::read(folder.join(name)).unwrap_or_default() == file, "{name}: run with BLESS=1");
    }
}
