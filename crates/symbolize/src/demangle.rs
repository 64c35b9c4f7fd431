//! Readable names from linker symbols.
//!
//! The rules hold for every source of names, so that a function has the same name wherever it was found:
//!
//! - C++ (Itanium mangling): the qualified name with template arguments, without return type, parameter list and
//!   qualifiers (`const`, `&`): `gz::sim::v11::SimulationRunner::Step`. A function inside another keeps the outer name,
//!   also without parameters: `World::Load::{lambda(int)#1}::operator()`. Template arguments are not shortened.
//! - Rust: the path, without the hash of legacy names and the crate disambiguators of v0 names.
//! - Parts and copies of a function that the compiler makes (`.cold`, `.part.0`, `.isra.0`, `.constprop.0`,
//!   `.lto_priv.0`, `.llvm.123`) have the function's name, as in debug information.
//!   Outlined bodies (`._omp_fn.0`) and clones for other CPUs (`.avx2`, `.resolver`) keep their suffix.
//! - Symbol versions (`@GLIBC_2.17`, `@@GLIBCXX_3.4`) are removed.
//! - Anything else stays as it is.

use std::borrow::Cow;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

/// Returns the readable name of a linker symbol.
///
/// C++ names have no return type, parameters or qualifiers; Rust names have no hash; suffixes of parts that the compiler
/// split off (`.cold`, `.isra.0`) and symbol versions are removed.
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
    if is_rust(base)
        && let Ok(rust) = rustc_demangle::try_demangle(base)
    {
        return Cow::Owned(format!("{rust:#}"));
    }
    if base.starts_with("_Z") || base.starts_with("__Z") {
        return demangle_cpp(base).map_or(Cow::Borrowed(base), Cow::Owned);
    }
    Cow::Borrowed(base)
}

/// Whether a symbol is Rust's: by the prefix of v0 names, or the hash that ends legacy names. Without the hash, legacy
/// names look like those of C++ variables.
fn is_rust(symbol: &str) -> bool {
    const HASH: &str = "17h0123456789abcdefE";
    symbol.starts_with("_R")
        || symbol.len().checked_sub(HASH.len()).is_some_and(|at| symbol.as_bytes()[at..].starts_with(b"17h"))
}

fn without_version(symbol: &str) -> &str {
    match symbol.find('@') {
        Some(at) if at > 0 => &symbol[..at],
        _ => symbol,
    }
}

/// Suffixes of parts and copies that the compiler makes of a function.
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

/// Nesting of types that the parser follows. Its default, 96, is too little for names of expression templates.
const MAX_NESTING: u32 = 256;

fn demangle_cpp(symbol: &str) -> Option<String> {
    let (mangled, clone) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    let parse_options = ParseOptions::default().recursion_limit(MAX_NESTING);
    let (parsed, rest) = BorrowedSymbol::with_tail_and_options(mangled.as_bytes(), &parse_options).ok()?;
    if !rest.is_empty() && !has_type_scope(rest) {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(MAX_NESTING);
    let name = parsed.demangle_with_options(&options).ok()?;
    let name = without_parameters(&with_binutils_literals(name));
    Some(if clone.is_empty() { name } else { format!("{name} [clone {clone}]") })
}

/// Whether a mangled type has an expression whose scope is a whole type (`srSt9__is_byteIT_E7__value`).
///
/// GCC writes such scopes, in the `enable_if` of a return type for example; the Itanium ABI and the parser allow less.
/// They follow the function's name, so the name is complete without them.
fn has_type_scope(mangled_types: &[u8]) -> bool {
    mangled_types.windows(2).any(|pair| pair == b"sr")
}

/// Writes literals as binutils and `perf` do (`4u`, `8ul`) and removes empty argument packs, so that names equal those
/// of other tools.
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

/// Removes parameter lists of enclosing functions and trailing qualifiers. Template arguments, braces and conversion
/// targets stay as they are.
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

/// Returns the end of an operator's name: `operator()`, `operator<<`, `operator new[]`, `operator int`.
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

/// Returns the end of a conversion's target type. It ends before a parameter list followed by `::`, or with the name.
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

    /// These return or take `enable_if<X<T>::value>`; GCC mangles the scope `X<T>` as a whole type.
    #[test]
    fn types_as_scopes_do_not_hide_the_name() {
        for (symbol, name) in [
            (
                "_ZSt9__fill_a1IhEN9__gnu_cxx11__enable_ifIXsrSt9__is_byteIT_E7__valueEvE6__typeEPS3_S7_RKS3_",
                "std::__fill_a1<unsigned char>",
            ),
            (
                "_ZSteqIcEN9__gnu_cxx11__enable_ifIXsrSt9__is_charIT_E7__valueEbE6__typeERKSbIS3_St11char_traitsIS3_ESaIS3_EESC_",
                "std::operator==<char>",
            ),
            (
                "_ZN2wi3absISt4pairIP7rtx_def12machine_modeEEENS_13binary_traitsIT_S7_XsrNS_10int_traitsIS7_EE14precision_typeEXsrS9_14precision_typeEE11result_typeERKS7_.part.0",
                "wi::abs<std::pair<rtx_def*, machine_mode> >",
            ),
            (
                "_Z10multiple_pILj1ElilEN10if_nonpolyIT1_bXsr15poly_int_traitsIS1_E7is_polyEE4typeERK12poly_int_podIXT_ET0_ES1_PS6_IXT_ET2_E",
                "multiple_p<1u, long, int, long>",
            ),
        ] {
            assert_eq!(demangle(symbol), name);
        }
    }

    #[test]
    fn an_unknown_suffix_is_not_taken_for_parameters() {
        assert_eq!(demangle("_ZN2gz5solveEv_wrapped"), "_ZN2gz5solveEv_wrapped");
    }

    #[test]
    fn deeply_nested_template_arguments_are_demangled() {
        let deep = |levels| format!("_ZN4llvm5matchI{}i{}EEbv", "NS_3NotI".repeat(levels), "EE".repeat(levels));
        let name = demangle(&deep(25)).into_owned();
        assert!(name.starts_with("llvm::match<llvm::Not<llvm::Not<"), "{name}");
        assert_eq!(demangle(&deep(10_000)), deep(10_000));
    }

    #[test]
    fn variables_of_cpp_are_not_taken_for_rust() {
        assert_eq!(demangle("_ZN12_GLOBAL__N_111BarrierNoop2IDE"), "(anonymous namespace)::BarrierNoop::ID");
    }

    #[test]
    fn parts_and_copies_have_the_name_of_their_function() {
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
    fn unmangled_and_damaged_names_stay() {
        for name in ["main", "", "_Z", "_ZN", "_ZNSt", "@", "a b(c)", "日本"] {
            assert_eq!(demangle(name), name);
        }
    }
}
