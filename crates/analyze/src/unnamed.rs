//! Code without names: how much of it there is, what to do about it, and what naming it later gave.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_model::{Capture, Columns, FrameId, Module, Note, NoteValue, Table, note};

use crate::query::frame_kind::is_unnamed;
use crate::query::weights::percent;

/// A note on the module in whose unnamed functions a share of the samples ends, with the remedy.
pub(crate) fn note(capture: &Capture, module_name: &str, share: f64) -> Note {
    let share = NoteValue::percent(share);
    if module_name.starts_with("[jit") {
        return note!(
            Limit,
            "{} of the samples end in generated code without a name. Start the program with its option for perf maps; \
             docs/runtimes.md lists them.",
            share
        );
    }
    let modules = capture.modules.iter().filter(|module| module.name() == module_name);
    let module = modules.max_by_key(|module| module.package.is_some());
    if module.is_some_and(|module| module.path.contains("/valgrind/")) {
        return note!(
            Limit,
            "{} of the samples are in valgrind, which ran the program: this profile does not show what the program costs.",
            share
        );
    }
    let remedy = match module.and_then(debug_package) {
        Some(package) => format!("Install `{package}`"),
        None => "Install its debug symbols, or name a folder that has them with `--debug-dir DIR`".to_owned(),
    };
    match module {
        Some(module) if module.path.starts_with('/') => note!(
            Limit,
            "{} of the samples end in `{}`, in functions without a name. {}, then run `stepscope symbolize CAPTURE`; or \
             ask a server: `DEBUGINFOD_URLS=... stepscope symbolize CAPTURE`.",
            share,
            module_name,
            remedy
        ),
        _ => note!(Limit, "{} of the samples end in `{}`, in functions without a name.", share, module_name),
    }
}

/// The Debian package with the debug symbols of a module.
fn debug_package(module: &Module) -> Option<String> {
    let package = module.package.as_deref()?;
    Some(match package {
        "libc6" => "libc6-dbg".to_owned(),
        package => format!("{package}-dbgsym"),
    })
}

/// What a module's functions and samples have.
#[derive(Debug, Default)]
struct Names<'a> {
    named: BTreeSet<&'a str>,
    unnamed: BTreeSet<&'a str>,
    /// Samples whose leaf has no name.
    unnamed_samples: u64,
}

/// The names of each module, by its path.
fn names_by_module(capture: &Capture) -> BTreeMap<&str, Names<'_>> {
    let mut names: BTreeMap<&str, Names<'_>> = BTreeMap::new();
    let unnamed = |frame: FrameId| {
        let module = capture.module_of(frame)?;
        Some((&*module.path, is_unnamed(capture.function(frame), module.name())))
    };
    for index in 0..capture.frames.len() {
        let frame = FrameId::from_index(index);
        let Some((module, unnamed)) = unnamed(frame) else { continue };
        let names = names.entry(module).or_default();
        let set = if unnamed { &mut names.unnamed } else { &mut names.named };
        set.insert(capture.function(frame));
    }
    for sample in &capture.samples {
        let leaf = capture.frames_of(sample.stack).next();
        if let Some((module, true)) = leaf.and_then(unnamed) {
            names.entry(module).or_default().unnamed_samples += 1;
        }
    }
    names
}

/// A module whose functions lacked names, or still do.
struct Row<'a> {
    module: &'a Module,
    named: u64,
    unnamed: u64,
    samples_before: u64,
    samples: u64,
}

