use stepscope_model::{CaptureInfo, ClockExchange, ClockPeer, Event, FlowStage, Losses, WaitState};

use super::*;
use crate::data_source::Hitm;
use crate::entry::{
    AccessCost, AllocationBurst, AllocationSums, Allocations, DataAccess, EventRef, FrameRef, MarkNameRef,
    MarkThreadRef, Module, ModuleKind, ModuleRef, ProcessRef, RecordingEnd, Sample, StackRef, SystemCalls, ThreadRef,
    Wait,
};
use crate::system_call::Amount;

fn flow_mark(time_ns: u64, flow: u64, stage: FlowStage) -> Entry {
    let (thread, name) = (MarkThreadRef(1), MarkNameRef(0));
    Entry::FlowMark { thread, name, time_ns, flow: Some(flow), stage, by: None, period_ns: None }
}

fn entries() -> Vec<Entry> {
    let sample = |time_ns, stack, weight| {
        let (thread, event) = (ThreadRef(0), EventRef(0));
        Entry::Sample(Sample { time_ns, thread, cpu: time_ns.map(|_| 1), stack, event, weight })
    };
    let wait = Wait {
        start_ns: 5_000,
        end_ns: 9_000,
        thread: ThreadRef(0),
        stack: Some(StackRef(1)),
        state: WaitState::Blocked,
        runnable_ns: Some(250),
        cpu: Some(3),
        waker: Some(ThreadRef(0)),
        waker_stack: Some(StackRef(0)),
        count: 1,
    };
    let calls = SystemCalls {
        start_ns: 2_000,
        end_ns: 2_100,
        thread: ThreadRef(0),
        call: "openat".into(),
        stack: Some(StackRef(1)),
        file: Some("/o".into()),
        amount: Amount { count: 3, errors: 1, total_ns: 90, longest_ns: 50, bytes: 0 },
        last_ns: Some(20),
        times: Vec::new(),
    };
    vec![
        Entry::Start(Box::default()),
        Entry::WindowStart { time_ns: 900 },
        Entry::Program {
            command: vec!["sim".into()],
            working_directory: Some("/".into()),
            environment: [("LD_BIND_NOW".to_owned(), "1".to_owned())].into(),
        },
        Entry::Event(Event::sampled("cpu-clock", "ns")),
        Entry::Process { pid: 40, parent_pid: Some(1), start_ns: None },
        Entry::Image {
            process: ProcessRef(0),
            executable: "/bin/sim".into(),
            command_line: vec!["sim".into(), "a world".into()],
        },
        Entry::Thread { tid: 40, process: ProcessRef(0), start_ns: Some(1_000), name: "sim".into() },
        Entry::ThreadName { thread: ThreadRef(0), time_ns: 1_500, name: "server".into() },
        Entry::Module(Module { kind: ModuleKind::File, path: "/bin/sim".into(), build_id: Some(vec![1, 2]) }),
        Entry::Module(Module { kind: ModuleKind::Jit(40), path: "[jit]".into(), build_id: None }),
        Entry::Module(Module { kind: ModuleKind::StackMarks, path: "[stack]".into(), build_id: None }),
        Entry::Frame { module: Some(ModuleRef(0)), offset: 0x1234 },
        Entry::Frame { module: None, offset: u64::MAX },
        Entry::Stack { parent: None, frame: FrameRef(0) },
        Entry::Stack { parent: Some(StackRef(0)), frame: FrameRef(1) },
        sample(Some(2_000), Some(StackRef(1)), 1_003_009),
        sample(Some(1_990), Some(StackRef(0)), 1_003_009),
        sample(None, None, 1),
        Entry::Wait(wait),
        Entry::Wait(Wait {
            state: WaitState::Preempted,
            runnable_ns: Some(4_000),
            waker: None,
            waker_stack: None,
            count: 1,
            ..wait
        }),
        Entry::Wait(Wait { runnable_ns: None, stack: None, cpu: None, waker_stack: None, ..wait }),
        Entry::Counter {
            time_ns: 3_000,
            process: ProcessRef(0),
            thread: Some(ThreadRef(0)),
            name: "rss_bytes".into(),
            value: -4,
        },
        Entry::DataAccess(Box::new(DataAccess {
            thread: ThreadRef(0),
            stack: Some(StackRef(1)),
            address: u64::MAX - 7,
            bytes: 8,
            is_read: true,
            is_write: false,
            is_awaited: false,
            cost: Some(AccessCost { hitm: Hitm::Remote, latency_cycles: 900 }),
            object: None,
        })),
        Entry::DataAccess(Box::new(DataAccess {
            thread: ThreadRef(0),
            stack: None,
            address: 0x40_4040,
            bytes: 0,
            is_read: false,
            is_write: true,
            is_awaited: true,
            cost: None,
            object: Some((ModuleRef(0), 0x4040)),
        })),
        Entry::SystemCalls(Box::new(calls.clone())),
        Entry::SystemCalls(Box::new(SystemCalls { times: vec![(3, 1), (u64::MAX, 7)], last_ns: None, ..calls })),
        Entry::Allocations(Box::new(Allocations {
            start_ns: 2_000,
            end_ns: 3_100,
            process: ProcessRef(0),
            thread: None,
            stack: Some(StackRef(1)),
            sums: AllocationSums {
                calls: 7,
                bytes: 1 << 40,
                temporary: 3,
                frees: 5,
                foreign_frees: 1,
                lifetimes: [0, 0, 6, 0, 0, 0, 0, u32::MAX],
                sizes: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6],
                ..AllocationSums::default()
            },
            live_blocks: 1,
            live_bytes: -5,
            peak_bytes: 9,
        })),
        Entry::AllocationBurst(AllocationBurst {
            start_ns: 2_010,
            end_ns: 2_950,
            process: ProcessRef(0),
            thread: Some(ThreadRef(0)),
            stack: Some(StackRef(1)),
            calls: 3,
            bytes: 1 << 40,
        }),
        Entry::StepStart { time_ns: 2_950, thread: ThreadRef(0), sim_time_ns: None },
        Entry::StepStart { time_ns: 2_960, thread: ThreadRef(0), sim_time_ns: Some(5_000_000) },
        Entry::MarkName { name: "physics".into() },
        Entry::MarkThread { pid: 40, tid: 41, time_ns: 2_960 },
        Entry::MarkThread { pid: 40, tid: 40, time_ns: 2_961 },
        Entry::Scope { thread: MarkThreadRef(1), name: MarkNameRef(0), start_ns: 2_970, end_ns: 2_980 },
        Entry::Scope { thread: MarkThreadRef(1), name: MarkNameRef(0), start_ns: 2_965, end_ns: 2_990 },
        Entry::StepMark { thread: MarkThreadRef(0), time_ns: 2_950, sim_time_ns: Some(-7) },
        Entry::StepMark { thread: MarkThreadRef(0), time_ns: 2_999, sim_time_ns: None },
        Entry::FrameMark { thread: MarkThreadRef(1), name: MarkNameRef(0), time_ns: u64::MAX },
        Entry::MarkedCounter { thread: MarkThreadRef(1), name: MarkNameRef(0), time_ns: 3_010, value: i64::MIN },
        flow_mark(3_011, 0, FlowStage::Published),
        flow_mark(3_012, 7, FlowStage::Passed),
        flow_mark(3_013, u64::MAX, FlowStage::Arrived),
        flow_mark(3_014, 8, FlowStage::Taken),
        Entry::FlowMark {
            thread: MarkThreadRef(1),
            name: MarkNameRef(0),
            time_ns: 3_015,
            flow: None,
            stage: FlowStage::CallbackStart,
            by: Some(MarkNameRef(0)),
            period_ns: Some(10_000_000),
        },
        Entry::ClockPeer(Box::new(ClockPeer {
            address: "base:4187".into(),
            exchanges: vec![ClockExchange { sent_ns: u64::MAX, ..ClockExchange::default() }],
            ..ClockPeer::default()
        })),
        Entry::MarksLost { count: 300 },
        Entry::ThreadEnd { thread: ThreadRef(0), time_ns: Some(9_500), cpu_ns: Some(7), runnable_ns: None },
        Entry::WorkingDirectory { process: ProcessRef(0), path: "/a b".into() },
        Entry::ProcessEnd { process: ProcessRef(0), time_ns: 9_500 },
        Entry::ExitStatus { pid: 40, status: -1 },
        Entry::ExitUsage { pid: 40, cpu_ns: 1_000_000, peak_rss_bytes: Some(4096) },
        Entry::ExitUsage { pid: 40, cpu_ns: u64::MAX, peak_rss_bytes: None },
        Entry::Losses(Box::new(Losses { lost_records: 3, ..Losses::default() })),
        Entry::RecordingEnd(Box::new(RecordingEnd { end_ns: Some(10_000), ..RecordingEnd::default() })),
    ]
}

