use std::sync::{Mutex, MutexGuard, PoisonError};

use proptest::prelude::*;

use super::*;

/// Records in a ring, of which the first says whose it is.
const RECORDS: u64 = 32_768;

/// The marks that this process itself makes, for one test at a time.
fn our_marks() -> (MutexGuard<'static, ()>, Segment) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    stepscope_marks::counter!("begin", 0);
    let found = Folder::shared_memory().look().unwrap();
    let (_, path) = found.into_iter().find(|(pid, _)| *pid == std::process::id()).unwrap();
    (turn, Segment::take(&path, identity()).unwrap())
}

/// What a thread counted, as far as it arrived.
fn counted(segment: &mut Segment, tid: u32, into: &mut Vec<u64>) {
    segment.look();
    segment.drain(&mut Vec::new(), |segment, record| {
        if record.kind == Kind::Counter && segment.thread_of(record.ring) == tid {
            into.push(record.payload);
        }
    });
}

fn thread_id() -> u32 {
    // SAFETY: the call has no arguments and no effect.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A thread marks so often, then the recorder reads, and so on: what arrives is exactly what a ring of this
    /// size had room for, in order, and the rest is counted.
    #[test]
    fn any_interleaving_of_program_and_recorder_loses_only_counted_marks(
        turns in prop::collection::vec(prop_oneof![0u64..100, 30_000u64..70_000], 1..8),
    ) {
        let (_lock, mut segment) = our_marks();
        let lost_before = segment.lost();
        let (arrived, expected, made) = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let (mut arrived, mut expected, mut made) = (Vec::new(), Vec::new(), 0);
                for (turn, &marks) in turns.iter().enumerate() {
                    let room = RECORDS - u64::from(turn == 0);
                    expected.extend(made..made + marks.min(room));
                    for _ in 0..marks {
                        stepscope_marks::counter!("marks", made);
                        made += 1;
                    }
                    counted(&mut segment, thread_id(), &mut arrived);
                    // A ring is taken with the first mark.
                    if made == 0 {
                        return (arrived, expected, made);
                    }
                }
                (arrived, expected, made)
            });
            thread.join().unwrap()
        });
        let lost = segment.lost() - lost_before;
        segment.dismiss();
        prop_assert_eq!(arrived.len() as u64 + lost, made);
        prop_assert_eq!(arrived, expected);
    }

    /// Whatever stands in a segment, reading it comes to an end, and what is given makes sense.
    #[test]
    fn no_content_of_a_segment_harms_the_recorder(
        rings in 0u32..20,
        bytes in prop::collection::vec(any::<u8>(), 12_288..13_000),
        heads in prop::collection::vec(prop_oneof![0u64..40, any::<u64>()], 8),
        cut in prop::option::of(0u64..13_000),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("stepscope-marks-{}-0", std::process::id()));
        let mut bytes = bytes;
        bytes[..layout::HEADER_BYTES].copy_from_slice(&layout::tests::drawn(16));
        bytes[16..20].copy_from_slice(&std::process::id().to_ne_bytes());
        bytes[32..40].copy_from_slice(&owner::pid_namespace().unwrap().to_ne_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let mut segment = Segment::take(&path, identity()).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        use std::os::unix::fs::FileExt as _;
        file.write_all_at(&rings.to_ne_bytes(), 132).unwrap();
        for (ring, head) in heads.iter().enumerate() {
            file.write_all_at(&head.to_ne_bytes(), 8192 + ring as u64 * 128).unwrap();
        }
        cut.into_iter().for_each(|cut| file.set_len(cut).unwrap());
        for _ in 0..4 {
            segment.look();
            segment.drain(&mut Vec::new(), |segment, record| {
                assert!(record.ring < 8);
                let _ = segment.name(record.name);
            });
        }
    }
}

#[test]
fn a_thread_that_marks_while_the_recorder_reads_loses_only_counted_marks() {
    const MARKS: u64 = 500_000;
    let (_lock, mut segment) = our_marks();
    let lost_before = segment.lost();
    let mut arrived = Vec::new();
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = scope.spawn(move || {
            sender.send(thread_id()).unwrap();
            for value in 0..MARKS {
                stepscope_marks::counter!("marks", value);
            }
        });
        let tid = receiver.recv().unwrap();
        while !thread.is_finished() {
            counted(&mut segment, tid, &mut arrived);
        }
        counted(&mut segment, tid, &mut arrived);
    });
    segment.dismiss();
    assert!(arrived.is_sorted_by(|a, b| a < b), "each once, in order");
    assert_eq!(arrived.len() as u64 + segment.lost() - lost_before, MARKS);
}

#[test]
fn a_segment_whose_name_has_another_pid_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stepscope-marks-1-0");
    let mut header = layout::tests::drawn(16);
    std::fs::write(&path, &header).unwrap();
    assert!(matches!(Segment::take(&path, identity()), Err(Refusal::Elsewhere)));
    header[32..40].copy_from_slice(&owner::pid_namespace().unwrap().to_ne_bytes());
    std::fs::write(&path, &header).unwrap();
    assert!(matches!(Segment::take(&path, identity()), Err(Refusal::Foreign)));
}

#[test]
fn a_second_recorder_names_the_first_and_takes_over_when_it_ends() {
    let (_lock, first) = our_marks();
    let found = Folder::shared_memory().look().unwrap();
    let (_, path) = found.into_iter().find(|(pid, _)| *pid == std::process::id()).unwrap();
    let refused = Segment::take(&path, identity()).unwrap_err();
    assert_eq!(refused.to_string(), format!("process {} records them already", std::process::id()));
    // A recorder that is killed takes its lock with it, and leaves its flag up.
    drop(first);
    Segment::take(&path, identity()).unwrap().dismiss();
}
