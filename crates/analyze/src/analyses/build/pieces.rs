//! [`Pieces`]: what compilers worked on, added up over all units.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use stepscope_model::build_command::Kind;
use stepscope_model::compiler_work::CompilerWork;
use stepscope_model::{Capture, Frame, FrameId, StackId};

use super::jobs::Build;
use crate::query::select::Selection;

/// A header, a template or a function, over all units.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub name: Arc<str>,
    /// One of its frames.
    pub frame: FrameId,
    /// CPU time of it and all below it.
    pub cost_ns: u64,
    /// CPU time that belongs to no other piece of its kind.
    pub own_ns: u64,
    /// Processes that worked on it.
    pub units: BTreeSet<usize>,
    /// By the project's header above it: cost and units. None stands for the units themselves.
    pub through: BTreeMap<Option<Arc<str>>, (u64, BTreeSet<usize>)>,
    /// The same where no header of installed software is above it: what sources and headers of the project include themselves.
    pub entry: BTreeMap<Option<Arc<str>>, (u64, BTreeSet<usize>)>,
    /// Intervals that the compiler reported: their number, and the sum of their times.
    pub intervals: (u64, u64),
}

impl Piece {
    fn new(name: Arc<str>, frame: FrameId) -> Self {
        let (units, through, entry) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        Self { name, frame, cost_ns: 0, own_ns: 0, units, through, entry, intervals: (0, 0) }
    }

    /// The header of the project through which most of the cost comes.
    pub fn main_includer(&self) -> (Option<&Arc<str>>, u64, usize) {
        Self::largest(&self.through)
    }

    /// The same of what the project includes itself.
    pub fn main_entry(&self) -> (Option<&Arc<str>>, u64, usize) {
        Self::largest(&self.entry)
    }

    /// Cost and units where the project includes it itself.
    pub fn as_entry(&self) -> (u64, usize) {
        let units: BTreeSet<usize> = self.entry.values().flat_map(|(_, units)| units).copied().collect();
        (self.entry.values().fold(0, |sum, (cost, _)| cost.saturating_add(sum)), units.len())
    }

    fn largest(through: &BTreeMap<Option<Arc<str>>, (u64, BTreeSet<usize>)>) -> (Option<&Arc<str>>, u64, usize) {
        let most = through.iter().max_by_key(|(_, (cost, _))| *cost);
        most.map_or((None, 0, 0), |(name, (cost, units))| (name.as_ref(), *cost, units.len()))
    }
}

/// What compilers worked on.
pub(crate) struct Pieces {
    /// The most expensive first.
    pub all: Vec<Piece>,
    /// CPU time of the whole capture.
    pub whole_ns: u64,
    /// Units that have times.
    pub units: usize,
    /// Units without times.
    pub without: usize,
}

impl Pieces {
    /// All pieces of a kind, by their names.
    pub fn of(selection: &Selection<'_>, work: CompilerWork, name: impl Fn(&Frame) -> Arc<str>) -> Self {
        let capture = selection.capture();
        let kinds = kinds_of_frames(capture);
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        let mut pieces: Vec<Piece> = Vec::new();
        // The piece of each frame.
        let piece_of: Vec<Option<usize>> = (capture.frames.iter().zip(&kinds).enumerate())
            .map(|(index, (frame, kind))| {
                (*kind == Some(work)).then(|| {
                    let name = name(frame);
                    *places.entry(name.clone()).or_insert_with(|| {
                        pieces.push(Piece::new(name, FrameId::from_index(index)));
                        pieces.len() - 1
                    })
                })
            })
            .collect();
        let is_own_header = own_headers(capture, &kinds);
        let mut units = BTreeSet::new();
        let mut whole_ns = 0_u64;
        for sample in selection.samples() {
            whole_ns = whole_ns.saturating_add(sample.weight);
            let Some(process) = capture.threads[sample.thread.index()].process else { continue };
            let path: Vec<FrameId> =
                capture.nodes_of(sample.stack).map(|node: StackId| capture.stacks[node.index()].frame).collect();
            let of_unit = [Some(CompilerWork::FrontEnd), Some(CompilerWork::BackEnd)];
            if path.iter().any(|frame| of_unit.contains(&kinds[frame.index()])) {
                units.insert(process.index());
            }
            let mut is_innermost = true;
            // Each name once, at its outermost place.
            for (index, frame) in path.iter().enumerate() {
                let Some(place) = piece_of[frame.index()] else { continue };
                let is_further_out = |other: &FrameId| piece_of[other.index()] == Some(place);
                let own_ns = if std::mem::take(&mut is_innermost) { sample.weight } else { 0 };
                let again = path[index + 1..].iter().any(is_further_out);
                pieces[place].own_ns = pieces[place].own_ns.saturating_add(own_ns);
                if again {
                    continue;
                }
                let is_header = |frame: &&FrameId| kinds[frame.index()] == Some(CompilerWork::Header);
                let mut headers_above = path[index + 1..].iter().filter(is_header);
                let is_entry = headers_above.clone().all(|frame| is_own_header[frame.index()]);
                let above = headers_above.find(|frame| is_own_header[frame.index()]);
                let above = above.and_then(|frame| Some(pieces[piece_of[frame.index()]?].name.clone()));
                let piece = &mut pieces[place];
                piece.cost_ns = piece.cost_ns.saturating_add(sample.weight);
                piece.units.insert(process.index());
                if work == CompilerWork::Header {
                    let add = |to: &mut BTreeMap<Option<Arc<str>>, (u64, BTreeSet<usize>)>| {
                        let sum = to.entry(above.clone()).or_default();
                        sum.0 = sum.0.saturating_add(sample.weight);
                        sum.1.insert(process.index());
                    };
                    add(&mut piece.through);
                    if is_entry {
                        add(&mut piece.entry);
                    }
                }
            }
        }
        for scope in capture.scopes.iter() {
            let Some((_, detail)) = CompilerWork::of_scope(&scope.name).filter(|(kind, _)| *kind == work) else {
                continue;
            };
            if let Some(&place) = places.get(&name(&Frame::named(detail))) {
                let piece = &mut pieces[place];
                piece.intervals.0 += 1;
                piece.intervals.1 = piece.intervals.1.saturating_add(scope.end_ns - scope.start_ns);
            }
        }
        let mut all: Vec<Piece> = pieces.into_iter().filter(|piece| piece.cost_ns > 0).collect();
        all.sort_by(|a, b| b.cost_ns.cmp(&a.cost_ns).then_with(|| a.name.cmp(&b.name)));
        let build = Build::of(capture);
        let compiles = |kind: Kind| matches!(kind, Kind::Compile | Kind::CompileAndLink);
        let compiled = build.jobs.iter().filter(|job| compiles(job.work.kind)).count();
        Self { all, whole_ns, without: compiled.saturating_sub(units.len()), units: units.len() }
    }

