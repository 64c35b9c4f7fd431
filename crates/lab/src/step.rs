//! The step function: found by name before the program runs, or in files that it maps later. A loop that has no function of
//! its own is found by the address at which its rounds begin.

#[cfg(feature = "record")]
pub mod libraries;
mod loops;
#[cfg(feature = "record")]
mod python;
#[cfg(feature = "record")]
pub mod search;
#[cfg(feature = "record")]
pub mod suggestion;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stepscope_analyze::function_names::{FunctionNameError, could_match, matching, matching_whole_parts};
use stepscope_analyze::pattern::offered;
use stepscope_analyze::qualified_name::python_function;
use stepscope_analyze::step_loop;
use stepscope_assemble::{StepPoint, StepTime};
use stepscope_model::SymbolSource;
use stepscope_symbolize::{Code, Entry, Options, Problem, Symbolizer, entries, entry_at, inlined_into};

/// The function that the simulation's loop calls once per step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFunction {
    /// A name for [`function_names`](stepscope_analyze::function_names), a symbol, or `MODULE+0xADDRESS` for a function without
    /// a name or for a loop. The [name of a loop](stepscope_analyze::step_loop) has this address.
    pub name: String,
    /// Path or name of its file; by default the program or one of its libraries.
    pub module: Option<PathBuf>,
    /// How to read the simulated time of a call.
    pub time: Option<StepTime>,
}

/// Why the start of a step is unknown.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The file cannot be read, or is not an ELF file.
    #[error(
        "steps cannot be found: {0}; name the library or program that holds the function (`module` in a lab file, or --step-module)"
    )]
    Module(Problem),
    /// No library has this name.
    #[error("{}: no such file, and the program loads no library of this name; give its path", module.display())]
    NoModule {
        /// The requested name.
        module: PathBuf,
    },
    /// No function has this name.
    #[error(
        "{}: {problem}{} If a library holds it, name the library (`module` in a lab file, or --step-module)",
        module.display(), full_stop(problem)
    )]
    NotFound {
        /// The requested name, and similar ones.
        problem: FunctionNameError,
        /// The searched file.
        module: PathBuf,
    },
    /// No function has this name, because the file has no symbols.
    #[error(
        "{} has no symbols, so `{name}` cannot be found in it; install its debug symbols, or give the function's address \
         as `stepscope show` does (`{}+0x1234`)",
        module.display(), file_name(module)
    )]
    Stripped {
        /// The requested name.
        name: String,
        /// The searched file.
        module: PathBuf,
    },
    /// No function or loop starts at the address.
    #[error("no function and no loop of {} starts at {address:#x}", module.display())]
    NoStart {
        /// The address.
        address: u64,
        /// The searched file.
        module: PathBuf,
    },
    /// The function has no code of its own.
    #[error(
        "`{name}` is inlined, so its calls cannot be counted; use one of these callers if it runs once per step: {}; \
         `stepscope record --suggest-steps` finds others",
        offered(.callers)
    )]
    Inlined {
        /// The function.
        name: String,
        /// Functions with code of their own that it is inlined into.
        callers: Vec<String>,
    },
    /// Several functions have this name.
    #[error("`{name}` matches several functions: {}; name one", offered(.matches))]
    Ambiguous {
        /// The requested name.
        name: String,
        /// The functions: full names, or symbols if names are equal.
        matches: Vec<String>,
    },
}

/// What steps are, with the file of the function or loop, for people.
pub fn with_file(StepPoint { function, module, .. }: &StepPoint) -> String {
    match python_function(function) {
        Some((name, file)) => format!("calls of {name} in {file}"),
        None if step_loop::address_in(function).is_some() => step_loop::what_steps_are(function),
        None => format!("calls of {function} in {}", module.display()),
    }
}

/// The end of an error message.
fn full_stop(problem: &FunctionNameError) -> &'static str {
    match problem {
        FunctionNameError::NotFound { similar, .. } if !similar.is_empty() => "",
        _ => ".",
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// How a name is matched.
type Rule = for<'n> fn(&[&'n str], &str) -> Result<BTreeSet<&'n str>, FunctionNameError>;

fn by_any_part<'n>(names: &[&'n str], asked: &str) -> Result<BTreeSet<&'n str>, FunctionNameError> {
    matching(names.iter().copied(), asked)
}

/// Not used for libraries: there, every part of a name has a match.
fn by_whole_parts<'n>(names: &[&'n str], asked: &str) -> Result<BTreeSet<&'n str>, FunctionNameError> {
    matching_whole_parts(names.iter().copied(), asked)
}

