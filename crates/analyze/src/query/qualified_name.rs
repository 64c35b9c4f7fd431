//! A function's own qualified name: its name and the namespaces and classes that declare it.
//!
//! Demanglers also print the return type, template arguments, parameters and remarks of the compiler. Each can contain
//! *another* namespace. A search for `gz::` in the whole text would find `std::vector<gz::math::Pose3d>::push_back`
//! (erratum 6 of the Gazebo study); a search at its start would miss `void gz::sim::EntityComponentManager::EachNoCache<...>`.
//! So ownership is decided by the path of declarations:
//!
//! | as printed | own qualified name |
//! |---|---|
//! | `void gz::sim::Manager::Each<gz::A, std::pair<long, long> >` | `gz::sim::Manager::Each` |
//! | `std::vector<gz::A, std::allocator<gz::A> >::~vector()` | `std::vector::~vector` |
//! | `A::f(int) const::{lambda(int)#1}::operator()(int) const` | `A::f::{lambda(int)#1}::operator()` |
//! | `non-virtual thunk to gz::sim::Physics::Update(...)` | `gz::sim::Physics::Update` |
//! | `<gz::Pose as core::fmt::Display>::fmt` | `gz::Pose::fmt` |
//!
//! The text may be cut: `stackcollapse-perf.pl` ends a name at its first `(`, even inside template arguments
//! (`std::function<bool `). So a bracket that is never closed extends to the end.
//!
//! # Method
//! One pass from left to right keeps the text outside brackets. A space outside brackets ends a return type, so the text
//! before it is dropped. A parameter list ends the name, unless `::` follows it (a lambda or a local class). Brackets and
//! spaces have another meaning in `operator` (`operator<`, `operator()`, `operator bool`), in `(anonymous namespace)`, and in
//! Rust's `<Type as Trait>` at the start of a path; these are handled separately.

use std::borrow::Cow;

/// Levels of `<<<A as B>::C as D>::E as F>` that are parsed. Real names have one or two; a hostile one has thousands.
const DEEPEST_SELF_TYPE: u32 = 8;

/// Bytes of a name that are parsed. Real names have some thousand; a hostile one has millions, and each analysis asks for it.
const LONGEST: usize = 1 << 16;

/// Words of demanglers before the name of the function or class that a symbol belongs to.
#[rustfmt::skip]
const PREFIXES: [&str; 16] = [
    "non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to ", "transaction clone for ",
    "non-transaction clone for ", "construction vtable for ", "vtable for ", "VTT for ", "typeinfo for ",
    "typeinfo name for ", "guard variable for ", "reference temporary for ", "TLS init function for ",
    "TLS wrapper function for ", "initializer for module ", "hidden alias for ",
];

/// How `stackcollapse-perf.pl --all` marks kernel, inlined, JIT-compiled and waiting frames.
const ANNOTATIONS: [&str; 4] = ["_[k]", "_[i]", "_[j]", "_[w]"];

/// Suffixes that compilers and linkers add to copies of a function, up to the next dot or the end.
const CLONES: [&str; 9] =
    [".constprop", ".isra", ".part", ".cold", ".lto_priv", ".llvm", ".localalias", ".clone", ".warm"];

/// C++ operators that are symbols. An operator stands before those that are its first characters.
const OPERATORS: [&str; 39] = [
    "()", "[]", "<=>", "->*", "<<=", ">>=", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=",
    "*=", "/=", "%=", "^=", "&=", "|=", "->", ",", "+", "-", "*", "/", "%", "^", "&", "|", "~", "!", "=", "<", ">",
];

/// The name of the function that a closure is written in, from that of the closure. `None` if it is no closure.
pub fn enclosing(closure: &str) -> Option<&str> {
    ["::{lambda", "::{{closure}}"].iter().find_map(|mark| closure.find(mark)).map(|at| &closure[..at])
}

