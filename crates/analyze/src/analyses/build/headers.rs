//! The views `headers`, `templates` and `configure`: what compilers and configure steps worked on.
//!
//! The cost of a header is the CPU time of its unit's compiler while it read and parsed the header and all that the header includes, over
//! all units. A header on the stack twice counts once. *included_by* is the nearest header above it that belongs to the project,
//! so that the row names the line to change.
//!
//! clang times headers and templates that take 0.5 ms or more; those below are in the header or unit around them. Its times are wall times. Each
//! unit's are scaled to its CPU time, so that waits for a CPU do not count. *compiler_time* is the sum as clang reports it.
//! GCC times no headers: the time of its front end is divided by how much code each header has.

use std::sync::Arc;

use stepscope_model::compiler_work::CompilerWork;
use stepscope_model::{Columns, Frame, NoteValue, Table, Value, note};

use super::pieces::{Piece, Pieces};
use super::shown;
use crate::query::select::Selection;
use crate::query::weights::percent;

fn share(part: u64, whole: u64) -> Option<f64> {
    percent(u128::from(part), u128::from(whole))
}

/// Says which units have no times, and how to get them.
fn add_missing(table: &mut Table, pieces: &Pieces) {
    if pieces.units == 0 {
        table.note(note!(
            Limit,
            "No compiler said what it worked on; fix: `stepscope build --with-timing -- make`, after `make clean`, and without a cache that \
             answers for the compiler (`CCACHE_DISABLE=1`)."
        ));
    } else if pieces.without > 0 {
        table.note(note!(
            Limit,
            "{} of {} have no times of their compiler: it is one that gives none, or a cache such as ccache answered for it.",
            NoteValue::number(pieces.without as u64),
            NoteValue::plural(pieces.compiled(), "unit"),
        ));
    }
}

/// The table `headers`.
pub fn headers(selection: &Selection<'_>) -> Table {
    let pieces = Pieces::headers(selection);
    let whole_ns = pieces.whole_ns;
    let mut table = Columns::<Piece>::new()
        .text("header", "The included file.", |piece| shown(selection, &piece.name).into())
        .duration("cpu", "CPU time of reading and parsing it, with all that it includes, over all units.", |piece| {
            piece.cost_ns
        })
        .percentage("cpu_share", "In percent of the CPU time of the build.", move |piece| {
            share(piece.cost_ns, whole_ns)
        })
        .count("units", "units", "Units that include it, directly or not.", |piece| piece.units.len() as u64)
        .duration("unit_cpu", "Its cost in a unit, on average.", |piece| {
            piece.cost_ns / piece.units.len().max(1) as u64
        })
        .duration("own", "CPU time without the headers that it includes.", |piece| piece.own_ns)
        .text(
            "included_by",
            "The project's header through which most of its cost comes; missing if units include it.",
            |piece| piece.main_includer().0.map_or(Value::Missing, |name| shown(selection, name).into()),
        )
        .count("included_by_units", "units", "Units that include it through that header.", |piece| {
            let (name, _, units) = piece.main_includer();
            name.map(|_| units as u64)
        })
        .duration("included_by_cpu", "Its cost through that header.", |piece| {
            let (name, cost, _) = piece.main_includer();
            name.map(|_| cost)
        })
        .duration("compiler_time", "The sum of its times as the compiler reports them.", |piece| {
            (piece.intervals.0 > 0).then_some(piece.intervals.1)
        })
        .essential("header cpu units included_by")
        .detail("own compiler_time included_by_cpu")
        .table("headers", "Headers, the most expensive first", &pieces.all);
    add_missing(&mut table, &pieces);
    if let Some(first) = pieces.all.first().filter(|_| pieces.units > 0) {
        table.note(note!(
            Fact,
            "{} costs {} of {} of CPU time: {} of {} parse it.",
            NoteValue::names([shown(selection, &first.name).as_str()], 1),
            NoteValue::ns(first.cost_ns),
            NoteValue::ns(whole_ns),
            NoteValue::number(first.units.len() as u64),
            NoteValue::plural(pieces.compiled(), "unit"),
        ));
    }
    let estimates = selection.capture().info.notes.iter().filter(|note| note.starts_with("GCC does not time"));
    table.add_notes(
        estimates.map(|text| stepscope_model::Note::new(stepscope_model::NoteKind::Limit, text.as_str(), Vec::new())),
    );
    table
}

