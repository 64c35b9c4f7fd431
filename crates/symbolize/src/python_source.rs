//! What the loops of Python sources do: search, scan, or climb a chain.
//!
//! The indentation shows where a body ends. A loop has a shape if all that it does with an element that does not fit is to compare
//! something of it:
//!
//! - a *search* ends at an element that fits: `for one in all: if one.key == key: return one`, `next(... for ... if ...)`, `any(...)`;
//! - a *scan* does something with those that fit, or collects them;
//! - a *chain* assigns `node = node.parent` until there is none, and changes nothing but its own variables.
//!
//! A condition that calls, computes or asks a container has no shape, nor has one that compares with what the loop changes: a minimum
//! needs all elements.

mod statements;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use stepscope_model::{FileLoops, LineLoop, LoopShape};

use statements::{Statement, head_of, identifiers, statements};

/// The loops of a source file, the lines of its functions without loops, and those that raise and catch exceptions.
pub fn python_loops(path: &str, source: &str) -> FileLoops {
    let all = statements(source);
    let mut found = FileLoops { path: path.to_owned(), ..FileLoops::default() };
    for at in 0..all.len() {
        found.loops.extend(loop_at(&all, at));
        found.loops.extend(comprehension(&all, at));
        if all[at].starts_with("raise") || all[at].starts_with("except") {
            found.raises.extend(all[at].lines.clone());
        }
        if all[at].starts_with("def") {
            let body = body_of(&all, at);
            let is_loop = |one: &Statement| one.starts_with("for") || one.starts_with("while") || one.has(" for ");
            if !all[body.clone()].iter().any(is_loop) {
                let last = all[body.clone()].last().map_or(all[at].lines.end, |one| one.lines.end);
                found.straight.extend(all[at].lines.start..last);
            }
        }
    }
    found.straight.sort_unstable();
    found.straight.dedup();
    found.raises.dedup();
    found
}

/// The statements of a compound statement's body: those that follow and are indented more.
fn body_of(all: &[Statement], at: usize) -> Range<usize> {
    let length = all[at + 1..].iter().take_while(|one| one.indent > all[at].indent).count();
    at + 1..at + 1 + length
}

/// A statement of a body, with its own body.
struct Item<'s> {
    statement: &'s Statement,
    body: &'s [Statement],
}

impl Item<'_> {
    /// What it does after its colon: the rest of the line, or its body.
    fn actions(&self) -> Vec<&str> {
        let inline = head_of(&self.statement.text).1;
        let body = self.body.iter().map(|one| one.text.as_str());
        if inline.is_empty() { body.collect() } else { inline.split(';').map(str::trim).collect() }
    }

    fn lines(&self) -> impl Iterator<Item = u32> {
        self.statement.lines.clone()
    }

    fn body_lines(&self) -> impl Iterator<Item = u32> {
        self.body.iter().flat_map(|one| one.lines.clone())
    }
}

fn items<'s>(all: &'s [Statement], body: Range<usize>) -> Vec<Item<'s>> {
    let mut items = Vec::new();
    let mut at = body.start;
    while at < body.end {
        let own = body_of(all, at);
        items.push(Item { statement: &all[at], body: &all[own.clone()] });
        at = own.end;
    }
    items
}

/// The shape of the loop that starts at a statement.
fn loop_at(all: &[Statement], at: usize) -> Option<LineLoop> {
    let statement = &all[at];
    let items = items(all, body_of(all, at));
    if items.is_empty() || items.iter().any(|one| one.statement.starts_with("else")) {
        return None;
    }
    let (head, _) = head_of(&statement.text);
    if let Some(rest) = head.strip_prefix("for ") {
        let (target, list) = rest.split_once(" in ")?;
        let of_element = identifiers(target).into_iter().map(str::to_owned).collect();
        return pass(all, at, &items, Pass { of_element, by_index: list.starts_with("range(len("), follows: None });
    }
    let condition = head.strip_prefix("while ")?;
    let names = identifiers(condition);
    let nexts: Vec<Next<'_>> = items.iter().filter_map(|one| next_of(&one.statement.text)).collect();
    let [next] = &nexts[..] else { return None };
    if !names.contains(&next.name) && condition.trim() != "True" {
        return None;
    }
    let of_element = BTreeSet::from([next.name.to_owned()]);
    let follows = Some(next.name.to_owned());
    let found = pass(all, at, &items, Pass { of_element, by_index: !next.is_chain, follows });
    found.or_else(|| next.is_chain.then(|| chain(all, at, &items, next.name)).flatten())
}