/// The name of the Python function that a comprehension or a `lambda` is written in. `None` if it is neither.
pub fn enclosing_python(name: &str) -> Option<&str> {
    const PARTS: [&str; 5] = ["<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"];
    name.rsplit_once(".<locals>.").filter(|(_, part)| PARTS.contains(part)).map(|(outer, _)| outer)
}

/// A name without the inline namespaces of versions: `sdf::v12::Root` is `sdf::Root`.
pub fn without_version(name: &str) -> Cow<'_, str> {
    let mut kept = Cow::Borrowed(name);
    while let Some((at, length)) = version(&kept) {
        kept.to_mut().replace_range(at..at + length, "");
    }
    kept
}

/// Where `::v12` is in a name, before the next `::`, and its length.
fn version(name: &str) -> Option<(usize, usize)> {
    name.match_indices("::v").find_map(|(at, mark)| {
        let digits = name[at + mark.len()..].bytes().take_while(u8::is_ascii_digit).count();
        let end = at + mark.len() + digits;
        (digits > 0 && name[end..].starts_with("::")).then_some((at, end - at))
    })
}

/// The function's own qualified name: return type, template arguments, parameter lists, ABI tags, thunk prefixes and the
/// compiler's clone suffixes removed. Enclosing functions of lambdas and local classes stay, without their parameters.
///
/// For a Rust method of a trait, it is the name within the *type* (see also [`trait_name`]). Other names (`[unknown]`,
/// `[libdart.so]`, a C name) are returned unchanged. It accepts any text.
pub fn own_name(name: &str) -> Cow<'_, str> {
    own_name_within(cut(name), DEEPEST_SELF_TYPE)
}

/// The [own name](own_name) with the template arguments, which tell instances of a template apart, and without what tools print
/// differently: spaces, and the inline namespace of strings.
pub fn instance_name(name: &str) -> String {
    let text = bare(cut(name));
    let kept = match plain_name(text) {
        Some(plain) => plain.to_owned(),
        None => Scanner { keeps_arguments: true, ..Scanner::of(text, DEEPEST_SELF_TYPE) }.run(),
    };
    kept.replace("__cxx11::", "").replace(' ', "")
}

/// What is parsed of a name.
fn cut(name: &str) -> &str {
    if name.len() <= LONGEST {
        return name;
    }
    let end = (0..=LONGEST).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    &name[..end]
}

/// The name within the trait, for a Rust method `Type as Trait`.
///
/// A crate may implement a trait only if it declares the trait or the type (coherence), so either can be the owner.
pub fn trait_name(name: &str) -> Option<String> {
    let (inner, rest) = self_type(cut(name).trim())?;
    let (_, of_trait) = split_self_type(inner);
    let path = own_name_within(of_trait?, DEEPEST_SELF_TYPE - 1);
    Some(format!("{path}{}", own_name_within(&format!("x{rest}"), 0).strip_prefix('x')?))
}

fn own_name_within(name: &str, depth: u32) -> Cow<'_, str> {
    let text = bare(name);
    if let Some(plain) = plain_name(text) {
        return Cow::Borrowed(plain);
    }
    let scanned = Scanner::of(text, depth).run();
    if scanned.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(scanned) }
}

/// A name without the remarks of tools and demanglers around it.
fn bare(name: &str) -> &str {
    without_prefixes(without_annotation(name.trim()))
}

/// The own name of a function where it is a part of the text as it stands.
fn plain_name(text: &str) -> Option<&str> {
    if text.starts_with('[') || ANNOTATIONS.contains(&text) {
        return Some(text);
    }
    if let Some((name, _file)) = python_function(text) {
        return Some(name);
    }
    text.bytes().all(is_plain).then(|| without_clone_suffix(text)).or_else(|| is_phrase(text).then_some(text))
}

/// Whether a text is words, such as the `back end` of a compiler, and no function: a name with a return type has brackets.
fn is_phrase(text: &str) -> bool {
    text.contains(' ') && text.bytes().all(|byte| byte == b' ' || byte == b'-' || byte.is_ascii_alphanumeric())
}