/// A function and the file that holds it.
struct Candidate<'m> {
    module: &'m Path,
    entry: Entry,
}

impl StepFunction {
    /// The start of each step, for a program with the file `program`.
    ///
    /// `libraries` gives the program's libraries. They are searched if the program has no such function and
    /// no module is named.
    ///
    /// # Errors
    /// [`StepError`]
    pub fn find(&self, program: &Path, libraries: impl FnOnce() -> Vec<PathBuf>) -> Result<StepPoint, StepError> {
        let Some(module) = &self.module else {
            return match self.find_in(program) {
                Err(missing @ (StepError::NotFound { .. } | StepError::Stripped { .. })) => {
                    self.find_among(&libraries()).unwrap_or(Err(missing))
                }
                other => other,
            };
        };
        if module.exists() {
            return self.find_in(module);
        }
        let libraries = libraries();
        let found = named(&libraries, module);
        self.find_in(found.ok_or_else(|| StepError::NoModule { module: module.clone() })?)
    }

    /// Whether a file that the program maps later may hold the function.
    #[cfg(feature = "record")]
    pub fn may_be_mapped_later(&self, error: &StepError) -> bool {
        use StepError::{Module, NoModule, NotFound, Stripped};
        self.module.as_ref().is_none_or(|module| !module.exists())
            && matches!(error, Module(_) | NoModule { .. } | NotFound { .. } | Stripped { .. })
    }

    /// The start of each step, if it is a Python function that a running process has called.
    #[cfg(feature = "record")]
    pub fn find_in_python(&self, pid: u32) -> Option<Result<StepPoint, StepError>> {
        let entries = python::Stubs::of_process(pid).entries();
        let wanted = could_match(&self.name);
        let wanted = entries.into_iter().filter(|(_, entry)| wanted(&entry.name));
        let wanted: Vec<(PathBuf, Entry)> = wanted.collect();
        self.choose_whole(wanted.iter().map(|(module, entry)| Candidate { module, entry: entry.clone() }).collect())
    }

    /// The start of each step, in files that a running program has mapped; `None` if none of them has the function.
    #[cfg(feature = "record")]
    pub fn find_mapped(&self, files: &[PathBuf]) -> Option<Result<StepPoint, StepError>> {
        match &self.module {
            Some(module) => named(files, module).map(|file| self.find_in(file)),
            None => self.find_among(files),
        }
    }

    fn find_in(&self, module: &Path) -> Result<StepPoint, StepError> {
        // An absolute path: the program may change its working directory.
        let module = std::path::absolute(module).unwrap_or_else(|_| module.to_owned());
        if let Some(address) = self.address_in(&module) {
            let function = entry_at(&module, address).map_err(StepError::Module)?;
            let entry = function.or_else(|| loops::entry(&module, address));
            let entry = entry.ok_or_else(|| StepError::NoStart { address, module: module.clone() })?;
            return Ok(self.point(Candidate { module: &module, entry }));
        }
        let likely = candidates(&module, could_match(&self.name)).map_err(StepError::Module)?;
        if let Ok(candidate) = self.choose(likely, by_any_part)? {
            return Ok(self.point(candidate));
        }
        let inlined = inlined_into(&module, &Options::default(), &could_match(&self.name)).unwrap_or_default();
        if let Ok(found) = matching(inlined.keys().map(String::as_str), &self.name)
            && let Some(name) = found.first()
        {
            let callers = found.iter().flat_map(|name| &inlined[*name]).cloned().collect::<BTreeSet<_>>();
            let callers = callers.into_iter().collect();
            return Err(StepError::Inlined { name: (*name).to_owned(), callers });
        }
        let symbols = Symbolizer::default().name(&Code::file(&module), &[]).symbols;
        Err(match symbols {
            SymbolSource::DebugInfo | SymbolSource::SymbolTable => {
                let all = candidates(&module, |_| true).map_err(StepError::Module)?;
                match self.choose(all, by_any_part)? {
                    Ok(candidate) => return Ok(self.point(candidate)),
                    Err(problem) => StepError::NotFound { problem, module: module.clone() },
                }
            }
            _ => StepError::Stripped { name: self.name.clone(), module },
        })
    }

    /// The function in one of these files; `None` if none of them has it.
    fn find_among(&self, modules: &[PathBuf]) -> Option<Result<StepPoint, StepError>> {
        let named_by_address = modules.iter().find(|module| self.address_in(module).is_some());
        if let Some(module) = named_by_address {
            return Some(self.find_in(module));
        }
        let all = modules.iter().flat_map(|module| candidates(module, could_match(&self.name)).unwrap_or_default());
        self.choose_whole(all.collect())
    }

