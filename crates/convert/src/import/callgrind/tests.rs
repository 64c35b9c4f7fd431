use std::collections::BTreeMap;

use super::*;
use crate::import::{Source, import};

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

/// Weights of an event by stack, root first.
fn stacks(capture: &Capture, event: &str) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for sample in capture.samples.iter().filter(|sample| capture.event(sample.event).name == event) {
        let mut names: Vec<&str> = capture.frames_of(sample.stack).map(|frame| capture.function(frame)).collect();
        names.reverse();
        *sums.entry(names.join(";")).or_default() += sample.weight;
    }
    sums.into_iter().map(|(stack, weight)| format!("{stack} {weight}")).collect()
}

const FILE: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npart: 1\n\
    desc: LL cache: 8388608 B, 64 B, 16-way\ndesc: Trigger: Program termination\n\
    positions: line\nevents: Ir DLmr\nsummary: 1000 10\n\n\
    ob=(1) /opt/sim\nfl=(1) main.cpp\nfn=(1) main\n10 100 1\ncfn=(2) step\ncalls=2 +20\n* 600 6\n\
    +2 50\ncob=(2) /lib/libc.so\ncfi=(2) sort.c\ncfn=(3) sort\ncalls=1 0\n* 250 3\n\n\
    fn=(2)\n30 200 2\nfi=(3) vector.h\n7 100\nfe=(1)\ncob=(2)\ncfi=(2)\ncfn=(3)\ncalls=4 0\n31 300 4\n\n\
    ob=(2)\nfl=(2)\nfn=(3)\n0x5 500 7\njump=3 +4\n* \n-1 50\n\ntotals: 1000 10\n";

#[test]
fn inclusive_costs_are_divided_among_callers_and_own_costs_are_exact() {
    let capture = read(FILE);
    // `sort` costs 550: 300 of 550 through `step`, 250 from `main`.
    assert_eq!(stacks(&capture, "Ir"), ["main 150", "main;sort 250", "main;step 300", "main;step;sort 300"]);
    assert_eq!(stacks(&capture, "DLmr"), ["main 1", "main;sort 3", "main;step 2", "main;step;sort 4"]);
    let lines: Vec<String> = capture
        .samples
        .iter()
        .filter_map(|sample| capture.frames_of(sample.stack).next())
        .map(|frame| &capture.frames[frame.index()])
        .map(|frame| format!("{} {}:{}", frame.function, frame.file.as_deref().unwrap(), frame.line.unwrap()))
        .collect();
    for line in [
        "main main.cpp:10",
        "main main.cpp:12",
        "step main.cpp:30",
        "step vector.h:7",
        "sort sort.c:5",
        "sort sort.c:4",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line} of {lines:?}");
    }
    assert_eq!(capture.modules.iter().map(|module| &*module.path).collect::<Vec<_>>(), ["/opt/sim", "/lib/libc.so"]);
    assert_eq!(capture.info.losses.malformed_records, 0, "{:?}", capture.info.notes);
}

#[test]
fn recursion_is_entered_once() {
    let capture = read(
        "# callgrind format\nevents: Ir\nfn=main\n1 10\ncfn=fib\ncalls=1 0\n1 90\n\
         fn=fib\n5 60\ncfn=fib\ncalls=20 0\n5 200\ncfn=even\ncalls=3 0\n6 80\n\
         fn=even\n8 30\ncfn=fib\ncalls=1 0\n8 50\n",
    );
    assert_eq!(stacks(&capture, "Ir"), ["main 10", "main;fib 60", "main;fib;even 30"]);
    let levels = read(
        "# callgrind format\nevents: Ir\nfn=main\n1 10\ncfn=fib\ncalls=1 0\n1 90\n\
         fn=fib\n5 20\ncfn=fib'2\ncalls=2 0\n5 70\nfn=fib'2\n5 70\ncfn=fib'2\ncalls=18 0\n5 130\n",
    );
    assert_eq!(stacks(&levels, "Ir"), ["main 10", "main;fib 90"]);
}

