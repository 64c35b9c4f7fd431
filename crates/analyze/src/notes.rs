//! Notes that several analyses share.

use stepscope_model::{Note, NoteValue, note};

use crate::query::select::Selection;

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

/// How many namespaces the note offers.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;
    use crate::query::functions::Functions;

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
