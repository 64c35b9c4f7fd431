//! Which functions a name means, for every command that takes the name of a function.
//!
//! The first of these that matches anything decides:
//!
//! 1. the full name, then the own qualified name, which means all instances of a template;
//! 2. a glob or `/regex/`: all functions that match; then a glob over the end of the own qualified name (`Pair*` for
//!    `Sim::PairForce::compute`), without regard to case and `_`;
//! 3. the end of the own qualified name (`EntityMatches`), with equal case, then without regard to case and `_`;
//! 4. a part of the own qualified name, without regard to case and `_`.
//!
//! Parts of a name are separated by `::`, those of Python names by `.`. 3 and 4 must mean one function; otherwise the error lists them. If nothing matches, the error suggests similar names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::query::pattern::{Pattern, offered};
use crate::query::qualified_name::own_name;

/// A name that means no function, or several.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FunctionNameError {
    /// No function has such a name.
    #[error("no function matches `{asked}`{}", suggestions(.similar))]
    NotFound {
        /// The name as given.
        asked: String,
        /// Similar names.
        similar: Vec<String>,
    },
    /// More than one function has such a name.
    #[error("`{asked}` matches several functions: {}", offered(.names))]
    Ambiguous {
        /// The name as given.
        asked: String,
        /// Own qualified names of the functions.
        names: Vec<String>,
    },
}

fn suggestions(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; did you mean {}?", offered(similar)) }
}

/// The functions of `names` (full names) that `asked` means.
///
/// # Errors
/// [`FunctionNameError`]
pub fn matching<'n>(
    names: impl IntoIterator<Item = &'n str>,
    asked: &str,
) -> Result<BTreeSet<&'n str>, FunctionNameError> {
    matching_by(names, asked, Parts::Any)
}

/// The same by whole parts between `::` only: rule 4 does not apply. For names of other people's code, where something
/// always has the part.
///
/// # Errors
/// [`FunctionNameError`]
pub fn matching_whole_parts<'n>(
    names: impl IntoIterator<Item = &'n str>,
    asked: &str,
) -> Result<BTreeSet<&'n str>, FunctionNameError> {
    matching_by(names, asked, Parts::Whole)
}

/// What a part of a name may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    Any,
    Whole,
}

fn matching_by<'n>(
    names: impl IntoIterator<Item = &'n str>,
    asked: &str,
    parts: Parts,
) -> Result<BTreeSet<&'n str>, FunctionNameError> {
    type Rule<'r> = &'r dyn Fn(&str, &Own) -> bool;
    // Names of templates are long, and each is compared several times.
    let own: BTreeMap<&str, Own> = names.into_iter().map(|name| (name, Own::of(name))).collect();
    let that = |matches: Rule<'_>| -> BTreeSet<&'n str> {
        own.iter().filter(|(name, own)| matches(name, own)).map(|(name, _)| *name).collect()
    };
    let glob = Glob::parse(asked);
    let certain: [Rule<'_>; 3] = [&|name, _| name == asked, &|_, own| own.name == asked, &|name, own| {
        glob.as_ref().is_some_and(|glob| glob.pattern.matches(name) || glob.pattern.matches(&own.name))
    }];
    if let Some(found) = certain.into_iter().map(that).find(|found| !found.is_empty()) {
        return Ok(found);
    }
    if let Some(glob) = &glob {
        let found = that(&|_, own| glob.matches_end(own));
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let plain = normalized(asked);
    let likely: [Rule<'_>; 3] = [
        &|_, own| ends(&own.name).any(|end| end == asked),
        &|_, own| ends(&own.plain).any(|end| end == plain),
        &|_, own| parts == Parts::Any && !plain.is_empty() && own.plain.contains(&plain),
    ];
    let Some(found) = likely.into_iter().map(that).find(|found| !found.is_empty()) else {
        let similar = similar(own.values(), &plain);
        return Err(FunctionNameError::NotFound { asked: asked.to_owned(), similar });
    };
    let meant: BTreeSet<&String> = found.iter().map(|name| &own[name].name).collect();
    match meant.len() {
        1 => Ok(found),
        _ => {
            let names = meant.into_iter().cloned().collect();
            Err(FunctionNameError::Ambiguous { asked: asked.to_owned(), names })
        }
    }
}

/// The own qualified name of a function.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Own {
    name: String,
    /// The same, [`normalized`].
    plain: String,
}

impl Own {
    fn of(full_name: &str) -> Self {
        let name = own_name(full_name).into_owned();
        let plain = normalized(&name);
        Self { name, plain }
    }
}

/// Whether [`matching`] could choose a function of this full name. For large sets of names, of which few are kept.
pub fn could_match(asked: &str) -> impl Fn(&str) -> bool + use<> {
    let glob = Glob::parse(asked);
    let plain = normalized(asked);
    // Between the parts of an own qualified name, the full name may have arguments of templates.
    let last = plain.rsplit("::").next().unwrap_or_default().to_owned();
    move |name| match &glob {
        Some(glob) => glob.pattern.matches(name) || glob.matches_end(&Own::of(name)),
        None => normalized(name).contains(&last),
    }
}

/// A qualified name, then the same without its first parts.
fn ends(own: &str) -> impl Iterator<Item = &str> {
    let separators = own.match_indices("::").chain(own.match_indices('.'));
    std::iter::once(0).chain(separators.map(|(at, separator)| at + separator.len())).map(|at| &own[at..])
}

/// A glob or `/regex/` over names of functions.
struct Glob {
    pattern: Pattern,
    /// The glob over normalized names. A regular expression may match anywhere as it is.
    plain: Option<Pattern>,
}

