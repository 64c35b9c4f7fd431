//! The documentation names only files, headings and paths that exist.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is two folders up")
}

/// All Markdown pages that users and contributors read.
fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)).to_vec();
    let mut folders = ["docs", "examples", "ground", "marks"].map(|name| root.join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).expect("a folder of the repository").map(|entry| entry.expect("an entry").path())
        {
            match entry.extension() {
                Some(extension) if extension == "md" => pages.push(entry),
                None if entry.is_dir() => folders.push(entry),
                _ => {}
            }
        }
    }
    pages
}

/// The text without fenced code.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let kept = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The anchors of a page's headings, as code hosts make them.
fn anchors(text: &str) -> HashSet<String> {
    let slug = |heading: &str| -> String {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    prose(text)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| slug(line.trim_start_matches('#').trim()))
        .collect()
}

fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).map(str::to_owned).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page is readable");
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if path.is_empty() { page.clone() } else { page.parent().expect("a page is in a folder").join(path) };
            if !target.exists() {
                broken.push(format!("{}: {link}: no such file", page.display()));
            } else if !anchor.is_empty() && target.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&target).expect("a page is readable");
                if !anchors(&text).contains(anchor) {
                    broken.push(format!("{}: {link}: no such heading", page.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_path_in_contributing_exists() {
    let text = fs::read_to_string(repository().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md is readable");
    let quoted = prose(&text);
    let first_words = ["crates", "docs", "fuzz", "web", "benches", "ground", "marks"];
    let is_path = |word: &&str| {
        let first = word.split('/').next().expect("split gives one part");
        word.contains('/') && first_words.contains(&first) && !word.contains(char::is_whitespace)
    };
    let paths: Vec<&str> = quoted.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 20, "the paths are found");
    let missing: Vec<&&str> = paths.iter().filter(|path| !repository().join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(repository().join("README.md")).expect("README.md is readable");
    assert!(text.lines().count() <= 120, "{} lines", text.lines().count());
}
