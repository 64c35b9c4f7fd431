//! Function names in less room than they need.
//!
//! A C++ or Rust name says little in its middle: template arguments and parameter lists give way first, then the
//! namespaces. Functions differ in where they are defined (the start) and in their name (the end). Widths are
//! in columns of a monospaced font: two for wide characters, none for combining ones.

mod column;
mod name;

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub use column::shorten_column;

use crate::visible::is_plain;
use name::{Arguments, Brackets, Parts, without_arguments, wrapped};

const ELLIPSIS: char = '…';
/// Fewest columns in which arguments tell something.
const FEWEST_ARGUMENTS: usize = 10;
/// Between the first and the last name of a chain of calls.
const CHAIN: &str = " > … > ";

/// `name` in at most `columns` columns, both ends kept: for tables.
///
/// Template arguments are shortened first, the longest first, then parameter lists; then the middle of the
/// name.
pub fn shorten(name: &str, columns: usize) -> Cow<'_, str> {
    if width(name) <= columns {
        return Cow::Borrowed(name);
    }
    let shorter = trim_brackets(name, columns);
    if shorter.width() <= columns {
        return Cow::Owned(shorter);
    }
    Cow::Owned(cut_middle(&shorter, columns))
}

/// The most informative form of a function's name for a box of `columns` columns: for flame graphs. `None` if not even
/// the start of its last part fits.
///
/// In this order: the whole; without parameter lists and with as much of its template arguments as there is room for;
/// without these; without the return type; its last two parts; its last part; the start of that. Of wrappers such as
/// `std::_Function_handler<…>::_M_invoke`, whose name tells nothing, the shorter forms are those of what they wrap.
pub fn label(name: &str, columns: usize) -> Option<Cow<'_, str>> {
    const FEWEST_COLUMNS: usize = 3;
    if width(name) <= columns {
        return Some(Cow::Borrowed(name));
    }
    if columns < FEWEST_COLUMNS {
        return None;
    }
    let name = wrapped(name).unwrap_or(name);
    let bare = without_arguments(name);
    if width(&bare) <= columns {
        return Some(Cow::Owned(with_some_arguments(name, bare, columns)));
    }
    let parts = Parts::of(&bare);
    let forms = [0, parts.qualified, parts.last_two, parts.last];
    let form = forms.iter().map(|&start| &bare[start..]).find(|form| width(form) <= columns);
    Some(Cow::Owned(match form {
        Some(form) => form.to_owned(),
        None => cut_end(&bare[parts.last..], columns),
    }))
}

/// The name with as much of its template arguments as there is room for beside the `bare` name: short ones whole, of the
/// next one both ends.
fn with_some_arguments(name: &str, bare: String, columns: usize) -> String {
    let arguments = Arguments::of(name);
    // The ellipsis in the place of arguments is room, too.
    let mut room = columns - width(&bare) + 1;
    if arguments.template.is_empty() || room < FEWEST_ARGUMENTS {
        return bare;
    }
    let inner = |pair: &Brackets| &name[pair.open + 1..pair.close];
    let mut pairs = arguments.template.clone();
    pairs.sort_by_key(|pair| (width(inner(pair)), pair.open));
    let mut kept: Vec<(Brackets, String)> = Vec::new();
    for pair in pairs {
        let text = inner(&pair);
        let shown = match width(text) <= room {
            true => text.to_owned(),
            false if room < FEWEST_ARGUMENTS => ELLIPSIS.to_string(),
            false => cut_middle_in_pairs(text, room),
        };
        room -= width(&shown).saturating_sub(1);
        kept.push((pair, format!("<{shown}>")));
    }
    arguments.replaced(name, kept)
}

/// Columns that a text takes.
fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { text.width() }
}

/// The rows of a tree, names indented by two spaces a level, in at most `columns` columns each.
///
/// Names keep their end, the function's own name: arguments give way first, then they take the form of a [`label`]. A deep
/// tree is indented by one space per level; rows that are still too deep start with an ellipsis.
pub fn shorten_indented(rows: &mut [String], columns: usize) {
    const ROOM_OF_A_NAME: usize = 28;
    let level = |row: &str| (row.len() - row.trim_start_matches(' ').len()) / 2;
    let deepest = rows.iter().map(|row| level(row)).max().unwrap_or(0);
    let room = columns.saturating_sub(ROOM_OF_A_NAME.min(columns / 2 + 1));
    let step = if deepest * 2 <= room { 2 } else { 1 };
    for row in rows {
        let indent = match level(row) * step {
            indent if indent <= room => " ".repeat(indent),
            _ => format!("{}{ELLIPSIS}", " ".repeat(room.saturating_sub(1))),
        };
        let name = row.trim_start_matches(' ');
        let left = columns.saturating_sub(indent.width());
        let name = match name.width() > left {
            true => shorten_chain(name, left)
                .or_else(|| shorten_pair(name, left))
                .unwrap_or_else(|| shorten_to_end(name, left)),
            false => name.to_owned(),
        };
        *row = format!("{indent}{name}");
    }
}

