//! The parts of a C++ or Rust name: template arguments, parameter lists, return type, namespaces.

/// A pair of brackets: byte positions of the opening and the closing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Brackets {
    pub(super) open: usize,
    pub(super) close: usize,
}

/// The outermost pairs of brackets of a function's name that hold arguments, by the kind of argument.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) template: Vec<Brackets>,
    pub(super) parameters: Vec<Brackets>,
}

impl Arguments {
    /// Finds them in one pass. Brackets that belong to an operator's name, to `(anonymous namespace)`, to a function
    /// in whose scope the name lies, or that have no partner, are not arguments.
    pub(super) fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut found = Self::default();
        let mut open: Vec<usize> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'o' => at += operator_length(name, at).saturating_sub(1),
                b'<' | b'(' | b'[' | b'{' => open.push(at),
                b'-' if bytes.get(at + 1) == Some(&b'>') => at += 1,
                close @ (b'>' | b')' | b']' | b'}') => {
                    let partner = open.iter().rposition(|&start| closes(bytes[start], close));
                    if let Some(partner) = partner {
                        let pair = Brackets { open: open[partner], close: at };
                        open.truncate(partner);
                        if open.is_empty() {
                            found.add(pair, bytes);
                        }
                    }
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    fn add(&mut self, pair: Brackets, bytes: &[u8]) {
        let is_scope = bytes[pair.close + 1..].starts_with(b"::");
        match bytes[pair.open] {
            b'<' => self.template.push(pair),
            b'(' if !is_scope => self.parameters.push(pair),
            _ => {}
        }
    }
}

fn closes(open: u8, close: u8) -> bool {
    matches!((open, close), (b'<', b'>') | (b'(', b')') | (b'[', b']') | (b'{', b'}'))
}

/// Length of the operator's name that starts at `at`, or 0 if none does.
fn operator_length(name: &str, at: usize) -> usize {
    const KEYWORD: &str = "operator";
    const SYMBOLS: [&str; 12] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"];
    let bytes = name.as_bytes();
    let starts_word = at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if !starts_word || !name[at..].starts_with(KEYWORD) {
        return 0;
    }
    let symbol = &name[at + KEYWORD.len()..];
    SYMBOLS.iter().find(|s| symbol.starts_with(**s)).map_or(0, |s| KEYWORD.len() + s.len())
}

/// The name with `<…>` for template arguments and without parameter lists (and what follows the last of them, such as
/// ` const`, but not ` [clone .cold]`).
pub(super) fn without_arguments(name: &str) -> String {
    let arguments = Arguments::of(name);
    let template = arguments.template.iter().map(|pair| (*pair, "<…>".to_owned())).collect();
    arguments.replaced(name, template)
}

impl Arguments {
    /// The name without parameter lists, and with these texts for template arguments and their brackets.
    pub(super) fn replaced(&self, name: &str, template: Vec<(Brackets, String)>) -> String {
        let mut cuts = template;
        cuts.extend(self.parameters.iter().filter(|pair| pair.open > 0).map(|pair| (*pair, String::new())));
        cuts.sort_by_key(|(pair, _)| pair.open);
        let mut bare = String::with_capacity(name.len());
        let mut done = 0;
        for (pair, replacement) in cuts {
            bare.push_str(&name[done..pair.open]);
            bare.push_str(&replacement);
            done = pair.close + 1;
        }
        bare.push_str(name[done..].strip_prefix(" const").unwrap_or(&name[done..]));
        bare
    }
}

/// Which template argument of a wrapper names what runs.
#[derive(Clone, Copy)]
enum Wrapped {
    First,
    Last,
}

/// Wrappers of standard libraries, up to their template arguments.
const WRAPPERS: [(&str, Wrapped); 3] = [
    ("std::_Function_handler<", Wrapped::Last),
    ("std::_Function_base::_Base_manager<", Wrapped::First),
    ("std::__1::__function::__func<", Wrapped::First),
];

/// What a wrapper of the standard library wraps, if the name is one: the wrapper's own name is the same for all.
pub(super) fn wrapped(name: &str) -> Option<&str> {
    let (start, wrapped) = WRAPPERS.into_iter().find(|(start, _)| name.starts_with(start))?;
    let template = Arguments::of(name).template;
    let pair = template.iter().find(|pair| pair.open == start.len() - 1)?;
    let all = parted(&name[pair.open + 1..pair.close]);
    let argument = match wrapped {
        Wrapped::First => all.first(),
        Wrapped::Last => all.last(),
    };
    // The type of a pointer names no function.
    argument.copied().filter(|argument| argument.contains("::") && !argument.contains("*)("))
}

/// Template arguments, parted at commas outside of brackets.
fn parted(inner: &str) -> Vec<&str> {
    let bytes = inner.as_bytes();
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_isize, 0);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                found.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(inner[start..].trim());
    found
}

/// Where the parts of a name without arguments start, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// The qualified name, after the return type.
    pub(super) qualified: usize,
    /// Its last two parts.
    pub(super) last_two: usize,
    /// Its last part.
    pub(super) last: usize,
}

impl Parts {
    pub(super) fn of(bare: &str) -> Self {
        let bytes = bare.as_bytes();
        let mut depth = 0_usize;
        let mut starts = vec![0];
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'o' if depth == 0 && is_operator(bare, at) => break,
                b'(' | b'{' | b'[' => depth += 1,
                b')' | b'}' | b']' => depth = depth.saturating_sub(1),
                // What precedes a space is a return type; what follows may be a remark such as `[clone .cold]`.
                b' ' if depth == 0 && bytes.get(at + 1) != Some(&b'[') => starts = vec![at + 1],
                b':' if depth == 0 && bytes.get(at + 1) == Some(&b':') => {
                    // Rust writes `sort::<T>`: arguments are no part of their own.
                    if bytes.get(at + 2) != Some(&b'<') {
                        starts.push(at + 2);
                    }
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        }
        starts.retain(|&start| start < bytes.len());
        let from_end = |back: usize| starts.get(starts.len().saturating_sub(back)).copied().unwrap_or(0);
        Self { qualified: from_end(starts.len()), last_two: from_end(2), last: from_end(1) }
    }
}

/// Whether an operator's name starts here: it may hold spaces (`operator new`) and brackets.
fn is_operator(name: &str, at: usize) -> bool {
    let bytes = name.as_bytes();
    let starts_word = at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let after = bytes.get(at + "operator".len());
    starts_word
        && name[at..].starts_with("operator")
        && !after.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