    /// The function that the name means by whole parts; `None` if none of these.
    fn choose_whole(&self, candidates: Vec<Candidate<'_>>) -> Option<Result<StepPoint, StepError>> {
        match self.choose(candidates, by_whole_parts) {
            Ok(Ok(candidate)) => Some(Ok(self.point(candidate))),
            Ok(Err(_)) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The function that the name means by `rule`; `Ok(None)` if none.
    fn choose<'m>(
        &self,
        candidates: Vec<Candidate<'m>>,
        rule: Rule,
    ) -> Result<Result<Candidate<'m>, FunctionNameError>, StepError> {
        let names: Vec<&str> = candidates.iter().map(|candidate| candidate.entry.name.as_str()).collect();
        let symbols: Vec<&str> = candidates.iter().map(|candidate| candidate.entry.symbol.as_str()).collect();
        let meant: BTreeSet<String> = if symbols.contains(&self.name.as_str()) {
            BTreeSet::from([self.name.clone()])
        } else {
            // A pattern may also match symbols.
            let found = rule(&names, &self.name).or_else(|error| match error {
                FunctionNameError::NotFound { .. } => rule(&symbols, &self.name).map_err(|_| error),
                ambiguous => Err(ambiguous),
            });
            match found {
                Ok(found) => found.into_iter().map(str::to_owned).collect(),
                Err(FunctionNameError::Ambiguous { asked, names }) => {
                    return Err(StepError::Ambiguous { name: asked, matches: names });
                }
                Err(missing) => return Ok(Err(missing)),
            }
        };
        let by_symbol = meant.len() == 1 && symbols.iter().any(|symbol| meant.contains(*symbol));
        let fits = |candidate: &Candidate| match by_symbol {
            true => meant.contains(&candidate.entry.symbol),
            false => meant.contains(&candidate.entry.name) || meant.contains(&candidate.entry.symbol),
        };
        let mut found: Vec<Candidate> = candidates.into_iter().filter(fits).collect();
        // Copies that the compiler made of the function.
        if found.iter().any(|one| !is_copy(&one.entry.symbol)) {
            found.retain(|one| !is_copy(&one.entry.symbol));
        }
        match found.len() {
            1 => Ok(Ok(found.remove(0))),
            _ => {
                let full: BTreeSet<&String> = found.iter().map(|one| &one.entry.name).collect();
                let by_name = full.len() == found.len();
                let shown = |one: &Candidate| if by_name { &one.entry.name } else { &one.entry.symbol }.clone();
                let matches = found.iter().map(shown).collect::<BTreeSet<_>>().into_iter().collect();
                Err(StepError::Ambiguous { name: self.name.clone(), matches })
            }
        }
    }

    fn point(&self, Candidate { module, entry }: Candidate<'_>) -> StepPoint {
        StepPoint { function: entry.name, offset: entry.offset, module: module.to_owned(), time: self.time.clone() }
    }

    /// The address in `MODULE+0xADDRESS`.
    fn address_in(&self, module: &Path) -> Option<u64> {
        let name = step_loop::address_in(&self.name).unwrap_or(&self.name);
        let address = name.strip_prefix(&file_name(module))?.strip_prefix("+0x")?;
        u64::from_str_radix(address, 16).ok()
    }
}

/// The library with the name of this module, such as `libsim`, `libsim.so` or `libsim.so.3`.
fn named<'f>(files: &'f [PathBuf], module: &Path) -> Option<&'f PathBuf> {
    let is_named = |path: &&PathBuf| {
        let (path, module) = (file_name(path), file_name(module));
        path == module || path.strip_prefix(&module).is_some_and(|rest| rest.starts_with(['.', '-']))
    };
    files.iter().find(is_named).filter(|_| module.components().count() == 1)
}

/// The functions of a file whose calls can be counted and whose name or symbol is `wanted`.
fn candidates(module: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<Candidate<'_>>, Problem> {
    let wanted = |name: &str, symbol: &str| !is_thunk(symbol) && (wanted(name) || wanted(symbol));
    let found = entries(module, &Options::default(), wanted)?;
    Ok(found.into_iter().map(|entry| Candidate { module, entry }).collect())
}

/// Whether a symbol is of a thunk, or of the cold part of a function.
fn is_thunk(symbol: &str) -> bool {
    ["_ZTh", "_ZTv", "_ZTc"].iter().any(|prefix| symbol.starts_with(prefix)) || symbol.ends_with(".cold")
}