/// A name without arguments, or its last parts.
fn shorten_to_end(name: &str, columns: usize) -> String {
    match trim_brackets(name, columns) {
        trimmed if trimmed.width() <= columns => trimmed,
        _ => label(name, columns).unwrap_or_else(|| shorten(name, columns)).into_owned(),
    }
}

/// A chain of calls, `first > … > last (13 frames)`, with a shorter last name. Without the first if that does not fit, then without
/// the word after the number.
/// An address stays whole: its end distinguishes it.
fn shorten_chain(name: &str, columns: usize) -> Option<String> {
    const LEAST_NAME: usize = 12;
    let (first, rest) = name.split_once(CHAIN)?;
    let (last, frames) = rest.rsplit_once(" (")?;
    let shown = |first: &str, frames: &str| {
        let room = columns.checked_sub(first.width() + CHAIN.width() + 2 + frames.width())?;
        let last = label(last, room).filter(|shown| room >= LEAST_NAME && (shown == last || !last.contains("+0x")))?;
        Some(format!("{first}{CHAIN}{last} ({frames}").trim_start().to_owned())
    };
    let number = format!("{})", frames.split(' ').next().unwrap_or_default());
    shown(first, frames).or_else(|| shown("", frames)).or_else(|| shown("", &number))
}

/// A caller and its only callee, `first > last`, both by the ends of their names.
fn shorten_pair(name: &str, columns: usize) -> Option<String> {
    const PAIR: &str = " > ";
    const LEAST_NAME: usize = 10;
    let closed = |text: &str| text.matches('<').count() == text.matches('>').count();
    let (at, _) = name.match_indices(PAIR).find(|(at, _)| closed(&name[..*at]))?;
    let (first, last) = (&name[..at], &name[at + PAIR.len()..]);
    let room = columns.checked_sub(PAIR.len()).filter(|room| *room >= 2 * LEAST_NAME)?;
    let last = label(last, (room / 2).max(room.saturating_sub(first.width())))?;
    let first = label(first, room - last.width())?;
    Some(format!("{first}{PAIR}{last}"))
}

/// Shortens the text in brackets, the longest first, as far as needed.
fn trim_brackets(name: &str, columns: usize) -> String {
    let Arguments { template, parameters } = Arguments::of(name);
    let inner_width = |pair: &Brackets| name[pair.open + 1..pair.close].width();
    let mut cuts: Vec<(Brackets, String)> = Vec::new();
    let mut excess = name.width() - columns;
    for mut pairs in [template, parameters] {
        pairs.sort_by_key(|pair| (std::cmp::Reverse(inner_width(pair)), pair.open));
        for pair in pairs.into_iter().take_while(|pair| inner_width(pair) > 1) {
            if excess == 0 {
                break;
            }
            let inner = &name[pair.open + 1..pair.close];
            let kept = cut_arguments(inner, inner.width().saturating_sub(excess));
            excess = excess.saturating_sub(inner.width() - kept.width());
            cuts.push((pair, kept));
        }
    }
    cuts.sort_by_key(|(pair, _)| pair.open);
    let mut shorter = String::with_capacity(name.len());
    let mut done = 0;
    for (pair, kept) in cuts {
        shorter.push_str(&name[done..=pair.open]);
        shorter.push_str(&kept);
        done = pair.close;
    }
    shorter.push_str(&name[done..]);
    shorter
}

/// Both ends of an argument list, or only an ellipsis where they would say nothing.
fn cut_arguments(inner: &str, columns: usize) -> String {
    if columns < FEWEST_ARGUMENTS { ELLIPSIS.to_string() } else { cut_middle_in_pairs(inner, columns) }
}

fn cut_end(text: &str, columns: usize) -> String {
    let mut short = take_columns(text.chars(), columns.saturating_sub(1)).0;
    short.push(ELLIPSIS);
    short
}

