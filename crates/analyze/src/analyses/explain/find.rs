//! Which functions a name means.
//!
//! The first of these that matches anything decides:
//!
//! 1. the full name, then the own qualified name, which means all instances of a template;
//! 2. a glob or `/regex/`: all functions that match are added up;
//! 3. the end of the own qualified name (`EntityMatches`), with equal case, then without regard to case and `_`;
//! 4. a part of the own qualified name, without regard to case and `_`.
//!
//! 3 and 4 must mean one function; otherwise the error lists them. If nothing matches, the error suggests similar names.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use thiserror::Error;

use crate::query::pattern::{Pattern, offered};
use crate::query::qualified_name::own_name;
use crate::query::select::Selection;

/// A function that cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExplainError {
    /// No function has such a name.
    #[error("no function matches `{asked}`{}", suggestions(.similar))]
    NotFound {
        /// The name as given.
        asked: String,
        /// Similar names.
        similar: Vec<String>,
    },
    /// More than one function has such a name.
    #[error("`{asked}` matches several functions: {}; name one, or add them up with `'*{asked}*'`", offered(.names))]
    Ambiguous {
        /// The name as given.
        asked: String,
        /// Own qualified names of the functions.
        names: Vec<String>,
    },
}

fn suggestions(similar: &[String]) -> String {
    if similar.is_empty() {
        return "; `stepscope show` lists the functions".to_owned();
    }
    format!("; did you mean {}?", offered(similar))
}

/// Full names of the functions that a name means.
pub(super) fn find(selections: &[Selection<'_>], asked: &str) -> Result<BTreeSet<String>, ExplainError> {
    let all = selections.iter().flat_map(|selection| selection.functions().all());
    let names: BTreeSet<&str> = all.map(|(_, function)| &*function.name).collect();
    let that = |matches: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
        names.iter().filter(|name| matches(name)).map(|name| (*name).to_owned()).collect()
    };
    let pattern = asked.parse::<Pattern>().ok().filter(|pattern| !pattern.is_exact());
    let matches_pattern =
        |name: &str| pattern.as_ref().is_some_and(|pattern| pattern.matches(name) || pattern.matches(&own_name(name)));
    let certain: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == asked, &|name| own_name(name) == asked, &matches_pattern];
    if let Some(found) = certain.into_iter().map(that).find(|found| !found.is_empty()) {
        return Ok(found);
    }
    let (end, plain) = (format!("::{asked}"), normalized(asked));
    let ends_plainly = |name: &str| {
        let own = own_name(name);
        let mut starts = own.match_indices("::").map(|(at, _)| at + 2).chain([0]);
        starts.any(|at| normalized(&own[at..]) == plain)
    };
    let likely: [&dyn Fn(&str) -> bool; 3] = [&|name| own_name(name).ends_with(&end), &ends_plainly, &|name| {
        !plain.is_empty() && normalized(&own_name(name)).contains(&plain)
    }];
    let Some(found) = likely.into_iter().map(that).find(|found| !found.is_empty()) else {
        return Err(ExplainError::NotFound { asked: asked.to_owned(), similar: similar(&names, &plain) });
    };
    let own: BTreeSet<String> = found.iter().map(|name| own_name(name).into_owned()).collect();
    match own.len() {
        1 => Ok(found),
        _ => Err(ExplainError::Ambiguous { asked: asked.to_owned(), names: own.into_iter().collect() }),
    }
}

/// A name in lower case without `_`, so that `EntityMatches` and `entity_matches` are equal.
fn normalized(name: &str) -> String {
    name.chars().filter(|character| *character != '_').flat_map(char::to_lowercase).collect()
}

/// The own qualified names whose last part is most like a name; the most similar first.
fn similar(names: &BTreeSet<&str>, plain: &str) -> Vec<String> {
    const LEAST_SIMILARITY: f64 = 0.6;
    const MOST: usize = 5;
    let asked = plain.rsplit("::").next().unwrap_or(plain);
    let own: BTreeSet<String> = names.iter().map(|name| own_name(name).into_owned()).collect();
    let scored = own.into_iter().map(|name| {
        let last = normalized(name.rsplit("::").next().unwrap_or(&name));
        (strsim::normalized_damerau_levenshtein(asked, &last), name)
    });
    let mut scored: Vec<(f64, String)> = scored.filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY).collect();
    scored.sort_by(|a, b| Reverse(a.0.to_bits()).cmp(&Reverse(b.0.to_bits())).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(MOST).map(|(_, name)| name).collect()
}