#[test]
fn what_no_call_explains_is_a_root() {
    let capture =
        read("# callgrind format\nevents: Ir\nfn=main\n1 10\ncfn=f\ncalls=1 0\n1 40\nfn=f\n5 100\nfn=signal\n1 7\n");
    assert_eq!(stacks(&capture, "Ir"), ["f 60", "main 10", "main;f 40", "signal 7"]);
}

#[test]
fn parts_are_added_up_and_threads_stay_apart() {
    let part = |thread: u32, cost: u32| {
        format!("part: 1\nthread: {thread}\nevents: Ir\nfn=(1) run\n1 {cost}\ntotals: {cost}\n")
    };
    let text = format!("# callgrind format\nversion: 1\n{}{}{}", part(1, 10), part(2, 20), part(1, 5));
    let capture = read(&text);
    let of = |thread: usize| {
        capture.samples.iter().filter(|sample| sample.thread.index() == thread).map(|sample| sample.weight).sum::<u64>()
    };
    let names: Vec<&str> = capture.threads.iter().map(|thread| &*thread.name).collect();
    assert_eq!(names, ["thread 2", "thread 1"]);
    assert_eq!([of(0), of(1)], [20, 15]);
    assert_eq!(capture.info.losses.malformed_records, 0);
}

#[test]
fn addresses_and_lines_are_both_positions() {
    let capture = read(
        "# callgrind format\npositions: instr line\nevents: Ir\nfn=(below main)\n0x401000 12 5\n+4 * 6\n+0x10 +3 7\n",
    );
    let lines: Vec<_> = capture.frames.iter().filter_map(|frame| frame.line).collect();
    assert_eq!(lines, [12, 15]);
    assert_eq!(stacks(&capture, "Ir"), ["(below main) 18"]);
}

#[test]
fn files_of_other_tools_are_read() {
    let xdebug = "version: 1\ncreator: xdebug 3.1 (PHP 8)\ncmd: x.php\npart: 1\npositions: line\n\nevents: Time_(10ns) Memory_(bytes)\n\n\
        fl=(1) php:internal\nfn=(1) php::strlen\n6 12 0\n\nfl=(2) x.php\nfn=(2) {main}\n1 100 40\ncfl=(1)\ncfn=(1)\ncalls=1 0 0\n3 12 0\n";
    let capture = read(xdebug);
    assert_eq!(stacks(&capture, "Time_(10ns)"), ["{main} 100", "{main};php::strlen 12"]);
    assert!(!capture.info.notes.join(" ").contains("Simulation"));
}

#[test]
fn a_truncated_file_keeps_what_is_there() {
    for end in 0..FILE.len() {
        let text = &FILE[..end];
        if let Ok(capture) = import(Source::stream("it", text.as_bytes()), &ImportOptions::default()) {
            assert!(!capture.samples.is_empty() && capture.check().is_ok());
        }
    }
    let cut = read(&FILE[..FILE.find("totals").unwrap()]);
    assert!(cut.info.notes.join("\n").contains("the file is truncated"), "{:?}", cut.info.notes);
    let undefined = read("# callgrind format\nevents: Ir\nfn=(9)\nfn=a\n1 1\n1 x\n");
    assert_eq!(undefined.info.losses.malformed_records, 2);
}

#[test]
fn a_deep_and_wide_graph_is_cut_and_keeps_its_sums() {
    // Each function calls the next one twice by way of two others: 2^n paths.
    let mut text = "# callgrind format\nevents: Ir\n".to_owned();
    let levels = 40;
    for level in 0..levels {
        let below = 10 * (1_u64 << (levels - level - 1));
        for way in ["a", "b"] {
            text += &format!("fn={way}{level}\n1 10\n");
            for callee in ["a", "b"] {
                text += &format!("cfn={callee}{}\ncalls=1 0\n1 {below}\n", level + 1);
            }
        }
    }
    let capture = read(&text);
    let sum: u64 = capture.samples.iter().map(|sample| sample.weight).sum();
    assert_eq!(sum, 10 * 2 * levels);
}