/// Keeps two fifths of the room for the start and the rest for the end.
fn cut_middle(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let (mut short, used) = take_columns(text.chars(), room * 2 / 5);
    let (end, _) = take_columns(text.chars().rev(), room - used);
    short.push(ELLIPSIS);
    short.extend(end.chars().rev());
    short
}

/// The same of arguments, with as much of both ends as leaves brackets in pairs.
fn cut_middle_in_pairs(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let taken = |characters: &mut dyn Iterator<Item = char>, columns| -> (Vec<char>, usize) {
        let (taken, used) = take_columns(characters, columns);
        (taken.chars().collect(), used)
    };
    let (mut start, used) = taken(&mut text.chars(), room * 2 / 5);
    let (mut end, _) = taken(&mut text.chars().rev(), room - used);
    end.reverse();
    let is_paired = |start: &[char], end: &[char]| unpaired(start).0 == unpaired(end).1;
    if !is_paired(&start, &end) {
        // What the start opens, the end has to close.
        while !is_paired(&start, &end) {
            if unpaired(&start).0 > unpaired(&end).1 {
                start.pop();
            } else {
                end.remove(0);
            }
        }
        // The end may have left room for more of the start.
        let left: usize = end.iter().map(|character| character.width().unwrap_or(0)).sum();
        let (mut longer, _) = taken(&mut text.chars(), room - left);
        while longer.len() > start.len() && !is_paired(&longer, &end) {
            longer.pop();
        }
        start = longer;
    }
    start.into_iter().chain([ELLIPSIS]).chain(end).collect()
}

/// How many brackets these characters open and do not close, and the other way round.
fn unpaired(text: &[char]) -> (usize, usize) {
    let (mut open, mut close) = (0, 0);
    for (at, character) in text.iter().enumerate() {
        match character {
            '<' | '(' | '[' | '{' => open += 1,
            '>' if at > 0 && text[at - 1] == '-' => {}
            '>' | ')' | ']' | '}' if open > 0 => open -= 1,
            '>' | ')' | ']' | '}' => close += 1,
            _ => {}
        }
    }
    (open, close)
}

