use super::super::{Source, import};
use super::*;

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

/// Every sample as `event thread@time: root|...|leaf=weight`.
fn drawn(capture: &Capture) -> Vec<String> {
    let draw = |sample: &Sample| {
        let mut names: Vec<&str> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
        names.reverse();
        format!(
            "{} {}@{}: {}={}",
            capture.event(sample.event).name,
            capture.threads[sample.thread.index()].tid,
            sample.time_ns.map_or("-".to_owned(), |time| time.to_string()),
            names.join("|"),
            sample.weight
        )
    };
    capture.samples.iter().map(draw).collect()
}

const TWO_EVENTS: &str = "\
sim  11/12 [001] 1.000001:     250000  cpu-clock: 
\tffffffff8175336a elf_load+0x28a ([kernel.kallsyms])
\t    55ba3252873c gz::sim::work(int)+0x2c (/tmp/t prog)
\t    55ba32528d8d main+0xcd (/tmp/t prog)

sim  11/12 [001] 1.000002:          3  page-faults: 
\t    7fe8508dc8b7 [unknown] (/usr/lib/libgcc_s.so.1)
\t    55ba32528d8d main+0xdd (/tmp/t prog)
\t    7fe8508dc8b7 [unknown] ([unknown])

worker  11/13 [000] 1.000003:     250001  cpu-clock: 
\t    55ba32528d8d main+0xcd (/tmp/t prog)

";

#[test]
fn each_sample_is_kept_with_its_time_thread_and_period_and_events_stay_apart() {
    let capture = read(TWO_EVENTS);
    assert_eq!(
        drawn(&capture),
        [
            "cpu-clock 12@1000001000: main|gz::sim::work(int)|elf_load=250000",
            "page-faults 12@1000002000: [unknown]|main|[libgcc_s.so.1]=3",
            "cpu-clock 13@1000003000: main=250001",
        ]
    );
    assert_eq!(capture.info.events, [Event::sampled("cpu-clock", "ns"), Event::sampled("page-faults", "faults")]);
    assert_eq!(capture.samples[0].cpu, Some(1));
    assert_eq!(capture.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [11]);
    assert_eq!(capture.threads[1].name, "worker");
    assert_eq!((capture.info.start_ns, capture.info.end_ns), (Some(1_000_001_000), Some(1_000_003_000)));
    assert_eq!((capture.info.losses.samples, capture.info.losses.sampled_ns), (3, Some(500_001)));
    let recorded: Vec<_> = capture.info.dimensions.keys().copied().collect();
    assert_eq!(recorded, [Dimension::Cpu, Dimension::Faults]);
}

#[test]
fn frames_of_one_function_are_one_frame_with_its_module_and_language() {
    let capture = read(TWO_EVENTS);
    let frames: Vec<_> = capture
        .frames
        .iter()
        .map(|frame| {
            let module = frame.module.map_or("-", |module| &capture.modules[module.index()].path);
            (&*frame.function, module, frame.language)
        })
        .collect();
    assert_eq!(
        frames,
        [
            ("main", "/tmp/t prog", Language::Native),
            ("gz::sim::work(int)", "/tmp/t prog", Language::Native),
            ("elf_load", "[kernel.kallsyms]", Language::Kernel),
            ("[unknown]", "-", Language::Native),
            ("[libgcc_s.so.1]", "/usr/lib/libgcc_s.so.1", Language::Native),
        ]
    );
}

#[test]
fn inlined_frames_are_in_the_module_of_the_frame_around_them() {
    let capture = read(
        "sim 12 1.0: 5 cycles: \n\
         \t 14f02 leaf+0x1 (inlined)\n  leaf.h:7 (inlined)\n\
         \t 14f02 middle+0x2 (inlined)\n  middle.h:8 (inlined)\n\
         \t 14f02 outer+0x3 (/bin/sim)\n  outer.c:9\n\
         \t 1bccb main (/bin/other)\n  other[1bccb]\n\n",
    );
    let frames: Vec<_> = capture
        .frames
        .iter()
        .map(|frame| {
            let module = capture.modules[frame.module.unwrap().index()].name();
            (&*frame.function, module, frame.inlined, frame.file.as_deref(), frame.line)
        })
        .collect();
    assert_eq!(
        frames,
        [
            ("main", "other", false, None, None),
            ("outer", "sim", false, Some("outer.c"), Some(9)),
            ("middle", "sim", true, Some("middle.h"), Some(8)),
            ("leaf", "sim", true, Some("leaf.h"), Some(7)),
        ]
    );
}