/// The tables `templates` and `generated_code`.
pub fn templates(selection: &Selection<'_>) -> Vec<Table> {
    let code = Pieces::of(selection, CompilerWork::Code, |frame| frame.function.clone());
    let templates = Pieces::templates(selection);
    let columns = |what: &str, counted: &str, whole_ns: u64| {
        Columns::<Piece>::new()
            .text(what, "Its name.", |piece| (&*piece.name).into())
            .duration("cpu", "CPU time with all that it needs, over all units.", |piece| piece.cost_ns)
            .percentage("cpu_share", "In percent of the CPU time of the build.", move |piece| {
                share(piece.cost_ns, whole_ns)
            })
            .count("units", "units", "Units in which it cost time.", |piece| piece.units.len() as u64)
            .count(counted, "times", "How often the compiler reports it.", |piece| {
                (piece.intervals.0 > 0).then_some(piece.intervals.0)
            })
            .duration("compiler_time", "The sum of its times as the compiler reports them.", |piece| {
                (piece.intervals.0 > 0).then_some(piece.intervals.1)
            })
            .essential(&format!("{what} cpu units"))
            .detail("compiler_time")
    };
    let mut first = columns("template", "instantiations", templates.whole_ns).table(
        "templates",
        "Templates by the cost of their instantiations",
        &templates.all,
    );
    add_missing(&mut first, &templates);
    let second = columns("function", "times_generated", code.whole_ns).table(
        "generated_code",
        "Functions and passes by the cost of their optimisation and code",
        &code.all,
    );
    vec![first, second]
}

/// The tables `configure_commands` and `configure_files`.
pub fn configure(selection: &Selection<'_>) -> Vec<Table> {
    let place = |frame: &Frame| -> Arc<str> {
        let file = frame.file.as_deref().unwrap_or("");
        frame.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")).into()
    };
    let at =
        Pieces::of(selection, CompilerWork::Configure, |frame| format!("{} {}", frame.function, place(frame)).into());
    let files = Pieces::of(selection, CompilerWork::Configure, |frame| frame.file.clone().unwrap_or_else(|| "".into()));
    let frame = |piece: &Piece| &selection.capture().frames[piece.frame.index()];
    let all = at.all.iter().fold(0, |sum: u64, piece| sum.saturating_add(piece.own_ns));
    let mut commands = Columns::<Piece>::new()
        .text("command", "The command, and what it looks for or includes.", move |piece| {
            (&*frame(piece).function).into()
        })
        .duration(
            "cpu",
            "Time with all that it calls: CPU time in a recorded build, else the reported time.",
            |piece| piece.cost_ns,
        )
        .percentage("cpu_share", "In percent of the configure steps.", move |piece| share(piece.cost_ns, all))
        .duration("own", "Time without the commands that it calls.", |piece| piece.own_ns)
        .text("command_place", "File and line.", move |piece| shown(selection, &place(frame(piece))).into())
        .essential("command cpu command_place")
        .table("configure_commands", "Commands of configure steps, the most expensive first", &at.all);
    if at.all.is_empty() {
        commands.note(note!(
            Limit,
            "No configure step said what it did; fix: `stepscope build --with-timing -- cmake -S . -B build` (cmake 3.18 or later)."
        ));
    }
    let files = Columns::<Piece>::new()
        .text("source_file", "The file that has the commands.", |piece| shown(selection, &piece.name).into())
        .duration("cpu", "Time of its commands, with the files that they include.", |piece| piece.cost_ns)
        .percentage("cpu_share", "In percent of the configure steps.", move |piece| share(piece.cost_ns, all))
        .duration("own", "Time of its commands alone.", |piece| piece.own_ns)
        .table("configure_files", "Files of configure steps, the most expensive first", &files.all);
    vec![commands, files]
}
