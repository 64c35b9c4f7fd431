//! Names as people write them, from names as linkers need them.
//!
//! The rules, for every source of names alike, so that one function has one name wherever it was found:
//!
//! - C++ (Itanium mangling): the qualified name with template arguments, without return type, parameter list and
//!   qualifiers (`const`, `&`): `gz::sim::v11::SimulationRunner::Step`. A function inside a function keeps the outer
//!   one's name, also without its parameters: `World::Load::{lambda(int)#1}::operator()`. What stands inside template
//!   arguments stays whole.
//! - Rust: the path; the hash of legacy names and the crate disambiguators of v0 names are removed.
//! - Pieces and copies that a compiler makes of a function (`.cold`, `.part.0`, `.isra.0`, `.constprop.0`,
//!   `.lto_priv.0`, `.llvm.123`) are named as the function: they are its code, and debug information calls them so too.
//!   Bodies that a compiler outlines as functions of their own (`._omp_fn.0`) and clones for other processors
//!   (`.avx2`, `.resolver`) keep their suffix.
//! - Symbol versions (`@GLIBC_2.17`, `@@GLIBCXX_3.4`) are removed.
//! - Anything else is shown as it is.

use std::borrow::Cow;

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// The readable name of a linker symbol, by the rules at the head of this module.
///
/// ```
/// use stepscope_symbolize::demangle;
///
/// assert_eq!(demangle("_ZN2gz3sim3v1116SimulationRunner4StepERKNS1_10UpdateInfoE"), "gz::sim::v11::SimulationRunner::Step");
/// assert_eq!(demangle("_ZNKSt6vectorIiSaIiEE4sizeEv.isra.0"), "std::vector<int, std::allocator<int> >::size");
/// assert_eq!(demangle("_ZN3std2rt10lang_start17h0123456789abcdefE"), "std::rt::lang_start");
/// assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
/// ```
pub fn demangle(symbol: &str) -> Cow<'_, str> {
    let symbol = without_version(symbol);
    let base = without_clone_suffixes(symbol);
    if let Ok(rust) = rustc_demangle::try_demangle(base) {
        return Cow::Owned(format!("{rust:#}"));
    }
    if base.starts_with("_Z") || base.starts_with("__Z") {
        return demangle_cpp(base).map_or(Cow::Borrowed(base), Cow::Owned);
    }
    Cow::Borrowed(base)
}

fn without_version(symbol: &str) -> &str {
    match symbol.find('@') {
        Some(at) if at > 0 => &symbol[..at],
        _ => symbol,
    }
}

/// What a compiler appends to the name of a piece or a copy of a function whose code it still is.
const CLONE_SUFFIXES: [&str; 8] = ["cold", "part", "isra", "constprop", "lto_priv", "llvm", "localalias", "unlikely"];

