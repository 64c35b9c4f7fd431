//! [`Categories`]: what part of a system each sample belongs to: an executor, a wait set, receiving threads, your rules.
//!
//! A graph of processes spends its time in layers: user code, a client library, middleware, the kernel. Each sample
//! belongs to exactly one category, so shares add up to 100 %. The first of these that applies decides:
//!
//! 1. A [rule of the lab file](CategoryRule), in their order. Its function or module may be anywhere on the stack, so it
//!    takes all that its functions call.
//! 2. A built-in rule on the thread's name, if code of the rule's [set](sets::SETS) is in the capture: `tev` is a
//!    thread of CycloneDDS only in a program that has CycloneDDS.
//! 3. From the leaf to the root, the first frame that a built-in rule knows, that is an allocator's or that is Python's.
//!    Frames of the kernel, of run-time libraries and without a name are passed over; other code ends the search.
//! 4. The [kind of code](crate::query::frame_kind) of the leaf; `unknown` without a stack.

pub mod sets;

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stepscope_model::{Capture, FrameKind, StackId, ThreadId};

use self::sets::{BuiltIn, Set};
use crate::query::functions::{FunctionId, Functions};
use crate::query::pattern::Pattern;
use crate::query::process_label::process_name;
use crate::query::qualified_name::own_name;

/// Most rules of a lab file.
pub const MOST_RULES: usize = 64;

/// A rule of a lab file's `[categories]`. Conditions that are given must all hold; patterns of one are alternatives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CategoryRule {
    /// The category.
    pub name: String,
    /// Command lines, program names or [labels](crate::query::process_label) of the process.
    pub processes: Vec<Pattern>,
    /// Names of the thread.
    pub threads: Vec<Pattern>,
    /// Full names or own qualified names of functions, anywhere on the stack.
    pub functions: Vec<Pattern>,
    /// File names of modules, anywhere on the stack.
    pub modules: Vec<Pattern>,
}

/// Which categories there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CategoryRules {
    /// The user's, in their order.
    pub rules: Vec<CategoryRule>,
    /// Names of the built-in sets to use; all of them if absent.
    pub sets: Option<BTreeSet<String>>,
}

impl CategoryRules {
    fn uses(&self, set: &Set) -> bool {
        self.sets.as_ref().is_none_or(|sets| sets.contains(set.name))
    }
}

/// A category of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CategoryId(u16);

impl CategoryId {
    /// The row's index.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The categories of a capture's samples.
#[derive(Debug)]
pub struct Categories {
    names: Vec<Arc<str>>,
    /// Of each rule of the user its category.
    of_rule: Vec<CategoryId>,
    /// Of each thread the rules of the user that it satisfies, a bit each.
    thread_rules: Vec<u64>,
    /// Of each node, and last of no stack, the rules of the user that it satisfies.
    stack_rules: Vec<u64>,
    /// Of each thread the built-in category that its name decides.
    of_thread: Vec<Option<CategoryId>>,
    /// Of each node, and last of no stack, the category that steps 3 and 4 decide.
    of_stack: Vec<CategoryId>,
}

impl Categories {
    /// The categories of a capture. `labels` are those of its processes.
    pub fn of(capture: &Capture, functions: &Functions, labels: &[String], rules: &CategoryRules) -> Self {
        let mut names = Names::default();
        let given = &rules.rules[..rules.rules.len().min(MOST_RULES)];
        let of_rule = given.iter().map(|rule| names.id(&rule.name)).collect();
        let built_in = BuiltInRules::of(functions, rules);
        let of_thread = capture.threads.iter().map(|thread| Some(names.id(built_in.of_thread(&thread.name)?)));
        let of_thread = of_thread.collect();
        Self {
            of_rule,
            thread_rules: thread_rules(capture, labels, given),
            stack_rules: stack_rules(capture, functions, given),
            of_thread,
            of_stack: of_stacks(capture, functions, &built_in, &mut names),
            names: names.names,
        }
    }

    /// The category of a sample.
    pub fn at(&self, thread: ThreadId, stack: Option<StackId>) -> CategoryId {
        let row = stack.map_or(self.of_stack.len() - 1, StackId::index);
        let rules = self.thread_rules[thread.index()] & self.stack_rules[row];
        if rules != 0 {
            return self.of_rule[rules.trailing_zeros() as usize];
        }
        self.of_thread[thread.index()].unwrap_or(self.of_stack[row])
    }

    /// The names of all categories, by id.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.names.iter()
    }

    /// The name of a category.
    pub fn name(&self, category: CategoryId) -> &Arc<str> {
        &self.names[category.index()]
    }

    /// The number of categories.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names of the rules' categories, each once, in the order of the rules.
    pub fn of_rules(&self) -> impl Iterator<Item = CategoryId> {
        let most = self.of_rule.iter().map(|id| id.0 + 1).max().unwrap_or(0);
        (0..most).map(CategoryId)
    }
}

/// Names of categories, each once.
#[derive(Default)]
struct Names {
    names: Vec<Arc<str>>,
    rows: FxHashMap<Arc<str>, CategoryId>,
}

impl Names {
    fn id(&mut self, name: &str) -> CategoryId {
        if let Some(id) = self.rows.get(name) {
            return *id;
        }
        let (id, name) = (CategoryId(self.names.len() as u16), Arc::<str>::from(name));
        self.names.push(name.clone());
        self.rows.insert(name, id);
        id
    }
}