/// A log of which every entry is a chunk, and the offsets at which chunks end. A last chunk repeats the end.
fn log_of(entries: &[Entry]) -> (Vec<u8>, Vec<usize>) {
    let mut log = Writer::new(Vec::new()).unwrap();
    for entry in entries {
        log.take(entry.clone());
        log.flush();
    }
    let ends = ends_of(&log.out);
    (log.out, ends)
}

/// The offsets at which the chunks of a whole log end.
fn ends_of(log: &[u8]) -> Vec<usize> {
    let mut at = MAGIC.len();
    std::iter::from_fn(|| {
        let head = log.get(at..at + 12)?;
        assert_eq!(&head[..8], CHUNK_MARK);
        at += 12 + u32::from_le_bytes(head[8..].try_into().unwrap()) as usize;
        Some(at)
    })
    .collect()
}

#[test]
fn a_written_log_is_read_back() {
    let mut log = Writer::new(Vec::new()).unwrap();
    entries().into_iter().for_each(|entry| log.take(entry));
    log.flush();
    let mut read = Vec::new();
    assert_eq!(super::read(&log.out[..], &mut read).unwrap(), Ending::Complete);
    assert_eq!(read, entries());
}

#[test]
fn a_log_cut_at_any_byte_keeps_everything_before_the_cut() {
    let (log, ends) = log_of(&entries());
    for cut in 0..log.len() {
        let mut read = Vec::new();
        let ending = super::read(&log[..cut], &mut read);
        if cut < MAGIC.len() {
            assert!(matches!(ending, Err(ReadError::NotALog)));
            continue;
        }
        let whole = ends.iter().filter(|&&end| end <= cut).count().min(entries().len());
        assert_eq!(read, entries()[..whole], "cut at {cut}");
        let last = ends.iter().copied().rfind(|&end| end <= cut).unwrap_or(MAGIC.len());
        let damage = Damage { offset: last as u64, bytes_at_end: (cut - last) as u64, ..Damage::default() };
        let expected = if cut == last { Ending::Complete } else { Ending::Damaged(damage) };
        assert_eq!(ending.unwrap(), expected, "cut at {cut}");
    }
}

