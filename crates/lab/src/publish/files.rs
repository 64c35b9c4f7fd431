//! The files of a published run.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stepscope_analyze::{Selection, calltree, events};
use stepscope_convert::export::{self, ExportOptions};
use stepscope_model::Table;
use stepscope_view::report::{Block, Report, Section};
use stepscope_view::{Format, Style, flamegraph, parquet, render};

use super::{PublishError, at};
use crate::lab_file::FILE_NAME;
use crate::run::Run;

/// A file of a published run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedFile {
    /// Path from the run's folder.
    pub path: String,
    /// What it is.
    pub title: String,
    /// Its size.
    pub bytes: u64,
}

/// Files in memory, by path. Paths have plain letters only.
#[derive(Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<String, File>,
    /// Paths in the order in which a page lists them.
    order: Vec<String>,
}

#[derive(Debug)]
struct File {
    title: String,
    bytes: Vec<u8>,
}

impl Files {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.bytes.as_slice()))
    }

    /// Path, title and size of each.
    pub fn listed(&self) -> Vec<PublishedFile> {
        let listed = |path: &String| {
            let File { title, bytes } = &self.files[path];
            PublishedFile { path: path.clone(), title: title.clone(), bytes: bytes.len() as u64 }
        };
        self.order.iter().map(listed).collect()
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.files.get(path)?.bytes).ok()
    }

    fn add(&mut self, path: String, title: &str, bytes: Vec<u8>) {
        self.order.push(path.clone());
        self.files.insert(path, File { title: title.to_owned(), bytes });
    }

    pub fn add_page(
        &mut self,
        path: &str,
        title: &str,
        write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> Result<(), PublishError> {
        let mut bytes = Vec::new();
        write(&mut bytes).map_err(at(Path::new(path)))?;
        self.add(path.to_owned(), title, bytes);
        Ok(())
    }

    /// The flame graph and the folded stacks of each capture.
    pub fn add_captures(&mut self, selections: &[Selection<'_>]) -> Result<(), PublishError> {
        for selection in selections.iter().filter(|selection| !selection.capture().samples.is_empty()) {
            let capture = selection.capture();
            let label = labelled(selection);
            let path = self.free("flamegraphs", &label, "svg");
            let tree = calltree::of_samples(selection, &calltree::Options::default());
            let options = flamegraph::Options::default();
            self.add_page(&path, &format!("Flame graph of {label}"), |out| {
                flamegraph::write_svg(&tree, &options, out)
            })?;
            let path = self.free("folded", &label, "folded");
            let evidence = events::primary(capture).map(export::Evidence::Event);
            let options = ExportOptions { evidence, ..ExportOptions::default() };
            self.add_page(&path, &format!("Folded stacks of {label}"), |out| {
                export::write(capture, export::Format::Folded, out, &options).map_err(io::Error::other)
            })?;
        }
        Ok(())
    }

    /// Every table of a report, as TSV and Parquet.
    pub fn add_tables(&mut self, report: &Report, folder: &str) -> Result<(), PublishError> {
        let mut tables = Vec::new();
        report.sections.iter().for_each(|section| collect(section, &[], &mut tables));
        for (sections, table) in tables.into_iter().filter(|(_, table)| !table.rows.is_empty()) {
            let name = [sections.as_slice(), &[table.name.as_str()]].concat().join(" ");
            let above = sections.iter().copied().filter(|section| !table.title.starts_with(section));
            let title = above.chain([table.title.as_str()]).collect::<Vec<_>>().join(": ");
            let path = self.free(folder, &name, "tsv");
            self.add_page(&path, &title, |out| render(table, Format::Tsv, &Style::PLAIN, out))?;
            let path = path.replace(".tsv", ".parquet");
            self.add_page(&path, &title, |out| parquet::write(table, out))?;
        }
        Ok(())
    }

    /// The lab file and the machine.
    pub fn add_run(&mut self, run: Option<&Run>, selections: &[Selection<'_>]) -> Result<(), PublishError> {
        if let Some(lab) = run.map(|run| run.folder().join(FILE_NAME)).filter(|path| path.is_file()) {
            let bytes = std::fs::read(&lab).map_err(at(&lab))?;
            self.add(FILE_NAME.to_owned(), "Lab file", bytes);
        }
        let of_run = run.and_then(|run| run.info()?.machine.as_ref());
        let machine = of_run.or_else(|| selections.iter().find_map(|one| one.capture().info.machine.as_ref()));
        if let Some(machine) = machine {
            let json = serde_json::to_vec_pretty(machine).expect("a machine has only text keys");
            self.add("machine.json".to_owned(), "Machine", json);
        }
        Ok(())
    }

    /// A path that no other file has.
    fn free(&self, folder: &str, name: &str, extension: &str) -> String {
        let name = plain(name);
        let numbered = (2..).map(|number| format!("{folder}/{name}-{number}.{extension}"));
        let mut names = [format!("{folder}/{name}.{extension}")].into_iter().chain(numbered);
        names.find(|path| !self.files.contains_key(path)).expect("some number is free")
    }
}

fn labelled(selection: &Selection<'_>) -> String {
    let info = &selection.capture().info;
    let repetition = info.repetition.map(|number| format!(" #{number}")).unwrap_or_default();
    format!("{}{repetition}", selection.capture().info.name())
}

/// The tables of a section and those within it, with the titles of the sections.
fn collect<'r>(section: &'r Section, above: &[&'r str], tables: &mut Vec<(Vec<&'r str>, &'r Table)>) {
    let path = [above, &[section.title.as_str()]].concat();
    for block in &section.blocks {
        match block {
            Block::Figures(table) | Block::Table(table) => tables.push((path.clone(), table)),
            Block::Chart(chart) => tables.push((path.clone(), &chart.table)),
            // The table of its picture has a block of its own.
            Block::Forest(_) | Block::FlameGraph(..) | Block::Difference(_) => {}
        }
    }
    section.sections.iter().for_each(|inner| collect(inner, &path, tables));
}

/// A name in letters that every file system and host takes.
fn plain(name: &str) -> String {
    const LONGEST: usize = 100;
    let kept: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let joined = kept.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-").to_lowercase();
    if joined.is_empty() { "unnamed".to_owned() } else { joined.chars().take(LONGEST).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_plain_letters_and_no_two_are_alike() {
        let mut files = Files::default();
        for expected in ["a/etc-passwd-b.svg", "a/etc-passwd-b-2.svg", "a/etc-passwd-b-3.svg"] {
            let path = files.free("a", "../../etc/passwd <b>", "svg");
            assert_eq!(path, expected);
            files.add(path, "", Vec::new());
        }
        assert_eq!(files.free("a", "größe", "svg"), "a/gr-e.svg");
        assert_eq!(files.free("a", "…", "svg"), "a/unnamed.svg");
    }
}
