//! Which function's calls are the steps of a simulation, found by name before the program runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stepscope_analyze::pattern::offered;
use stepscope_analyze::qualified_name::own_name;
use stepscope_analyze::{Pattern, PatternError};
use stepscope_assemble::{StepPoint, StepTime};
use stepscope_symbolize::{Entry, Options, Problem, entries};

/// The function that the simulation's loop calls once a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFunction {
    /// Its name: in full as demangled, its own qualified name, or its symbol; a glob, or `/regex/`, over these.
    pub name: String,
    /// The file that holds it; the program's own unless given.
    pub module: Option<PathBuf>,
    /// What tells the simulated time when it is called.
    pub time: Option<StepTime>,
}

/// Why the start of a step is unknown.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The name is no pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The file cannot be read, or is no ELF file.
    #[error("steps cannot be found: {0}; name the library or program that holds the function with `module`")]
    Module(Problem),
    /// Nothing fits.
    #[error("no function of {} is called `{name}`{}; name the library or program that holds it with `module`", module.display(), hint(.similar))]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where.
        module: PathBuf,
        /// Names that hold what was asked for.
        similar: Vec<String>,
    },
    /// More than one fits.
    #[error("`{name}` may be any of {}: ask for one of them", offered(.matches))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What fits.
        matches: Vec<String>,
    },
}

fn hint(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; there are {}", offered(names)) }
}

impl StepFunction {
    /// Where each step begins, for a program whose file is `program`.
    ///
    /// # Errors
    /// [`StepError`]
    pub fn find(&self, program: &Path) -> Result<StepPoint, StepError> {
        let pattern: Pattern = self.name.parse()?;
        let module = self.module.as_deref().unwrap_or(program);
        // The kernel and we must mean the same file, wherever the program changes to.
        let module = std::path::absolute(module).unwrap_or_else(|_| module.to_owned());
        let fits = |name: &str, symbol: &str| {
            pattern.matches(name) || pattern.matches(symbol) || pattern.matches(&own_name(name))
        };
        let found = entries(&module, &Options::default(), fits).map_err(StepError::Module)?;
        match found.as_slice() {
            [one] => Ok(StepPoint { function: one.name.clone(), offset: one.offset, module, time: self.time.clone() }),
            [] => Err(StepError::NotFound { name: self.name.clone(), similar: self.similar(&module), module }),
            several => {
                let matches: BTreeSet<String> = several.iter().map(|entry| entry.name.clone()).collect();
                let matches = matches.into_iter().collect();
                Err(StepError::Ambiguous { name: self.name.clone(), matches })
            }
        }
    }

    /// Functions whose name holds the last part of what was asked for.
    fn similar(&self, module: &Path) -> Vec<String> {
        let last = self.name.rsplit("::").next().unwrap_or_default().trim_matches(['*', '/', '(', ')']).to_lowercase();
        if last.len() < 3 {
            return Vec::new();
        }
        let holds = |name: &str, _: &str| own_name(name).to_lowercase().contains(&last);
        let found = entries(module, &Options::default(), holds).unwrap_or_default();
        found.into_iter().map(|Entry { name, .. }| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn stepscope_lab_step_of_this_test(number: u32) -> u32 {
        std::hint::black_box(number) + 1
    }

    fn find(name: &str, module: Option<&Path>) -> Result<StepPoint, StepError> {
        assert_eq!(stepscope_lab_step_of_this_test(1), 2);
        let module = module.map(Path::to_owned);
        StepFunction { name: name.to_owned(), module, time: None }.find(&std::env::current_exe().unwrap())
    }

    #[test]
    fn a_step_function_is_found_by_symbol_glob_and_regular_expression() {
        let by_symbol = find("stepscope_lab_step_of_this_test", None).unwrap();
        assert!(by_symbol.offset > 0);
        assert_eq!(find("stepscope_lab_step_*_this_test", None).unwrap().offset, by_symbol.offset);
        assert_eq!(find("/^stepscope_lab_step_of/", None).unwrap().offset, by_symbol.offset);
    }

    #[test]
    fn several_that_fit_are_listed_and_so_are_similar_ones() {
        let ambiguous = find("stepscope_lab::step::*", None).unwrap_err().to_string();
        assert!(ambiguous.starts_with("`stepscope_lab::step::*` may be any of `"), "{ambiguous}");
        assert!(
            ambiguous.contains("`stepscope_lab::step::") && ambiguous.contains(" more: ask for one"),
            "{ambiguous}"
        );
        let missing = find("step_of_this_test", None).unwrap_err().to_string();
        assert!(missing.contains("there are `stepscope_lab_step_of_this_test`"), "{missing}");
        assert!(missing.contains("`module`"), "{missing}");
    }

    #[test]
    fn a_script_has_no_functions_and_the_error_says_what_to_name() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = find("main", Some(&script)).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml") && error.contains("`module`"), "{error}");
    }
}