/// What is left of these entries without the one at this place, if a chunk holds each.
fn without(entries: &[Entry], lost: usize) -> Vec<Entry> {
    let is_lost = |(index, entry): &(usize, &Entry)| *index == lost && !Kind::of(entry).is_repeated();
    entries.iter().enumerate().filter(|entry| !is_lost(entry)).map(|(_, entry)| entry.clone()).collect()
}

#[test]
fn a_flipped_bit_loses_the_samples_and_marks_of_its_chunk_alone() {
    let (log, ends) = log_of(&entries());
    for byte in MAGIC.len()..log.len() {
        let mut damaged = log.clone();
        damaged[byte] ^= 0x10;
        let mut read = Vec::new();
        let ending = super::read(&damaged[..], &mut read).unwrap();
        let chunk = ends.iter().filter(|&&end| end <= byte).count();
        match ending {
            Ending::Damaged(damage) => {
                assert_eq!(read, without(&entries(), chunk), "byte {byte}");
                let lost: u64 = Kind::ALL.into_iter().map(|kind| damage.lost[kind]).sum();
                assert_eq!(lost, (entries().len() - read.len()) as u64, "byte {byte}");
                let start = if chunk == 0 { MAGIC.len() } else { ends[chunk - 1] };
                assert_eq!(damage.offset, start as u64, "byte {byte}");
                // The last chunk only repeats.
                let is_last = chunk + 1 == ends.len();
                assert_eq!((damage.places, damage.bytes_at_end > 0), (u64::from(!is_last), is_last), "byte {byte}");
            }
            // zstd's frame header has a bit that means nothing.
            Ending::Complete => assert_eq!(read, entries(), "byte {byte}"),
        }
    }
}

