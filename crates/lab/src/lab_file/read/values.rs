//! Values that several tables of a lab file share.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use regex::Regex;
use stepscope_analyze::Ownership;

use super::super::decode::{Field, Fields, Problems};
use super::super::problem::did_you_mean;

pub(super) const COMMAND: &str =
    r#"an array of program and arguments, e.g. ["gz", "sim", "-s"], or ["sh", "-c", "..."] for a shell command"#;

/// A list of patterns of an [`Ownership`].
type Patterns = fn(&mut Ownership) -> &mut Vec<String>;

/// The lists of patterns of `owned`, by key.
const OWNERSHIP: [(&str, Patterns); 5] = [
    ("namespaces", |owned| &mut owned.namespaces),
    ("modules", |owned| &mut owned.modules),
    ("sources", |owned| &mut owned.sources),
    ("not_owned", |owned| &mut owned.not_owned),
    ("groups", |owned| &mut owned.groups),
];

/// Reads tables of a lab file. An invalid value becomes a problem and is replaced by its default.
pub(super) struct Reader {
    pub(super) folder: PathBuf,
}

impl Reader {
    /// The table `[name]`.
    pub(super) fn section<'t>(
        &self,
        field: Option<Field<'t>>,
        name: &str,
        problems: &mut Problems,
    ) -> Option<Fields<'t>> {
        field?.table(problems, format!("[{name}]"), &format!("a table: [{name}]"))
    }

    pub(super) fn command(&self, field: &Field, problems: &mut Problems) -> Option<Vec<String>> {
        let items = field.items(problems, COMMAND)?;
        let Some((program, arguments)) = items.split_first() else {
            problems.add(field.span(), format!("{} must not be empty; expected {COMMAND}", field.what));
            return None;
        };
        let program = program.string(problems, "the name or path of a program")?;
        // A name is searched in PATH; a path starts from the lab file's folder.
        let program = if program.contains('/') { self.resolve(&program) } else { program };
        let arguments = arguments.iter().filter_map(|argument| argument.text(problems, "a string"));
        Some(std::iter::once(program).chain(arguments).collect())
    }

    pub(super) fn env(&self, field: Option<Field>, problems: &mut Problems) -> BTreeMap<String, String> {
        let expected = r#"a table of strings, e.g. { OMP_NUM_THREADS = "1" }"#;
        let Some(field) = field else { return BTreeMap::new() };
        let Some(mut fields) = field.table(problems, field.what.clone(), expected) else { return BTreeMap::new() };
        let mut env = BTreeMap::new();
        for (name, value) in fields.take_all() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("\"{}\" is not a name for a variable", name.escape_debug());
                problems.add(value.key_span.clone(), message);
            }
            if let Some(value) = value.text(problems, "a string in quotes") {
                env.insert(name.to_owned(), value);
            }
        }
        env
    }

    pub(super) fn regex(&self, field: &Field, problems: &mut Problems) -> Option<Regex> {
        let pattern = field.string(problems, "a regular expression that a line of the output matches")?;
        match Regex::new(&pattern) {
            Ok(regex) => Some(regex),
            Err(error) => {
                // The last line has the reason; earlier lines draw the place in the pattern.
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                problems.add(field.span(), format!("{} is not a regular expression: {reason}", field.what));
                None
            }
        }
    }

    pub(super) fn directory(&self, field: Option<Field>, problems: &mut Problems) -> Option<PathBuf> {
        Some(self.folder.join(field?.string(problems, "the path of a directory")?))
    }

    /// A path as text, from the lab file's folder.
    pub(super) fn resolve(&self, path: &str) -> String {
        // If the folder's name is not UTF-8, a path in it cannot be text and stays as it is.
        self.folder.join(path).to_str().map_or_else(|| path.to_owned(), str::to_owned)
    }

    pub(super) fn owned(&self, field: Option<Field>, problems: &mut Problems) -> Option<Ownership> {
        let field = field?;
        let mut owned = Ownership::default();
        if field.is_array() {
            patterns(&field, |owned| &mut owned.namespaces, &mut owned, problems);
            return Some(owned);
        }
        let expected = r#"names, e.g. ["gz::*"], or a table, e.g. { namespaces = ["gz::"], modules = ["libgz-*"] }"#;
        let mut fields = field.table(problems, "`owned`".to_owned(), expected)?;
        for (name, list) in OWNERSHIP {
            if let Some(field) = fields.take(name) {
                patterns(&field, list, &mut owned, problems);
            }
        }
        fields.finish(problems);
        Some(owned.relative_to(&self.folder))
    }

    /// An array of names from `known`: at least one, each once.
    pub(super) fn choices<T: Copy + PartialEq>(
        &self,
        field: &Field,
        kind: &str,
        known: &[(&str, T)],
        problems: &mut Problems,
    ) -> Option<Vec<T>> {
        let names: Vec<&str> = known.iter().map(|&(name, _)| name).collect();
        let list = names.join("\", \"");
        let items = field.items(problems, &format!("an array of \"{list}\""))?;
        if items.is_empty() {
            problems.add(field.span(), format!("{} must name at least one {kind}: \"{list}\"", field.what));
        }
        let mut chosen = Vec::new();
        for item in items {
            let Some(name) = item.string(problems, &format!("a {kind}: \"{list}\"")) else { continue };
            match known.iter().find(|&&(known, _)| known == name) {
                Some(&(_, choice)) if chosen.contains(&choice) => {
                    problems.add(item.span(), format!("\"{name}\" is listed twice"));
                }
                Some(&(_, choice)) => chosen.push(choice),
                None => {
                    let hint = did_you_mean(&name, names.iter().copied());
                    let hint = if hint.is_empty() { format!("; known: \"{list}\"") } else { hint };
                    problems.add(item.span(), format!("there is no {kind} \"{name}\"{hint}"));
                }
            }
        }
        Some(chosen)
    }
}

/// Adds the patterns of an array to a list.
fn patterns(field: &Field, list: Patterns, owned: &mut Ownership, problems: &mut Problems) {
    for item in field.items(problems, "an array of patterns").unwrap_or_default() {
        let Some(pattern) = item.string(problems, "a pattern") else { continue };
        let mut alone = Ownership::default();
        list(&mut alone).push(pattern.clone());
        match alone.compile() {
            Ok(_) => list(owned).push(pattern),
            Err(error) => problems.add(item.span(), error.to_string()),
        }
    }
}

/// Names become folders, columns and arguments on the command line.
pub(super) fn check_name(kind: &str, name: &str, span: Range<usize>, problems: &mut Problems) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts_well = !name.starts_with('-');
    if name.is_empty() || name.len() > 100 || !starts_well || !name.chars().all(allowed) {
        let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
        let message = format!(
            "\"{shown}\" cannot name a {kind}: use letters, digits, `_` and `-`, at most 100, not starting with `-`"
        );
        problems.add(span, message);
    }
}