impl Glob {
    fn parse(asked: &str) -> Option<Self> {
        let pattern = asked.parse::<Pattern>().ok().filter(|pattern| !pattern.is_exact())?;
        let plain = if asked.starts_with('/') { None } else { normalized(asked).parse().ok() };
        Some(Self { pattern, plain })
    }

    /// Whether it matches a qualified name, or an end of it without regard to case and `_`.
    fn matches_end(&self, own: &Own) -> bool {
        let plainly = |plain: &Pattern| ends(&own.plain).any(|end| plain.matches(end));
        self.pattern.matches(&own.name) || self.plain.as_ref().is_some_and(plainly)
    }
}

/// A name in lower case without `_`, so that `EntityMatches` and `entity_matches` are equal.
fn normalized(name: &str) -> String {
    if name.is_ascii() {
        // Most names are, and a large program has a million.
        return name.bytes().filter(|byte| *byte != b'_').map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    }
    name.chars().filter(|character| *character != '_').flat_map(char::to_lowercase).collect()
}

/// The own qualified names whose last part is most like a name; the most similar first.
fn similar<'n>(own: impl Iterator<Item = &'n Own>, plain: &str) -> Vec<String> {
    const LEAST_SIMILARITY: f64 = 0.6;
    const MOST: usize = 5;
    let asked = plain.rsplit("::").next().unwrap_or(plain);
    let length = asked.chars().count();
    let scored = own.collect::<BTreeSet<_>>().into_iter().filter_map(|own| {
        let last = own.plain.rsplit("::").next().unwrap_or(&own.plain);
        let similarity_to = |last: &str| {
            // Names whose lengths differ more are not similar enough, whatever they are.
            let other = last.chars().count();
            let could_be = length.min(other) as f64 >= LEAST_SIMILARITY * length.max(other) as f64;
            could_be.then(|| strsim::normalized_damerau_levenshtein(asked, last))
        };
        let of_python = last.rsplit_once('.').and_then(|(_, method)| similarity_to(method));
        let similarity = similarity_to(last).into_iter().chain(of_python).max_by(f64::total_cmp)?;
        (similarity >= LEAST_SIMILARITY).then_some((similarity, &own.name))
    });
    let mut scored: Vec<(f64, &String)> = scored.collect();
    scored.sort_by(|a, b| Reverse(a.0.to_bits()).cmp(&Reverse(b.0.to_bits())).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(MOST).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "sim::World::Step",
        "sim::World::StepPhysics",
        "void sim::Each<int>",
        "void sim::Each<std::vector<sim::World, std::allocator<sim::World> > >",
        "take_step",
    ];

    fn found(asked: &str) -> Vec<&str> {
        matching(NAMES, asked).unwrap().into_iter().collect()
    }

    #[test]
    fn a_short_name_means_the_function_that_ends_with_it() {
        for asked in ["sim::World::Step", "World::Step", "Step", "step", "world::step"] {
            assert_eq!(found(asked), ["sim::World::Step"], "{asked}");
        }
        assert_eq!(found("TakeStep"), ["take_step"]);
        assert_eq!(found("physics"), ["sim::World::StepPhysics"]);
        assert!(matching_whole_parts(NAMES, "physics").is_err());
        assert!(matching_whole_parts(NAMES, "step").is_ok());
    }

    #[test]
    fn a_short_name_means_the_method_of_a_python_class() {
        let names = ["Car.move", "Car.move.<locals>.<genexpr>", "__memmove_avx512_unaligned_erms", "Carry.moves"];
        for asked in ["move", "Car.move", "MOVE"] {
            assert_eq!(matching(names, asked), Ok(BTreeSet::from(["Car.move"])), "{asked}");
        }
        let error = matching(names, "mvoe").unwrap_err().to_string();
        assert_eq!(error, "no function matches `mvoe`; did you mean `Car.move`, `Carry.moves`?");
    }

    #[test]
    fn a_glob_may_match_the_end_of_a_qualified_name() {
        let steps = ["sim::World::Step", "sim::World::StepPhysics"];
        for asked in ["Step*", "step*", "World::Step*", "wo_rld::st?p*"] {
            assert_eq!(found(asked), steps, "{asked}");
        }
        assert_eq!(found("sim::*Step"), ["sim::World::Step"], "the whole name decides first");
        assert!(matching(NAMES, "Physics*").is_err(), "a glob starts where a part of the name starts");
    }

    #[test]
    fn the_name_of_a_template_means_all_its_instances() {
        assert_eq!(found("Each").len(), 2);
        assert_eq!(found("void sim::Each<int>"), ["void sim::Each<int>"]);
    }

    #[test]
    fn every_matching_name_passes_the_quick_test() {
        for asked in [
            "World::Step",
            "takestep",
            "Each",
            "World::step*",
            "void sim::Each<int>",
            "sim::Each",
            "*Step*",
            "/ake/",
            "nothing",
        ] {
            let could = could_match(asked);
            let kept: Vec<&str> = NAMES.into_iter().filter(|name| could(name)).collect();
            assert_eq!(matching(kept, asked).ok(), matching(NAMES, asked).ok(), "{asked}");
        }
    }

    #[test]
    fn several_functions_are_listed_and_unknown_ones_are_suggested() {
        let error = |asked: &str| matching(NAMES, asked).unwrap_err().to_string();
        assert_eq!(
            error("tep"),
            "`tep` matches several functions: `sim::World::Step`, `sim::World::StepPhysics`, `take_step`"
        );
        assert_eq!(error("World::Setp"), "no function matches `World::Setp`; did you mean `sim::World::Step`?");
        assert_eq!(error("nothing"), "no function matches `nothing`");
    }
}
