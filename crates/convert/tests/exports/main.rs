//! What is exported, read by others: golden files to look at, readers that share nothing with the writers, the
//! formats' own tools and schemas.
//!
//! `BLESS=1 cargo test -p stepscope-convert --test exports` writes the golden files anew; look at the diff.

mod example;
mod readers;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use serde_json::Value;
use stepscope_convert::export::{Evidence, ExportError, ExportOptions, Format, Measure, ThreadLabels, write};
use stepscope_convert::{ImportOptions, Source, import};
use stepscope_model::{Capture, Event, EventId, FlowEvent, FlowStage, Frame, Sample, Thread, ThreadId};

use example::example;

fn export(capture: &Capture, format: Format, options: &ExportOptions) -> Vec<u8> {
    let mut out = Vec::new();
    write(capture, format, &mut out, options).unwrap();
    out
}

fn of(evidence: Evidence) -> ExportOptions {
    ExportOptions { evidence: Some(evidence), ..ExportOptions::default() }
}

fn json(capture: &Capture, format: Format, options: &ExportOptions) -> Value {
    serde_json::from_slice(&export(capture, format, options)).unwrap()
}

/// Compares with a golden file, or writes it if `BLESS` is set.
fn is_golden(name: &str, found: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(found), expected, "{name} changed; BLESS=1 accepts it");
}

#[test]
fn the_example_is_written_as_the_golden_files_show() {
    let example = example();
    let all = ExportOptions::default();
    is_golden("cpu-clock.folded", &export(&example, Format::Folded, &of(Evidence::Event(EventId(0)))));
    is_golden("off-cpu.folded", &export(&example, Format::Folded, &of(Evidence::OffCpu)));
    is_golden("example.speedscope.json", &export(&example, Format::Speedscope, &all));
    is_golden("example.trace.json", &export(&example, Format::Chrome, &all));
    let firefox = json(&example, Format::Firefox, &all);
    is_golden("example.profile.json", format!("{firefox:#}\n").as_bytes());
}

#[test]
fn every_format_that_sums_holds_the_same_weights() {
    let example = example();
    let folded = readers::folded(&export(&example, Format::Folded, &of(Evidence::Event(EventId(0)))));
    assert_eq!(folded.values().sum::<u128>(), 5001);
    let all = ExportOptions::default();
    assert_eq!(readers::speedscope(&json(&example, Format::Speedscope, &all), "cpu-clock"), folded);
    assert_eq!(readers::firefox(&json(&example, Format::Firefox, &all)), folded);
    let pprof = readers::pprof(&export(&example, Format::Pprof, &all));
    assert_eq!(readers::pprof_folded(&pprof, "cpu-clock/nanoseconds"), folded);
    let off_cpu = readers::folded(&export(&example, Format::Folded, &of(Evidence::OffCpu)));
    assert_eq!(readers::pprof_folded(&pprof, "off-cpu/nanoseconds"), off_cpu);
    assert_eq!(readers::firefox(&json(&example, Format::Firefox, &of(Evidence::OffCpu))), off_cpu);
}

#[test]
fn pprof_keeps_events_apart_and_inlined_functions_at_one_address() {
    let profile = readers::pprof(&export(&example(), Format::Pprof, &ExportOptions::default()));
    assert_eq!(
        profile.value_types(),
        [
            "cpu-clock/nanoseconds",
            "cpu-clock-samples/count",
            "page-faults/count",
            "page-faults-samples/count",
            "off-cpu/nanoseconds",
            "off-cpu-waits/count"
        ]
    );
    assert_eq!(profile.string(0), "");
    assert_eq!(profile.string(profile.default_sample_type), "cpu-clock");
    assert_eq!((profile.time_nanos, profile.duration_nanos), (1_795_261_172_500_000_000, 5000));
    let comments: Vec<&str> = profile.comment.iter().map(|&comment| profile.string(comment)).collect();
    assert_eq!(comments, ["shapes", "stepscope test", "One note; with \"quotes\"."]);

    let inlined = profile.location.iter().find(|location| location.line.len() > 1).unwrap();
    assert_eq!(profile.functions(inlined), [("World::Step<std::pair<int, long> >", 80), ("pow", 7)]);
    assert_eq!(inlined.address, 0x2080);
    let mapping = profile.mapping.iter().find(|mapping| mapping.id == inlined.mapping_id).unwrap();
    assert_eq!(profile.string(mapping.filename), "/opt/sim/bin/sim server");
    assert_eq!(mapping, &profile.mapping[0], "the main program comes first");

    let sample = profile.sample.iter().find(|sample| sample.value[2] == 1).unwrap();
    assert_eq!(sample.value, [1997, 2, 1, 1, 0, 0]);
    assert_eq!(["thread", "tid", "pid"].map(|key| profile.label(sample, key).unwrap()), ["sim", "10", "10"]);
}