fn any(patterns: &[Pattern], names: &[&str]) -> bool {
    names.iter().any(|name| patterns.iter().any(|pattern| pattern.matches(name)))
}

fn bits(rules: &[CategoryRule], holds: impl Fn(&CategoryRule) -> bool) -> u64 {
    rules.iter().enumerate().fold(0, |bits, (index, rule)| bits | u64::from(holds(rule)) << index)
}

/// Which rules' conditions on threads and processes hold, for each thread.
fn thread_rules(capture: &Capture, labels: &[String], rules: &[CategoryRule]) -> Vec<u64> {
    let of_thread = |thread: &stepscope_model::Thread| {
        let process = thread.process.map(|id| (&capture.processes[id.index()], labels[id.index()].as_str()));
        bits(rules, |rule| {
            let of_process = process
                .is_some_and(|(one, label)| any(&rule.processes, &[&one.command_line, process_name(one), label]));
            (rule.processes.is_empty() || of_process)
                && (rule.threads.is_empty() || any(&rule.threads, &[&thread.name]))
        })
    };
    capture.threads.iter().map(of_thread).collect()
}

/// Which rules' conditions on code hold, for each node and last for no stack.
fn stack_rules(capture: &Capture, functions: &Functions, rules: &[CategoryRule]) -> Vec<u64> {
    let on_code = |rule: &CategoryRule| !rule.functions.is_empty() || !rule.modules.is_empty();
    let mut of_stack = vec![bits(rules, |rule| !on_code(rule)); capture.stacks.len() + 1];
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| on_code(rule)) {
        let through = |matches: &dyn Fn(FunctionId) -> bool| {
            let flags: Vec<bool> = functions.all().map(|(id, _)| matches(id)).collect();
            functions.paths_through(capture, &flags)
        };
        let by_function = (!rule.functions.is_empty()).then(|| {
            through(&|id| {
                let name = &functions.get(id).name;
                any(&rule.functions, &[name, &own_name(name)])
            })
        });
        let by_module = (!rule.modules.is_empty()).then(|| {
            through(&|id| {
                let module = &functions.get(id).module;
                !module.is_empty() && any(&rule.modules, &[module])
            })
        });
        for (node, bits) in of_stack.iter_mut().take(capture.stacks.len()).enumerate() {
            let passes = |flags: &Option<Vec<bool>>| flags.as_ref().is_none_or(|flags| flags[node]);
            *bits |= u64::from(passes(&by_function) && passes(&by_module)) << index;
        }
    }
    of_stack
}

/// The built-in rules in use, applied to a capture's functions.
struct BuiltInRules {
    of_function: Vec<Option<&'static BuiltIn>>,
    /// Rules of sets that have code in the capture.
    present: Vec<&'static BuiltIn>,
}

impl BuiltInRules {
    fn of(functions: &Functions, rules: &CategoryRules) -> Self {
        let sets: Vec<&'static Set> = sets::SETS.iter().filter(|set| rules.uses(set)).collect();
        let mut present = vec![false; sets.len()];
        let of_function = functions.all().map(|(_, function)| {
            let code = sets::Code::of(function);
            let found =
                |(index, set): (usize, &&'static Set)| Some((index, set.rules.iter().find(|rule| rule.covers(&code))?));
            let (index, rule) = sets.iter().enumerate().find_map(found)?;
            present[index] = true;
            Some(rule)
        });
        let of_function = of_function.collect();
        let with_code = sets.iter().zip(present).filter(|(_, present)| *present);
        Self { of_function, present: with_code.flat_map(|(set, _)| set.rules).collect() }
    }

    fn of_thread(&self, name: &str) -> Option<&'static str> {
        self.present.iter().find(|rule| rule.names_thread(name)).map(|rule| rule.category)
    }
}

/// What ends the search from a node to the root.
#[derive(Clone, Copy)]
enum Found {
    Category(CategoryId),
    /// Code of no category.
    OtherCode,
    Nothing,
}

/// The category of each node and last of no stack, by steps 3 and 4.
fn of_stacks(capture: &Capture, functions: &Functions, rules: &BuiltInRules, names: &mut Names) -> Vec<CategoryId> {
    let mut found: Vec<Found> = Vec::with_capacity(capture.stacks.len());
    let mut of_stack = Vec::with_capacity(capture.stacks.len() + 1);
    for node in &capture.stacks {
        let id = functions.of_frame(node.frame);
        let kind = functions.get(id).kind;
        let here = match (rules.of_function[id.index()], kind) {
            (Some(rule), _) => Found::Category(names.id(rule.category)),
            (None, FrameKind::Allocator | FrameKind::Python) => Found::Category(names.id(kind.name())),
            (None, FrameKind::Kernel | FrameKind::Runtime | FrameKind::Unknown | FrameKind::Group) => {
                node.parent.map_or(Found::Nothing, |parent| found[parent.index()])
            }
            (None, FrameKind::Native) => Found::OtherCode,
        };
        found.push(here);
        of_stack.push(match here {
            Found::Category(category) => category,
            Found::OtherCode | Found::Nothing => names.id(kind.name()),
        });
    }
    of_stack.push(names.id(FrameKind::Unknown.name()));
    of_stack
}