    /// Units that were compiled. Those without times may be too small for the compiler's clock.
    pub fn compiled(&self) -> usize {
        self.units + self.without
    }

    /// Headers, by their paths.
    pub fn headers(selection: &Selection<'_>) -> Self {
        Self::of(selection, CompilerWork::Header, |frame| frame.function.clone())
    }

    /// Templates, by their names without arguments.
    pub fn templates(selection: &Selection<'_>) -> Self {
        Self::of(selection, CompilerWork::Template, |frame| template_name(&frame.function).into())
    }
}

/// The kind of work of each frame.
fn kinds_of_frames(capture: &Capture) -> Vec<Option<CompilerWork>> {
    let modules: Vec<Option<CompilerWork>> =
        capture.modules.iter().map(|module| CompilerWork::of_module(&module.path)).collect();
    capture.frames.iter().map(|frame| frame.module.and_then(|module| modules[module.index()])).collect()
}

/// Which frames are headers that the project can change: no system's or package's.
fn own_headers(capture: &Capture, kinds: &[Option<CompilerWork>]) -> Vec<bool> {
    let is_own = |(frame, kind): (&Frame, &Option<CompilerWork>)| {
        *kind == Some(CompilerWork::Header) && is_of_project(capture, &frame.function)
    };
    capture.frames.iter().zip(kinds).map(is_own).collect()
}

/// What units pay for doing the same work again: all of its cost but once.
pub(crate) fn again_ns(cost_ns: u64, units: usize) -> f64 {
    cost_ns as f64 * (units.saturating_sub(1)) as f64 / units.max(1) as f64
}

/// Whether a file is below the folder of the build, or below no folder of installed software.
pub(crate) fn is_of_project(capture: &Capture, path: &str) -> bool {
    const INSTALLED: [&str; 5] = ["/usr/", "/opt/", "/lib/", "/nix/", "/snap/"];
    let folder = capture.info.working_directory.as_deref().unwrap_or("/");
    let is_below = folder.len() > 1 && path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    is_below || !(INSTALLED.iter().any(|installed| path.starts_with(installed)) || path.contains("/lib/clang/"))
}

/// `std::vector` for `std::vector<int>::push_back`: of a member, the class.
fn template_name(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 && !name[..at].ends_with("operator") => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_named_without_their_arguments() {
        assert_eq!(template_name("std::vector<int>::push_back"), "std::vector");
        assert_eq!(template_name("operator<<int>"), "operator<<int>");
        assert_eq!(template_name("pending instantiations"), "pending instantiations");
    }

    #[test]
    fn installed_headers_are_not_of_the_project_unless_the_build_is_there() {
        let mut capture = Capture::default();
        capture.info.working_directory = Some("/s/build".into());
        assert!(is_of_project(&capture, "/s/src/a.h") && !is_of_project(&capture, "/usr/include/math.h"));
        capture.info.working_directory = Some("/usr/src/x".into());
        assert!(is_of_project(&capture, "/usr/src/x/a.h") && !is_of_project(&capture, "/usr/src/xy/a.h"));
    }
}
