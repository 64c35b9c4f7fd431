//! Which code is the user's: [`Ownership`] as written in a lab file or on the command line, and [`Owned`], which decides.
//!
//! A function is owned if one of three patterns matches and no exception does:
//!
//! - `namespaces`: its [own qualified name](crate::query::qualified_name), without return type and template arguments
//!   (erratum 6 of the Gazebo study). `gz::*` and the plain namespace `gz::` mean the same; `stbi_*` is a prefix of C
//!   names; a pattern without a wildcard is one function. A Rust method that implements a trait is owned if its type or
//!   its trait is. A Python function is `Class.method`, or with its file `module.py:Class.method`, or as tables show it
//!   (`py::Class.method`).
//! - `modules`: the file name of its module, e.g. `libgz-*`. A pattern with a slash is matched against the whole path.
//! - `sources`: the path of its source file, e.g. `/home/me/sim/src/**`. A pattern without a slash is matched against the
//!   file name. Inlined standard-library code keeps the path of
//!   its header, so being compiled into an owned file does not make it owned.
//! - `not_owned`: exceptions, patterns over names as in `namespaces`.
//! - `groups`: functions, owned or not, that are one row in trees; patterns over names.
//!
//! Each pattern matches the whole name, file name or path.

use std::borrow::Cow;
use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use crate::query::pattern::{Pattern, PatternError};
use crate::query::qualified_name::{own_name, python_function, trait_name};

/// What a lab file or the command line says about whose code is whose.
///
/// ```toml
/// owned = { namespaces = ["gz::"], modules = ["libgz-*"], sources = ["src/**"] }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ownership {
    /// Patterns over own qualified names; one that ends in `::` covers all that is in the namespace.
    pub namespaces: Vec<String>,
    /// Globs over module file names, or over module paths where they hold a slash.
    pub modules: Vec<String>,
    /// Globs over source paths.
    pub sources: Vec<String>,
    /// Patterns over names, as in `namespaces`: functions that are not owned whatever else matches.
    pub not_owned: Vec<String>,
    /// Patterns over names, as in `namespaces`: functions, owned or not, that are one row in trees.
    pub groups: Vec<String>,
}

impl Ownership {
    /// These patterns; if none of them makes code owned, those of `otherwise`, with these exceptions and groups added.
    #[must_use]
    pub fn or(self, otherwise: &Self) -> Self {
        if !self.is_empty() {
            return self;
        }
        let mut ownership = otherwise.clone();
        ownership.not_owned.extend(self.not_owned);
        ownership.groups.extend(self.groups);
        ownership
    }

    /// Whether it names nothing, so that nothing is owned.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.modules.is_empty() && self.sources.is_empty()
    }

    /// The same, with relative source globs also meant from `directory` (that of the lab file): debug information mostly
    /// holds absolute paths.
    pub fn relative_to(&self, directory: &Path) -> Self {
        let base = globset::escape(&directory.to_string_lossy());
        let absolute = |glob: &String| format!("{}/{glob}", base.trim_end_matches('/'));
        let relative: Vec<&String> = self.sources.iter().filter(|glob| !glob.starts_with(['/', '*'])).collect();
        let added = relative.into_iter().map(absolute);
        Self { sources: self.sources.iter().cloned().chain(added).collect(), ..self.clone() }
    }

    /// Makes the patterns ready to judge functions.
    ///
    /// # Errors
    /// The first pattern that cannot be understood.
    pub fn compile(&self) -> Result<Owned, PatternError> {
        let (paths, names): (Vec<&String>, Vec<&String>) = self.modules.iter().partition(|glob| glob.contains('/'));
        let sources: Vec<String> = self.sources.iter().map(|glob| in_any_folder(glob)).collect();
        Ok(Owned {
            written: self.clone(),
            names: name_patterns(&self.namespaces)?,
            exceptions: name_patterns(&self.not_owned)?,
            groups: name_patterns(&self.groups)?,
            module_names: globs(&names)?,
            module_paths: globs(&paths)?,
            sources: globs(&sources.iter().collect::<Vec<_>>())?,
        })
    }
}

