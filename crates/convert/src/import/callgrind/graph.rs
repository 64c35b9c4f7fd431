//! [`Graph`]: the functions of a file, their own costs and their calls.

use std::collections::HashMap;
use std::sync::Arc;

use crate::import::simulated::add;

/// A function of the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub name: Arc<str>,
    pub object: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
}

/// The costs of a function.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Own costs by file and line.
    pub own: Vec<(Option<Arc<str>>, u32, Vec<u64>)>,
    lines: HashMap<(Option<Arc<str>>, u32), usize>,
    /// Called functions with the inclusive costs of the calls.
    pub calls: Vec<(usize, Vec<u64>)>,
    called: HashMap<usize, usize>,
}

/// The call graph of one thread, or of all.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub functions: Vec<Function>,
    pub costs: Vec<Costs>,
    ids: HashMap<Function, usize>,
}

impl Graph {
    pub fn is_empty(&self) -> bool {
        self.costs.iter().all(|costs| costs.own.is_empty())
    }

    pub fn function(&mut self, function: Function) -> usize {
        if let Some(&found) = self.ids.get(&function) {
            return found;
        }
        self.functions.push(function.clone());
        self.costs.push(Costs::default());
        self.ids.insert(function, self.functions.len() - 1);
        self.functions.len() - 1
    }

    pub fn add_own(&mut self, function: usize, file: Option<Arc<str>>, line: u32, cost: &[u64]) {
        let costs = &mut self.costs[function];
        let next = costs.own.len();
        let row = *costs.lines.entry((file.clone(), line)).or_insert(next);
        if row == next {
            costs.own.push((file, line, Vec::new()));
        }
        add(&mut costs.own[row].2, cost);
    }

    pub fn add_call(&mut self, caller: usize, called: usize, cost: &[u64]) {
        let costs = &mut self.costs[caller];
        let next = costs.calls.len();
        let row = *costs.called.entry(called).or_insert(next);
        if row == next {
            costs.calls.push((called, Vec::new()));
        }
        add(&mut costs.calls[row].1, cost);
    }

    /// Groups of functions that call each other in circles, by function. Groups are numbered so that called ones come first.
    ///
    /// Tarjan's algorithm, without recursion: files are untrusted.
    pub fn groups(&self) -> Vec<usize> {
        const UNSEEN: usize = usize::MAX;
        let count = self.costs.len();
        let (mut order, mut low, mut group) = (vec![UNSEEN; count], vec![0; count], vec![UNSEEN; count]);
        let (mut open, mut next, mut groups) = (Vec::new(), 0, 0);
        for start in 0..count {
            if order[start] != UNSEEN {
                continue;
            }
            let mut path = vec![(start, 0)];
            while let Some((function, call)) = path.pop() {
                if call == 0 {
                    (order[function], low[function]) = (next, next);
                    next += 1;
                    open.push(function);
                }
                if let Some(&(called, _)) = self.costs[function].calls.get(call) {
                    path.push((function, call + 1));
                    if order[called] == UNSEEN {
                        path.push((called, 0));
                    } else if group[called] == UNSEEN {
                        low[function] = low[function].min(order[called]);
                    }
                    continue;
                }
                if low[function] == order[function] {
                    while let Some(member) = open.pop() {
                        group[member] = groups;
                        if member == function {
                            break;
                        }
                    }
                    groups += 1;
                }
                if let Some(&(caller, _)) = path.last() {
                    low[caller] = low[caller].min(low[function]);
                }
            }
        }
        group
    }
}