/// Entries by chunk: the second chunk has the thread, the frame and the stack of all samples.
fn chunks_of_samples() -> [Vec<Entry>; 5] {
    let sample = |time_ns, stack| {
        let (thread, event) = (ThreadRef(1), EventRef(0));
        Entry::Sample(Sample {
            time_ns: Some(time_ns),
            thread,
            cpu: None,
            stack: Some(StackRef(stack)),
            event,
            weight: 1,
        })
    };
    let thread = |tid, process| {
        let name = format!("thread {tid}");
        Entry::Thread { tid, process: ProcessRef(process), start_ns: None, name }
    };
    [
        vec![
            Entry::Start(Box::default()),
            Entry::Event(Event::sampled("cpu-clock", "ns")),
            Entry::Process { pid: 40, parent_pid: None, start_ns: None },
            thread(40, 0),
            Entry::Module(Module { kind: ModuleKind::File, path: "/bin/sim".into(), build_id: None }),
        ],
        vec![
            thread(41, 0),
            Entry::Frame { module: Some(ModuleRef(0)), offset: 0x10 },
            Entry::Stack { parent: None, frame: FrameRef(0) },
            sample(100, 0),
        ],
        vec![sample(200, 0), sample(201, 0)],
        vec![
            Entry::Process { pid: 50, parent_pid: None, start_ns: None },
            thread(51, 1),
            Entry::Frame { module: Some(ModuleRef(0)), offset: 0x20 },
            Entry::Stack { parent: Some(StackRef(0)), frame: FrameRef(1) },
            sample(300, 1),
        ],
        vec![
            sample(400, 1),
            Entry::ThreadName { thread: ThreadRef(1), time_ns: 410, name: "late".into() },
            Entry::ThreadName { thread: ThreadRef(2), time_ns: 411, name: "later".into() },
            Entry::RecordingEnd(Box::default()),
        ],
    ]
}

/// The log of these chunks, and where each starts.
fn log_of_chunks(chunks: &[Vec<Entry>]) -> (Vec<u8>, Vec<usize>) {
    let mut log = Writer::new(Vec::new()).unwrap();
    let mut starts = Vec::new();
    for chunk in chunks {
        starts.push(log.bytes() as usize);
        chunk.iter().for_each(|entry| log.take(entry.clone()));
        log.flush();
    }
    (log.out, starts)
}

fn capture_of(log: &[u8]) -> stepscope_model::Capture {
    let capture = crate::finish(log, &mut crate::NoSymbols).unwrap();
    capture.check().unwrap();
    capture
}

/// Time, thread and stack of each sample.
fn samples_of(capture: &stepscope_model::Capture) -> Vec<String> {
    let shown = |sample: &stepscope_model::Sample| {
        let frames: Vec<&str> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
        let thread = &capture.threads[sample.thread.index()];
        format!("{} {} {}", sample.time_ns.unwrap(), thread.tid, frames.join(" "))
    };
    capture.samples.iter().map(shown).collect()
}

#[test]
fn a_bit_flipped_in_each_chunk_in_turn_loses_that_chunk_alone() {
    let (log, starts) = log_of_chunks(&chunks_of_samples());
    let whole = capture_of(&log);
    let all = samples_of(&whole);
    assert_eq!(all.len(), 5);
    for (chunk, start) in starts.iter().enumerate() {
        let mut damaged = log.clone();
        damaged[start + 20] ^= 1;
        let capture = capture_of(&damaged);
        let in_chunk = |sample: &&String| sample.starts_with(&chunk.to_string());
        let kept: Vec<&String> = all.iter().filter(|sample| !in_chunk(sample)).collect();
        assert_eq!(samples_of(&capture).iter().collect::<Vec<_>>(), kept, "chunk {chunk}");
        assert_eq!(capture.threads, whole.threads, "chunk {chunk}");
        assert_eq!(capture.info.losses.malformed_records, 0);
        let [note] = &capture.info.notes[..] else { panic!("{:?}", capture.info.notes) };
        let lost = match all.len() - kept.len() {
            0 => "no sample, wait or mark is lost".to_owned(),
            1 => "it lost 1 sample".to_owned(),
            samples => format!("it lost {samples} samples"),
        };
        assert_eq!(*note, format!("The raw log is damaged at byte {start}: {lost}."));
    }
}

