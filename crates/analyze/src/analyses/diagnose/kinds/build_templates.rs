//! Templates that many units instantiate, and functions that many units generate code for.
//!
//! Evidence: the CPU time of compilers by template and by function, over all units. Only clang says it. Look-alikes: instantiations with different
//! arguments in each unit, which no explicit instantiation shares.

use stepscope_model::NoteValue;
use stepscope_model::compiler_work::CompilerWork;

use crate::analyses::build::pieces::{Piece, Pieces, again_ns};
use crate::analyses::diagnose::Kind;
use crate::analyses::diagnose::finding::{Confidence, Found, ns};
use crate::analyses::diagnose::gain::Gain;
use crate::analyses::diagnose::seen::Seen;

/// Fewest units.
const FEWEST: usize = 3;

/// Least share of the CPU time in percent.
const LEAST: f64 = 2.0;

/// Most findings of a kind.
const MOST: usize = 2;

fn find(seen: &Seen<'_, '_>, pieces: &Pieces, title: impl Fn(&Piece, &str) -> String) -> Vec<Found> {
    let again = |piece: &Piece| again_ns(piece.cost_ns, piece.units.len());
    let least = pieces.whole_ns as f64 * LEAST / 100.0;
    let is_shared = |piece: &&Piece| piece.units.len() >= FEWEST && piece.intervals.0 > 0 && again(piece) >= least;
    let one = |piece: &Piece| {
        let cost = format!("{} of {} of CPU time", ns(piece.cost_ns as f64), ns(pieces.whole_ns as f64));
        let each = ns(piece.cost_ns as f64 / piece.units.len() as f64);
        let text = format!("clang reports it {} times. A unit spends {each} on it on average.", piece.intervals.0);
        let gain = Gain::of_build_cpu(again(piece), pieces.whole_ns as f64);
        let function = seen.functions().of_frame(piece.frame);
        let found = Found::of_program(title(piece, &cost), Some(gain)).about(Some(function));
        found.sure(Confidence::Fair).because(text, "show --view templates")
    };
    // A name in parentheses or of clang's own is no template.
    let named = pieces.all.iter().filter(is_shared).filter(|piece| &*piece.name != "pending instantiations");
    named.take(MOST).map(one).collect()
}

pub(super) struct Templates;

impl Kind for Templates {
    fn name(&self) -> &'static str {
        "template-instantiated-often"
    }

    fn advice(&self) -> &'static str {
        "Declare the common instantiations `extern template` in the header, and instantiate them in one source."
    }

    fn confirm(&self) -> &'static str {
        "Build with it and `stepscope compare` the two builds."
    }

    fn is_of_builds(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let pieces = Pieces::templates(seen.selection);
        find(seen, &pieces, |piece, cost| {
            let (units, all) = (piece.units.len(), NoteValue::plural(pieces.compiled(), "unit"));
            format!("{units} of {all} instantiate `{}`: {cost}", piece.name)
        })
    }
}

pub(super) struct SharedCode;

impl Kind for SharedCode {
    fn name(&self) -> &'static str {
        "code-generated-often"
    }

    fn advice(&self) -> &'static str {
        "Move the function out of the header into one source, or instantiate its template in one."
    }

    fn confirm(&self) -> &'static str {
        "Build with it and `stepscope compare` the two builds."
    }

    fn is_of_builds(&self) -> bool {
        true
    }

    fn find(&self, seen: &Seen<'_, '_>, _: Option<&Seen<'_, '_>>) -> Vec<Found> {
        let pieces = Pieces::of(seen.selection, CompilerWork::Code, |frame| frame.function.clone());
        find(seen, &pieces, |piece, cost| {
            format!("{} generate code for `{}`: {cost}", NoteValue::plural(piece.units.len(), "unit"), piece.name)
        })
    }
}