/// A glob over paths for one of file names (`robot.py`), and for one that begins with any folder (`*/robot.py`).
fn in_any_folder(glob: &str) -> String {
    match (glob.contains('/'), glob.strip_prefix("*/")) {
        (false, _) => format!("**/{glob}"),
        (true, Some(rest)) => format!("**/{rest}"),
        (true, None) => glob.to_owned(),
    }
}

fn name_patterns(written: &[String]) -> Result<Vec<Pattern>, PatternError> {
    written.iter().map(|pattern| name_pattern(pattern)).collect()
}

fn name_pattern(written: &str) -> Result<Pattern, PatternError> {
    if written.ends_with("::") && !written.starts_with('/') {
        return format!("{written}*").parse();
    }
    written.parse()
}

fn globs(patterns: &[&String]) -> Result<GlobSet, PatternError> {
    let refuse = |pattern: &str, error: &globset::Error| PatternError::Glob {
        pattern: pattern.to_owned(),
        reason: error.kind().to_string(),
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        if pattern.is_empty() {
            return Err(PatternError::Empty);
        }
        let glob: Glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| refuse(pattern, &error))?;
        set.add(glob);
    }
    set.build().map_err(|error| refuse(error.glob().unwrap_or("the globs together"), &error))
}

/// The names that patterns are matched against: the own qualified name, that within a Rust trait, and for a Python function
/// also `FILE:NAME`, `py::NAME` and the full name, as tables show it.
fn names_of(name: &str) -> Vec<Cow<'_, str>> {
    let mut names = vec![own_name(name)];
    names.extend(trait_name(name).map(Cow::Owned));
    if let Some((function, path)) = python_function(name) {
        let file = path.rsplit('/').next().unwrap_or(path);
        names.push(Cow::Owned(format!("{file}:{function}")));
        names.push(Cow::Owned(format!("py::{function}")));
        names.push(Cow::Borrowed(name));
    }
    names
}

fn any_matches(patterns: &[Pattern], name: &str) -> bool {
    !patterns.is_empty() && names_of(name).iter().any(|name| patterns.iter().any(|pattern| pattern.matches(name)))
}

/// Decides whether functions are owned.
#[derive(Debug, Clone)]
pub struct Owned {
    written: Ownership,
    names: Vec<Pattern>,
    exceptions: Vec<Pattern>,
    groups: Vec<Pattern>,
    module_names: GlobSet,
    module_paths: GlobSet,
    sources: GlobSet,
}

impl Default for Owned {
    fn default() -> Self {
        Self::nothing()
    }
}

impl Owned {
    /// Nothing is owned.
    pub fn nothing() -> Self {
        Self {
            written: Ownership::default(),
            names: Vec::new(),
            exceptions: Vec::new(),
            groups: Vec::new(),
            module_names: GlobSet::empty(),
            module_paths: GlobSet::empty(),
            sources: GlobSet::empty(),
        }
    }