/// Whether a symbol is of a specialised copy or a part of a function.
fn is_copy(symbol: &str) -> bool {
    [".part.", ".isra.", ".constprop.", ".cold."].iter().any(|suffix| symbol.contains(suffix))
}

#[cfg(all(test, feature = "record"))]
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
        let libraries = || libraries::of_process(std::process::id());
        StepFunction { name: name.to_owned(), module, time: None }.find(&std::env::current_exe().unwrap(), libraries)
    }

    #[test]
    fn a_step_function_is_found_by_symbol_glob_and_regular_expression() {
        let by_symbol = find("stepscope_lab_step_of_this_test", None).unwrap();
        assert!(by_symbol.offset > 0);
        assert_eq!(find("stepscope_lab_step_*_this_test", None).unwrap().offset, by_symbol.offset);
        assert_eq!(find("/^stepscope_lab_step_of/", None).unwrap().offset, by_symbol.offset);
    }

    #[test]
    fn a_part_of_the_name_in_any_case_is_enough() {
        let by_symbol = find("stepscope_lab_step_of_this_test", None).unwrap();
        assert_eq!(find("LabStepOfThisTest", None).unwrap(), by_symbol);
    }

    #[test]
    fn several_matches_and_similar_names_are_listed() {
        let ambiguous = find("stepscope_lab::step::*", None).unwrap_err().to_string();
        assert!(ambiguous.starts_with("`stepscope_lab::step::*` matches several functions: `"), "{ambiguous}");
        assert!(ambiguous.contains("`stepscope_lab::step::") && ambiguous.ends_with(" more; name one"), "{ambiguous}");
        let missing = find("stepscope_lab_setp_of_this_tset", None).unwrap_err().to_string();
        assert!(missing.contains("did you mean `stepscope_lab_step_of_this_test`"), "{missing}");
        assert!(missing.contains("`module`"), "{missing}");
    }

    #[test]
    fn a_library_of_the_program_is_searched_and_may_be_named_without_its_folder() {
        let libraries = libraries::of_process(std::process::id());
        if !libraries.iter().any(|path| file_name(path) == "libc.so.6") {
            println!("skipped: a_library_of_the_program_is_searched: this test has no C library of its own");
            return;
        }
        let found = find("lckpwdf", None).unwrap();
        assert_eq!(file_name(&found.module), "libc.so.6");
        assert_eq!(find("lckpwdf", Some(Path::new("libc"))).unwrap(), found);
        let unknown = find("lckpwdf", Some(Path::new("libnothing"))).unwrap_err();
        assert!(matches!(unknown, StepError::NoModule { .. }), "{unknown}");
    }

    #[inline(always)]
    fn inlined_step_of_this_test(number: u32) -> u32 {
        std::hint::black_box(number).wrapping_mul(3)
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn stepscope_lab_caller_of_the_inlined_step(number: u32) -> u32 {
        inlined_step_of_this_test(number) + 1
    }

    #[test]
    fn an_inlined_function_is_named_with_its_callers() {
        assert_eq!(stepscope_lab_caller_of_the_inlined_step(1), 4);
        let error = find("inlined_step_of_this_test", None).unwrap_err().to_string();
        assert!(error.contains("is inlined, so its calls cannot be counted"), "{error}");
        assert!(error.contains("`stepscope_lab_caller_of_the_inlined_step`"), "{error}");
    }

    #[test]
    fn an_address_is_a_step_function_if_a_function_starts_there() {
        let this = std::env::current_exe().unwrap();
        let by_symbol = find("stepscope_lab_step_of_this_test", None).unwrap();
        let named = Symbolizer::default().name(&Code::file(&this), &[by_symbol.offset]);
        let address = named.places[0].address.unwrap();
        let name = |address: u64| format!("{}+{address:#x}", file_name(&this));
        assert_eq!(find(&name(address), None).unwrap().offset, by_symbol.offset);
        let inside = find(&name(address + 1), None).unwrap_err();
        assert!(matches!(inside, StepError::NoStart { .. }), "{inside}");
    }

    #[test]
    fn jump_targets_and_cold_parts_are_no_functions() {
        assert!(is_thunk("_ZThn16_N3sim5World4StepEv") && is_thunk("_ZN3sim5World4StepEv.cold"));
        assert!(!is_thunk("_ZN3sim5World4StepEv"));
    }

    #[test]
    fn a_script_has_no_functions_and_the_error_says_what_to_name() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = find("main", Some(&script)).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml") && error.contains("`module`"), "{error}");
    }
}
