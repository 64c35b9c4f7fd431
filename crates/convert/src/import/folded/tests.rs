use stepscope_model::{Counts, Thread};

use super::*;
use crate::import::{Source, import};

fn read_with(options: FoldedOptions, bytes: &[u8]) -> Capture {
    let options = ImportOptions { format: Some(&Folded), folded: options, ..ImportOptions::default() };
    import(Source::stream("it", bytes), &options).unwrap()
}

fn read(bytes: impl AsRef<[u8]>) -> Capture {
    read_with(FoldedOptions::default(), bytes.as_ref())
}

/// Every sample as `thread|root|...|leaf=weight`.
fn drawn(capture: &Capture) -> Vec<String> {
    let draw = |sample: &Sample| {
        let mut names: Vec<&str> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
        names.push(&capture.threads[sample.thread.index()].name);
        names.reverse();
        format!("{}={}", names.join("|"), sample.weight)
    };
    capture.samples.iter().map(draw).collect()
}

#[test]
fn the_count_follows_the_last_space_and_names_keep_their_spaces() {
    let capture =
        read("main;void Foo<int, std::pair<long, long> >::Run;operator new 3\nmain;Step;std::function<bool  7\n");
    assert_eq!(
        drawn(&capture),
        ["main|void Foo<int, std::pair<long, long> >::Run|operator new=3", "main|Step|std::function<bool =7"]
    );
}

#[test]
fn linker_symbols_are_demangled_and_equal_names_are_one_function() {
    let capture = read("m;_ZN3sim3runEi;_ZN3sim4StepEv_[i] 1\nm;_ZN3sim3runEd 2\nm;_ZN 4\n");
    assert_eq!(drawn(&capture), ["m|sim::run|sim::Step_[i]=1", "m|sim::run=2", "m|_ZN=4"]);
    assert!(capture.frames[1].inlined);
}

#[test]
fn a_line_may_have_only_a_thread_and_names_may_be_empty() {
    let capture = read("worker 4\nworker; 5\n;a;;b 6\n 7\n");
    assert_eq!(drawn(&capture), ["worker=4", "worker|=5", "|a||b=6", "=7"]);
    assert_eq!(capture.samples[0].stack, None);
    assert!(capture.samples[1].stack.is_some());
}

#[test]
fn neighbouring_lines_share_only_frames_with_equal_names() {
    let capture = read("m;a;b 1\nm;a;bc 2\nm;a 3\nm;a;b 4\nm;ab 5\nmn;a 6\nm 7\n");
    assert_eq!(drawn(&capture), ["m|a|b=5", "m|a|bc=2", "m|a=3", "m|ab=5", "mn|a=6", "m=7"]);
    // a, a|b, a|bc, ab: threads share the tree.
    assert_eq!(capture.stacks.len(), 4);
    assert_eq!(capture.frames.len(), 4);
}

#[test]
fn recursion_has_one_node_per_level_and_one_frame() {
    let capture = read("m;a;b;a;a 10\n");
    assert_eq!((capture.frames.len(), capture.stacks.len()), (2, 4));
}

#[test]
fn lines_of_equal_stacks_are_added_up_until_64_bits_are_full() {
    let capture = read(format!("m;a 1\nm;b 2\nm;a 3\nm;a {}\nm;a 5\n", u64::MAX));
    assert_eq!(drawn(&capture), ["m|a=4", "m|b=2", &format!("m|a={}", u64::MAX), "m|a=5"]);
}

#[test]
fn windows_line_ends_blank_lines_and_comments_are_skipped() {
    let capture = read("# made by x 1\r\nm;a 1\r\n\r\n   \nm;b 2");
    assert_eq!(drawn(&capture), ["m|a=1", "m|b=2"]);
    assert_eq!(capture.info.losses.malformed_records, 0);
}

#[test]
fn malformed_lines_are_counted_and_the_first_is_noted_with_its_number() {
    let capture = read("m;a 1\nnonsense\nm;b 1.5\nm;c 99999999999999999999\nm;d -1\nm;e \nm;f 2\n");
    assert_eq!(drawn(&capture), ["m|a=1", "m|f=2"]);
    assert_eq!(capture.info.losses.malformed_records, 5);
    assert_eq!(
        capture.info.notes[0],
        "it: 5 malformed records skipped; the first is line 2: it has no space before a count."
    );
}

#[test]
fn a_file_without_a_valid_line_is_an_error_with_the_reason() {
    let options = ImportOptions { format: Some(&Folded), ..ImportOptions::default() };
    let error = import(Source::stream("it", &b"m;a x\n"[..]), &options).unwrap_err().to_string();
    assert_eq!(
        error,
        "it: has no valid record of folded (line 1: the text after the last space is not an integer); \
         check that the file is complete and has that format"
    );
}