    /// Whether no function can be owned: analyses then leave their columns about owned code empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.module_names.is_empty() && self.module_paths.is_empty() && self.sources.is_empty()
    }

    /// Whether the function of this full name is owned because of its name.
    pub fn owns_name(&self, name: &str) -> bool {
        any_matches(&self.names, name)
    }

    /// Whether the function of this full name is an exception, which is not owned whatever else matches.
    pub fn excepts(&self, name: &str) -> bool {
        any_matches(&self.exceptions, name)
    }

    /// The group of the function of this full name.
    pub fn group_of(&self, name: &str) -> Option<&str> {
        if self.groups.is_empty() {
            return None;
        }
        let names = names_of(name);
        let group = self.groups.iter().find(|group| names.iter().any(|name| group.matches(name)));
        group.map(Pattern::as_str)
    }

    /// The patterns that match none of these names, module paths and source paths: mostly typing errors.
    ///
    /// Source globs are listed only if none of them matches: a relative one is tried in two places, and is right if
    /// either is.
    pub fn unmatched<'t>(
        &self,
        names: impl Iterator<Item = &'t str>,
        modules: impl Iterator<Item = &'t str> + Clone,
        mut sources: impl Iterator<Item = &'t str>,
    ) -> Vec<String> {
        let mut left: Vec<(&Pattern, &String)> = self.names.iter().zip(&self.written.namespaces).collect();
        for name in names {
            if left.is_empty() {
                break;
            }
            let names = names_of(name);
            let owns = |pattern: &Pattern| names.iter().any(|name| pattern.matches(name));
            left.retain(|(pattern, _)| !owns(pattern));
        }
        let mut unmatched: Vec<String> = left.into_iter().map(|(_, written)| written.clone()).collect();
        let owns_any = |glob: &&String| {
            let one = Ownership { modules: vec![(*glob).clone()], ..Ownership::default() };
            one.compile().is_ok_and(|owned| modules.clone().any(|path| owned.owns_module(path)))
        };
        unmatched.extend(self.written.modules.iter().filter(|glob| !owns_any(glob)).cloned());
        if !self.sources.is_empty() && !sources.any(|path| self.owns_source(path)) {
            unmatched.extend(self.written.sources.iter().cloned());
        }
        unmatched
    }

    /// Whether all code of the module at this path is owned.
    pub fn owns_module(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.module_names.is_match(name) || self.module_paths.is_match(path)
    }

    /// Whether all code from this source file is owned.
    pub fn owns_source(&self, path: &str) -> bool {
        self.sources.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces(patterns: &[&str]) -> Owned {
        Ownership { namespaces: patterns.iter().map(|&text| text.to_owned()).collect(), ..Ownership::default() }
            .compile()
            .unwrap()
    }

    #[test]
    fn a_template_of_the_standard_library_is_not_owned_by_its_arguments() {
        let owned = namespaces(&["gz::*", "stbi_*"]);
        assert!(owned.owns_name("void gz::sim::v11::EntityComponentManager::EachNoCache<gz::sim::A>"));
        assert!(owned.owns_name("stbi__jpeg_decode_block"));
        assert!(!owned.owns_name("std::vector<gz::math::Pose3, std::allocator<gz::math::Pose3> >::push_back"));
        assert!(!owned.owns_name("std::map<gz::math::X, int>::find"));
        assert!(!owned.owns_name("not_gz::f"));
        assert!(!owned.owns_name("my_stbi_load"));
    }

    #[test]
    fn a_plain_namespace_means_all_that_is_in_it() {
        let owned = namespaces(&["gz::"]);
        assert!(owned.owns_name("gz::sim::Server::Run"));
        assert!(!owned.owns_name("gz"));
        assert!(!owned.owns_name("gzip::inflate"));
    }

    #[test]
    fn a_rust_method_is_owned_by_its_type_or_by_its_trait() {
        let owned = namespaces(&["ground::*"]);
        assert!(owned.owns_name("<ground::World as core::fmt::Debug>::fmt"));
        assert!(owned.owns_name("<nalgebra::Vector3<f64> as ground::sdf::ToSdf>::to_sdf"));
        assert!(!owned.owns_name("<alloc::vec::Vec<ground::World> as core::ops::Drop>::drop"));
        assert!(!owned.owns_name("core::ptr::drop_in_place<ground::World>"));
    }

    #[test]
    fn modules_match_by_file_name_and_with_a_slash_by_path() {
        let modules = vec!["libgz-*".to_owned(), "/opt/sim/**".to_owned()];
        let owned = Ownership { modules, ..Ownership::default() }.compile().unwrap();
        assert!(owned.owns_module("/usr/lib/x86_64-linux-gnu/libgz-sim.so.11"));
        assert!(owned.owns_module("/opt/sim/bin/server"));
        assert!(!owned.owns_module("/usr/lib/libgz.so"));
        assert!(!owned.owns_module("/srv/libgz-old/libdart.so"));
    }

    #[test]
    fn sources_match_whole_paths_and_relative_ones_from_the_lab_file() {
        let ownership = Ownership { sources: vec!["src/**".to_owned()], ..Ownership::default() };
        let owned = ownership.relative_to(Path::new("/home/me/[sim]/")).compile().unwrap();
        assert!(owned.owns_source("/home/me/[sim]/src/world/step.cc"));
        assert!(owned.owns_source("src/step.cc"));
        for pattern in ["step.cc", "step.*", "*/step.cc"] {
            let by_name = Ownership { sources: vec![pattern.to_owned()], ..Ownership::default() }.compile().unwrap();
            assert!(by_name.owns_source("/home/me/sim/src/step.cc") && by_name.owns_source("step.cc"), "{pattern}");
            assert!(!by_name.owns_source("/home/me/sim/src/misstep.cc"), "{pattern}");
        }
        assert!(!owned.owns_source("/rustc/abc/library/core/src/option.rs"));
        assert!(!owned.owns_source("/home/me/dart/src/step.cc"));
    }

    #[test]
    fn patterns_that_match_nothing_are_listed() {
        let ownership = Ownership {
            namespaces: vec!["gz::".to_owned(), "nope::*".to_owned()],
            modules: vec!["libgz-*".to_owned(), "libnope*".to_owned()],
            sources: vec!["src/**".to_owned(), "/srv/src/**".to_owned()],
            not_owned: Vec::new(),
            groups: Vec::new(),
        };
        let unmatched = |sources: &[&'static str]| {
            let (names, modules) = (["main", "void gz::Run<int>"], ["/usr/lib/libgz-sim.so"]);
            ownership.compile().unwrap().unmatched(names.into_iter(), modules.into_iter(), sources.iter().copied())
        };
        assert_eq!(unmatched(&["/srv/src/a.cc"]), ["nope::*", "libnope*"]);
        assert_eq!(unmatched(&["/usr/a.cc"]), ["nope::*", "libnope*", "src/**", "/srv/src/**"]);
    }

    #[test]
    fn a_lab_files_table_is_read_and_an_unknown_key_refused() {
        let read = |json: &str| serde_json::from_str::<Ownership>(json);
        let ownership = read(r#"{"namespaces": ["gz::"], "modules": ["libgz-*"]}"#).unwrap();
        assert_eq!(ownership.namespaces, ["gz::"]);
        assert!(ownership.sources.is_empty());
        assert!(read(r#"{"namespace": ["gz::"]}"#).unwrap_err().to_string().contains("unknown field `namespace`"));
    }

    #[test]
    fn broken_globs_are_refused_by_name() {
        let broken = Ownership { modules: vec!["lib[".to_owned()], ..Ownership::default() }.compile().unwrap_err();
        assert!(matches!(&broken, PatternError::Glob { pattern, .. } if pattern == "lib["), "{broken}");
        let empty = Ownership { namespaces: vec![String::new()], ..Ownership::default() }.compile().unwrap_err();
        assert_eq!(empty, PatternError::Empty);
    }

    #[test]
    fn exceptions_are_not_owned_whatever_else_matches() {
        let ownership = Ownership { not_owned: vec!["btVector3::*".to_owned()], ..Ownership::default() };
        let owned = ownership.compile().unwrap();
        assert!(owned.excepts("float btVector3::dot(btVector3 const&) const"));
        assert!(!owned.excepts("btWorld::step(btVector3 const&)"));
    }

    #[test]
    fn python_functions_are_owned_by_name_and_by_file_and_name() {
        let name = "py::Controller.step:/srv/controllers/robot.py";
        let owns = |pattern: &str| namespaces(&[pattern]).owns_name(name);
        assert!(
            owns("Controller.step") && owns("Controller.*") && owns("robot.py:Controller.step") && owns("robot.py:*")
        );
        assert!(owns("py::*") && owns("py::") && owns("py::Controller.step") && owns(name));
        assert!(!owns("step") && !owns("other.py:*") && !owns("py::step"));
    }

    #[test]
    fn nothing_is_owned_without_patterns() {
        let owned = Ownership::default().compile().unwrap();
        assert!(owned.is_empty());
        assert!(!owned.owns_name("main") && !owned.owns_module("/bin/x") && !owned.owns_source("/x.c"));
    }
}
