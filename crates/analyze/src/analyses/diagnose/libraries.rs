//! Findings in installed libraries, for somebody who cannot change these.
//!
//! What a library does because it is asked to, such as parsing, is decided by the function of the user that asks: the finding names that one. What a library
//! does by itself, such as the memory that it takes, is only a hint that it is called often.

use stepscope_model::StackId;

use super::Kind;
use super::finding::{Found, explain};
use super::seen::Seen;
use crate::query::functions::FunctionId;

/// What a finding of a kind means where its function is of an installed library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InLibrary {
    /// The same as in the user's code.
    Alike,
    /// The library does this work because somebody asks for it: a function of the user decides it.
    AskedFor,
    /// Its advice is to change that function, which the user cannot.
    InItsCode,
}

/// Least part of a finding's cost below the function that asks for it.
const NEARLY_ALL: f64 = 0.9;

type OfKind = (&'static dyn Kind, Found);

/// Findings that name functions of the user where these decide.
pub(super) fn for_users(seen: &Seen<'_, '_>, all: Vec<OfKind>) -> Vec<OfKind> {
    let mut kept: Vec<OfKind> = Vec::with_capacity(all.len());
    let taken: Vec<(&str, Option<FunctionId>)> =
        all.iter().map(|(kind, found)| (kind.name(), found.function)).collect();
    for (kind, found) in all {
        let library = found.function.filter(|function| seen.functions().is_installed(*function));
        let Some(library) = library else {
            kept.push((kind, found));
            continue;
        };
        let user = user_of(seen, &found, library);
        let is_free = |user: &FunctionId| {
            let is_it = |(name, function): (&str, Option<FunctionId>)| name == kind.name() && function == Some(*user);
            !taken.iter().copied().any(is_it)
                && !kept.iter().any(|(other, found)| is_it((other.name(), found.function)))
        };
        let found = match (kind.in_library(), user) {
            (InLibrary::AskedFor, Some(user)) if is_free(&user) => asked_for(seen, found, user),
            (InLibrary::InItsCode, user) => in_its_code(seen, found, library, user),
            _ => found,
        };
        kept.push((kind, found));
    }
    kept
}

/// The deepest function of the user's code with nearly all of a finding's cost below it. None if it is the one that all is below, such as `main`.
fn user_of(seen: &Seen<'_, '_>, found: &Found, library: FunctionId) -> Option<FunctionId> {
    let inside = seen.under(library);
    let at = |stack: StackId| found.without.get(stack.index()).is_some_and(|part| *part > 0.0);
    let all = seen.sum(at).weight as f64;
    let users: Vec<FunctionId> =
        seen.inclusive().into_iter().map(|(one, _)| one).filter(|one| !seen.functions().is_installed(*one)).collect();
    let calls = |user: &FunctionId| {
        let mut nodes = (0..inside.len()).filter(|index| !inside[*index]).map(StackId::from_index);
        nodes.any(|node| seen.functions().of_node(seen.capture(), node) == *user)
    };
    let has_most = |user: &FunctionId| {
        let under = seen.under(*user);
        all > 0.0 && seen.sum(|stack| under[stack.index()] && at(stack)).weight as f64 >= NEARLY_ALL * all
    };
    users.iter().skip(1).rev().copied().find(|user| calls(user) && has_most(user))
}

/// A finding about the user's function that asks a library for this work.
fn asked_for(seen: &Seen<'_, '_>, found: Found, user: FunctionId) -> Found {
    let title = format!("{}, for `{}`", found.title, seen.name(user));
    let text = format!("`{}` asks for it: nearly all of this cost is below that function.", seen.name(user));
    Found { title, ..found }.about(Some(user)).because(text, explain(seen, user))
}

/// A finding about code that is not the user's. What a change of the user's code would gain is not known.
fn in_its_code(seen: &Seen<'_, '_>, found: Found, library: FunctionId, user: Option<FunctionId>) -> Found {
    let module = &seen.functions().get(library).module;
    let text = match user {
        Some(user) => format!("It is code of the installed `{module}`; `{}` calls it.", seen.name(user)),
        None => format!("It is code of the installed `{module}`."),
    };
    let found = found.because(text, explain(seen, user.unwrap_or(library)));
    found.without_gain()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::slice;

    use crate::analyses::diagnose::{Calls, table};
    use crate::columns::read::cells;
    use crate::drawn::{Drawing, selected};
    use stepscope_model::Event;

    /// The findings of a program that is in the library for half of the time, at the places of `inside`, and in its own code for the rest.
    fn found(program: &str, inside: [&str; 2]) -> Vec<String> {
        let own = |name: &str| format!("{name} [file:{program}.cpp:9] [lib:{program}]");
        let library = "Config::Set [lib:/usr/lib/libconfig.so]";
        let mut text = String::new();
        for ms in 0..200 {
            for quarter in 0..4 {
                let stack = match inside.get(quarter) {
                    Some(place) => format!("{};{library};{place}", own("Arm::Adapt")),
                    None => own("Arm::Move"),
                };
                let time = ms * 1_000_000 + quarter * 250_000;
                let _ = writeln!(text, "@{time} main;{};{stack} 250000", own("main"));
            }
        }
        let drawing = Drawing::new().window(0..200_000_000).lived("main", 0..200_000_000, 200_000_000);
        let capture = drawing.folded(Event::sampled("cpu-clock", "ns"), &text).capture;
        selected(&capture, &[], |selection| {
            let table = table(slice::from_ref(selection), &Calls::default());
            let rows = cells(&table, &["kind", "function", "gain_share", "finding"]);
            rows.into_iter().filter(|row| !row.starts_with("single-threaded")).collect()
        })
    }

    const PARSES: [&str; 2] = ["tinyxml2::XMLDocument::Parse", "tinyxml2::XMLDocument::Parse;memchr"];

    #[test]
    fn what_a_library_is_asked_for_is_a_finding_about_the_function_that_asks() {
        let rows = found("/srv/sim", PARSES);
        let title = "`Config::Set` parses XML, JSON or YAML all the time, for `Arm::Adapt`";
        assert_eq!(rows, [format!("parsed-each-step | Arm::Adapt | 50 | {title}")]);
    }

    #[test]
    fn what_a_library_does_by_itself_has_no_gain() {
        let rows = found("/srv/sim", ["operator new;malloc", "operator delete;free"]);
        assert_eq!(rows, ["allocations-each-step | Config::Set | - | `Config::Set` allocates memory all the time"]);
    }

    #[test]
    fn of_a_program_that_is_installed_itself_all_code_is_alike() {
        let rows = found("/usr/bin/sim", PARSES);
        assert_eq!(rows, ["parsed-each-step | Config::Set | 50 | `Config::Set` parses XML, JSON or YAML all the time"]);
    }
}
