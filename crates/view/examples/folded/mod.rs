//! Call trees from folded stacks, for examples: no more of the format than drawing needs. `stepscope import` is the real
//! reader.

use std::collections::HashMap;
use std::sync::Arc;

use stepscope_model::{CallNode, CallTree, FrameKind};

/// A node under construction.
struct Branch<'a> {
    name: &'a str,
    parent: u32,
    own: u64,
}

/// Which way stacks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the root to the leaf.
    FromRoot,
    /// From the leaf to the root, without the thread.
    FromLeaf,
}

/// The tree of all stacks; `owned` is what the qualified names of owned functions start with.
pub fn tree_of(folded: &str, source: &str, owned: &str, order: Order) -> CallTree {
    let mut branches = vec![Branch { name: "all", parent: 0, own: 0 }];
    let mut known: HashMap<(u32, &str), u32> = HashMap::new();
    for line in folded.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        let mut frames: Vec<&str> = stack.split(';').collect();
        if order == Order::FromLeaf {
            frames.remove(0);
            frames.reverse();
        }
        let leaf = frames.into_iter().fold(0, |parent, name| {
            *known.entry((parent, name)).or_insert_with(|| {
                branches.push(Branch { name, parent, own: 0 });
                branches.len() as u32 - 1
            })
        });
        branches[leaf as usize].own += count;
    }
    let inverted = order == Order::FromLeaf;
    CallTree {
        title: if inverted { "On-CPU time by callee" } else { "On-CPU time" }.to_owned(),
        subtitle: source.rsplit('/').next().unwrap_or(source).to_owned(),
        unit: "cycles".to_owned(),
        nodes: nodes_of(&branches, owned, inverted),
        inverted,
    }
}

/// The branches as nodes: level by level, siblings by name.
fn nodes_of(branches: &[Branch<'_>], owned: &str, inverted: bool) -> Vec<CallNode> {
    let mut totals: Vec<u64> = branches.iter().map(|branch| branch.own).collect();
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); branches.len()];
    for (index, branch) in branches.iter().enumerate().skip(1).rev() {
        totals[branch.parent as usize] += totals[index];
        children[branch.parent as usize].push(index as u32);
    }
    let mut names: HashMap<&str, Arc<str>> = HashMap::new();
    let empty: Arc<str> = "".into();
    let mut nodes = Vec::with_capacity(branches.len());
    let mut level: Vec<(u32, Option<u32>)> = vec![(0, None)];
    let mut depth = 0;
    while !level.is_empty() {
        let mut next = Vec::new();
        for (index, parent) in level {
            let branch = &branches[index as usize];
            let is_thread = !inverted && depth == 1;
            nodes.push(CallNode {
                parent,
                name: names.entry(branch.name).or_insert_with(|| branch.name.into()).clone(),
                module: empty.clone(),
                source: empty.clone(),
                kind: if depth == 0 || is_thread { FrameKind::Group } else { kind_of(branch.name) },
                owned: depth > 0 && !is_thread && is_owned(branch.name, owned),
                inlined: false,
                total: totals[index as usize],
                own: branch.own,
            });
            let parent = nodes.len() as u32 - 1;
            let mut calls = std::mem::take(&mut children[index as usize]);
            calls.sort_unstable_by_key(|&child| branches[child as usize].name);
            next.extend(calls.into_iter().map(|child| (child, Some(parent))));
        }
        level = next;
        depth += 1;
    }
    nodes
}

fn kind_of(name: &str) -> FrameKind {
    let allocator =
        ["malloc", "_int_malloc", "free", "_int_free", "cfree", "operator new", "operator delete", "realloc", "calloc"];
    if name.starts_with('[') {
        FrameKind::Unknown
    } else if allocator.iter().any(|prefix| name.starts_with(prefix)) {
        FrameKind::Allocator
    } else if ["do_", "sys_", "asm_", "entry_", "__x64_", "sched", "__sched", "_raw_"]
        .iter()
        .any(|p| name.starts_with(p))
    {
        FrameKind::Kernel
    } else if ["std::", "__", "pthread", "mem", "str", "void std::", "bool std::"].iter().any(|p| name.starts_with(p)) {
        FrameKind::Runtime
    } else {
        FrameKind::Native
    }
}

/// Whether the function's qualified name, without template arguments and return type, starts so.
fn is_owned(name: &str, prefix: &str) -> bool {
    let mut depth = 0;
    let bare: String = name
        .chars()
        .take_while(|&character| character != '(')
        .filter(|character| {
            depth += i32::from(*character == '<') - i32::from(*character == '>');
            depth == 0 && *character != '>'
        })
        .collect();
    bare.rsplit(' ').next().unwrap_or(&bare).starts_with(prefix)
}
