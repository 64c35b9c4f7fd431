//! [`Note`]: a typed remark that a reader needs to judge a table.
//!
//! A note is a template and its values. It is formatted in one place, here, by the [formatter of quantities](crate::quantity),
//! so that equal values read alike in notes and cells, and equal notes of several tables can be recognised.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::quantity;
use crate::value::Value;

/// The kind of a note, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// Evidence was lost, dropped or truncated: the numbers are incomplete.
    Loss,
    /// What the numbers cannot say, and why.
    Limit,
    /// A total, a threshold or a definition that the rows rest on.
    Fact,
    /// What to do next.
    Hint,
    /// Which of its rows a table shows. It belongs to that table: [`collapse`](crate::table::collapse) keeps it.
    Rows,
}

/// A remark on a table: a kind, a template and its values. Made by [`note!`](crate::note!).
///
/// ```
/// use stepscope_model::{Note, NoteKind, NoteValue, note};
///
/// let note = note!(Loss, "{} ({}) of blocked time has no stack.", NoteValue::ns(5_790_000_000_u64), NoteValue::percent(49.88));
/// assert_eq!(note.kind(), NoteKind::Loss);
/// assert_eq!(note.to_string(), "5.79 s (49.88 %) of blocked time has no stack.");
/// ```
#[derive(Debug, Clone)]
pub struct Note {
    kind: NoteKind,
    /// The scenario, phase or capture that it is about; empty if it is about all of the table.
    subject: String,
    template: String,
    values: Vec<NoteValue>,
}

/// A value in a note.
#[derive(Debug, Clone, PartialEq)]
pub enum NoteValue {
    /// A quantity in a unit, such as `ns`, `bytes`, `percent` or `cycles`.
    Quantity {
        /// The exact value.
        value: Value,
        /// Its unit.
        unit: String,
    },
    /// A number of things.
    Count {
        /// How many.
        number: usize,
        /// What they are, in the singular.
        noun: String,
    },
    /// Text as it is: a name, a command.
    Text(String),
}

impl NoteValue {
    /// A duration in ns.
    pub fn ns(ns: impl Into<Value>) -> Self {
        Self::of(ns, "ns")
    }

    /// A percentage, 0 to 100.
    pub fn percent(percent: f64) -> Self {
        Self::of(percent, "percent")
    }

    /// A quantity in a unit.
    pub fn of(value: impl Into<Value>, unit: &str) -> Self {
        Self::Quantity { value: value.into(), unit: unit.to_owned() }
    }

    /// A number of things: `plural(2, "thread")` shows as `2 threads`.
    pub fn plural(number: usize, noun: &str) -> Self {
        Self::Count { number, noun: noun.to_owned() }
    }

    /// A number alone.
    pub fn number(number: impl Into<Value>) -> Self {
        Self::of(number, "")
    }

    /// Names in backticks with commas between them; beyond `most`, only their number.
    pub fn names<'n>(names: impl IntoIterator<Item = &'n str>, most: usize) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        let mut shown: Vec<String> = names.iter().take(most).map(|name| format!("`{name}`")).collect();
        if names.len() > most {
            shown.push(format!("{} more", quantity::grouped((names.len() - most) as i128)));
        }
        Self::Text(shown.join(", "))
    }
}

impl fmt::Display for NoteValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity { value, unit } => f.write_str(&quantity::weight(value.clone(), unit)),
            Self::Count { number, noun } => f.write_str(&quantity::plural(*number, noun)),
            Self::Text(text) => f.write_str(text),
        }
    }
}

macro_rules! into_note_value {
    ($($from:ty),* $(,)?) => {$(
        impl From<$from> for NoteValue {
            fn from(text: $from) -> Self {
                Self::Text(text.to_string())
            }
        }
    )*};
}

into_note_value!(&str, String, &String, std::borrow::Cow<'_, str>);

impl Note {
    /// A note with the values that replace each `{}` of the template, in order. [`note!`](crate::note!) checks the template
    /// when it is compiled.
    ///
    /// # Panics
    /// In debug builds, if the template has not one `{}` a value.
    pub fn new(kind: NoteKind, template: impl Into<String>, values: Vec<NoteValue>) -> Self {
        let template = template.into();
        debug_assert!(
            values.is_empty() || template.matches("{}").count() == values.len(),
            "one value each: {template}"
        );
        Self { kind, subject: String::new(), template, values }
    }

    /// Its kind.
    pub fn kind(&self) -> NoteKind {
        self.kind
    }

    /// Whether the sentence contains a text.
    pub fn contains(&self, text: &str) -> bool {
        self.to_string().contains(text)
    }

    /// Whether the sentence starts with a text.
    pub fn starts_with(&self, text: &str) -> bool {
        self.to_string().starts_with(text)
    }

    /// The values, in order.
    pub fn values(&self) -> &[NoteValue] {
        &self.values
    }

    /// Replaces a part of the sentence that is no value, such as a placeholder in a command.
    pub fn replace(&mut self, from: &str, to: &str) {
        self.template = self.template.replace(from, to);
    }

    /// The same note about one of several scenarios, phases or captures: `shapes_static: ...`.
    #[must_use]
    pub fn about(self, subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..self }
    }

    /// The scenario, phase or capture that it is about; empty if it is about all of the table.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.subject.is_empty() {
            write!(f, "{}: ", self.subject)?;
        }
        if self.values.is_empty() {
            return f.write_str(&self.template);
        }
        let mut parts = self.template.split("{}");
        f.write_str(parts.next().unwrap_or(""))?;
        for (value, part) in self.values.iter().zip(parts) {
            write!(f, "{value}{part}")?;
        }
        Ok(())
    }
}