#[test]
fn names_in_invalid_utf8_stay_different() {
    let capture = read(b"m;caf\xe9 1\nm;caf\xe8 2\n");
    assert_eq!(drawn(&capture), ["m|caf\\xe9=1", "m|caf\\xe8=2"]);
    assert!(capture.info.notes.iter().any(|note| note.contains("\\xHH")));
}

#[test]
fn marks_of_collapse_scripts_describe_the_frame_and_stay_in_its_name() {
    let capture = read("m;read_[k];f_[i];g_[j];_[i];[unknown];[libc.so.6];[kernel.kallsyms] 1\n");
    let frames: Vec<_> =
        capture.frames.iter().map(|frame| (&*frame.function, frame.language, frame.inlined, frame.module)).collect();
    let (native, kernel) = (Language::Native, Language::Kernel);
    assert_eq!(
        frames,
        [
            ("read_[k]", kernel, false, None),
            ("f_[i]", native, true, None),
            ("g_[j]", native, false, None),
            ("_[i]", native, false, None),
            ("[unknown]", native, false, None),
            ("[libc.so.6]", native, false, Some(ModuleId(0))),
            ("[kernel.kallsyms]", kernel, false, Some(ModuleId(1))),
        ]
    );
    assert_eq!(capture.modules[0].path, "libc.so.6");
}

#[test]
fn process_and_thread_ids_of_collapse_scripts_are_read() {
    let threads = |ids, lines: &str| {
        let capture = read_with(FoldedOptions { thread_ids: ids, ..FoldedOptions::default() }, lines.as_bytes());
        let pid = |thread: &Thread| thread.process.map(|process| capture.processes[process.index()].pid);
        capture.threads.iter().map(|thread| (thread.name.clone(), pid(thread), thread.tid)).collect::<Vec<_>>()
    };
    let lines = "sim-12/34;a 1\nsim-12/35;a 1\npool-1;a 1\nZMQbg/IO/0;a 1\nx-?/7;a 1\nx-012/7;a 1\n";
    let own = |threads: &[(&str, Option<u32>, u32)]| {
        threads.iter().map(|(name, pid, tid)| ((*name).to_owned(), *pid, *tid)).collect::<Vec<_>>()
    };
    assert_eq!(
        threads(ThreadIds::Detect, lines),
        own(&[
            ("sim", Some(12), 34),
            ("sim", Some(12), 35),
            ("pool-1", None, 1),
            ("ZMQbg/IO/0", None, 2),
            ("x", None, 7),
            ("x-012/7", None, 3)
        ])
    );
    assert_eq!(threads(ThreadIds::Pid, "pool-1;a 1\npool;a 1\n"), own(&[("pool", Some(1), 1), ("pool", None, 2)]));
    assert_eq!(threads(ThreadIds::Absent, "s-1/2;a 1\n"), own(&[("s-1/2", None, 1)]));
}

#[test]
fn lines_without_a_thread_start_with_a_function() {
    let options = FoldedOptions { first_frame: FirstFrame::Function, ..FoldedOptions::default() };
    let capture = read_with(options, b"main;a 1\nmain;a;b 2\nmain 3\nmain2;a 4\n;a 5\n 6\n");
    assert_eq!(drawn(&capture), ["|main|a=1", "|main|a|b=2", "|main=3", "|main2|a=4", "||a=5", "|=6"]);
    assert_eq!(capture.threads.len(), 1);
}

#[test]
fn the_number_of_samples_is_known_only_if_counts_are_samples() {
    let counts = |unit| {
        let capture = read_with(FoldedOptions { unit, ..FoldedOptions::default() }, b"m;a 30\nm;b 12\n");
        (capture.info.events[0].counts, capture.info.events[0].unit.clone(), capture.info.losses.samples)
    };
    assert_eq!(counts(FoldedUnit::Unknown), (Counts::Unknown, "weight".to_owned(), 0));
    assert_eq!(counts(FoldedUnit::Samples), (Counts::Weight, "samples".to_owned(), 42));
    assert_eq!(counts(FoldedUnit::Cycles), (Counts::Unknown, "cycles".to_owned(), 0));
    for unit in FoldedUnit::ALL {
        assert_eq!(FoldedUnit::named(unit.name()), Some(unit));
    }
}

#[test]
fn a_differential_file_is_read_with_a_warning() {
    let capture = read("m;a 1 2\nm;b 3 4\n");
    assert!(capture.info.notes.iter().any(|note| note.contains("difffolded.pl")));
    assert!(!read("m;a 1 2\nm;b 4\n").info.notes.iter().any(|note| note.contains("difffolded.pl")));
}