#[test]
fn linker_symbols_that_perf_did_not_demangle_are_demangled() {
    let capture =
        read("sim 1/1 1.0: 1 cpu-clock:\n\t1 _ZSt9__fill_a1IhEvPT_S1_RKS0_+0x3 (/b/sim)\n\t2 main+0x1 (/b/sim)\n\n");
    let names: Vec<&str> = capture.frames.iter().map(|frame| &*frame.function).collect();
    assert_eq!(names, ["main", "std::__fill_a1<unsigned char>"]);
}

#[test]
fn samples_without_a_call_chain_have_the_frame_of_the_header_or_none() {
    let capture = read(
        "   dd 12 1.0: 5 cycles:      7fe850928316 f+0x1 (/lib/ld.so)\n   dd 12 2.0: 5 cycles: \n   dd 12 3.0: 1 sched:sched_wakeup: add f (x)\n",
    );
    assert_eq!(
        drawn(&capture),
        ["cycles 12@1000000000: f=5", "cycles 12@2000000000: =5", "sched:sched_wakeup 12@3000000000: =1"]
    );
    assert_eq!(capture.threads[0].name, "dd");
}

#[test]
fn samples_without_a_period_have_weight_one() {
    let capture = read("sim 12 1.0: cycles: \n\t 1 f (x)\n\n");
    assert_eq!(capture.info.events, [Event::sampled("cycles", "samples")]);
    assert_eq!(capture.samples[0].weight, 1);
}

#[test]
fn stacks_without_a_header_belong_to_an_unnamed_thread() {
    let capture = read("\n\t 1 f\n\t 2 g\n\n\n\t 1 f\n\t 2 g\n\n");
    assert_eq!(drawn(&capture), ["samples 0@-: g|f=1", "samples 0@-: g|f=1"]);
    assert_eq!(capture.stacks.len(), 2);
}

#[test]
fn frames_indented_by_spaces_are_frames_unless_they_parse_as_a_header() {
    let capture = read("sim 12 1.0: 5 cycles: \n    1a f (x)\n    2b g (x)\n\n");
    assert_eq!(drawn(&capture), ["cycles 12@1000000000: g|f=5"]);
}

#[test]
fn a_renamed_thread_keeps_both_names_with_their_times() {
    let capture = read("a 12 1.0: 5 cycles: \n\t 1 f\n\nb 12 2.0: 5 cycles: \n\t 1 f\n\n");
    assert_eq!(capture.threads.len(), 1);
    assert_eq!(capture.threads[0].name, "b");
    let names: Vec<_> = capture.threads[0].names.iter().map(|name| (name.time_ns, &*name.name)).collect();
    assert_eq!(names, [(0, "a"), (2_000_000_000, "b")]);
}

#[test]
fn other_records_are_skipped_and_lost_ones_counted() {
    let capture = read(
        "sim 12 0.5: PERF_RECORD_COMM exec: sim:12/12\nsim 12 1.0: 5 cycles: \n\t 1 f\n\nsim 12 1.5: PERF_RECORD_LOST lost 17\n",
    );
    assert_eq!(drawn(&capture), ["cycles 12@1000000000: f=5"]);
    assert_eq!((capture.info.losses.lost_records, capture.info.losses.malformed_records), (17, 0));
}

#[test]
fn malformed_lines_are_counted_and_the_other_frames_kept() {
    let capture =
        read("sim 12 1.0: 5 cycles: \n\t 1 f\n\tgarbage\n\t 2 g\n\nnonsense\n\nsim 12 2.0: 6 cycles: \n\t 1 f\n\n");
    assert_eq!(drawn(&capture), ["cycles 12@1000000000: g|f=5", "cycles 12@2000000000: f=6"]);
    assert_eq!(
        capture.info.notes,
        ["it: 2 malformed records skipped; the first is line 3: it is indented like a frame but has no address."]
    );
}

