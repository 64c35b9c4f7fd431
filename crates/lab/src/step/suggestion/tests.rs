use super::*;
use stepscope_model::{Event, Frame, Module, Sample, Thread, Value};
use stepscope_record::calls::CountedCall;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn simulated_run(number: u32) -> u32 {
    std::hint::black_box(number) + 11
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn simulated_call(number: u32) -> u32 {
    std::hint::black_box(number) + 12
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn simulated_step(number: u32) -> u32 {
    std::hint::black_box(number) + 13
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn simulated_loop(rounds: u32) -> u32 {
    let (mut round, mut number) = (0, 0);
    while round < std::hint::black_box(rounds) {
        number = simulated_step(number);
        round += 1;
    }
    number
}

const WINDOW: std::ops::Range<u64> = 0..100_000_000;

const STACK: [&str; 4] = ["simulated_run", "simulated_call", "simulated_step", "inlined"];

/// A capture of this test's functions on one stack, 100 samples.
fn capture() -> Capture {
    capture_of(&[(&STACK, 100)])
}

/// A capture of these stacks, root first, each with its number of samples.
fn capture_of(stacks: &[(&[&str], usize)]) -> Capture {
    assert_eq!(simulated_run(simulated_call(simulated_step(0))), 36);
    let mut capture = Capture::default();
    let event = capture.add_event(Event::sampled("cpu-clock", "ns"));
    let thread = capture.add_thread(Thread { tid: 7, name: "sim".to_owned(), ..Thread::default() });
    let path = std::env::current_exe().unwrap();
    let module = capture.add_module(Module {
        path: path.display().to_string(),
        symbols: SymbolSource::DebugInfo,
        ..Module::default()
    });
    let frame = |capture: &mut Capture, name: &str| {
        let entries = stepscope_symbolize::entries(&path, &Default::default(), |_, symbol| symbol == name);
        let offset = entries.unwrap().first().map(|entry| entry.offset);
        let code = stepscope_symbolize::Code::file(&path);
        let address = offset
            .map(|offset| stepscope_symbolize::Symbolizer::default().name(&code, &[offset]).places[0].address.unwrap());
        let inlined = name == "inlined";
        capture.intern_frame(Frame { module: Some(module), address, inlined, ..Frame::named(name) })
    };
    for (names, samples) in stacks {
        let frames: Vec<_> = names.iter().map(|name| frame(&mut capture, name)).collect();
        let stack = capture.intern_stack(frames);
        let sample = Sample { time_ns: None, thread, cpu: None, stack, event, weight: 1 };
        capture.samples.extend(std::iter::repeat_n(sample, *samples));
    }
    capture
}

/// An address in the loop of [`simulated_loop`], and the loop's head.
fn address_in_loop() -> (u64, stepscope_symbolize::LoopHead) {
    assert_eq!(simulated_loop(2), 26);
    let this = std::env::current_exe().unwrap();
    let entry =
        stepscope_symbolize::entries(&this, &Default::default(), |_, symbol| symbol == "simulated_loop").unwrap();
    let code = stepscope_symbolize::Code::file(&this);
    let names = stepscope_symbolize::Symbolizer::default().name(&code, &[entry[0].offset]);
    let start = names.places[0].address.unwrap();
    let addresses: Vec<u64> = (start + 1..start + 256).collect();
    let around = stepscope_symbolize::loops_around(&this, &addresses).unwrap();
    let found = addresses.into_iter().zip(around).find(|(_, heads)| !heads.is_empty());
    found.map(|(address, heads)| (address, heads[0])).unwrap()
}

#[test]
fn a_loop_whose_step_is_inlined_into_it_is_suggested_and_found_again_by_its_name() {
    let (address, head) = address_in_loop();
    let mut capture = capture_of(&[(&["simulated_loop"], 100)]);
    capture.frames[0].address = Some(address);
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let suggestion = Suggestion::of(&capture, &owned, |sites, _| {
        assert_eq!(sites.len(), 2);
        assert_eq!((sites[1].offset, &sites[1].threads), (head.offset, &vec![7]));
        let not_called = SiteCalls::Counted { calls: Vec::new(), window: WINDOW };
        Ok(CallCounts { sites: vec![not_called, steady(1_000_000)], lost: 0 })
    });
    let found = suggestion.clear_step(1.0).unwrap();
    assert!(found.function.starts_with("[loop "), "{}", found.function);
    assert_eq!(found.offset, head.offset);
    let this = std::env::current_exe().unwrap();
    let best = suggestion.best(|step| step.find(&this, Vec::new).ok()).unwrap();
    assert!(best.name.ends_with(&format!("+{:#x}", head.address)), "{}", best.name);
    let named = StepFunction { name: found.function.clone(), module: None, time: None };
    assert_eq!(named.find(&this, Vec::new).unwrap(), found);
    let table = suggestion.table(None);
    assert_eq!(cells(&table, "why")[0], "the loop's rounds have this rate");
}

fn steady(period_ns: u64) -> SiteCalls {
    let call = |number: u64| CountedCall { time_ns: number * period_ns, tid: 7, cpu_ns: number * period_ns };
    SiteCalls::Counted { calls: (0..100).map(call).collect(), window: WINDOW }
}

fn cells(table: &Table, column: &str) -> Vec<String> {
    let text = |row| match table.get(row, column) {
        Some(Value::Text(text)) => text.clone(),
        other => format!("{other:?}"),
    };
    (0..table.rows.len()).map(text).collect()
}

fn notes(table: &Table) -> String {
    table.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_function_that_is_called_steadily_and_named_a_step_is_suggested_with_a_name_that_finds_it() {
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let suggestion = Suggestion::of(&capture(), &owned, |sites, _| {
        assert_eq!(sites.len(), 3, "the inlined function has no entry");
        assert!(sites.iter().all(|site| site.threads == [7] && site.offset > 0));
        // In the order of the stack: all have the same share.
        let sites =
            vec![SiteCalls::Counted { calls: Vec::new(), window: WINDOW }, steady(1_000_000), steady(1_000_000)];
        Ok(CallCounts { sites, lost: 0 })
    });
    let this = std::env::current_exe().unwrap();
    let best = suggestion.best(|step| step.find(&this, Vec::new).ok()).unwrap();
    assert_eq!((best.name.as_str(), best.module), ("simulated_step", None));
    let table = suggestion.table(Some("COMMAND"));
    assert_eq!(cells(&table, "function"), ["simulated_step", "simulated_call", "simulated_run", "inlined"]);
    let why = cells(&table, "why");
    assert_eq!(why[0], "outermost function called at this rate");
    assert_eq!(why[1], "called once per `simulated_step`");
    assert_eq!(why[2], "not called while counting: it contains the loop, or runs seldom");
    assert_eq!(why[3], "inlined into `simulated_step`, so its calls cannot be counted");
    assert!(notes(&table).contains("COMMAND"), "{}", notes(&table));
}

#[test]
fn functions_of_cpython_are_no_steps_and_those_of_extension_modules_may_be() {
    let of = |path: &str| is_interpreter(Path::new(path));
    assert!(of("/usr/bin/python3.11") && of("/usr/lib/libpython3.11.so.1.0"));
    assert!(!of("/home/me/_world.cpython-311-x86_64-linux-gnu.so") && !of("/home/me/fleet"));
}

#[test]
fn a_clear_step_is_cheap_to_observe_and_has_most_of_its_threads_time() {
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let step_called_every = |stacks: &[(&[&str], usize)], period_ns| {
        let calls = |sites: &[CallSite]| sites.iter().map(|_| steady(period_ns)).collect();
        Suggestion::of(&capture_of(stacks), &owned, |sites, _| Ok(CallCounts { sites: calls(sites), lost: 0 }))
    };
    let found = step_called_every(&[(&STACK, 100)], 1_000_000).clear_step(1.0).unwrap();
    assert_eq!(found.function, "simulated_step");
    assert_eq!(found.module, std::env::current_exe().unwrap());
    // Each call costs 6 us at least, so 1,000 a second cost 0.6 %.
    assert_eq!(step_called_every(&[(&STACK, 100)], 1_000_000).clear_step(0.005), None);
    let helper: [(&[&str], _); 2] = [(&["run", "simulated_step"], 40), (&["run"], 60)];
    assert_eq!(step_called_every(&helper, 1_000_000).clear_step(1.0), None);
}

#[test]
fn a_loop_that_calls_the_parts_of_its_step_has_the_largest_part_as_its_clear_step() {
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let stacks: [(&[&str], _); 3] = [(&["run", "simulated_call"], 45), (&["run", "simulated_run"], 40), (&["run"], 15)];
    let called_every = |periods: [u64; 2]| {
        let calls = || periods.map(steady).to_vec();
        Suggestion::of(&capture_of(&stacks), &owned, |_, _| Ok(CallCounts { sites: calls(), lost: 0 }))
    };
    let found = called_every([1_000_000, 1_000_000]).clear_step(1.0).unwrap();
    assert_eq!(found.function, "simulated_call");
    assert_eq!(called_every([1_000_000, 700_000]).clear_step(1.0), None, "no loop has most of the time");
}

#[test]
fn a_slow_step_is_counted_longer_than_its_frequent_helpers() {
    assert!(!are_enough(&[0, 6, 60_000], &[0.99, 0.94, 0.12]), "only a helper has a rate");
    assert!(are_enough(&[0, 10, 60_000], &[0.99, 0.94, 0.12]));
    assert!(are_enough(&[0, 12, 40], &[0.5, 0.45, 0.4]), "two threads with a loop each");
}

#[test]
fn a_slow_step_with_too_few_calls_is_named() {
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let suggestion = Suggestion::of(&capture(), &owned, |sites, _| {
        let call = |number: u64| CountedCall { time_ns: number, tid: 7, cpu_ns: number };
        let few = |_: &CallSite| SiteCalls::Counted { calls: (0..3).map(call).collect(), window: WINDOW };
        Ok(CallCounts { sites: sites.iter().map(few).collect(), lost: 0 })
    });
    let notes = notes(&suggestion.table(None));
    assert!(notes.contains("has 100.00 % of the CPU time but was called too seldom"), "{notes}");
}

#[test]
fn a_program_that_ends_before_its_calls_are_counted_is_said() {
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let ended = io::Error::from_raw_os_error(libc::ESRCH);
    let notes = notes(&Suggestion::of(&capture(), &owned, |_, _| Err(ended)).table(None));
    assert!(notes.contains("the program ended before") && !notes.contains("uprobes"), "{notes}");
}

#[test]
fn without_rights_the_innermost_function_with_most_of_the_time_comes_first() {
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let refused = io::Error::from_raw_os_error(13);
    let table = Suggestion::of(&capture(), &owned, |_, _| Err(refused)).table(None);
    assert_eq!(cells(&table, "function")[0], "simulated_step");
    assert!(notes(&table).contains("Permission denied") && notes(&table).contains("CAP_PERFMON"), "{}", notes(&table));
}

#[test]
fn without_a_steady_function_the_notes_say_what_to_try() {
    let owned = stepscope_analyze::Ownership::default().compile().unwrap();
    let suggestion = Suggestion::of(&capture(), &owned, |sites, _| {
        let sites = sites.iter().map(|_| SiteCalls::TooOften { per_second: 54_321.0, window: 0..1 }).collect();
        Ok(CallCounts { sites, lost: 3 })
    });
    assert_eq!(suggestion.best(|_| panic!("nothing is suggested")), None);
    let table = suggestion.table(None);
    assert!(cells(&table, "why")[0].contains("54000 times per second"), "{:?}", cells(&table, "why"));
    assert!(
        notes(&table).contains("3 calls were lost") && notes(&table).contains("docs/marks.md"),
        "{}",
        notes(&table)
    );
}