/// A wait of a thread, without anything else.
fn blocked(thread: u32, start_ns: u64, end_ns: u64) -> Wait {
    Wait {
        start_ns,
        end_ns,
        thread: ThreadRef(thread),
        stack: None,
        state: WaitState::Blocked,
        runnable_ns: None,
        cpu: None,
        waker: None,
        waker_stack: None,
        count: 1,
    }
}

#[test]
fn waits_of_a_lost_thread_are_lost_too() {
    let mut chunks = chunks_of_samples();
    let woken = Wait { waker: Some(ThreadRef(1)), waker_stack: Some(StackRef(1)), ..blocked(2, 310, 320) };
    chunks[3].extend([Entry::Wait(blocked(1, 310, 320)), Entry::Wait(woken)]);
    let (mut log, starts) = log_of_chunks(&chunks);
    log[starts[1]..starts[3]].fill(0);
    let capture = capture_of(&log);
    let [wait] = capture.waits.iter().collect::<Vec<_>>()[..] else { panic!("{:?}", capture.waits) };
    assert_eq!(capture.threads[wait.thread.index()].tid, 51);
    assert_eq!((wait.waker, wait.waker_stack), (None, None));
    assert!(capture.info.notes[0].contains("3 samples, 1 wait."), "{:?}", capture.info.notes);
}

#[test]
fn behind_several_lost_chunks_what_only_they_define_is_called_lost() {
    let (mut log, starts) = log_of_chunks(&chunks_of_samples());
    log[starts[1]..starts[3]].fill(0);
    let capture = capture_of(&log);
    // The leaf is known.
    assert_eq!(samples_of(&capture), ["300 0 /bin/sim+0x20 [lost]", "400 0 /bin/sim+0x20 [lost]"]);
    let threads: Vec<(u32, &str, u32)> = capture
        .threads
        .iter()
        .map(|thread| (thread.tid, &*thread.name, capture.processes[thread.process.unwrap().index()].pid))
        .collect();
    assert_eq!(threads, [(40, "thread 40", 40), (0, "(lost)", 0), (51, "later", 50)]);
    assert_eq!(capture.info.losses.malformed_records, 0);
    assert_eq!(
        capture.info.notes,
        [format!("The raw log is damaged at byte {}: it lost 1 thread, 1 address, 1 stack, 3 samples.", starts[1])]
    );
}

#[test]
fn the_time_of_lost_waits_is_counted_and_cpu_time_stays_exact() {
    let wait = |start_ns, end_ns| Entry::Wait(blocked(0, start_ns, end_ns));
    let reading = |time_ns, value| {
        let (process, thread, name) = (ProcessRef(0), Some(ThreadRef(0)), "thread_cpu_ns".to_owned());
        Entry::Counter { time_ns, process, thread, name, value }
    };
    const S: u64 = 1_000_000_000;
    let end = Entry::ThreadEnd { thread: ThreadRef(0), time_ns: Some(3 * S), cpu_ns: Some(S), runnable_ns: None };
    let [start, ..] = chunks_of_samples();
    let started = start.into_iter().map(|entry| match entry {
        Entry::Thread { tid, process, name, .. } => Entry::Thread { tid, process, start_ns: Some(0), name },
        entry => entry,
    });
    let chunks =
        [started.collect(), vec![reading(0, 0), wait(0, S)], vec![wait(S, 2 * S)], vec![reading(3 * S, S as i64), end]];
    let (mut log, starts) = log_of_chunks(&chunks);
    log[starts[2]] ^= 1;
    let capture = capture_of(&log);
    assert_eq!(capture.waits.len(), 1);
    assert_eq!(capture.threads[0].cpu_ns, Some(S));
    let losses = &capture.info.losses;
    assert_eq!((losses.lost_wait_ns, losses.unknown_cpu_ns, losses.lost_samples), (Some(S), None, Some(0)));
}

#[test]
fn without_its_start_a_log_is_still_that_of_a_recording() {
    let (log, starts) = log_of_chunks(&chunks_of_samples());
    let log = [&MAGIC[..], &log[starts[2]..]].concat();
    let capture = capture_of(&log);
    assert_eq!(capture.info.origin, stepscope_model::Origin::Recorded);
    assert_eq!(capture.samples.len(), 4);
    assert_eq!(&*capture.info.events[0].name, "(lost)");
    assert_eq!((capture.info.start_ns, capture.info.losses.lost_samples), (Some(200), Some(1)));
}