#[test]
fn a_first_line_longer_than_the_head_is_recognised() {
    let deep = format!("# made by a script\nmain;{}leaf 7\n", "some::function;".repeat(40_000));
    let capture = import(Source::stream("it", deep.as_bytes()), &ImportOptions::default()).unwrap();
    assert_eq!((capture.samples.len(), capture.samples[0].weight, capture.stacks.len()), (1, 7, 40_001));
}

#[test]
fn a_count_at_the_end_of_a_file_without_a_line_end_is_kept_with_a_note() {
    let capture = read("m;a 12\nm;b 3");
    assert_eq!(drawn(&capture), ["m|a=12", "m|b=3"]);
    let note = "it: line 2, the last, has no line end. If the file was cut, its count of 3 is too small.";
    assert!(capture.info.notes.iter().any(|one| one == note), "{:?}", capture.info.notes);
    assert!(!read("m;a 12\nm;b 3\n").info.notes.iter().any(|one| one.contains("line end")));
}

#[test]
fn the_first_bad_line_is_quoted_and_not_a_good_one() {
    let refusal =
        |text: &str| import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap_err().to_string();
    assert!(refusal("m;a 5\nm;b 1.5\nm;c 2.5\n").starts_with(
        "it: unknown format (1 of 3 lines are folded stacks; line 2, `m;b 1.5`, is not: the count is not an integer; \
             multiply all counts, by 1000 for instance, and round them); import one of perf.data, "
    ));
    assert!(refusal("m;a 0.5\n").contains("line 1, `m;a 0.5`, is not: the count is not an integer; multiply"));
    assert!(refusal("m;a 5\nnothing\nm;c\n").contains("line 2, `nothing`, is not: it has no space before a count"));
}

#[test]
fn lines_in_order_make_the_same_tree_as_lines_out_of_order() {
    // `a` is a leaf before names that begin with it and come before `a;`.
    let lines = [
        "m",
        "m;a",
        "m;a b",
        "m;a b;c",
        "m;a(int)",
        "m;a(int);x",
        "m;a2;y",
        "m;a;c",
        "m;a;c d",
        "m;a;c;e",
        "m;a;d",
        "m;b;a",
        "m;b;a;b",
        "n;a",
        "n;a;c",
    ];
    let of = |lines: &[&str]| {
        let capture = read(lines.iter().map(|line| format!("{line} 1\n")).collect::<String>());
        let mut nodes = capture.stacks.clone();
        nodes.sort_by_key(|node| (node.parent, node.frame));
        nodes.dedup();
        assert_eq!(nodes.len(), capture.stacks.len(), "each node once");
        let mut drawn = drawn(&capture);
        drawn.sort();
        (drawn, nodes.len())
    };
    let mut sorted = lines.to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, lines);
    for rotated in 0..lines.len() {
        let mut other = lines.to_vec();
        other.rotate_left(rotated);
        assert_eq!(of(&other), of(&lines));
        other.reverse();
        assert_eq!(of(&other), of(&lines));
    }
    // Equal lines follow each other, and lines go on after the order is lost.
    let twice: Vec<&str> = lines.iter().flat_map(|line| [*line, *line]).chain(lines).collect();
    let capture = read(twice.iter().map(|line| format!("{line} 1\n")).collect::<String>());
    assert!(drawn(&capture).iter().all(|line| line.ends_with("=3")), "{:?}", drawn(&capture));
    assert_eq!(capture.stacks.len(), of(&lines).1);
}

#[test]
fn many_lines_out_of_order_are_added_up_in_bounded_memory() {
    // Each of 300 stacks of two threads a thousand times, in an order that repeats after all of them.
    let line = |number: usize| format!("{};a{};b{} 1\n", ["m", "n"][number % 2], number / 2 % 15, number / 30);
    let numbers = (0..300_000).map(|index| index * 7 % 300);
    let capture = read(numbers.map(line).collect::<String>());
    let mut drawn = drawn(&capture);
    drawn.sort();
    let mut expected: Vec<String> =
        (0..300).map(|number| line(number).replace(';', "|").replace(" 1\n", "=1000")).collect();
    expected.sort();
    assert_eq!(drawn, expected);
    assert_eq!(capture.stacks.len(), 15 + 150);
}

#[test]
fn leaves_are_merged_before_they_are_many() {
    let mut leaves = Leaves::default();
    for number in 0..1_000_000_u32 {
        leaves.add(Leaf::below(Some(StackId(number % 10)), FrameId(3), ThreadId(0), 1), number.into());
    }
    assert!(leaves.capacity() <= 1 << 17, "{}", leaves.capacity());
    let counts: Vec<_> = leaves.take().iter().map(|leaf| (leaf.node().unwrap().parent, leaf.count)).collect();
    assert_eq!(counts, (0..10).map(|caller| (Some(StackId(caller)), 100_000)).collect::<Vec<_>>());
}