fn without_annotation(text: &str) -> &str {
    ANNOTATIONS.iter().find_map(|mark| text.strip_suffix(mark).filter(|rest| !rest.is_empty())).unwrap_or(text)
}

fn without_prefixes(mut text: &str) -> &str {
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    text
}

/// The name and the source file of a Python function: CPython's perf trampolines call it `py::NAME:FILE`.
pub fn python_function(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("py::")?.rsplit_once(':')
}

fn without_clone_suffix(text: &str) -> &str {
    // All suffixes begin with a dot, and hardly any name has one.
    if !text.as_bytes().contains(&b'.') {
        return text;
    }
    let end = CLONES.iter().filter_map(|suffix| find_clone_suffix(text, suffix)).min();
    &text[..end.unwrap_or(text.len())]
}

fn find_clone_suffix(text: &str, suffix: &str) -> Option<usize> {
    let at = text.find(suffix)?;
    let after = text[at + suffix.len()..].bytes().next();
    (at > 0 && after.is_none_or(|byte| byte == b'.' || byte.is_ascii_digit())).then_some(at)
}

/// Whether a byte is part of a name in any place. A name of such bytes needs no scan.
fn is_plain(byte: u8) -> bool {
    is_identifier(byte) || byte == b':'
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'~') || byte >= 0x80
}

/// Rust's `<...>` at the start of a path, and the rest of the path.
fn self_type(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with('<') {
        return None;
    }
    let end = end_of_brackets(text, 0)?;
    let rest = &text[end..];
    rest.starts_with("::").then(|| (&text[1..end - 1], rest))
}

/// The type and the trait of `Type as Trait` or `impl Trait for Type`.
fn split_self_type(inner: &str) -> (&str, Option<&str>) {
    if let Some(rest) = inner.strip_prefix("impl ") {
        return match split_outside_brackets(rest, " for ") {
            Some((of_trait, ty)) => (ty, Some(of_trait)),
            None => (rest, None),
        };
    }
    match split_outside_brackets(inner, " as ") {
        Some((ty, of_trait)) => (ty, Some(of_trait)),
        None => (inner, None),
    }
}

fn split_outside_brackets<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let mut at = 0;
    while at < text.len() {
        match text.as_bytes()[at] {
            b'<' | b'(' | b'[' | b'{' => at = end_of_brackets(text, at)?,
            b' ' if text[at..].starts_with(separator) => return Some((&text[..at], &text[at + separator.len()..])),
            _ => at += 1,
        }
    }
    None
}

/// The path of a type: without `&`, `*const`, `dyn` and the like, and without further bounds (`A + Send`).
fn type_path(mut text: &str) -> &str {
    const MODIFIERS: [&str; 6] = ["&", "mut ", "*const ", "*mut ", "dyn ", "impl "];
    while let Some(rest) = MODIFIERS.iter().find_map(|modifier| text.strip_prefix(modifier)) {
        text = rest;
    }
    split_outside_brackets(text, " + ").map_or(text, |(first, _)| first)
}

/// Index after the bracket that closes the one at `start`, or `None` if it is never closed.
///
/// Angle brackets are also comparisons and shifts within parentheses, part of `->`, and parts of operators' names. So a `>`
/// closes a `<` only if that is the innermost open bracket, and a `)` closes every `<` that is open within it.
fn end_of_brackets(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open: Vec<u8> = Vec::new();
    let mut at = start;
    // How many of each are open: without it, many brackets that close nothing take the square of the time.
    let mut counts = [0_usize; 4];
    while at < bytes.len() {
        match bytes[at] {
            byte @ (b'<' | b'(' | b'[' | b'{') => {
                open.push(byte);
                counts[kind_of(byte)] += 1;
            }
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' if open.last() == Some(&b'<') => close(&mut open, &mut counts, b'<'),
            b')' => close(&mut open, &mut counts, b'('),
            b']' => close(&mut open, &mut counts, b'['),
            b'}' => close(&mut open, &mut counts, b'{'),
            b'o' if is_operator_keyword(text, at) => at = end_of_operator_symbol(text, at + "operator".len()) - 1,
            _ => {}
        }
        at += 1;
        if open.is_empty() {
            return Some(at);
        }
        at += bytes.get(at..)?.iter().position(|&byte| MAY_END_BRACKETS[usize::from(byte)])?;
    }
    None
}

