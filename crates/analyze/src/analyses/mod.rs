//! The analyses: one module each, with its question, definition and limits. They import [`query`](crate::query) and make tables.

pub mod build;
pub mod cache;
pub mod callbacks;
pub mod calltree;
pub mod capacity;
pub mod categories;
pub mod chains;
pub mod comparable;
pub mod compare;
pub mod cores;
pub mod cost_tree;
pub mod critical_path;
pub mod diagnose;
pub mod disturbances;
pub mod explain;
pub mod faults;
pub mod flows;
pub mod gate;
pub mod growth;
pub mod heap;
pub mod history;
pub mod hotspots;
pub mod memory_errors;
pub mod metrics;
pub mod monitor;
mod outline;
pub mod proof;
pub mod rank;
pub mod resources;
pub mod sched;
pub mod scopes;
pub mod sharing;
pub mod slow_steps;
pub mod step_classes;
pub mod step_times;
pub mod steps_over_time;
pub mod summary;
pub mod system_calls;
pub mod threads;
pub mod timers;
pub mod tree;
pub mod variants;
pub mod wall;

use crate::analysis::{Analysis, AnalysisOfSeveral, View};

/// Every analysis of one capture, in the order of a report.
pub static ANALYSES: &[Analysis] = &[
    summary::ANALYSIS,
    cost_tree::ANALYSIS,
    step_times::ANALYSIS,
    slow_steps::ANALYSIS,
    critical_path::ANALYSIS,
    scopes::ANALYSIS,
    flows::ANALYSIS,
    chains::ANALYSIS,
    callbacks::ANALYSIS,
    timers::ANALYSIS,
    hotspots::ANALYSIS,
    tree::ANALYSIS,
    threads::ANALYSIS,
    categories::ANALYSIS,
    wall::ANALYSIS,
    sched::ANALYSIS,
    disturbances::ANALYSIS,
    faults::ANALYSIS,
    cache::ANALYSIS,
    sharing::ANALYSIS,
    heap::ANALYSIS,
    system_calls::ANALYSIS,
    memory_errors::ANALYSIS,
    resources::ANALYSIS,
    monitor::ANALYSIS,
    build::ANALYSIS,
];

/// Every analysis of several captures.
pub static OF_SEVERAL: &[AnalysisOfSeveral] = &[
    AnalysisOfSeveral {
        name: "diagnose",
        title: "Diagnose",
        about: "Find known kinds of performance defects: what to change, why, and what it would gain",
        question: "What should be changed first, and what would it gain?",
        page: "analyses/diagnose.md",
        also_in: &["report"],
        tables: Some(|selections, _| vec![diagnose::table(selections, &diagnose::Calls::default())]),
    },
    AnalysisOfSeveral {
        name: "rank",
        title: "Rank",
        about: "Rank your functions by cost over all scenarios of a run, or over captures",
        question: "Which of your functions cost most, over all scenarios?",
        page: "analyses/rank.md",
        also_in: &[],
        tables: Some(|selections, _| rank::tables(selections, &rank::Options::default())),
    },
    AnalysisOfSeveral {
        name: "explain",
        title: "Explain",
        about: "Explain a function: its cost in each capture, its callers, callees, threads, lines and waits",
        question: "Why does this function cost what it does?",
        page: "analyses/explain.md",
        also_in: &[],
        tables: Some(|selections, function| {
            explain::tables(selections, function, &rank::Options::default()).unwrap_or_default()
        }),
    },
    AnalysisOfSeveral {
        name: "compare",
        title: "Compare",
        about: "Show what changed between captures, by how much, and with which confidence",
        question: "What changed between two sets of captures, and how certain is it?",
        page: "analyses/compare.md",
        also_in: &["ab", "gate", "flamegraph --diff"],
        tables: None,
    },
    AnalysisOfSeveral {
        name: "growth",
        title: "Growth",
        about: "Show by which law each cost of a sweep grows, and what it costs at larger sizes",
        question: "By which law does each cost grow with the size?",
        page: "analyses/growth.md",
        also_in: &["sweep"],
        tables: Some(|selections, _| vec![growth::table(selections, &growth::Options::default())]),
    },
    AnalysisOfSeveral {
        name: "capacity",
        title: "Capacity",
        about: "Show up to which size a sweep's program keeps real time, a step budget or a memory limit",
        question: "Up to which size does the program keep its limits, and which function decides that?",
        page: "analyses/capacity.md",
        also_in: &["sweep"],
        tables: Some(|selections, _| capacity::tables(selections, &capacity::Options::default())),
    },
    AnalysisOfSeveral {
        name: "cores",
        title: "Cores",
        about: "Show how much faster more CPUs make a sweep's program, and which functions are serial",
        question: "How much faster do more CPUs make a step, and which functions are serial?",
        page: "analyses/cores.md",
        also_in: &["sweep"],
        tables: Some(|selections, _| cores::tables(selections)),
    },
    AnalysisOfSeveral {
        name: "history",
        title: "History",
        about: "Show metrics over runs, and find lasting changes",
        question: "How did metrics develop from run to run, and where did they change?",
        page: "history.md",
        also_in: &[],
        tables: None,
    },
];

/// The analysis and the view of a name.
pub fn view_named(name: &str) -> Option<(&'static Analysis, &'static View)> {
    let views = ANALYSES.iter().flat_map(|analysis| analysis.views.iter().map(move |view| (analysis, view)));
    views.into_iter().find(|(_, view)| view.name == name)
}
