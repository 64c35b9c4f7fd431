//! Notes that several analyses share.

use std::collections::BTreeMap;

use stepscope_model::{FrameKind, Note, NoteValue, note};

use crate::query::select::Selection;
use crate::query::weights::{StackWeights, percent};

/// Names the owned patterns that match nothing in any of the captures, and the namespaces that the captures have instead.
pub(crate) fn ownership_note(selections: &[Selection<'_>]) -> Option<Note> {
    let first = selections.first()?;
    let in_none = |pattern: &&String| selections.iter().all(|one| one.functions().owning_nothing().contains(pattern));
    let nothing: Vec<&str> = first.functions().owning_nothing().iter().filter(in_none).map(String::as_str).collect();
    if nothing.is_empty() {
        return None;
    }
    let mut namespaces = first.functions().largest_namespaces(first.capture(), SHOWN);
    namespaces.iter_mut().for_each(|name| name.push_str("::*"));
    let (nothing, namespaces) = (
        NoteValue::names(nothing.iter().copied(), usize::MAX),
        NoteValue::names(namespaces.iter().map(String::as_str), SHOWN),
    );
    Some(match first.functions().largest_namespaces(first.capture(), 1).is_empty() {
        true => note!(Limit, "No function matches the owned pattern {}.", nothing),
        false => {
            note!(Limit, "No function matches the owned pattern {}. Largest namespaces here: {}.", nothing, namespaces)
        }
    })
}

/// Names the module with most of the weight that ends in code without a name, if that is much, and what to do.
pub(crate) fn unnamed_note(selection: &Selection<'_>) -> Option<Note> {
    let (capture, functions) = (selection.capture(), selection.functions());
    let weights = StackWeights::of_samples(selection);
    let mut by_module: BTreeMap<&str, u128> = BTreeMap::new();
    for (stack, amount) in weights.occupied() {
        let function = functions.get(functions.of_node(capture, stack));
        if function.kind == FrameKind::Unknown && !function.module.is_empty() {
            *by_module.entry(&function.module).or_default() += amount.weight;
        }
    }
    let (module, weight) = by_module.into_iter().max_by_key(|(_, weight)| *weight)?;
    let share = percent(weight, weights.total().weight).filter(|share| *share >= MUCH_UNNAMED_PERCENT)?;
    Some(note!(
        Limit,
        "{} of the samples end in `{}`, in functions without a name. Install its debug symbols, or set DEBUGINFOD_URLS; then \
         record again.",
        NoteValue::percent(share),
        module
    ))
}

/// From this share on, code without a name gets a note.
const MUCH_UNNAMED_PERCENT: f64 = 5.0;

/// How many namespaces the note offers.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;
    use crate::query::functions::Functions;

    #[test]
    fn a_module_without_symbols_is_named_with_its_share() {
        let capture = drawn::columns(
            "
            main                              main
            Run                               Run
            sumo+0x1230 [lib:/usr/bin/sumo]   Write
            84                                16
            ",
        );
        let note = drawn::selected(&capture, &[], unnamed_note).unwrap();
        assert_eq!(
            note,
            "84.00 % of the samples end in `sumo`, in functions without a name. Install its debug symbols, or set \
             DEBUGINFOD_URLS; then record again."
        );
        assert_eq!(drawn::selected(&drawn::folded("main;Run 1"), &[], unnamed_note), None);
    }

    #[test]
    fn a_pattern_that_owns_nothing_in_any_capture_is_noted() {
        let (one, other) = (drawn::folded("main;gz::Run 1"), drawn::folded("main;dart::step 1"));
        let note = |namespaces: &[&str]| {
            let owned = drawn::owned_by(namespaces);
            let both = [Functions::of(&one, &owned), Functions::of(&other, &owned)];
            ownership_note(&[Selection::all(&one, &both[0]), Selection::all(&other, &both[1])])
        };
        assert_eq!(note(&["gz::*", "dart::*"]), None);
        assert_eq!(
            note(&["gz::*", "nope::*"]).unwrap(),
            "No function matches the owned pattern `nope::*`. Largest namespaces here: `gz::*`."
        );
    }
}