/// The bytes that [`end_of_brackets`] examines: brackets, and the first letter of `operator`.
const MAY_END_BRACKETS: [bool; 256] = {
    let (mut table, looked_at) = ([false; 256], b"<>()[]{}o");
    let mut at = 0;
    while at < looked_at.len() {
        table[looked_at[at] as usize] = true;
        at += 1;
    }
    table
};

/// The number of an opening bracket's kind.
fn kind_of(opener: u8) -> usize {
    match opener {
        b'<' => 0,
        b'(' => 1,
        b'[' => 2,
        _ => 3,
    }
}

/// Closes the innermost open bracket of a kind, and all that are open within it.
fn close(open: &mut Vec<u8>, counts: &mut [usize; 4], opener: u8) {
    if counts[kind_of(opener)] == 0 {
        return;
    }
    while let Some(inner) = open.pop() {
        counts[kind_of(inner)] -= 1;
        if inner == opener {
            return;
        }
    }
}

fn is_operator_keyword(text: &str, at: usize) -> bool {
    text[at..].starts_with("operator")
        && (at == 0 || !is_identifier(text.as_bytes()[at - 1]))
        && text.as_bytes().get(at + "operator".len()).is_none_or(|&byte| !is_identifier(byte) || byte == b'~')
}

/// Index after the operator's symbol that starts at `at`; `at` itself if the operator is a word (`new`, a conversion).
fn end_of_operator_symbol(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    OPERATORS.iter().find(|symbol| rest.starts_with(**symbol)).map_or(at, |symbol| at + symbol.len())
}

/// Reads a name from left to right, outside brackets.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    kept: String,
    depth: u32,
    /// Whether template arguments stay in the name.
    keeps_arguments: bool,
}

/// Whether more of the name can follow.
enum Next {
    Continue,
    End,
}

impl<'a> Scanner<'a> {
    fn of(text: &'a str, depth: u32) -> Self {
        Self { text, at: 0, kept: String::with_capacity(text.len().min(128)), depth, keeps_arguments: false }
    }

    fn run(mut self) -> String {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            let next = match byte {
                b' ' => self.space(),
                b'<' => self.angle(),
                b'(' => self.parenthesis(),
                b'[' => self.square(),
                b'{' => self.keep_to(end_of_brackets(self.text, self.at)),
                b'\'' => self.keep_to(self.text[self.at + 1..].find('\'').map(|end| self.at + end + 2)),
                b'@' => Next::End,
                b'-' if self.rest().starts_with("-in-") => Next::End,
                b'o' if is_operator_keyword(self.text, self.at) => self.operator(),
                byte if is_identifier(byte) => self.identifier(),
                _ => self.keep_to(Some(self.at + 1)),
            };
            if matches!(next, Next::End) {
                break;
            }
        }
        if self.kept.ends_with("::") {
            self.kept.truncate(self.kept.len() - 2);
        }
        self.kept
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Keeps the text up to `end`; if a bracket is never closed, all of it.
    fn keep_to(&mut self, end: Option<usize>) -> Next {
        let end = end.unwrap_or(self.text.len());
        self.kept.push_str(&self.text[self.at..end]);
        self.at = end;
        Next::Continue
    }

    fn skip_to(&mut self, end: Option<usize>) -> Next {
        self.at = end.unwrap_or(self.text.len());
        Next::Continue
    }