#[test]
fn logs_of_the_version_before_are_read_up_to_the_damage() {
    let chunk = |entries: &[Entry]| {
        let mut chunk = ChunkPacker::default();
        entries.iter().for_each(|entry| chunk.put(entry));
        framed(&[], &zstd::bulk::compress(chunk.bytes(), 1).unwrap())
    };
    let entries = entries();
    let (first, second) = (chunk(&entries[..9]), chunk(&entries[9..]));
    let log = [EARLIER_MAGIC, &first[..], &second].concat();
    let mut read = Vec::new();
    assert_eq!(super::read(&log[..], &mut read).unwrap(), Ending::Complete);
    assert_eq!(read, entries);
    read.clear();
    let damage = Damage {
        offset: (MAGIC.len() + first.len()) as u64,
        bytes_at_end: second.len() as u64 - 1,
        ..Damage::default()
    };
    let ending = super::read(&log[..log.len() - 1], &mut read).unwrap();
    assert_eq!((ending, &read[..]), (Ending::Damaged(damage), &entries[..9]));
}

#[test]
fn a_full_disk_leaves_a_whole_log_and_the_error() {
    struct Full(Vec<u8>);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > 400 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut log = Writer::new(Full(Vec::new())).unwrap();
    for entry in entries() {
        log.take(entry);
        log.flush();
    }
    assert_eq!(log.error().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    let mut read = Vec::new();
    assert_eq!(super::read(&log.out.0[..], &mut read).unwrap(), Ending::Complete);
    assert!(!read.is_empty() && entries().starts_with(&read));
}

/// A log of one sound chunk of these entries, behind nothing.
fn log_of_content(entries: &[u8]) -> Vec<u8> {
    let mut content = ChunkPacker::default();
    content.counts(&Counts::default());
    content.blob(&[]);
    let content = [content.bytes(), entries].concat();
    [&MAGIC[..], &framed(CHUNK_MARK, &zstd::bulk::compress(&content, 1).unwrap())].concat()
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
        let mut chunk = ChunkReader::new(&bytes);
        while chunk.entry().is_some() {}
        let packed = zstd::bulk::compress(&bytes, 1).unwrap();
        for log in [
            [&MAGIC[..], &bytes].concat(),
            [&EARLIER_MAGIC[..], &bytes].concat(),
            [&MAGIC[..], &framed(CHUNK_MARK, &packed)].concat(),
        ] {
            super::read(&log[..], &mut Vec::new()).unwrap();
        }
    }

    #[test]
    fn changed_entries_still_make_a_sound_capture(changes in proptest::collection::vec((0..2_000usize, 0u8..), 1..6)) {
        let mut chunk = ChunkPacker::default();
        entries().iter().for_each(|entry| chunk.put(entry));
        let mut content = chunk.bytes().to_vec();
        let length = content.len();
        changes.into_iter().for_each(|(at, byte)| content[at % length] = byte);
        capture_of(&log_of_content(&content));
    }

    #[test]
    fn damaged_logs_still_make_a_sound_capture(changes in proptest::collection::vec((0..6_000usize, 1usize..400, 0u8..), 1..6)) {
        let (mut log, _) = log_of(&entries());
        for (at, length, byte) in changes {
            let at = MAGIC.len() + at % (log.len() - MAGIC.len());
            let end = (at + length).min(log.len());
            match byte {
                0..128 => log[at..end].fill(byte),
                _ => drop(log.drain(at..end)),
            }
            if log.len() == MAGIC.len() {
                break;
            }
        }
        capture_of(&log);
    }
}

#[test]
fn the_start_keeps_what_is_known_of_the_recording() {
    let info = CaptureInfo { command: vec!["sim".into()], ..CaptureInfo::default() };
    let (log, _) = log_of(&[Entry::Start(Box::new(info.clone()))]);
    let mut read = Vec::new();
    super::read(&log[..], &mut read).unwrap();
    assert_eq!(read, [Entry::Start(Box::new(info))]);
}
