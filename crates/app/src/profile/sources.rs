//! The table `sources`: the text of the source files that carry the most cost.
//!
//! A capture may come from a stranger, and its frames may name any file. So only regular files with the extension of a
//! programming language are read, and only if they have the lines that the frames name.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_analyze::weights::StackWeights;
use stepscope_model::{Frame, StackId};

use super::Profile;
use crate::parquet_table::ParquetTable;

/// Extensions of source files.
const EXTENSIONS: [&str; 22] = [
    "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "inl", "ipp", "tcc", "rs", "py", "pyx", "f", "f90", "go",
    "java", "jl", "zig", "cu",
];

/// Largest file that is read.
const LARGEST: u64 = 1 << 20;

/// Files that are tried.
const MOST_FILES: usize = 200;

/// What stacks say about a file.
#[derive(Default)]
struct Claim {
    owned: bool,
    weight: u128,
    last_line: u32,
}

pub(super) fn table(profile: &Profile<'_>) -> ParquetTable {
    let mut files: Vec<(&str, Claim)> = claims(profile).into_iter().collect();
    files.sort_by(|(a, of_a), (b, of_b)| (of_b.owned, of_b.weight, a).cmp(&(of_a.owned, of_a.weight, b)));
    let (mut names, mut texts): (Vec<Arc<str>>, Vec<Arc<str>>) = (Vec::new(), Vec::new());
    let mut left = profile.limits().sources;
    for (name, claim) in files.into_iter().take(MOST_FILES) {
        let Some(text) = read(Path::new(name), claim.last_line).filter(|text| text.len() <= left) else { continue };
        left -= text.len();
        names.push(name.into());
        texts.push(text.into());
    }
    ParquetTable::new().texts("file", names).texts("text", texts)
}

/// The files of leaf frames and of the nearest frames that costs are attributed to, with the weight of their stacks.
fn claims<'a>(profile: &Profile<'a>) -> FxHashMap<&'a str, Claim> {
    let (capture, functions) = (profile.capture(), profile.selection().functions());
    let mut claims: FxHashMap<&str, Claim> = FxHashMap::default();
    let own = [StackWeights::of_samples(profile.selection()).own, StackWeights::of_blocked(profile.selection()).own];
    for own in own {
        for (index, amount) in own.iter().enumerate().filter(|(_, amount)| amount.weight > 0) {
            let mut frames = capture.frames_of(Some(StackId::from_index(index)));
            let leaf = frames.next();
            let nearest = leaf.into_iter().chain(frames).find(|frame| functions.is_owner(functions.of_frame(*frame)));
            for (frame, owned) in [(leaf, false), (nearest, true)] {
                let Some(Frame { file: Some(file), line, .. }) = frame.map(|frame| &capture.frames[frame.index()])
                else {
                    continue;
                };
                let claim = claims.entry(file).or_default();
                claim.owned |= owned;
                claim.weight += amount.weight;
                claim.last_line = claim.last_line.max(line.unwrap_or(0));
            }
        }
    }
    claims
}

/// The text of a source file; `None` if it is anything else.
fn read(path: &Path, last_line: u32) -> Option<String> {
    let extension = path.extension()?.to_str()?.to_lowercase();
    if !path.is_absolute() || !EXTENSIONS.contains(&extension.as_str()) {
        return None;
    }
    let is_small_file = fs::metadata(path).ok().is_some_and(|file| file.is_file() && file.len() <= LARGEST);
    if !is_small_file {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    (!text.contains('\0') && text.lines().count() >= last_line as usize).then_some(text)
}