fn without_clone_suffixes(symbol: &str) -> &str {
    let mut end = symbol.len();
    while let Some(dot) = symbol[..end].rfind('.').filter(|&dot| dot > 0) {
        let suffix = &symbol[dot + 1..end];
        if CLONE_SUFFIXES.contains(&suffix) {
            end = dot;
            continue;
        }
        let Some(word) = is_number(suffix).then(|| symbol[..dot].rfind('.')).flatten().filter(|&word| word > 0) else {
            break;
        };
        if !CLONE_SUFFIXES.contains(&&symbol[word + 1..dot]) {
            break;
        }
        end = word;
    }
    &symbol[..end]
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn demangle_cpp(symbol: &str) -> Option<String> {
    let options = DemangleOptions::new().no_params().no_return_type();
    let (mangled, clone) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    let name = BorrowedSymbol::new(mangled.as_bytes()).ok()?.demangle_with_options(&options).ok()?;
    let name = without_parameters(&with_binutils_literals(name));
    Some(if clone.is_empty() { name } else { format!("{name} [clone {clone}]") })
}

/// Literals as binutils and `perf` print them (`4u`, `8ul`), and no trace of empty argument packs, so that names equal
/// those of other tools.
fn with_binutils_literals(name: String) -> String {
    const CASTS: [(&str, &str); 6] = [
        ("(unsigned long long)", "ull"),
        ("(unsigned long)", "ul"),
        ("(unsigned int)", "u"),
        ("(long long)", "ll"),
        ("(long)", "l"),
        ("(int)", ""),
    ];
    if !name.contains(")") && !name.contains(", >") {
        return name;
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(at) = rest.find(['(', ',']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix(", >") {
            out.push('>');
            rest = after;
            continue;
        }
        let cast = CASTS.iter().find_map(|(cast, suffix)| Some((rest.strip_prefix(cast)?, suffix)));
        if let Some((literal, suffix)) = cast {
            let digits = literal.bytes().enumerate().take_while(|&(at, b)| b.is_ascii_digit() || at == 0 && b == b'-');
            let digits = digits.count();
            if digits > 0 {
                out.push_str(&literal[..digits]);
                out.push_str(suffix);
                rest = &literal[digits..];
                continue;
            }
        }
        out.push_str(&rest[..1]);
        rest = &rest[1..];
    }
    out.push_str(rest);
    out
}

/// Removes the parameter lists that are left (those of enclosing functions) and trailing qualifiers, outside template
/// arguments, braces and conversion targets.
fn without_parameters(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut out = String::with_capacity(name.len());
    let mut at = 0;
    let mut kept = 0;
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'o' if starts_operator(name, at) => at = after_operator(name, at),
            b'<' | b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'>' | b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'(' if name[at..].starts_with("(anonymous namespace)") => at += "(anonymous namespace)".len(),
            b'(' => {
                let close = closing_parenthesis(bytes, at);
                if depth > 0 {
                    at = close;
                    continue;
                }
                out.push_str(&name[kept..at]);
                at = after_qualifiers(name, close);
                kept = at;
            }
            b' ' if depth == 0 && after_qualifiers(name, at) == bytes.len() => {
                out.push_str(&name[kept..at]);
                return out;
            }
            _ => at += 1,
        }
    }
    out.push_str(&name[kept..]);
    out
}

fn starts_operator(name: &str, at: usize) -> bool {
    let follows_name = at > 0 && matches!(name.as_bytes()[at - 1], b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9');
    !follows_name
        && name[at..]
            .strip_prefix("operator")
            .is_some_and(|rest| !rest.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric()))
}

/// The end of an operator's name: `operator()`, `operator<<`, `operator new[]`, or of a conversion's target type.
fn after_operator(name: &str, at: usize) -> usize {
    let start = at + "operator".len();
    let rest = &name[start..];
    if let Some(symbol) = ["()", "[]", "->*", "->", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "<", ">"]
        .iter()
        .find(|symbol| rest.starts_with(**symbol))
    {
        return start + symbol.len();
    }
    if let Some(word) =
        [" new[]", " delete[]", " new", " delete", " co_await"].iter().find(|word| rest.starts_with(**word))
    {
        return start + word.len();
    }
    if !rest.starts_with(' ') {
        return start + rest.bytes().take_while(|byte| b"+-*/%^&|~!=,".contains(byte)).count();
    }
    after_conversion_target(name, start)
}