    fn identifier(&mut self) -> Next {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !is_identifier(byte)).unwrap_or(rest.len());
        let word = without_clone_suffix(&rest[..length]).len();
        let end = self.at + length;
        self.kept.push_str(&self.text[self.at..self.at + word]);
        self.at = end;
        Next::Continue
    }

    /// A space ends the return type, or begins a remark of the compiler.
    fn space(&mut self) -> Next {
        if [" [clone", " (."].iter().any(|remark| self.rest().starts_with(remark)) {
            return Next::End;
        }
        self.kept.clear();
        self.at += 1;
        Next::Continue
    }

    /// Template arguments, a turbofish, or the `<Type as Trait>` that starts a Rust path.
    fn angle(&mut self) -> Next {
        if self.kept.is_empty() {
            return self.self_type();
        }
        if self.kept.ends_with("::") {
            self.kept.truncate(self.kept.len() - 2);
        }
        let end = end_of_brackets(self.text, self.at);
        if self.keeps_arguments { self.keep_to(end) } else { self.skip_to(end) }
    }

    fn self_type(&mut self) -> Next {
        let end = end_of_brackets(self.text, self.at);
        let Some((inner, _)) = self_type(self.rest()).filter(|_| self.depth > 0) else {
            return self.keep_to(end);
        };
        let path = type_path(split_self_type(inner).0);
        let name = if path.starts_with(['(', '[', '*']) {
            path.to_owned()
        } else {
            own_name_within(path, self.depth - 1).into_owned()
        };
        self.kept.push_str(&name);
        self.skip_to(end)
    }

    fn parenthesis(&mut self) -> Next {
        let end = end_of_brackets(self.text, self.at);
        if self.rest().starts_with("(anonymous") || self.kept.ends_with('.') {
            return self.keep_to(end);
        }
        if self.kept == "decltype" || self.kept == "typeof" {
            return self.skip_to(end);
        }
        if self.kept.is_empty() && (self.rest().starts_with("(*") || self.rest().starts_with("(&")) {
            // A function that returns a pointer to a function: `void (*gz::handler(int))(char)`.
            return self.skip_to(Some(self.at + 2));
        }
        if self.kept.is_empty() {
            return self.keep_to(end);
        }
        self.after_parameters(end)
    }

    /// A parameter list ends the name, unless something was declared inside of the function.
    fn after_parameters(&mut self, end: Option<usize>) -> Next {
        let Some(mut at) = end else { return Next::End };
        const QUALIFIERS: [&str; 6] = [" const", " volatile", " &&", " &", " noexcept", "[abi:cxx11]"];
        while let Some(qualifier) = QUALIFIERS.iter().find(|qualifier| self.text[at..].starts_with(**qualifier)) {
            at += qualifier.len();
        }
        if !self.text[at..].starts_with("::") {
            return Next::End;
        }
        self.skip_to(Some(at))
    }

    /// An ABI tag `[abi:cxx11]`, or the hash of a version of a Rust crate: not part of the name.
    fn square(&mut self) -> Next {
        self.skip_to(end_of_brackets(self.text, self.at))
    }

    fn operator(&mut self) -> Next {
        let symbol = self.at + "operator".len();
        let end = end_of_operator_symbol(self.text, symbol);
        if end > symbol {
            self.keep_to(Some(end));
            // `operator< <long>`: the space keeps template arguments off the symbol.
            self.at += usize::from(self.rest().starts_with(" <"));
            return Next::Continue;
        }
        self.keep_to(Some(symbol));
        self.conversion()
    }

    /// `operator bool`, `operator new[]`, `operator"" _s`: the words up to the parameter list belong to the name.
    fn conversion(&mut self) -> Next {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'(' => return self.parenthesis(),
                b'<' => drop(self.skip_to(end_of_brackets(self.text, self.at))),
                b'[' if !self.rest().starts_with("[]") => return Next::End,
                b' ' if self.rest().starts_with(" [clone") => return Next::End,
                _ => {
                    let width = self.rest().chars().next().map_or(1, char::len_utf8);
                    self.keep_to(Some(self.at + width));
                }
            }
        }
        Next::End
    }
}

#[cfg(test)]
mod tests;