/// How a `while` loop comes to its next element.
struct Next<'s> {
    name: &'s str,
    /// From the element itself, and not by counting.
    is_chain: bool,
}

/// `node = node.parent`, `at = above[at]`, `i += 1`.
fn next_of(text: &str) -> Option<Next<'_>> {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|one| one.is_alphanumeric() || one == '_');
    if let Some(name) = text.strip_suffix("+= 1").map(str::trim) {
        return is_name(name).then_some(Next { name, is_chain: false });
    }
    let (name, value) = text.split_once(" = ")?;
    let (name, value) = (name.trim(), value.trim());
    let of_attribute = value.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')).is_some_and(is_name);
    let of_list = value.strip_suffix(']').and_then(|rest| rest.split_once('[')).is_some_and(|(list, index)| {
        index.trim() == name && !list.is_empty() && list.chars().all(|one| one.is_alphanumeric() || "_.".contains(one))
    });
    (is_name(name) && (of_attribute || of_list)).then_some(Next { name, is_chain: true })
}

/// What a search or a scan goes through.
struct Pass {
    /// Names of the element and of what is loaded from it.
    of_element: BTreeSet<String>,
    /// The loop counts an index.
    by_index: bool,
    /// The name whose next value a statement of a `while` loop gives.
    follows: Option<String>,
}

/// A search or a scan.
fn pass(all: &[Statement], at: usize, items: &[Item<'_>], mut of: Pass) -> Option<LineLoop> {
    let mut inside: Vec<u32> = all[at].lines.clone().collect();
    let (mut uses, mut ends, mut conditions, mut filtered) = (Vec::new(), Vec::new(), Vec::new(), false);
    let (mut searches, mut picks) = (false, false);
    let mut changed: BTreeSet<String> = BTreeSet::new();
    for item in items {
        let text = item.statement.text.as_str();
        if of.follows.is_some() && next_of(text).is_some() {
            inside.extend(item.lines());
        } else if filtered {
            uses.extend(item.lines().chain(item.body_lines()));
            changed.extend(assigned(text));
            changed.extend(item.body.iter().flat_map(|one| assigned(&one.text)));
            picks = true;
            searches |= ends_loop(text);
        } else if let Some(condition) = head_of(text).0.trim_start_matches("el").strip_prefix("if ") {
            if !is_question(condition, &of.of_element, of.by_index) {
                return None;
            }
            conditions.push(condition.to_owned());
            inside.extend(item.lines());
            let actions = item.actions();
            match actions.last() {
                Some(last) if ends_loop(last) => {
                    searches = true;
                    ends.extend(item.body_lines());
                }
                Some(&"continue") if actions.len() == 1 => {
                    filtered = true;
                    inside.extend(item.body_lines());
                }
                _ => {
                    picks = true;
                    uses.extend(item.body_lines());
                    changed.extend(actions.iter().flat_map(|one| assigned(one)));
                }
            }
        } else if let Some((name, value)) = text.split_once(" = ")
            && is_plain(value)
            && identifiers(value).iter().any(|one| of.of_element.contains(*one))
        {
            of.of_element.insert(name.trim().to_owned());
            inside.extend(item.lines());
        } else {
            return None;
        }
    }
    let needs_all = conditions.iter().flat_map(|one| identifiers(one)).any(|one| changed.contains(one));
    let gathers = !of.by_index && conditions.iter().any(|one| one.contains('['));
    let shape = match (searches, picks) {
        (true, _) => LoopShape::Search,
        (false, true) if !needs_all && !gathers => LoopShape::Scan,
        _ => return None,
    };
    let mut edges = before(all, at);
    if shape == LoopShape::Search {
        edges.extend(ends);
    }
    Some(LineLoop { shape, inside, edges, uses })
}

/// A loop that climbs: it assigns its own variables alone.
fn chain(all: &[Statement], at: usize, items: &[Item<'_>], name: &str) -> Option<LineLoop> {
    let is_kept = |item: &Item<'_>| {
        let text = item.statement.text.as_str();
        let is_end = || head_of(text).0.starts_with("if ") && item.actions().iter().all(|one| *one == "break");
        let targets = assigned(text);
        is_end() || (item.body.is_empty() && !targets.is_empty())
    };
    // What is collected on the way is a path, which has to be followed.
    let computes = items
        .iter()
        .any(|one| next_of(&one.statement.text).is_none() && identifiers(&one.statement.text).contains(&name));
    let calls = |one: &Item<'_>| one.statement.text.contains(".append(") || one.statement.text.contains(".add(");
    if !computes || !items.iter().all(is_kept) || items.iter().any(calls) {
        return None;
    }
    let inside =
        all[at].lines.clone().chain(items.iter().flat_map(|one| one.lines().chain(one.body_lines()))).collect();
    Some(LineLoop { shape: LoopShape::Chain, inside, edges: before(all, at), uses: Vec::new() })
}

/// A search or a scan within one statement: `next(one for one in all if one.key == key)`.
fn comprehension(all: &[Statement], at: usize) -> Option<LineLoop> {
    let statement = &all[at];
    let (start, rest) = statement.text.split_once(" for ")?;
    if rest.contains(" for ") || statement.starts_with("for") || statement.starts_with("while") {
        return None;
    }
    let open = start.rfind(['(', '['])?;
    let element = &start[open + 1..];
    let caller =
        start[..open].trim_end_matches('(').rsplit(|one: char| !(one.is_alphanumeric() || one == '_')).next()?;
    let (target, rest) = rest.split_once(" in ")?;
    let close = closing(rest)?;
    let (list, condition) = match rest[..close].split_once(" if ") {
        Some((list, condition)) => (list, Some(condition)),
        None => (&rest[..close], None),
    };
    let of_element: BTreeSet<String> = identifiers(target).into_iter().map(str::to_owned).collect();
    let by_index = list.starts_with("range(len(");
    let ends = match caller {
        "next" => condition,
        "any" | "all" => Some(element),
        _ => None,
    };
    let shape = if ends.is_some() { LoopShape::Search } else { LoopShape::Scan };
    let question = ends.or(condition)?;
    let is_list = start[..=open].ends_with('[');
    if !is_question(question, &of_element, by_index) || (shape == LoopShape::Scan && !is_list) {
        return None;
    }
    let inside = statement.lines.clone().collect();
    Some(LineLoop { shape, inside, edges: before(all, at), uses: Vec::new() })
}

/// Where the bracket closes that was open before a text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, one)| match one {
        '(' | '[' | '{' => {
            depth += 1;
            None
        }
        ')' | ']' | '}' if depth == 0 => Some(at),
        ',' if depth == 0 => Some(at),
        ')' | ']' | '}' => {
            depth -= 1;
            None
        }
        _ => None,
    })
}

