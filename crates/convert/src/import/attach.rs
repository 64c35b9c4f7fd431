//! [`attach`]: what the counts of a file are evidence of, if the file does not say.

use stepscope_model::{Capture, Dimension, DimensionStatus};

use super::folded::FoldedUnit;
use super::perf_event;

/// States that a capture's samples are evidence of this dimension.
///
/// # Errors
/// If the file says that they are evidence of something else, or has none.
pub fn attach(capture: &mut Capture, dimension: Dimension) -> Result<(), String> {
    let (name, unit) = match dimension {
        Dimension::Cpu => ("cpu", FoldedUnit::Unknown.name()),
        Dimension::Cache => ("cache-misses", FoldedUnit::Misses.name()),
        Dimension::Faults => ("page-faults", "faults"),
        other => return Err(format!("samples are no evidence of `{other}`")),
    };
    let is_unknown = |unit: &str| unit == FoldedUnit::Unknown.name() || unit == FoldedUnit::Samples.name();
    match capture.info.events.as_mut_slice() {
        [] => return Err("it has no samples, so --dimension does not apply".to_owned()),
        // Folded stacks in ns.
        [event] if event.name == "time" && dimension == Dimension::Cpu => event.name = "cpu-clock".to_owned(),
        [event] if event.name == event.unit && is_unknown(&event.unit) => {
            event.name = name.to_owned();
            if dimension != Dimension::Cpu {
                event.unit = unit.to_owned();
            }
        }
        events if events.iter().any(|event| perf_event::dimension(event) == Some(dimension)) => {}
        events => {
            let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
            return Err(format!(
                "its samples count {}, which is no evidence of `{dimension}`; leave --dimension out",
                names.join(", ")
            ));
        }
    }
    let info = &mut capture.info;
    info.dimensions.insert(dimension, DimensionStatus::Recorded);
    info.notes.retain(|note| !note.contains("`--unit`"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use stepscope_model::Event;

    use super::*;

    fn attached(event: Event, dimension: Dimension) -> Result<(String, String), String> {
        let mut capture = Capture::default();
        capture.add_event(event);
        attach(&mut capture, dimension)?;
        let event = &capture.info.events[0];
        Ok((event.name.clone(), event.unit.clone()))
    }

    #[test]
    fn counts_of_unknown_kind_become_evidence_and_others_are_refused() {
        let named = |name: &str, unit: &str| Ok((name.to_owned(), unit.to_owned()));
        let unknown = || Event::weighed("weight", "weight");
        assert_eq!(attached(unknown(), Dimension::Cpu), named("cpu", "weight"));
        assert_eq!(attached(unknown(), Dimension::Cache), named("cache-misses", "misses"));
        assert_eq!(attached(Event::weighed("samples", "samples"), Dimension::Cpu), named("cpu", "samples"));
        assert_eq!(attached(Event::weighed("time", "ns"), Dimension::Cpu), named("cpu-clock", "ns"));
        assert_eq!(attached(Event::weighed("cycles", "cycles"), Dimension::Cpu), named("cycles", "cycles"));
        assert_eq!(
            attached(Event::weighed("cycles", "cycles"), Dimension::Cache).unwrap_err(),
            "its samples count cycles, which is no evidence of `cache`; leave --dimension out"
        );
        assert!(attach(&mut Capture::default(), Dimension::Cpu).is_err());
    }
}
