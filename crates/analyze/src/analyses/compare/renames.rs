//! Renamed functions: matches of functions before and after whose names differ.
//!
//! Functions are joined by exact identity: full name and module. The rules here apply to functions that only one side has.
//! A rule matches only if exactly *one* function on either side fits. The user's rules come first.
//!
//! | rule | example |
//! |---|---|
//! | the user's rule | `gz::sim::v7::* => gz::sim::v8::*` |
//! | moved to another module | `Update` of `libsim.so`, then of `libphysics.so` |
//! | the compiler's suffix differs | `step.constprop.0`, `step.isra.3`; Rust's `::h0123456789abcdef` |
//! | a version in a namespace or a module differs | `gz::sim::v7::Step`, `libgz-sim7.so.7.4.0` |
//! | template arguments or parameters differ | `Each<Pose>` and `Each<Pose, Name>` |

use std::fmt;
use std::str::FromStr;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::query::functions::Identity;
use crate::query::qualified_name::own_name;

/// A rename that the user gives: `OLD => NEW`, exact names, or each with one `*` that stands for the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    old: String,
    new: String,
}

/// A rename that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    /// No arrow.
    #[error("`{0}` is no rename: write `OLD => NEW`, e.g. 'gz::sim::v7::* => gz::sim::v8::*'")]
    Form(String),
    /// Stars that do not belong together.
    #[error("`{0}`: each side has either no `*` or one, which stands for the same text on both")]
    Stars(String),
}

impl FromStr for Rename {
    type Err = RenameError;

    fn from_str(text: &str) -> Result<Self, RenameError> {
        let (old, new) = text.split_once("=>").ok_or_else(|| RenameError::Form(text.to_owned()))?;
        let (old, new) = (old.trim(), new.trim());
        if old.is_empty() || new.is_empty() {
            return Err(RenameError::Form(text.to_owned()));
        }
        // A pointer's star is no wildcard: `*` alone, after `::` or at an end of the name.
        let stars = |text: &str| text.matches('*').count();
        if stars(old) != stars(new) || stars(old) > 1 {
            return Err(RenameError::Stars(text.to_owned()));
        }
        Ok(Self { old: old.to_owned(), new: new.to_owned() })
    }
}

impl fmt::Display for Rename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} => {}", self.old, self.new)
    }
}

impl Rename {
    /// The new name of the function that was called `name`, if this is about it.
    pub fn apply(&self, name: &str) -> Option<String> {
        let Some((before, after)) = self.old.split_once('*') else {
            return (name == self.old).then(|| self.new.clone());
        };
        let inner = name.strip_prefix(before)?.strip_suffix(after)?;
        Some(self.new.replacen('*', inner, 1))
    }
}

/// How a function after was found to be one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// What it was before.
    pub before: Identity,
    /// What it is after.
    pub after: Identity,
    /// Why they are the same, in words.
    pub how: String,
}

/// Matches functions that only one side has. Ordered by the name after.
pub fn matches(vanished: &[&Identity], new: &[&Identity], given: &[Rename]) -> Vec<Match> {
    let mut open =
        Open { before: vanished.iter().copied().collect(), after: new.iter().copied().collect(), found: Vec::new() };
    for rename in given {
        open.rename(rename);
    }
    open.by(|one| Some(one.name.to_string()), |before, _| format!("moved from {}", module_of(before)));
    open.by(without_suffix, |_, _| "the compiler's suffix differs".to_owned());
    open.by(without_versions, |_, _| "a version in the name or module differs".to_owned());
    open.by(without_arguments, |_, _| "template arguments or parameters differ".to_owned());
    open.found.sort_by(|a, b| a.after.cmp(&b.after));
    open.found
}

fn module_of(identity: &Identity) -> &str {
    if identity.module.is_empty() { "an unknown module" } else { &identity.module }
}

/// What is not matched yet.
struct Open<'a> {
    before: FxHashSet<&'a Identity>,
    after: FxHashSet<&'a Identity>,
    found: Vec<Match>,
}

impl<'a> Open<'a> {
    fn rename(&mut self, rename: &Rename) {
        let of_name = |name: &str, module: &str| {
            let named = self.after.iter().copied().filter(|one| &*one.name == name);
            let named: Vec<&Identity> = named.collect();
            let same_module = named.iter().copied().find(|one| &*one.module == module);
            same_module.or(if let [only] = named[..] { Some(only) } else { None })
        };
        let pair = |before: &&'a Identity| {
            let new_name = rename.apply(&before.name)?;
            Some((*before, of_name(&new_name, &before.module)?))
        };
        let mut pairs: Vec<(&Identity, &Identity)> = self.before.iter().filter_map(pair).collect();
        pairs.sort();
        for (before, after) in pairs {
            self.take(before, after, format!("renamed: {rename}"));
        }
    }

    /// Matches functions of the same key, if no other function on either side has it.
    fn by(&mut self, key: impl Fn(&Identity) -> Option<String>, how: impl Fn(&Identity, &Identity) -> String) {
        let before = only_ones(&self.before, &key);
        let after = only_ones(&self.after, &key);
        let pair = |(key, one): (&String, &Option<&'a Identity>)| Some(((*one)?, (*after.get(key)?)?));
        let mut pairs: Vec<(&Identity, &Identity)> = before.iter().filter_map(pair).collect();
        pairs.sort();
        for (before, after) in pairs {
            let how = how(before, after);
            self.take(before, after, how);
        }
    }

    fn take(&mut self, before: &'a Identity, after: &'a Identity, how: String) {
        if self.before.contains(before) && self.after.contains(after) {
            self.before.remove(before);
            self.after.remove(after);
            self.found.push(Match { before: before.clone(), after: after.clone(), how });
        }
    }
}