/// Whether a condition compares something of the element, and neither calls, computes nor asks a container.
fn is_question(condition: &str, of_element: &BTreeSet<String>, by_index: bool) -> bool {
    let condition = condition.trim();
    let mentions = identifiers(condition).iter().any(|one| of_element.contains(*one));
    let computes =
        ["(", "+", "*", "/", "%", " - ", " in ", " for ", " lambda "].iter().any(|one| condition.contains(one));
    mentions && !computes && (by_index || !condition.contains('['))
}

/// Whether a value is a name, an attribute or an element, and no call.
fn is_plain(value: &str) -> bool {
    value.trim().chars().all(|one| one.is_alphanumeric() || "_.[]".contains(one))
}

fn ends_loop(text: &str) -> bool {
    text == "break" || text == "return" || text.starts_with("return ") || text.starts_with("raise ")
}

/// The plain names that a statement assigns; none if it assigns anything else, or nothing.
fn assigned(text: &str) -> Vec<String> {
    let Some(at) = assignment(text) else { return Vec::new() };
    let targets = text[..at].trim_end_matches(['+', '-', '*', '/', '|', '&', '^', '%', '@', ' ']);
    let names: Vec<&str> = targets.split(',').map(|one| one.trim().trim_matches(['(', ')'])).collect();
    let is_name = |one: &&str| !one.is_empty() && one.chars().all(|one| one.is_alphanumeric() || one == '_');
    if names.iter().all(is_name) { names.into_iter().map(str::to_owned).collect() } else { Vec::new() }
}

/// The place of an assignment's `=`.
fn assignment(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_i32;
    for (at, one) in bytes.iter().enumerate() {
        match one {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'=' if depth == 0 => {
                let is_comparison = bytes.get(at + 1) == Some(&b'=') || (at > 0 && b"=!<>:".contains(&bytes[at - 1]));
                return (!is_comparison).then_some(at);
            }
            _ => {}
        }
    }
    None
}

/// Lines that run once before a loop: the plain statement before it, or the function's first line.
fn before(all: &[Statement], at: usize) -> Vec<u32> {
    let Some(previous) = at.checked_sub(1).map(|at| &all[at]) else { return Vec::new() };
    let is_near = previous.indent == all[at].indent || previous.starts_with("def");
    if is_near { previous.lines.clone().collect() } else { Vec::new() }
}