/// The table `naming`: what naming a capture again gave, per module.
pub fn table(before: &Capture, after: &Capture) -> Table {
    let (old, new) = (names_by_module(before), names_by_module(after));
    let mut seen = BTreeSet::new();
    let modules = after.modules.iter().filter(|module| seen.insert(&module.path));
    fn of<'m, 'a>(names: &'m BTreeMap<&str, Names<'a>>, module: &Module, none: &'m Names<'a>) -> &'m Names<'a> {
        names.get(module.path.as_str()).unwrap_or(none)
    }
    let row = |module| {
        let none = Names::default();
        let (old, new) = (of(&old, module, &none), of(&new, module, &none));
        Row {
            module,
            named: new.named.difference(&old.named).count() as u64,
            unnamed: new.unnamed.len() as u64,
            samples_before: old.unnamed_samples,
            samples: new.unnamed_samples,
        }
    };
    let rows: Vec<Row<'_>> = modules.map(row).filter(|row| row.named + row.unnamed + row.samples_before > 0).collect();
    let total = after.samples.len() as u128;
    let share = |samples: u64| percent(samples.into(), total);
    let sum = |of: fn(&Row<'_>) -> u64| rows.iter().map(of).sum::<u64>();
    let (named, unnamed) = (sum(|row| row.named), sum(|row| row.unnamed));
    let (samples_before, samples) = (sum(|row| row.samples_before), sum(|row| row.samples));
    let mut table = Columns::<Row<'_>>::new()
        .text("module", "File with the code.", |row| row.module.name().into())
        .count("functions_named", "functions", "Functions that have a name now and had none.", |row| row.named)
        .count("functions_unnamed", "functions", "Functions that still have none.", |row| row.unnamed)
        .percentage(
            "unnamed_share_before",
            "Samples that ended in its unnamed functions before, in percent of all.",
            move |row| share(row.samples_before),
        )
        .percentage("unnamed_share", "Samples that end in its unnamed functions now, in percent of all.", move |row| {
            share(row.samples)
        })
        .text("build_id", "Its GNU build-id; a file of another build is not used.", |row| {
            row.module.build_id.as_deref().into()
        })
        .essential("module unnamed_share")
        .detail("build_id")
        .table("naming", "Code that had no names", rows);
    table.note(note!(
        Fact,
        "{} named; {} without a name. Samples that end in unnamed functions: {} before, {} now.",
        NoteValue::plural(named as usize, "function"),
        NoteValue::plural(unnamed as usize, "function"),
        NoteValue::percent(share(samples_before).unwrap_or(0.0)),
        NoteValue::percent(share(samples).unwrap_or(0.0))
    ));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn;

    #[test]
    fn functions_and_samples_are_counted_by_module() {
        let before = drawn::columns(
            "
            main                              main
            sumo+0x1230 [lib:/usr/bin/sumo]   sumo+0x4560 [lib:/usr/bin/sumo]
            84                                16
            ",
        );
        let after = drawn::columns(
            "
            main                              main
            step [lib:/usr/bin/sumo]          sumo+0x4560 [lib:/usr/bin/sumo]
            84                                16
            ",
        );
        let table = table(&before, &after);
        let cells: Vec<String> = table.rows[0].iter().take(5).map(|value| format!("{value:?}")).collect();
        assert!(cells[0].contains("sumo"), "{cells:?}");
        assert!(table.notes[0].starts_with("1 function named; 1 function without a name."), "{}", table.notes[0]);
    }

    #[test]
    fn the_package_of_the_file_is_named() {
        let mut capture = Capture::default();
        let package = Some("sumo".to_owned());
        capture.add_module(Module { path: "/usr/bin/sumo".into(), package, ..Module::default() });
        assert_eq!(
            note(&capture, "sumo", 84.0),
            "84.00 % of the samples end in `sumo`, in functions without a name. Install `sumo-dbgsym`, then run `stepscope \
             symbolize CAPTURE`; or ask a server: `DEBUGINFOD_URLS=... stepscope symbolize CAPTURE`."
        );
        assert!(note(&capture, "[jit]", 40.0).contains("generated code"));
        capture.add_module(Module { path: "/usr/libexec/valgrind/memcheck-amd64-linux".into(), ..Module::default() });
        assert!(note(&capture, "memcheck-amd64-linux", 66.0).contains("in valgrind, which ran the program"));
    }
}
