//! The program was built without optimisation, or with checks that slow it down.
//!
//! Evidence: time in functions of the standard library that an optimising compiler always inlines (`operator*`, `begin`,
//! `get`) and that stand here as calls; in containers with debug checks; in a sanitizer's run-time library. A profile of such a build
//! does not say what the optimised program does.

use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, percent};
use crate::analyses::diagnose::seen::Seen;
use crate::query::qualified_name::own_name;
use crate::query::weights::Amount;
use stepscope_model::FrameId;

/// Least share of CPU time in such functions, and the share from which all of the program was built so.
const LEAST: f64 = 3.0;
const MUCH: f64 = 8.0;

/// Fewest such functions.
const FEWEST: usize = 3;

pub(super) struct Unoptimised;

impl Kind for Unoptimised {
    fn name(&self) -> &'static str {
        "slow-build"
    }

    fn advice(&self) -> &'static str {
        "Build with optimisation and debug information (`-O2 -g`, `RelWithDebInfo`, `cargo build --release`), without sanitizers and debug containers; then record again."
    }

    fn confirm(&self) -> &'static str {
        "See the compiler's flags, e.g. `CMAKE_BUILD_TYPE` in `CMakeCache.txt`."
    }

    fn changes_all_costs(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let capture = seen.capture();
        let reason: Vec<Option<Reason>> = capture
            .frames
            .iter()
            .map(|frame| {
                let module = frame.module.map_or("", |module| capture.modules[module.index()].name());
                Reason::of(&own_name(&frame.function), module, frame.inlined)
            })
            .collect();
        let mut found = Vec::new();
        for (wanted, title) in [
            (Reason::NotInlined, "The program was built without optimisation"),
            (Reason::Checked, "The program was built with debug containers"),
            (Reason::Sanitizer, "The program was built with a sanitizer"),
        ] {
            let (mut amount, mut functions) = (Amount::default(), Vec::new());
            for (stack, own) in seen.cpu.occupied() {
                let frame: FrameId = capture.stacks[stack.index()].frame;
                if reason[frame.index()] == Some(wanted) {
                    amount += own;
                    functions.push(seen.functions().of_frame(frame));
                }
            }
            functions.sort_unstable();
            functions.dedup();
            let enough = wanted != Reason::NotInlined || functions.len() >= FEWEST;
            if seen.share(amount) >= LEAST && enough {
                let text = format!(
                    "{} of the CPU time is in {} such functions.",
                    percent(seen.share(amount)),
                    functions.len()
                );
                // One library that was built so changes little.
                let is_all = wanted != Reason::NotInlined || seen.share(amount) >= MUCH;
                let confidence = if is_all { Confidence::Strong } else { Confidence::Fair };
                found
                    .push(Found::of_program(title.to_owned(), None).sure(confidence).because(text, "show --sort self"));
            }
        }
        found
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    NotInlined,
    Checked,
    Sanitizer,
}

impl Reason {
    fn of(own: &str, module: &str, inlined: bool) -> Option<Self> {
        const SANITIZERS: [&str; 5] = ["__asan_", "__tsan_", "__ubsan_", "__msan_", "__sanitizer_"];
        const LIBRARIES: [&str; 5] = ["libasan", "libtsan", "libubsan", "liblsan", "libmsan"];
        const TRIVIAL: [&str; 16] = [
            "::operator*",
            "::operator->",
            "::operator[]",
            "::operator++",
            "::operator!=",
            "::operator==",
            "::operator-",
            "::begin",
            "::end",
            "::size",
            "::get",
            "::base",
            "std::move",
            "std::forward",
            "std::__addressof",
            "::_M_get_Tp_allocator",
        ];
        const RUST: [&str; 6] =
            ["core::ptr::", "core::cmp::impls::", "core::num::", "core::mem::", "core::ops::", "core::slice::iter::"];
        if LIBRARIES.iter().any(|start| module.starts_with(start))
            || SANITIZERS.iter().any(|start| own.starts_with(start))
        {
            return Some(Self::Sanitizer);
        }
        if own.starts_with("__gnu_debug::") || own.starts_with("std::__debug::") {
            return Some(Self::Checked);
        }
        let standard = own.starts_with("std::") || own.starts_with("__gnu_cxx::");
        let trivial = standard && TRIVIAL.iter().any(|part| own.ends_with(part));
        let rust = RUST.iter().any(|start| own.starts_with(start));
        (!inlined && (trivial || rust)).then_some(Self::NotInlined)
    }
}