/// By key the one that has it; `None` where several do.
fn only_ones<'a>(
    all: &FxHashSet<&'a Identity>,
    key: impl Fn(&Identity) -> Option<String>,
) -> FxHashMap<String, Option<&'a Identity>> {
    let mut found: FxHashMap<String, Option<&'a Identity>> = FxHashMap::default();
    for one in all {
        if let Some(key) = key(one) {
            found.entry(key).and_modify(|only| *only = None).or_insert(Some(one));
        }
    }
    found
}

/// Name and module without the compiler's suffixes of copies and hashes.
fn without_suffix(identity: &Identity) -> Option<String> {
    Some(format!("{} {}", plain(&identity.name), identity.module))
}

/// The name without a clone's suffix, an ABI tag or Rust's hash.
fn plain(name: &str) -> String {
    let name = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name);
    let mut plain = name.to_owned();
    for mark in [".constprop.", ".isra.", ".part.", ".lto_priv.", ".llvm.", ".cold", "[clone ", "[abi:"] {
        if let Some(at) = plain.find(mark).filter(|at| *at > 0) {
            let end = match mark.starts_with('[') {
                true => plain[at..].find(']').map_or(plain.len(), |end| at + end + 1),
                false => plain.len(),
            };
            plain.replace_range(at..end, "");
        }
    }
    plain.trim_end().to_owned()
}

fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The same without version numbers in inline namespaces (`::v7::`) and the module's name.
fn without_versions(identity: &Identity) -> Option<String> {
    let name: Vec<String> =
        plain(&identity.name).split("::").filter(|part| !is_version(part)).map(str::to_owned).collect();
    let module: String = identity.module.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
    Some(format!("{} {module}", name.join("::")))
}

fn is_version(part: &str) -> bool {
    let digits = part.strip_prefix("__").or_else(|| part.strip_prefix('v')).unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The own qualified name, without arguments.
fn without_arguments(identity: &Identity) -> Option<String> {
    let own = own_name(&identity.name);
    // Nameless functions cannot be matched.
    let named = own.chars().any(char::is_alphanumeric) && !own.starts_with('[') && !own.contains("+0x");
    named.then(|| format!("{own} {}", identity.module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(text: &str) -> Identity {
        let (name, module) = text.split_once(" @").unwrap_or((text, ""));
        Identity { name: name.into(), module: module.into() }
    }

    fn matched(before: &[&str], after: &[&str], given: &[&str]) -> Vec<(String, String, String)> {
        let before: Vec<Identity> = before.iter().map(|text| identity(text)).collect();
        let after: Vec<Identity> = after.iter().map(|text| identity(text)).collect();
        let given: Vec<Rename> = given.iter().map(|text| text.parse().unwrap()).collect();
        let found = matches(&before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>(), &given);
        found.into_iter().map(|one| (one.before.name.to_string(), one.after.name.to_string(), one.how)).collect()
    }

    fn pair(before: &str, after: &str, how: &str) -> Vec<(String, String, String)> {
        vec![(before.to_owned(), after.to_owned(), how.to_owned())]
    }

    #[test]
    fn a_users_rule_comes_first_and_its_star_is_the_same_text_on_both_sides() {
        let given = ["gz::sim::v7::* => gz::next::*"];
        assert_eq!(
            matched(&["gz::sim::v7::Step"], &["gz::next::Step", "gz::sim::v8::Step"], &given),
            pair("gz::sim::v7::Step", "gz::next::Step", "renamed: gz::sim::v7::* => gz::next::*")
        );
        assert_eq!("a => b*".parse::<Rename>().unwrap_err(), RenameError::Stars("a => b*".to_owned()));
        assert_eq!("a = b".parse::<Rename>().unwrap_err(), RenameError::Form("a = b".to_owned()));
    }

    #[test]
    fn a_function_that_moved_to_another_module_is_the_same() {
        assert_eq!(
            matched(&["Update @libsim.so"], &["Update @libphysics.so"], &[]),
            pair("Update", "Update", "moved from libsim.so")
        );
    }

    #[test]
    fn functions_match_despite_other_suffixes_versions_and_arguments() {
        assert_eq!(
            matched(&["step.constprop.0 @sim"], &["step.isra.3 @sim"], &[]),
            pair("step.constprop.0", "step.isra.3", "the compiler's suffix differs")
        );
        assert_eq!(
            matched(&["sim::step::h0123456789abcdef"], &["sim::step::hfedcba9876543210"], &[]).len(),
            1,
            "Rust's hash"
        );
        assert_eq!(
            matched(&["gz::sim::v7::Step @libgz-sim7.so.7.4.0"], &["gz::sim::v8::Step @libgz-sim8.so.8.0.1"], &[])[0].2,
            "a version in the name or module differs"
        );
        assert_eq!(
            matched(&["gz::Each<Pose> @sim"], &["gz::Each<Pose, Name> @sim"], &[])[0].2,
            "template arguments or parameters differ"
        );
    }

    #[test]
    fn ambiguous_matches_are_not_guessed() {
        assert_eq!(matched(&["gz::Each<A>", "gz::Each<B>"], &["gz::Each<C>"], &[]), []);
        assert_eq!(matched(&["f @a.so"], &["f @b.so", "f @c.so"], &[]), []);
        assert_eq!(matched(&["libdart.so+0x10"], &["libdart.so+0x20"], &[]), []);
    }
}
