//! Words for kinds of errors, the same for all checkers.

/// The kind of an error of valgrind. `about` is what it says of the address.
pub(super) fn of_valgrind(kind: &str, about: &str) -> String {
    let is_freed = about.contains("free'd");
    let is_beside = about.contains("after a block") || about.contains("before a block");
    match kind {
        "InvalidRead" | "InvalidWrite" if is_freed => "use after free",
        "InvalidRead" | "InvalidWrite" if is_beside => "heap buffer overflow",
        "InvalidRead" => "invalid read",
        "InvalidWrite" => "invalid write",
        "InvalidJump" => "invalid jump",
        "UninitCondition" | "UninitValue" => "uninitialised value",
        "SyscallParam" | "ClientCheck" => "bad argument of a system call",
        "InvalidFree" if is_freed => "double free",
        "InvalidFree" => "invalid free",
        "MismatchedFree" => "mismatched free",
        "Overlap" => "overlapping copy",
        "Leak_DefinitelyLost" | "Leak_IndirectlyLost" => "leak",
        "Leak_PossiblyLost" => "possible leak",
        "Leak_StillReachable" => "live at exit",
        "Race" => "data race",
        other => return words(other),
    }
    .to_owned()
}

/// The kind of an error of a sanitizer but UBSan: the word after its name.
pub(super) fn of_sanitizer(kind: &str) -> String {
    match kind {
        "heap-use-after-free" => "use after free",
        "attempting double-free" | "double-free" => "double free",
        "attempting free" | "bad-free" => "invalid free",
        "alloc-dealloc-mismatch" => "mismatched free",
        "use-of-uninitialized-value" => "uninitialised value",
        "SEGV" | "BUS" => "invalid access",
        "lock-order-inversion" => "lock order inversion",
        "memcpy-param-overlap" | "strcpy-param-overlap" => "overlapping copy",
        other => return words(other),
    }
    .to_owned()
}

/// The kind of an error of UBSan, by its message.
pub(super) fn of_undefined_behaviour(message: &str) -> String {
    let kinds = [
        ("signed integer overflow", "signed overflow"),
        ("unsigned integer overflow", "unsigned overflow"),
        ("negation of", "signed overflow"),
        ("shift exponent", "bad shift"),
        ("left shift", "bad shift"),
        ("division by zero", "division by zero"),
        ("out of bounds", "index out of bounds"),
        ("insufficient space", "index out of bounds"),
        ("null pointer", "null pointer"),
        ("misaligned address", "misaligned address"),
        ("not a valid value", "invalid value"),
        ("does not point to an object", "wrong object"),
        ("unreachable program point", "unreachable code"),
        ("without returning a value", "missing return"),
        ("pointer index expression", "pointer overflow"),
        ("outside the range of representable values", "conversion overflow"),
    ];
    let found = kinds.iter().find(|(text, _)| message.contains(text));
    found.map_or("undefined behaviour", |(_, kind)| kind).to_owned()
}

/// `PossibleLeak` and `heap-buffer-overflow` in lower-case words.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.trim().chars() {
        match letter {
            '_' | '-' => words.push(' '),
            letter if letter.is_ascii_uppercase() => {
                if words.chars().last().is_some_and(|last| last.is_ascii_lowercase()) {
                    words.push(' ');
                }
                words.push(letter.to_ascii_lowercase());
            }
            letter => words.push(letter),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkers_share_words() {
        assert_eq!(
            of_valgrind("InvalidWrite", "Address 0x1 is 8 bytes inside a block of size 40 free'd"),
            "use after free"
        );
        assert_eq!(of_sanitizer("heap-use-after-free"), "use after free");
        assert_eq!(of_valgrind("InvalidRead", "is 0 bytes after a block of size 10 alloc'd"), "heap buffer overflow");
        assert_eq!(of_sanitizer("heap-buffer-overflow"), "heap buffer overflow");
        assert_eq!(of_valgrind("UnlockBogus", ""), "unlock bogus");
        assert_eq!(of_undefined_behaviour("load of misaligned address 0x1"), "misaligned address");
        assert_eq!(of_undefined_behaviour("something new"), "undefined behaviour");
    }
}
