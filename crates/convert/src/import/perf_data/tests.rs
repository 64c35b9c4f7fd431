//! Files drawn byte by byte, so that nothing here needs perf. `tests/perf_data` has real ones.

mod exits;

use std::collections::BTreeMap;

use stepscope_model::WaitState;

use super::*;
use crate::{Source, import};

const PERIODS: u64 = 1 | 2 | 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 16; // IP, TID, TIME, CALLCHAIN, CPU, PERIOD, IDENTIFIER
const SAMPLE_ID_ALL: u64 = 1 << 18;
const CONTEXT_SWITCH: u64 = 1 << 26;
const USER_MODE: u16 = 2;
const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;

/// A file being drawn. Event n has id 100 + n.
#[derive(Clone)]
struct Drawing {
    endian: Endianness,
    attributes: Vec<Vec<u8>>,
    records: Vec<u8>,
    features: BTreeMap<u32, Vec<u8>>,
}

/// Numbers one after the other, in a file's byte order.
struct Bytes(Vec<u8>, Endianness);

impl Bytes {
    fn u64s(mut self, values: &[u64]) -> Self {
        for value in values {
            match self.1 {
                Endianness::LittleEndian => self.0.extend(value.to_le_bytes()),
                Endianness::BigEndian => self.0.extend(value.to_be_bytes()),
            }
        }
        self
    }

    fn u32s(mut self, values: &[u32]) -> Self {
        for value in values {
            match self.1 {
                Endianness::LittleEndian => self.0.extend(value.to_le_bytes()),
                Endianness::BigEndian => self.0.extend(value.to_be_bytes()),
            }
        }
        self
    }

    fn u16s(mut self, values: &[u16]) -> Self {
        for value in values {
            match self.1 {
                Endianness::LittleEndian => self.0.extend(value.to_le_bytes()),
                Endianness::BigEndian => self.0.extend(value.to_be_bytes()),
            }
        }
        self
    }