#[test]
fn frames_of_a_malformed_header_join_no_other_sample() {
    let capture =
        read("sim 12 1.0: 5 cycles: \n\t 1 f\n\nnonsense\n\t 3 h\n\t 4 i\n\nsim 12 2.0: 6 cycles: \n\t 1 f\n\n");
    assert_eq!(drawn(&capture), ["cycles 12@1000000000: f=5", "cycles 12@2000000000: f=6"]);
}

#[test]
fn a_file_that_ends_within_a_frame_has_a_truncated_stack_without_that_frame() {
    let capture = read("sim 12 1.0: 5 cycles: \n\t 1 f\n\t 2 World::Upda");
    assert_eq!(drawn(&capture), ["cycles 12@1000000000: f=5"]);
    assert_eq!((capture.info.losses.truncated_stacks, capture.info.losses.malformed_records), (1, 1));
}

#[test]
fn the_header_of_the_recording_describes_the_machine() {
    let capture = read(
        "# ========\n# hostname : vm\n# os release : 6.18.44\n# arch : x86_64\n# nrcpus online : 2\n# cpudesc : Xeon : 3\n\
         # total memory : 24684092 kB\n# ========\n#\nsim 12 1.0: 5 cycles: \n\t 1 f\n\n",
    );
    assert_eq!(
        capture.info.machine.unwrap(),
        Machine {
            host: "vm".into(),
            cpu: "Xeon : 3".into(),
            cores: 2,
            memory_bytes: 24_684_092 * 1024,
            kernel: "6.18.44".into(),
            architecture: "x86_64".into(),
            pmu: true,
            ..Machine::default()
        }
    );
}

#[test]
fn samples_of_joined_files_are_ordered_by_time() {
    let capture = read("a 1 2.0: 5 cycles: \n\t 1 f\n\na 1 1.0: 6 cycles: \n\t 1 f\n\n");
    assert_eq!(drawn(&capture), ["cycles 1@1000000000: f=6", "cycles 1@2000000000: f=5"]);
}

#[test]
fn perf_script_and_folded_stacks_are_distinguished() {
    let format = |text: &str| match read(text).info.origin {
        stepscope_model::Origin::Imported { format, .. } => format,
        other => panic!("{other:?}"),
    };
    assert_eq!(format(TWO_EVENTS), "perf-script");
    assert_eq!(format("sim 12;f 1.0: 5\nsim;f;g 7\n"), "folded");
}

#[test]
fn a_sample_that_is_cut_before_its_first_frame_is_left_out_and_not_counted() {
    let whole = "sim 12 1.0: 100 cycles: \n\t 1 f\n\t 2 main\n\n";
    for cut in ["sim 12 2.0: 900 cyc", "sim 12 2.0: 900 cycles: \n", "sim 12 2.0: 900 cycles: \n\t 7ff"] {
        let capture = read(&format!("{whole}{cut}"));
        assert_eq!(drawn(&capture), ["cycles 12@1000000000: main|f=100"], "{cut:?}");
        let losses = &capture.info.losses;
        assert_eq!((losses.samples, losses.malformed_records, losses.truncated_stacks), (1, 1, 0), "{cut:?}");
        assert!(capture.info.notes[0].starts_with("it: 1 malformed record skipped"), "{cut:?}");
    }
}

#[test]
fn a_stack_that_is_cut_between_its_frames_is_truncated() {
    let capture = read("sim 12 1.0: 5 cycles: \n\t 1 f\n\t 2 g\n");
    assert_eq!(drawn(&capture), ["cycles 12@1000000000: g|f=5"]);
    assert_eq!(capture.info.losses.truncated_stacks, 1);
}

#[test]
fn samples_without_stacks_need_no_blank_line_at_the_end() {
    let capture = read("sim 12 1.0: 5 cycles: \nsim 12 2.0: 5 cycles: \n");
    assert_eq!((capture.samples.len(), capture.info.losses.truncated_stacks), (2, 0));
    assert_eq!(capture.info.losses.malformed_records, 0);
    let mixed = read("sim 12 1.0: 5 cycles: \n\t 1 f\n\t 2 main\n\nsim 12 2.0: 1 faults:  7f f+0x1 (/lib/a.so)\n");
    assert_eq!((mixed.samples.len(), mixed.info.losses.truncated_stacks), (2, 0));
}