#[test]
fn go_tool_pprof_reads_pprof() {
    let go = Command::new("go").arg("version").output();
    if !go.is_ok_and(|go| go.status.success()) {
        println!("skipped: go_tool_pprof_reads_pprof: there is no `go`");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("example.pb.gz");
    std::fs::write(&file, export(&example(), Format::Pprof, &ExportOptions::default())).unwrap();
    let pprof = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(["tool", "pprof"]).args(arguments).arg(&file);
        let output = command.env("PPROF_TMPDIR", folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let top = pprof(&["-top", "-unit=ns"]);
    let lines: Vec<Vec<&str>> = top.lines().map(|line| line.split_whitespace().collect()).collect();
    let of = |function: &str| lines.iter().find(|line| line.len() > 5 && line[5..].join(" ").starts_with(function));
    assert_eq!(of("libphys.so+0x1234").unwrap()[..4], ["2004ns", "40.07%", "40.07%", "2004ns"], "{top}");
    assert_eq!(of("main").unwrap()[3..5], ["2997ns", "59.93%"], "{top}");
    assert!(of("pow (inline)").is_some(), "{top}");
    let off_cpu = pprof(&["-top", "-sample_index=off-cpu", "-tagfocus=thread=sim", "-unit=ns"]);
    assert!(off_cpu.contains("1700ns"), "{off_cpu}");
    assert!(pprof(&["-raw"]).contains("/opt/sim/bin/sim server b4ef3d5a2c1e9f8070605040302010ffeeddccbb"));
}

#[test]
fn speedscopes_schema_accepts_speedscope() {
    let schema: Value = serde_json::from_str(include_str!("speedscope-schema.json")).unwrap();
    let mut document = json(&example(), Format::Speedscope, &ExportOptions::default());
    schema::check(&schema, &document).unwrap();
    // And it can say no.
    document["profiles"][1]["weights"][0] = "1003".into();
    let error = schema::check(&schema, &document).unwrap_err();
    assert!(error.contains("$.profiles[1].weights[0] is no \"number\""), "{error}");
}

/// The slices of each thread, as `start+duration name` in microseconds.
fn slices(document: &Value) -> BTreeMap<u64, Vec<(f64, f64, String)>> {
    let mut slices: BTreeMap<u64, Vec<(f64, f64, String)>> = BTreeMap::new();
    for event in document["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X") {
        let slice =
            (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap(), event["name"].as_str().unwrap().to_owned());
        slices.entry(event["tid"].as_u64().unwrap()).or_default().push(slice);
    }
    slices
}

#[test]
fn a_trace_shows_each_thread_in_one_state_at_a_time() {
    let document = json(&example(), Format::Chrome, &ExportOptions::default());
    let own = |slices: &[(f64, f64, &str)]| {
        slices.iter().map(|(start, length, name)| (*start, *length, (*name).to_owned())).collect::<Vec<_>>()
    };
    let sim = own(&[
        (0.0, 1.0, "running"),
        (1.0, 1.5, "blocked in Barrier::Wait"),
        (2.5, 0.2, "runnable"),
        (2.7, 2.3, "running"),
    ]);
    let worker = own(&[(1.0, 2.5, "running"), (3.5, 0.3, "runnable"), (3.8, 1.2, "running")]);
    assert_eq!(slices(&document), BTreeMap::from([(10, sim), (11, worker)]));
}

#[test]
fn a_trace_pairs_what_begins_with_what_ends_and_refers_to_stacks_that_it_has() {
    let document = json(&example(), Format::Chrome, &ExportOptions::default());
    let events = document["traceEvents"].as_array().unwrap();
    let mut open: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for event in events {
        let name = event["name"].as_str().unwrap();
        let track = format!("{} {} {}", event["cat"], event["id"], event["pid"]);
        match event["ph"].as_str().unwrap() {
            "b" => open.entry(track).or_default().push(name),
            "e" => assert_eq!(open.get_mut(&track).and_then(Vec::pop), Some(name), "{event}"),
            _ => {}
        }
        if let Some(stack) = event["sf"].as_str() {
            assert!(document["stackFrames"][stack].is_object(), "{event}");
        }
    }
    assert_eq!(open.len(), 2, "steps and scopes");
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    let flow = |phase: &str| events.iter().find(|event| event["ph"] == phase).unwrap();
    let (from, to) = (flow("s"), flow("f"));
    assert_eq!((&from["tid"], &from["ts"], &from["id"]), (&11.into(), &2.5.into(), &0.into()));
    assert_eq!((&to["tid"], &to["ts"], &to["id"], &to["bp"]), (&10.into(), &2.5.into(), &0.into(), &"e".into()));
    let names = |stack: &str| {
        let mut names = Vec::new();
        let mut stack = Some(stack.to_owned());
        while let Some(id) = stack {
            names.push(document["stackFrames"][&id]["name"].as_str().unwrap().to_owned());
            stack = document["stackFrames"][&id]["parent"].as_str().map(str::to_owned);
        }
        names
    };
    let sample = events.iter().find(|event| event["ph"] == "i" && event["tid"] == 11).unwrap();
    assert_eq!(names(sample["sf"].as_str().unwrap()), ["libphys.so+0x1234", "clone3"]);
    assert_eq!(sample["ts"], 1.5);
}

/// Two subscribers: `worker` through the transport, `sim` on the publisher's own thread.
fn with_messages() -> Capture {
    let mut capture = example();
    let (sim, worker) = (ThreadId::from_index(0), ThreadId::from_index(1));
    for (time_ns, thread, flow, stage) in [
        (1100, sim, Some(7), FlowStage::Published),
        (1150, sim, Some(7), FlowStage::Sent),
        (2300, worker, Some(7), FlowStage::Taken),
        (2400, worker, Some(7), FlowStage::CallbackStart),
        (2500, worker, Some(7), FlowStage::CallbackEnd),
        (3950, sim, Some(7), FlowStage::Arrived),
        // Of no message, and of one whose publication is not there.
        (4000, sim, None, FlowStage::CallbackStart),
        (4100, sim, Some(8), FlowStage::CallbackStart),
    ] {
        let topic = "/scan".into();
        capture.flows.push(FlowEvent { time_ns, thread, topic, flow, stage, name: None, period_ns: None });
    }
    capture
}

#[test]
fn each_arrival_of_a_message_is_an_arrow_from_its_publication_over_the_stages_between() {
    let document = json(&with_messages(), Format::Chrome, &ExportOptions::default());
    let events = document["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "message");
    let mut arrows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut stages = Vec::new();
    for event in events {
        match (&event["id"], event["ph"].as_str().unwrap()) {
            (Value::String(id), phase) => {
                arrows.entry(id).or_default().push(format!("{phase} {} {}", event["tid"], event["ts"]));
            }
            (_, phase) => stages.push(format!("{phase} {} {}", event["tid"], event["name"].as_str().unwrap())),
        }
    }
    let expected = [
        ("message 0", vec!["s 10 0.1", "t 10 0.15", "t 11 1.3", "f 11 1.4"]),
        ("message 1", vec!["s 10 0.1", "t 10 0.15", "f 10 2.95"]),
    ];
    let expected = expected.map(|(id, steps)| (id, steps.into_iter().map(str::to_owned).collect()));
    assert_eq!(arrows, BTreeMap::from(expected));
    assert_eq!(stages.len(), 8);
    assert_eq!(stages[..3], ["X 10 published /scan", "X 10 sent /scan", "X 11 taken /scan"]);
}

/// As the format's description and Perfetto's importer want it: an arrow's ends have one category, name and id, go forward in time, and
/// each lies in a slice of its thread.
#[test]
fn arrows_of_messages_end_at_slices_of_their_threads() {
    let document = json(&with_messages(), Format::Chrome, &ExportOptions::default());
    let events = document["traceEvents"].as_array().unwrap();
    let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
    let mut open: BTreeMap<String, (f64, bool)> = BTreeMap::new();
    for event in events.iter().filter(|event| ["s", "t", "f"].iter().any(|phase| event["ph"] == *phase)) {
        if event["cat"] == "wakeup" {
            continue;
        }
        let (time, phase) = (number(event, "ts"), event["ph"].as_str().unwrap());
        let encloses = |slice: &&Value| {
            slice["ph"] == "X"
                && (&slice["pid"], &slice["tid"]) == (&event["pid"], &event["tid"])
                && number(slice, "ts") <= time
                && time < number(slice, "ts") + number(slice, "dur")
        };
        assert!(events.iter().any(|slice| encloses(&slice) && slice["cat"] == "message"), "{event}");
        let key = format!("{} {} {}", event["cat"], event["name"], event["id"]);
        let (last, is_open) = open.entry(key).or_insert((time, phase == "s"));
        assert!(*is_open && *last <= time, "{event}");
        (*last, *is_open) = (time, phase != "f");
    }
    assert_eq!(open.len(), 2);
    assert!(open.values().all(|(_, is_open)| !is_open));
}

#[test]
fn a_trace_needs_times() {
    let capture = import(Source::stream("it", &b"main;a 1\n"[..]), &ImportOptions::default()).unwrap();
    let error = write(&capture, Format::Chrome, &mut Vec::new(), &ExportOptions::default()).unwrap_err();
    assert!(matches!(error, ExportError::NoTimes { .. }), "{error}");
}

/// The same small profile by the crate that Firefox Profiler's own recorder for Linux uses.
fn reference_profile() -> Value {
    use fxprof_processed_profile as fxprof;
    let zero = fxprof::Timestamp::from_nanos_since_reference(0);
    let started = std::time::SystemTime::UNIX_EPOCH;
    let mut profile = fxprof::Profile::new("sim", started.into(), fxprof::SamplingInterval::from_millis(1));
    let process = profile.add_process("sim", 10, zero);
    let thread = profile.add_thread(process, 10, zero, true);
    let frame = fxprof::FrameInfo {
        frame: fxprof::Frame::Label(profile.intern_string("main")),
        category_pair: fxprof::CategoryHandle::OTHER.into(),
        flags: fxprof::FrameFlags::empty(),
    };
    let stack = profile.intern_stack_frames(thread, [frame].into_iter());
    profile.add_sample(thread, zero, stack, fxprof::CpuDelta::ZERO, 1);
    let counter = profile.add_counter(process, "rss", "Memory", "Resident memory");
    profile.add_counter_sample(counter, zero, 1.0, 0);
    serde_json::to_value(&profile).unwrap()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_firefox_profile_has_the_layout_of_the_profilers_own_crate() {
    let reference = reference_profile();
    let ours = json(&example(), Format::Firefox, &ExportOptions::default());
    assert_eq!(ours["meta"]["preprocessedProfileVersion"], reference["meta"]["preprocessedProfileVersion"]);
    assert_eq!(keys(&ours), keys(&reference));
    let missing: Vec<&str> = keys(&reference["meta"]).difference(&keys(&ours["meta"])).copied().collect();
    assert_eq!(missing, [""; 0]);
    let (thread, reference_thread) = (&ours["threads"][0], &reference["threads"][0]);
    assert_eq!(keys(thread), keys(reference_thread));
    for table in ["stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "markers"] {
        assert_eq!(keys(&thread[table]), keys(&reference_thread[table]), "{table}");
    }
    // The one difference: times as such, where the crate writes their differences.
    let columns = |value: &Value| -> BTreeSet<String> {
        keys(value).iter().map(|key| key.replace("timeDeltas", "time")).collect()
    };
    assert_eq!(columns(&thread["samples"]), columns(&reference_thread["samples"]));
    let counter = &ours["counters"][0];
    assert_eq!(keys(counter), keys(&reference["counters"][0]));
}

#[test]
fn a_firefox_profile_nests_inlined_frames_and_knows_time_on_the_cpu() {
    let document = json(&example(), Format::Firefox, &ExportOptions::default());
    let sim = &document["threads"][0];
    assert_eq!((&sim["name"], &sim["isMainThread"], &sim["pid"]), (&"sim".into(), &true.into(), &"10".into()));
    let depths: Vec<u64> =
        sim["frameTable"]["inlineDepth"].as_array().unwrap().iter().map(|depth| depth.as_u64().unwrap()).collect();
    assert_eq!(depths.iter().max(), Some(&1));
    // Samples at 1200, 4200 and 5200 ns, a wait of 1700 ns between the first two.
    assert_eq!(sim["samples"]["threadCPUDelta"], serde_json::json!([0, 1300, 1000]));
    let wait = &sim["markers"]["data"][0];
    assert_eq!((&wait["type"], &wait["waker"]), (&"Wait".into(), &"worker \"1\" (11)".into()));
    assert_eq!(document["meta"]["startTime"], 1_795_261_172_500.0);
    assert_eq!(document["counters"][0]["samples"]["count"], serde_json::json!([4096, 8192]));
}

/// A function's name: anything but what folded stacks cannot hold.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,2}", "[^;\\r\\n]{0,12}", Just("std::function<bool ".to_owned()), Just("_[i]".to_owned())]
}

fn capture() -> impl Strategy<Value = Capture> {
    let threads = prop::collection::vec("[a-z0-9/ -]{0,6}", 1..4);
    let stacks = prop::collection::vec(
        (prop::collection::vec(name(), 0..6), any::<prop::sample::Index>(), 0..1u64 << 40),
        1..30,
    );
    (threads, stacks).prop_map(|(threads, stacks)| {
        let mut capture = Capture::default();
        let event = capture.add_event(Event::weighed("weight", "weight"));
        for (index, name) in threads.iter().enumerate() {
            capture.add_thread(Thread { tid: index as u32 + 1, name: name.clone(), ..Thread::default() });
        }
        for (names, thread, weight) in stacks {
            let frames: Vec<_> = names.iter().map(|name| capture.intern_frame(Frame::named(name.as_str()))).collect();
            let stack = capture.intern_stack(frames);
            let thread = ThreadId::from_index(thread.index(threads.len()));
            capture.samples.push(Sample { time_ns: None, thread, cpu: None, stack, event, weight });
        }
        capture
    })
}

fn read_folded(text: &[u8]) -> Capture {
    let options = ImportOptions {
        format: stepscope_convert::import::format_named("folded"),
        folded: stepscope_convert::import::folded::FoldedOptions {
            thread_ids: stepscope_convert::import::folded::ThreadIds::Absent,
            ..Default::default()
        },
        ..ImportOptions::default()
    };
    import(Source::stream("it", text), &options).unwrap()
}

proptest! {
    #[test]
    fn importing_a_folded_export_and_exporting_it_again_changes_nothing(capture in capture()) {
        let first = export(&capture, Format::Folded, &ExportOptions::default());
        // A line that begins so is a comment to all readers of the format.
        prop_assume!(!first.starts_with(b"# ") && !first.windows(3).any(|bytes| bytes == b"\n# "));
        let read = read_folded(&first);
        prop_assert_eq!(read.info.losses.malformed_records, 0);
        let second = export(&read, Format::Folded, &ExportOptions::default());
        prop_assert_eq!(String::from_utf8_lossy(&first), String::from_utf8_lossy(&second));
        let again = read_folded(&second);
        prop_assert_eq!(read, again);
    }

    #[test]
    fn formats_that_sum_agree_on_any_capture(capture in capture()) {
        let all = ExportOptions::default();
        let mut folded = readers::folded(&export(&capture, Format::Folded, &all));
        prop_assert_eq!(&readers::firefox(&json(&capture, Format::Firefox, &all)), &folded);
        prop_assert_eq!(&readers::speedscope(&json(&capture, Format::Speedscope, &all), "weight"), &folded);
        folded.retain(|_, weight| *weight > 0);
        let pprof = readers::pprof(&export(&capture, Format::Pprof, &all));
        prop_assert_eq!(&readers::pprof_folded(&pprof, "weight/weight"), &folded);
    }
}

#[test]
fn counts_are_the_number_of_samples() {
    let options =
        ExportOptions { measure: Measure::Count, threads: ThreadLabels::Absent, ..of(Evidence::Event(EventId(0))) };
    let folded = readers::folded(&export(&example(), Format::Folded, &options));
    assert_eq!(folded.values().sum::<u128>(), 5);
}