    /// A text with its terminating zero, filled up to `width` or to a multiple of 8.
    fn text(mut self, text: &str, width: usize) -> Self {
        let start = self.0.len();
        self.0.extend(text.as_bytes());
        self.0.resize(start + (text.len() + 1).next_multiple_of(8).max(width), 0);
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

impl Drawing {
    fn new() -> Self {
        Self::of(Endianness::LittleEndian)
    }

    fn of(endian: Endianness) -> Self {
        Self { endian, attributes: Vec::new(), records: Vec::new(), features: BTreeMap::new() }
    }

    fn bytes(&self) -> Bytes {
        Bytes(Vec::new(), self.endian)
    }

    fn event(&mut self, kind: u32, config: u64, flags: u64) -> &mut Self {
        let attribute = self.bytes().u32s(&[kind, 128]).u64s(&[config, 999, PERIODS, 0, SAMPLE_ID_ALL | flags]);
        let mut attribute = attribute.0;
        attribute.resize(128, 0);
        self.attributes.push(attribute);
        self
    }

    fn record(&mut self, kind: u32, misc: u16, body: Bytes) -> &mut Self {
        let size = u16::try_from(8 + body.0.len()).unwrap();
        let header = self.bytes().u32s(&[kind]).u16s(&[misc, size]);
        self.records.extend(header.0);
        self.records.extend(body.0);
        self
    }

    fn tail(&self, body: Bytes, tid: u32, time: u64) -> Bytes {
        body.u32s(&[tid, tid]).u64s(&[time]).u32s(&[0, 0]).u64s(&[100])
    }

    fn comm(&mut self, tid: u32, name: &str, time: u64) -> &mut Self {
        let body = self.bytes().u32s(&[tid, tid]).text(name, 0);
        let body = self.tail(body, tid, time);
        self.record(3, 0, body)
    }

    fn map(&mut self, tid: u32, start: u64, offset: u64, path: &str) -> &mut Self {
        let body = self.bytes().u32s(&[tid, tid]).u64s(&[start, 0x1000, offset]);
        let body = body.u32s(&[8, 1]).u64s(&[7, 0]).u32s(&[5, 2]).text(path, 0);
        let body = self.tail(body, tid, 0);
        self.record(10, USER_MODE, body)
    }

    /// A process starts another one; with the time 0, it did so before the recording.
    fn fork(&mut self, child: u32, parent: u32, time: u64) -> &mut Self {
        let body = self.bytes().u32s(&[child, parent, child, parent]).u64s(&[time]);
        let body = self.tail(body, child, time);
        self.record(7, 0, body)
    }

    fn sample(&mut self, event: u64, tid: u32, time: u64, period: u64, chain: &[u64]) -> &mut Self {
        let ip = chain.iter().copied().find(|&address| address < KERNEL).unwrap_or(0);
        let body = self.bytes().u64s(&[100 + event, ip]).u32s(&[tid, tid]).u64s(&[time]).u32s(&[1, 0]);
        let body = body.u64s(&[period, chain.len() as u64]).u64s(chain);
        self.record(9, USER_MODE, body)
    }

    /// On the CPU that samples are on.
    fn switch(&mut self, tid: u32, time: u64, misc: u16) -> &mut Self {
        let body = self.bytes().u32s(&[tid, tid]).u64s(&[time]).u32s(&[1, 0]).u64s(&[100]);
        self.record(14, misc, body)
    }

    /// A switch of a source that records the switches of every thread.
    fn switch_with(&mut self, tid: u32, other: u32, time: u64, misc: u16) -> &mut Self {
        let body = self.bytes().u32s(&[other, other, tid, tid]).u64s(&[time]).u32s(&[1, 0]).u64s(&[100]);
        self.record(15, misc, body)
    }

    fn lost(&mut self, count: u64, time: u64) -> &mut Self {
        let body = self.bytes().u64s(&[100, count]);
        let body = self.tail(body, 1, time);
        self.record(2, 0, body)
    }

    fn round(&mut self) -> &mut Self {
        self.record(68, 0, Bytes(Vec::new(), self.endian))
    }

    fn host(&mut self, name: &str) -> &mut Self {
        let text = self.bytes().u32s(&[64]).text(name, 64);
        self.features.insert(3, text.0);
        self
    }

    fn build_id(&mut self, path: &str, id: u8) -> &mut Self {
        let text = self.bytes().text(path, 0).0;
        let size = u16::try_from(8 + 4 + 24 + text.len()).unwrap();
        let record = self.bytes().u32s(&[0]).u16s(&[USER_MODE, size]).u32s(&[1]).bytes(&[id; 20]).u32s(&[0]);
        let record = record.bytes(&text).0;
        self.features.entry(2).or_default().extend(record);
        self
    }

    fn event_names(&mut self, names: &[&str]) -> &mut Self {
        let mut list = self.bytes().u32s(&[names.len() as u32, 128]);
        for (index, name) in names.iter().enumerate() {
            list = list.bytes(&self.attributes[index]).u32s(&[1, 64]).text(name, 64).u64s(&[100 + index as u64]);
        }
        self.features.insert(12, list.0);
        self
    }

    /// What `perf record` writes to a file.
    fn file(&self) -> Vec<u8> {
        let (count, ids_at) = (self.attributes.len(), 104);
        let attributes_at = ids_at + 8 * count;
        let data_at = attributes_at + 144 * count;
        let mut bits = [0u64; 4];
        self.features.keys().for_each(|number| bits[*number as usize / 64] |= 1 << (number % 64));
        let magic = match self.endian {
            Endianness::LittleEndian => b"PERFILE2",
            Endianness::BigEndian => b"2ELIFREP",
        };
        let sections = [104, 144, attributes_at, 144 * count, data_at, self.records.len(), 0, 0];
        let mut file = self.bytes().bytes(magic).u64s(&sections.map(|value| value as u64)).u64s(&bits);
        for index in 0..count {
            file = file.u64s(&[100 + index as u64]);
        }
        for (index, attribute) in self.attributes.iter().enumerate() {
            file = file.bytes(attribute).u64s(&[(ids_at + 8 * index) as u64, 8]);
        }
        file = file.bytes(&self.records);
        let mut at = data_at + self.records.len() + 16 * self.features.len();
        for content in self.features.values() {
            file = file.u64s(&[at as u64, content.len() as u64]);
            at += content.len();
        }
        for content in self.features.values() {
            file = file.bytes(content);
        }
        file.0
    }

    /// What `perf record -o -` writes.
    fn pipe(&self) -> Vec<u8> {
        let mut described = Self { records: Vec::new(), ..self.clone() };
        for (index, attribute) in self.attributes.iter().enumerate() {
            let body = self.bytes().bytes(attribute).u64s(&[100 + index as u64]);
            described.record(64, 0, body);
        }
        for (number, content) in &self.features {
            let body = self.bytes().u64s(&[u64::from(*number)]).bytes(content);
            described.record(80, 0, body);
        }
        self.bytes().bytes(b"PERFILE2").u64s(&[16]).bytes(&described.records).bytes(&self.records).0
    }

    /// The same with its records compressed, cut into pieces where records are not.
    fn compressed(&self) -> Self {
        let packed = zstd::encode_all(&self.records[..], 1).unwrap();
        let mut drawing = Self { records: Vec::new(), ..self.clone() };
        for piece in packed.chunks(40) {
            let body = drawing.bytes().bytes(piece);
            drawing.record(81, 0, body);
        }
        drawing
    }
}

fn read(bytes: &[u8]) -> Capture {
    import(Source::stream("perf.data", bytes), &options()).unwrap()
}

/// No file of this machine has a part in these tests.
fn options() -> ImportOptions {
    let nothing = stepscope_symbolize::Options {
        roots: Vec::new(),
        debug_directories: Vec::new(),
        build_id_caches: Vec::new(),
        ..Default::default()
    };
    ImportOptions { symbols: nothing, ..ImportOptions::default() }
}

/// `time tid event weight root;...;leaf` of each sample.
fn drawn(capture: &Capture) -> Vec<String> {
    let line = |sample: &stepscope_model::Sample| {
        let mut functions: Vec<_> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
        functions.reverse();
        let (tid, event) = (capture.threads[sample.thread.index()].tid, &capture.event(sample.event).name);
        let time = sample.time_ns.map_or("-".to_owned(), |time| time.to_string());
        format!("{time} {tid} {event} {} {}", sample.weight, functions.join(";"))
    };
    capture.samples.iter().map(line).collect()
}

/// Two events, two CPUs, a process with one module.
fn example() -> Drawing {
    let mut drawing = Drawing::new();
    drawing.event(1, 0, 0).event(1, 2, 0);
    drawing.host("farm-7").build_id("/opt/sim/bin/sim", 0xab).event_names(&["cpu-clock:u", "page-faults"]);
    drawing.comm(40, "sim", 0).map(40, 0x55_0000, 0x2000, "/opt/sim/bin/sim");
    drawing
        .sample(0, 40, 1_000, 250, &[USER, 0x55_0010, 0x55_0101, 0x55_0201])
        .sample(1, 40, 3_000, 7, &[KERNEL, 0xffff_ffff_8100_0010, USER, 0x55_0010, 0x55_0201])
        .round()
        .sample(0, 40, 2_000, 250, &[USER, 0x55_0020, 0x55_0201])
        .round()
        .sample(0, 40, 4_000, 251, &[USER, 0x55_0020, 0x55_0201])
        .lost(9, 4_100);
    drawing
}

const EXAMPLE: [&str; 4] = [
    "1000 40 cpu-clock:u 250 sim+0x2200;sim+0x2100;sim+0x2010",
    "2000 40 cpu-clock:u 250 sim+0x2200;sim+0x2020",
    "3000 40 page-faults 7 sim+0x2200;sim+0x2010;[kernel]",
    "4000 40 cpu-clock:u 251 sim+0x2200;sim+0x2020",
];

#[test]
fn events_stacks_and_periods_are_read_in_the_order_of_time() {
    let capture = read(&example().file());
    assert_eq!(drawn(&capture), EXAMPLE);
    let units: Vec<_> = capture.info.events.iter().map(|event| &*event.unit).collect();
    assert_eq!(units, ["ns", "faults"]);
    assert_eq!((capture.info.start_ns, capture.info.end_ns), (Some(1_000), Some(4_100)));
    assert_eq!((capture.threads.len(), &*capture.threads[0].name), (1, "sim"));
    assert_eq!(&*capture.processes[0].executable, "/opt/sim/bin/sim");
    assert_eq!(capture.info.machine.as_ref().unwrap().host, "farm-7");
    assert_eq!((capture.info.losses.lost_records, capture.info.losses.samples), (9, 4));
}

#[test]
fn a_missing_file_is_named_by_build_id_and_offset() {
    let capture = read(&example().file());
    let module = capture.modules.iter().find(|module| module.name() == "sim").unwrap();
    assert_eq!(module.build_id.as_deref(), Some(&*"ab".repeat(20)));
    assert!(capture.info.notes.iter().any(|note| note.contains("/opt/sim/bin/sim: not found")));
}

#[test]
fn a_pipe_gives_the_same_capture() {
    let (piped, filed) = (read(&example().pipe()), read(&example().file()));
    assert_eq!(drawn(&piped), EXAMPLE);
    assert_eq!((piped.modules, piped.info.machine), (filed.modules, filed.info.machine));
}

#[test]
fn compressed_records_are_unpacked_across_their_pieces() {
    assert_eq!(drawn(&read(&example().compressed().file())), EXAMPLE);
    assert_eq!(drawn(&read(&example().compressed().pipe())), EXAMPLE);
}

#[test]
fn a_file_of_the_other_byte_order_is_read() {
    let mut drawing = Drawing::of(Endianness::BigEndian);
    drawing.event(1, 0, 0).event_names(&["cpu-clock"]);
    drawing.comm(40, "sim", 0).map(40, 0x55_0000, 0x2000, "/opt/sim/bin/sim");
    drawing.sample(0, 40, 1_000, 250, &[USER, 0x55_0010, 0x55_0201]);
    assert_eq!(drawn(&read(&drawing.file())), ["1000 40 cpu-clock 250 sim+0x2200;sim+0x2010"]);
}

#[test]
fn the_file_of_a_killed_recorder_is_read_to_its_end() {
    let mut drawing = example();
    drawing.features.clear();
    let mut file = drawing.file();
    file[48..56].fill(0); // the size of the records
    let capture = read(&file);
    assert_eq!(capture.samples.len(), 4);
    assert_eq!(capture.info.events[1].name, "page-faults");
    assert!(capture.info.notes[0].starts_with("perf record was killed before it completed the file"));
}

#[test]
fn a_file_that_is_cut_behind_its_records_says_what_is_missing() {
    let whole = example().file();
    let capture = read(&whole[..whole.len() - 1]);
    assert_eq!((capture.samples.len(), capture.info.losses.malformed_records), (4, 1));
    assert!(capture.info.notes[0].starts_with("The file is truncated behind its records"), "{:?}", capture.info.notes);
}

#[test]
fn a_file_cut_at_any_byte_keeps_the_samples_before_the_cut() {
    let whole = example().file();
    let mut before = 0;
    for end in 0..whole.len() {
        match import(Source::stream("x", &whole[..end]), &options()) {
            Ok(capture) => {
                assert!(capture.samples.len() >= before, "cut at {end}");
                before = capture.samples.len();
            }
            Err(error) => assert_eq!(before, 0, "cut at {end}: {error}"),
        }
    }
    assert_eq!(before, 4);
}

#[test]
fn behind_damage_the_next_round_is_read() {
    let mut drawing = example();
    let good = drawing.records.len();
    drawing.records.extend([0; 64]);
    drawing.round().sample(0, 40, 9_000, 250, &[USER, 0x55_0020]);
    let at = drawing.file().len() - drawing.features.values().map(|content| content.len() + 16).sum::<usize>();
    let at = at - drawing.records.len() + good;
    let capture = read(&drawing.file());
    assert_eq!(capture.samples.len(), 5);
    assert_eq!(capture.info.losses.malformed_records, 1);
    let note = format!(
        "The file is damaged at 1 place, first at byte {at} (a record has an impossible size); 64 bytes are lost, the \
         rest is kept."
    );
    assert!(capture.info.notes.contains(&note), "{:?}", capture.info.notes);
}

#[test]
fn lengths_that_lie_are_not_believed() {
    let mut drawing = example();
    let lying = drawing.bytes().u64s(&[100, 0x55_0010]).u32s(&[40, 40]).u64s(&[5_000]).u32s(&[1, 0]);
    let lying = lying.u64s(&[250, u64::MAX, USER, 0x55_0010]);
    drawing.record(9, USER_MODE, lying);
    let mut file = drawing.file();
    let capture = read(&file);
    assert_eq!((capture.samples.len(), capture.info.losses.malformed_records), (4, 1));
    file[32..40].fill(0xff); // the size of the attributes
    assert!(
        import(Source::stream("x", &file[..]), &options()).unwrap_err().to_string().contains("it has a damaged header")
    );
}

#[test]
fn a_wait_ends_when_the_thread_before_left_the_cpu_unless_another_one_ran_in_between() {
    for (last, end_ns) in [(41, 2_000), (99, 5_000), (0, 5_000)] {
        let mut drawing = Drawing::new();
        drawing.event(1, 0, CONTEXT_SWITCH).comm(40, "sim", 0).comm(41, "other", 0);
        drawing.sample(0, 40, 1_000, 250, &[]).switch_with(40, 41, 1_100, 1 << 13).switch_with(41, 40, 1_110, 0);
        drawing.switch_with(41, last, 2_000, 1 << 13).switch_with(40, last, 5_000, 0).sample(0, 40, 7_000, 250, &[]);
        let capture = read(&drawing.file());
        let of_sim = |wait: &stepscope_model::Wait| capture.threads[wait.thread.index()].tid == 40;
        let waits: Vec<_> = capture.waits.iter().filter(of_sim).map(|wait| (wait.start_ns, wait.end_ns)).collect();
        assert_eq!(waits, [(1_100, end_ns)], "{last} was the last");
    }
}

#[test]
fn switch_records_become_waits_from_the_first_time_on() {
    let mut drawing = Drawing::new();
    drawing.event(1, 0, CONTEXT_SWITCH);
    drawing.comm(40, "sim", 0);
    drawing.sample(0, 40, 1_000, 250, &[]).switch(40, 2_000, 1 << 13).switch(40, 5_000, 0);
    drawing.switch(40, 6_000, 1 << 13 | 1 << 14).switch(40, 6_500, 0).sample(0, 40, 7_000, 250, &[]);
    let capture = read(&drawing.file());
    let waits: Vec<_> = capture.waits.iter().map(|wait| (wait.start_ns, wait.end_ns, wait.state)).collect();
    assert_eq!(waits, [(2_000, 5_000, WaitState::Blocked), (6_000, 6_500, WaitState::Preempted)]);
    assert_eq!((capture.threads[0].start_ns, capture.threads[0].cpu_ns), (Some(1_000), Some(2_500)));
}

#[test]
fn a_process_that_ran_before_has_its_own_program_and_a_new_one_that_of_its_parent() {
    let mut drawing = Drawing::new();
    drawing.event(1, 0, SAMPLE_ID_ALL).comm(40, "launch", 0).map(40, 0x1000, 0, "/opt/launch");
    drawing.fork(41, 40, 0).comm(41, "node", 0).map(41, 0x8000, 0, "/opt/node");
    drawing.fork(42, 40, 1_500);
    drawing.sample(0, 41, 2_000, 1, &[USER, 0x8100]).sample(0, 41, 3_000, 1, &[USER, 0x1100]);
    drawing.sample(0, 42, 4_000, 1, &[USER, 0x1100]);
    let capture = read(&drawing.file());
    let programs: Vec<_> = capture.processes.iter().map(|process| &*process.executable).collect();
    assert_eq!(programs, ["/opt/launch", "/opt/node", "/opt/launch"]);
    let functions: Vec<_> = drawn(&capture).iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!((&*functions[0], &*functions[2]), ("node+0x100", "launch+0x100"));
    assert!(!functions[1].contains("launch"), "{functions:?}");
}

#[test]
fn what_perf_does_before_it_enables_its_events_is_not_running_time() {
    let mut drawing = Drawing::new();
    drawing.event(1, 0, CONTEXT_SWITCH);
    drawing.comm(40, "perf", 100).sample(0, 40, 1_000, 250, &[]).switch(40, 2_000, 1 << 13).switch(40, 5_000, 0);
    drawing.sample(0, 40, 7_000, 250, &[]);
    let capture = read(&drawing.file());
    assert_eq!((capture.info.start_ns, capture.threads[0].cpu_ns), (Some(1_000), Some(3_000)));
}

#[test]
fn an_inode_that_is_called_a_build_id_is_none() {
    const CLAIMED: u16 = 1 << 14;
    let mut drawing = Drawing::new();
    drawing.event(1, 0, 0);
    // Device 8:1, where a build-id of 8 bytes would be.
    let body = drawing.bytes().u32s(&[40, 40]).u64s(&[0x55_0000, 0x1000, 0]).u32s(&[8, 1]).u64s(&[7, 0]);
    let body = drawing.tail(body.u32s(&[5, 2]).text("/opt/sim/bin/sim", 0), 40, 0);
    drawing.record(10, USER_MODE | CLAIMED, body).sample(0, 40, 1_000, 1, &[0x55_0010]);
    let capture = read(&drawing.file());
    assert_eq!((capture.modules[0].name(), &capture.modules[0].build_id), ("sim", &None));
}

#[test]
fn the_names_of_events_fall_back_to_the_kernels() {
    let mut drawing = Drawing::new();
    drawing.event(0, 0x4_0000_0000, 0).event(1, 1, 0).event(2, 77, 0).event(4, 0x1c2, 0);
    for event in 0..4 {
        drawing.sample(event, 1, 1_000 + event, 1, &[]);
    }
    let capture = read(&drawing.file());
    let events: Vec<_> = capture.info.events.iter().map(|event| (&*event.name, &*event.unit)).collect();
    let expected =
        [("cycles", "cycles"), ("task-clock", "ns"), ("tracepoint 77", "events"), ("event 4 0x1c2", "weight")];
    assert_eq!(events, expected);
}

#[test]
fn a_file_without_a_record_is_an_error_that_says_so() {
    let mut drawing = Drawing::new();
    drawing.event(1, 0, 0);
    let error = import(Source::stream("x", &drawing.file()[..]), &options()).unwrap_err().to_string();
    assert_eq!(error, "x: has no valid record of perf.data; check that the file is complete and has that format");
}

/// The seeds of the fuzz target; `BLESS=1` writes them.
#[test]
fn the_seeds_are_what_is_drawn_here() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/perf_data");
    let seeds = [("file", example().file()), ("pipe", example().pipe()), ("packed", example().compressed().file())];
    for (name, bytes) in seeds {
        let path = folder.join(format!("{name}.perf.data"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(
            std::fs::read(&path).unwrap() == bytes,
            "{} is not what is drawn here; BLESS=1 writes it",
            path.display()
        );
    }
}

/// A file as `perf c2c record` writes it, drawn by hand from the layout of `PERF_RECORD_SAMPLE`: ADDR (8) after TIME, then WEIGHT (1 << 14)
/// and DATA_SRC (1 << 15) at the end.
fn accesses(samples: &[(u32, u64, u64, u64)]) -> Drawing {
    const LINES: u64 = PERIODS | 8 | 1 << 14 | 1 << 15;
    let mut drawing = Drawing::new();
    let attribute = drawing.bytes().u32s(&[4, 128]).u64s(&[0x1cd, 999, LINES, 0, SAMPLE_ID_ALL]);
    let mut attribute = attribute.0;
    attribute.resize(128, 0);
    drawing.attributes.push(attribute);
    drawing.event_names(&["cpu/mem-loads,ldlat=30/P"]);
    drawing.comm(40, "sim", 0).map(40, 0x55_0000, 0x2000, "/opt/sim/bin/sim");
    for (index, &(tid, address, weight, source)) in samples.iter().enumerate() {
        let time = 1_000 + index as u64;
        let body = drawing.bytes().u64s(&[100, 0x55_0010]).u32s(&[40, tid]).u64s(&[time, address]).u32s(&[1, 0]);
        let body = body.u64s(&[7, 2, USER, 0x55_0010, weight, source]);
        drawing.record(9, USER_MODE, body);
    }
    drawing
}

/// L3 hit, HITM.
const MODIFIED_LOAD: u64 = 0x02 | 0x42 << 5 | 0x10 << 19;
/// L1 hit.
const STORE: u64 = 0x04 | 0x0a << 5 | 0x02 << 19;
/// Of a remote cache, HITM.
const REMOTE_LOAD: u64 = 0x02 | 0x402 << 5 | 0x10 << 19;

#[test]
fn accesses_of_perf_c2c_are_read_with_their_cost() {
    let lines = accesses(&[
        (40, 0x9000, 300, MODIFIED_LOAD),
        (41, 0x9008, 0, STORE),
        (40, 0x9000, 500, REMOTE_LOAD),
        (41, 0x7000, 40, MODIFIED_LOAD),
        (41, 0, 40, MODIFIED_LOAD),
    ]);
    for bytes in [lines.file(), lines.pipe()] {
        let capture = read(&bytes);
        let row = |row: &stepscope_model::DataAccess| {
            let tid = capture.threads[row.thread.index()].tid;
            (tid, row.address, row.reads, row.writes, row.local_hitm, row.remote_hitm, row.latency_cycles)
        };
        let rows: Vec<_> = capture.data_accesses.iter().map(row).collect();
        assert_eq!(
            rows,
            [(40, 0x9000, 2, 0, Some(1), Some(1), Some(800)), (41, 0x9008, 0, 1, Some(0), Some(0), Some(0))],
            "a line of one thread is only counted, and an access without an address is none"
        );
        assert_eq!((capture.info.losses.private_accesses, capture.samples.len()), (Some(1), 5));
        assert_eq!(capture.info.dimensions[&Dimension::Sharing], DimensionStatus::Recorded);
        let function = capture.frames_of(capture.data_accesses[0].stack).map(|frame| capture.function(frame)).next();
        assert_eq!(function, Some("sim+0x2010"));
    }
}

#[test]
fn accesses_that_are_cut_or_flipped_anywhere_do_not_panic() {
    let file = accesses(&[(40, 0x9000, 300, MODIFIED_LOAD), (41, u64::MAX, u64::MAX, u64::MAX)]).file();
    let try_to_read = |bytes: &[u8]| drop(import(Source::stream("perf.data", bytes), &options()));
    for at in 0..file.len() {
        try_to_read(&file[..at]);
        let mut flipped = file.clone();
        flipped[at] ^= 0xff;
        try_to_read(&flipped);
    }
}