/// A conversion's target type may hold anything; it ends at `::` outside brackets that follow a parameter list, or at
/// the end of the name.
fn after_conversion_target(name: &str, start: usize) -> usize {
    let bytes = name.as_bytes();
    let mut depth = 0_usize;
    for at in start..bytes.len() {
        match bytes[at] {
            b'<' | b'(' | b'{' => depth += 1,
            b'>' | b')' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && name[at..].starts_with(")::") {
            return name[..at].rfind('(').filter(|&open| open > start).unwrap_or(bytes.len());
        }
    }
    match name.strip_suffix(" const") {
        Some(target) if target.len() > start => target.len(),
        _ => bytes.len(),
    }
}

fn closing_parenthesis(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    bytes.len()
}

fn after_qualifiers(name: &str, mut at: usize) -> usize {
    while let Some(qualifier) =
        [" const", " volatile", " &&", " &", " noexcept"].iter().find(|qualifier| name[at..].starts_with(**qualifier))
    {
        let end = at + qualifier.len();
        if !matches!(name.as_bytes().get(end), None | Some(b' ' | b':')) {
            break;
        }
        at = end;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_enclosing_functions_and_qualifiers_are_removed() {
        assert_eq!(demangle("_ZZN2gz3sim3runEiENKUliE0_clEi"), "gz::sim::run::{lambda(int)#2}::operator()");
        assert_eq!(demangle("_ZNK2gz3sim3BoxIiE3getEv.isra.0"), "gz::sim::Box<int>::get");
        assert_eq!(demangle("_ZNKR1A1fEv"), "A::f");
    }

    #[test]
    fn anonymous_namespaces_and_operators_stay() {
        assert_eq!(demangle("_ZN2gz3sim12_GLOBAL__N_14anonEi"), "gz::sim::(anonymous namespace)::anon");
        assert_eq!(demangle("_ZlsRSo1A"), "operator<<");
        assert_eq!(demangle("_ZNK1AclEi"), "A::operator()");
        assert_eq!(demangle("_ZN1AixEi"), "A::operator[]");
        assert_eq!(demangle("_ZNK1AltERKS_"), "A::operator<");
        assert_eq!(demangle("_ZN1AptEv"), "A::operator->");
        assert_eq!(demangle("_Znwm"), "operator new");
        assert_eq!(demangle("_ZdaPv"), "operator delete[]");
    }

    #[test]
    fn conversions_keep_their_target_type() {
        assert_eq!(demangle("_ZNK1AcvbEv"), "A::operator bool");
        assert_eq!(demangle("_ZN1AcvSt8functionIFviEEEv"), "A::operator std::function<void (int)>");
    }

    #[test]
    fn template_arguments_stay_whole() {
        assert_eq!(
            demangle("_ZNSt17_Function_handlerIFiiEZN2gz3sim3runEiEUliE2_E9_M_invokeERKSt9_Any_dataOi.cold"),
            "std::_Function_handler<int (int), gz::sim::run(int)::{lambda(int)#4}>::_M_invoke"
        );
        assert_eq!(
            demangle("_ZN4llvm11SmallVectorINS_5APIntELj1EED2Ev"),
            "llvm::SmallVector<llvm::APInt, 1u>::~SmallVector"
        );
    }

    #[test]
    fn pieces_and_copies_are_named_as_their_function() {
        for suffix in
            [".cold", ".part.0", ".isra.0", ".constprop.12", ".isra.0.cold", ".constprop.0.isra.3", ".llvm.99"]
        {
            assert_eq!(demangle(&format!("solve{suffix}")), "solve");
            assert_eq!(demangle(&format!("_ZN2gz5solveEv{suffix}")), "gz::solve");
        }
        assert_eq!(demangle("solve._omp_fn.0"), "solve._omp_fn.0");
        assert_eq!(demangle("_ZN2gz5solveEv.avx2"), "gz::solve [clone .avx2]");
        assert_eq!(demangle(".cold"), ".cold");
        assert_eq!(demangle("solve.0"), "solve.0");
    }

    #[test]
    fn rust_names_of_both_schemes_lose_their_hashes() {
        assert_eq!(
            demangle("_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h9ce79deb0cbfb67eE"),
            "core::ptr::drop_in_place<alloc::string::String>"
        );
        assert_eq!(demangle("_RNvCskwGfYPst2Cb_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle("_ZN3std2rt10lang_start17h0123456789abcdefE.llvm.1234567890"), "std::rt::lang_start");
    }

    #[test]
    fn what_is_not_mangled_or_damaged_is_shown_as_it_is() {
        for name in ["main", "", "_Z", "_ZN", "_ZNSt", "@", "a b(c)", "日本"] {
            assert_eq!(demangle(name), name);
        }
    }
}
