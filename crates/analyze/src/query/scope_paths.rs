//! The scopes that a thread is in at a moment, outermost first.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, Scope, ThreadId};

/// A path of scopes, as an index of [`ScopePaths::names`]. 0 is that of no scope.
pub type PathId = u32;

/// The scopes of a capture by thread and time.
#[derive(Debug, Clone, Default)]
pub struct ScopePaths {
    names: Vec<Vec<Arc<str>>>,
    /// By thread: moments from which on it is on a path, in order.
    changes: FxHashMap<ThreadId, Vec<(u64, PathId)>>,
}

impl ScopePaths {
    /// All scopes of a capture. A scope that outlasts the one around it goes on by itself.
    pub fn of(capture: &Capture) -> Self {
        let mut paths = Self { names: vec![Vec::new()], changes: FxHashMap::default() };
        let mut ids: FxHashMap<Vec<Arc<str>>, PathId> = FxHashMap::from_iter([(Vec::new(), 0)]);
        let mut scopes: Vec<&Scope> = capture.scopes.iter().collect();
        scopes.sort_by_key(|scope| (scope.thread, scope.start_ns, scope.depth));
        for of_thread in scopes.chunk_by(|a, b| a.thread == b.thread) {
            let mut changes = Vec::with_capacity(2 * of_thread.len());
            let mut open: Vec<&Scope> = Vec::new();
            let mut on = |time_ns: u64, open: &[&Scope], names: &mut Vec<Vec<Arc<str>>>| {
                let path: Vec<Arc<str>> = open.iter().map(|scope| scope.name.clone()).collect();
                let id = *ids.entry(path).or_insert_with_key(|path| {
                    names.push(path.clone());
                    names.len() as PathId - 1
                });
                changes.push((time_ns, id));
            };
            for scope in of_thread {
                while let Some(end_ns) = open.iter().map(|open| open.end_ns).min().filter(|end| *end <= scope.start_ns)
                {
                    open.retain(|open| open.end_ns > end_ns);
                    on(end_ns, &open, &mut paths.names);
                }
                open.push(scope);
                on(scope.start_ns, &open, &mut paths.names);
            }
            while let Some(end_ns) = open.iter().map(|open| open.end_ns).min() {
                open.retain(|open| open.end_ns > end_ns);
                on(end_ns, &open, &mut paths.names);
            }
            paths.changes.insert(of_thread[0].thread, changes);
        }
        paths
    }

    /// The path that a thread is on at a moment; one that begins then is it, one that ends then is not.
    pub fn at(&self, thread: ThreadId, time_ns: u64) -> PathId {
        let Some(changes) = self.changes.get(&thread) else { return 0 };
        let after = changes.partition_point(|(from_ns, _)| *from_ns <= time_ns);
        after.checked_sub(1).map_or(0, |last| changes[last].1)
    }

    /// The names of each path, outermost first.
    pub fn names(&self) -> &[Vec<Arc<str>>] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_at(scopes: &[(&str, u64, u64)], time_ns: u64) -> String {
        let mut capture = Capture::default();
        let thread = capture.add_thread_named("main");
        for (name, start_ns, end_ns) in scopes {
            let name = capture.intern_text(name);
            capture.scopes.push(Scope { thread, name, start_ns: *start_ns, end_ns: *end_ns, depth: 0 });
        }
        let paths = ScopePaths::of(&capture);
        paths.names()[paths.at(thread, time_ns) as usize].join("/")
    }

    #[test]
    fn a_moment_is_in_the_scopes_that_began_and_are_not_over() {
        let scopes = [("step", 10, 100), ("physics", 20, 60), ("solve", 30, 50), ("render", 60, 90)];
        let at = |time_ns| path_at(&scopes, time_ns);
        assert_eq!([at(5), at(10), at(29), at(30)], ["", "step", "step/physics", "step/physics/solve"]);
        assert_eq!([at(50), at(60), at(95), at(100)], ["step/physics", "step/render", "step", ""]);
    }

    #[test]
    fn a_scope_that_outlasts_the_one_around_it_goes_on_alone() {
        let scopes = [("frame", 10, 40), ("load", 30, 60)];
        assert_eq!([35, 45].map(|time_ns| path_at(&scopes, time_ns)), ["frame/load", "load"]);
    }
}
