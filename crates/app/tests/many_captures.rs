//! A page of many captures is as large as it may be, and says what it lacks.

use stepscope_analyze::{Functions, Ownership, Selection};
use stepscope_app::page::{self, Written};
use stepscope_model::{Capture, Event, Phase, Sample, StackId, Step, Thread};
use stepscope_view::report::Report;

/// Both phases of scenarios with few stacks, and `steps` steps of the last scenario.
fn captures(scenarios: u64, steps: u64) -> Vec<Capture> {
    let all = (0..scenarios).flat_map(|scenario| [(scenario, Phase::Loading), (scenario, Phase::Steady)]);
    all.map(|(scenario, phase)| {
        let steps = if scenario + 1 == scenarios { steps } else { 100 };
        capture(&format!("s{scenario}"), phase, steps)
    })
    .collect()
}

fn capture(scenario: &str, phase: Phase, steps: u64) -> Capture {
    let mut capture = Capture::default();
    capture.info.scenario = Some(scenario.to_owned());
    capture.info.phase = Some(phase);
    (capture.info.start_ns, capture.info.end_ns) = (Some(0), Some(steps * 1_000));
    let event = capture.add_event(Event::sampled("cpu", "ns"));
    let thread = capture.add_thread(Thread { start_ns: Some(0), end_ns: Some(steps * 1_000), ..Thread::default() });
    let leaves: Vec<StackId> = (0..40)
        .map(|number| {
            let frame = capture.intern_function(&format!("{scenario}::f{number}"));
            capture.intern_stack_node(None, frame)
        })
        .collect();
    for index in 0..steps {
        // No two steps are alike, so that they do not compress to nothing.
        let noise = (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) % 900;
        let start_ns = index * 1_000;
        capture.steps.push(Step { index, start_ns, end_ns: start_ns + 50 + noise, sim_time_ns: Some(index), thread });
    }
    for index in 0..2_000_u64 {
        let time_ns = Some(index * steps / 2);
        let stack = Some(leaves[index as usize % leaves.len()]);
        capture.samples.push(Sample { time_ns, thread, cpu: Some(0), stack, event, weight: 1_000 });
    }
    capture
}

fn written(captures: &[Capture], budget: u64) -> (Written, String) {
    let owned = Ownership::default().compile().unwrap();
    let functions: Vec<Functions> = captures.iter().map(|capture| Functions::of(capture, &owned)).collect();
    let selections: Vec<Selection<'_>> =
        captures.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
    let mut page = Vec::new();
    let written = page::write(&Report::new("many"), &selections, budget, &mut page).unwrap();
    (written, String::from_utf8(page).unwrap())
}

/// Size of a page without captures.
fn empty() -> u64 {
    written(&[], page::BUDGET).1.len() as u64
}

fn manifest(page: &str) -> serde_json::Value {
    let text = page.split("id=\"manifest\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn steps_of_a_microsecond_do_not_exceed_the_size_of_a_page() {
    let (captures, room) = (captures(3, 200_000), 400_000);
    let (written, page) = written(&captures, empty() + room);
    assert!(page.len() as u64 <= empty() + room, "{} bytes beside the app", page.len() as u64 - empty());
    assert_eq!(written.left_out, 0);
    let manifest = manifest(&page);
    let left_out = |capture: &serde_json::Value| capture["leftOut"].to_string();
    assert!(left_out(&manifest["captures"][5]).contains("Of 200,000 steps"), "{}", left_out(&manifest["captures"][5]));
    assert!(!left_out(&manifest["captures"][0]).contains("steps"), "small captures keep all steps");
}

#[test]
fn captures_that_do_not_fit_are_named_and_loading_phases_go_first() {
    let (captures, room) = (captures(30, 100), 300_000);
    let (written, page) = written(&captures, empty() + room);
    assert!(page.len() as u64 <= empty() + room, "{} bytes beside the app", page.len() as u64 - empty());
    let manifest = manifest(&page);
    let phases: Vec<&str> =
        manifest["captures"].as_array().unwrap().iter().map(|capture| capture["phase"].as_str().unwrap()).collect();
    assert_eq!(phases.len() + written.left_out, 60);
    assert!(written.left_out > 0 && !phases.is_empty());
    assert!(
        phases.iter().all(|phase| *phase == "steady")
            || phases.iter().filter(|phase| **phase == "steady").count() == 30
    );
    let warning = manifest["document"]["warnings"][0]["text"].as_str().unwrap();
    assert!(warning.starts_with(&format!("{} captures did not fit", written.left_out)), "{warning}");
    assert!(warning.contains("s29/loading"), "{warning}");
}