impl PartialEq for Note {
    fn eq(&self, other: &Note) -> bool {
        let (shown, of_other) = (self.to_string(), other.to_string());
        self.kind == other.kind && shown == of_other
    }
}

/// Compares the sentence that the note shows.
impl<T: AsRef<str> + ?Sized> PartialEq<T> for Note {
    fn eq(&self, text: &T) -> bool {
        let shown = self.to_string();
        shown == text.as_ref()
    }
}

/// Serialises the sentence that the note shows.
impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

macro_rules! into_note {
    ($($from:ty),* $(,)?) => {$(
        impl From<$from> for Note {
            /// A sentence without values. Its kind is [`NoteKind::Limit`].
            fn from(text: $from) -> Self {
                Self::new(NoteKind::Limit, text, Vec::new())
            }
        }
    )*};
}

into_note!(&str, String);

/// Makes a [`Note`] of a kind, a template and one value for each `{}`: `note!(Loss, "{} records were lost.", ...)`.
///
/// Values are [`NoteValue`]s, or text.
#[macro_export]
macro_rules! note {
    ($kind:ident, $template:literal $(,)?) => {
        $crate::Note::new($crate::NoteKind::$kind, $template, Vec::new())
    };
    ($kind:ident, $template:literal, $($value:expr),+ $(,)?) => {
        $crate::Note::new($crate::NoteKind::$kind, $template, vec![$($crate::NoteValue::from($value)),+])
    };
}

/// The notes that an output has shown so far: each is shown once. What holds for several subjects is one note.
#[derive(Debug, Default)]
pub struct ShownNotes(Vec<Note>);

impl ShownNotes {
    /// The notes that were not shown yet, most important first. They count as shown from now on.
    pub fn add(&mut self, notes: &[Note]) -> Vec<Note> {
        let mut new: Vec<Note> = Vec::new();
        for note in notes {
            if note.kind == NoteKind::Rows || !self.0.contains(note) {
                self.0.push(note.clone());
                new.push(note.clone());
            }
        }
        new.sort_by_key(Note::kind);
        gathered(new)
    }

    /// How many notes were shown.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Forgets all notes but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }
}

/// Subjects that a note names.
const MOST_SUBJECTS: usize = 3;

/// Notes that say the same about several subjects as one, at the place of the first.
fn gathered(notes: Vec<Note>) -> Vec<Note> {
    let mut groups: Vec<(Note, Vec<String>)> = Vec::new();
    for note in notes {
        let subject = note.subject.clone();
        let sentence = note.about("");
        match groups.iter_mut().find(|(known, of)| !subject.is_empty() && !of[0].is_empty() && *known == sentence) {
            Some((_, subjects)) => subjects.push(subject),
            None => groups.push((sentence, vec![subject])),
        }
    }
    groups.into_iter().map(|(sentence, subjects)| sentence.about(named(&subjects))).collect()
}

fn named(subjects: &[String]) -> String {
    match subjects.len().saturating_sub(MOST_SUBJECTS) {
        // "1 more" is as long as its name.
        0 | 1 => subjects.join(", "),
        more => format!("{} and {more} more", subjects[..MOST_SUBJECTS].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_for_several_subjects_is_shown_once() {
        let about = |subject: &str| note!(Limit, "No steps are known.").about(subject);
        let notes =
            [about("a"), about("b"), note!(Limit, "Few samples.").about("b"), about("c"), about("d"), about("e")];
        let shown: Vec<String> = ShownNotes::default().add(&notes).iter().map(Note::to_string).collect();
        assert_eq!(shown, ["a, b, c and 2 more: No steps are known.", "b: Few samples."]);
        let shown = ShownNotes::default().add(&[about("a"), about("")]);
        assert_eq!(shown, ["a: No steps are known.", "No steps are known."]);
    }

    #[test]
    fn values_replace_placeholders_and_carry_their_units() {
        let note = note!(
            Limit,
            "{} of {} have no stack; {} is in {}.",
            NoteValue::ns(7_200_000_000_000_u64),
            NoteValue::plural(2, "process"),
            NoteValue::of(1_234_567_u64, "faults"),
            "`gz::sim`",
        );
        assert_eq!(note.to_string(), "2.00 h of 2 processes have no stack; 1,234,567 faults is in `gz::sim`.");
    }

    #[test]
    fn a_note_about_a_scenario_names_it_first() {
        let plain = Note::from("Braces {} stay.").about("shapes");
        assert_eq!(plain.to_string(), "shapes: Braces {} stay.");
        let valued = note!(Loss, "{} were lost.", NoteValue::plural(3, "record")).about("shapes");
        assert_eq!(valued.to_string(), "shapes: 3 records were lost.");
        assert_eq!(valued.kind(), NoteKind::Loss);
    }
}