/// As many characters as fit, and the columns they take.
fn take_columns(characters: impl Iterator<Item = char>, columns: usize) -> (String, usize) {
    let mut taken = String::new();
    let mut used = 0;
    for character in characters {
        let width = character.width().unwrap_or(0);
        if used + width > columns {
            break;
        }
        used += width;
        taken.push(character);
    }
    (taken, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTITY_SCAN: &str = "std::_Hashtable<unsigned long, std::pair<unsigned long const, gz::math::Pose3<double> >, \
                               std::allocator<int> >::find(unsigned long const&) const";

    #[test]
    fn template_arguments_give_way_before_parameters_and_only_as_far_as_needed() {
        let cases = [
            (200, ENTITY_SCAN),
            (
                125,
                "std::_Hashtable<unsigned long, std::pair<unsi…:math::Pose3<double> >, std::allocator<int> >::find(unsigned long const&) const",
            ),
            (110, "std::_Hashtable<unsigned long, std::pair…, std::allocator<int> >::find(unsigned long const&) const"),
            (65, "std::_Hashtable<unsig…or<int> >::find(unsigned long const&) const"),
            (50, "std::_Hashtable<…>::find(unsign…long const&) const"),
            (33, "std::_Hashtable<…>::find(…) const"),
        ];
        for (columns, short) in cases {
            assert_eq!(shorten(ENTITY_SCAN, columns), short, "{columns}");
        }
    }

    #[test]
    fn without_brackets_the_middle_is_cut_and_both_ends_are_kept() {
        assert_eq!(shorten("gz::sim::EntityComponentManager::Each", 20), "gz::sim…anager::Each");
        assert_eq!(shorten("abcdef", 1), "…");
        assert_eq!(shorten("abcdef", 0), "…");
        assert_eq!(shorten("abcdef", 6), "abcdef");
    }

    #[test]
    fn a_caller_with_its_only_callee_keeps_both_names() {
        let pair = "  ground::runner::SimulationRunner::process_recreate_entities_remove > ground::ecs::EntityComponentManager::each_no_cache";
        let shortened = |columns| {
            let mut rows = [pair.to_owned()];
            shorten_indented(&mut rows, columns);
            rows[0].clone()
        };
        assert_eq!(shortened(80), "  process_recreate_entities_remove > EntityComponentManager::each_no_cache");
        assert_eq!(shortened(54), "  process_recreate_entities_remove > each_no_cache");
        assert_eq!(shortened(40), "  process_recreate_enti… > each_no_cache");
        assert_eq!(shorten_pair("gz::Each<gz::Pose, std::vector<int> > >::find_all", 30), None);
    }

    #[test]
    fn rows_of_a_tree_keep_the_ends_of_their_names_and_their_indentation() {
        let mut rows = [
            "all",
            "  core::ops::function::FnOnce::call_once",
            "    std::panicking::catch_unwind::<core::panic::AssertUnwindSafe<F>, ()>",
            "      <Vec<T> as core::iter::FromIterator<T>>::from_iter",
        ]
        .map(str::to_owned);
        shorten_indented(&mut rows, 36);
        assert_eq!(
            rows,
            ["all", "  FnOnce::call_once", "    panicking::catch_unwind::<…>", "      <Vec<T>…terator<T>>::from_iter",]
        );
    }

    #[test]
    fn a_chain_of_calls_keeps_its_number_of_frames() {
        let chain = |columns| {
            let mut rows = ["all".to_owned(), "  _start > … > ground::bin::ground::main (13 frames)".to_owned()];
            shorten_indented(&mut rows, columns);
            rows[1].clone()
        };
        assert_eq!(chain(60), "  _start > … > ground::bin::ground::main (13 frames)");
        assert_eq!(chain(44), "  _start > … > ground::main (13 frames)");
        assert_eq!(chain(38), "  > … > ground::main (13 frames)");
        let chain = |columns| {
            let mut rows = ["all".to_owned(), "  sumo+0x1d6080 > … > sumo+0x173160 (3 functions)".to_owned()];
            shorten_indented(&mut rows, columns);
            rows[1].clone()
        };
        assert_eq!(chain(48), "  > … > sumo+0x173160 (3 functions)", "an address is not cut");
        assert_eq!(chain(30), "  > … > sumo+0x173160 (3)");
    }

    #[test]
    fn a_deep_tree_is_indented_less_and_no_further_than_leaves_room_for_names() {
        let row = |level: usize| format!("{}gz::sim::v11::systems::Physics::Update", "  ".repeat(level));
        let mut rows = [0, 10, 40].map(row);
        shorten_indented(&mut rows, 50);
        assert_eq!(
            rows,
            [
                "gz::sim::v11::systems::Physics::Update".to_owned(),
                format!("{}gz::sim::v11::systems::Physics::Update", " ".repeat(10)),
                format!("{}…Physics::Update", " ".repeat(23)),
            ]
        );
        let mut rows = (0..200).map(row).collect::<Vec<_>>();
        for columns in (1..120).rev() {
            shorten_indented(&mut rows, columns);
            assert!(rows.iter().all(|row| row.width() <= columns), "{columns}");
        }
    }

    #[test]
    fn a_shortened_name_never_takes_more_columns_than_it_may() {
        let names = [
            ENTITY_SCAN,
            "行列<長い引数>::積算する(値)",
            "a<b<c<d",
            ">>>",
            "((((",
            "{lambda(auto:1)#1}::operator()<int>(int)",
        ];
        for name in names {
            for columns in 1..name.width() + 2 {
                assert!(shorten(name, columns).width() <= columns, "{name} {columns}");
                assert!(label(name, columns).is_none_or(|text| text.width() <= columns), "{name} {columns}");
            }
        }
    }

    #[test]
    fn brackets_of_operators_and_unnamed_scopes_are_not_arguments() {
        for name in ["operator<", "a::operator<<=", "x::operator->", "f::operator()", "(anonymous namespace)::f"] {
            let arguments = Arguments::of(name);
            assert!(arguments.template.is_empty() && arguments.parameters.is_empty(), "{name} {arguments:?}");
        }
        assert_eq!(without_arguments("a::operator()<int>(long) const"), "a::operator()<…>");
        assert_eq!(
            without_arguments("main(int)::{lambda(int)#1}::operator()(int)"),
            "main(int)::{lambda(int)#1}::operator()"
        );
    }

    /// Name, columns, label: the same cases that the script's twin of [`label`] is tested with.
    #[test]
    fn labels_agree_with_the_cases_shared_with_the_script() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/test/labels.json");
        let cases: Vec<(String, usize, Option<String>)> =
            serde_json::from_str(&std::fs::read_to_string(path).expect("the shared cases are beside the script"))
                .unwrap();
        assert!(cases.len() > 10);
        for (name, columns, expected) in cases {
            assert_eq!(label(&name, columns).as_deref(), expected.as_deref(), "{name} in {columns}");
        }
    }
}
