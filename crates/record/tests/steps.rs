//! Steps by calls of a function, and the simulated time in its argument: exactly all of them.

mod recorded;

use recorded::{programs, record_command_with};
use stepscope_model::{Capture, Dimension, DimensionStatus};
use stepscope_record::launch::Launch;
use stepscope_record::{Options, StepPoint, StepTime};
use stepscope_symbolize::entries;

const STEPS: u64 = 240;

const NOT_CALLED: &str = "The step function was called less than twice.";

/// The recording of `truth/steps.cpp`, where steps can be recorded.
fn record(test: &str, time: Option<StepTime>) -> Option<Capture> {
    record_steps(test, STEPS, time)
}

fn record_steps(test: &str, steps: u64, time: Option<StepTime>) -> Option<Capture> {
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return None;
    };
    let module = programs.join("steps");
    let found = entries(&module, &Default::default(), |_, symbol| symbol == "take_step").unwrap();
    let [entry] = &found[..] else { panic!("{found:?}") };
    let step = StepPoint { function: entry.name.clone(), module: module.clone(), offset: entry.offset, time };
    let options = Options { step: Some(step), ..Options::default() };
    let launch = Launch::new([module.into_os_string(), steps.to_string().into()]);
    let (capture, lines) = record_command_with(test, launch, &options)?;
    assert_eq!(lines, ["done"], "a program that starts threads runs undisturbed");
    if let Some(DimensionStatus::Missing { reason, .. }) = capture.info.dimensions.get(&Dimension::Steps)
        && reason != NOT_CALLED
    {
        println!("skipped: {test}: {reason}");
        return None;
    }
    Some(capture)
}

fn sim_times(capture: &Capture) -> Vec<Option<u64>> {
    capture.steps.iter().map(|step| step.sim_time_ns).collect()
}

/// The simulated time at the end of each step: steps of two milliseconds.
fn expected() -> Vec<Option<u64>> {
    (1..=STEPS).map(|step| Some(step * 2_000_000)).collect()
}

/// Number of probes that this process left in the kernel.
fn probes_left() -> usize {
    let listed = std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    listed.matches(&format!("stepscope/step_{}_", std::process::id())).count()
}

#[test]
fn steps_have_the_simulated_time_of_the_functions_argument() {
    let test = "steps_have_the_simulated_time_of_the_functions_argument";
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: {test}: the argument's register is one of x86-64");
        return;
    }
    for argument in ["%di:s64 ns", "%di", "+8(%si):f64 s"] {
        let time = StepTime::Argument(argument.parse().unwrap());
        let Some(capture) = record(test, Some(time)) else { return };
        assert_eq!(sim_times(&capture), expected(), "{argument}");
    }
    assert_eq!(probes_left(), 0);
}

#[test]
fn steps_of_equal_length_are_counted() {
    let time = StepTime::Every { step_ns: 2_000_000 };
    let Some(capture) = record("steps_of_equal_length_are_counted", Some(time)) else { return };
    assert_eq!(sim_times(&capture), expected());
}

#[test]
fn steps_are_recorded_without_simulated_time() {
    let Some(capture) = record("steps_are_recorded_without_simulated_time", None) else { return };
    assert_eq!(sim_times(&capture), vec![None; STEPS as usize]);
}

#[test]
fn a_step_function_that_is_not_called_is_said() {
    let Some(capture) = record_steps("a_step_function_that_is_not_called", 0, None) else { return };
    let status = &capture.info.dimensions[&Dimension::Steps];
    assert!(matches!(status, DimensionStatus::Missing { reason, .. } if reason == NOT_CALLED), "{status:?}");
}

#[test]
fn an_argument_unknown_to_the_kernel_is_named_in_the_capture() {
    let test = "an_argument_unknown_to_the_kernel_is_named_in_the_capture";
    let Some(programs) = programs() else {
        println!("skipped: {test}: no g++ to build the program");
        return;
    };
    let time = Some(StepTime::Argument("%nothing:s64".parse().unwrap()));
    let step = StepPoint { function: "take_step".into(), module: programs.join("steps"), offset: 0x1000, time };
    let options = Options { step: Some(step), ..Options::default() };
    let Some((capture, _)) = record_command_with(test, Launch::new(["true"]), &options) else { return };
    let status = &capture.info.dimensions[&Dimension::Steps];
    let DimensionStatus::Missing { reason, .. } = status else { panic!("{status:?}") };
    assert!(reason.contains("take_step"), "{reason}");
}
