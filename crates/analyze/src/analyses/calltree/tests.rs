//! Call trees of drawn captures.

use stepscope_model::{CallNode, Capture, Event, FrameKind, Process, Scope};

use super::*;
use crate::drawn::{self, Drawing};
use crate::query::filter::Filter;
use crate::query::functions::Functions;
use crate::query::naming::Naming;
use crate::query::process_label::ProcessNameRule;

/// A tree as text: two spaces a level, `name total/own` a line.
fn outline(tree: &CallTree) -> Vec<String> {
    let mut depths: Vec<usize> = Vec::new();
    for node in &tree.nodes {
        depths.push(node.parent.map_or(0, |parent| depths[parent as usize] + 1));
    }
    let line = |(node, depth): (&CallNode, &usize)| {
        format!("{}{} {}/{}", "  ".repeat(*depth), node.name, node.total, node.own)
    };
    tree.nodes.iter().zip(&depths).map(line).collect()
}

fn tree(capture: &Capture, order: Order, grouping: Grouping) -> CallTree {
    drawn::selected(capture, &["gz::"], |selection| of_samples(selection, &Options { order, grouping }))
}

const STACKS: &str = "
    main;run;b;run 4
    main;run;a 2
    main;run 1
    worker;poll 8
    worker 16
    ";

#[test]
fn children_are_by_name_and_totals_hold_their_children() {
    let tree = tree(&drawn::folded(STACKS), Order::CallersFirst, Grouping::None);
    assert_eq!(
        outline(&tree),
        ["all 31/0", "  (no stack) 16/16", "  poll 8/8", "  run 7/1", "    a 2/2", "    b 4/0", "      run 4/4",]
    );
    assert_eq!((tree.title.as_str(), tree.unit.as_str(), tree.inverted), ("On-CPU time", "ns", false));
}

#[test]
fn an_inverted_tree_grows_from_the_leaves() {
    let tree = tree(&drawn::folded(STACKS), Order::LeavesFirst, Grouping::None);
    assert_eq!(
        outline(&tree),
        [
            "all 31/0",
            "  (no stack) 16/16",
            "  poll 8/8",
            "  run 5/1",
            "    b 4/0",
            "      run 4/4",
            "  a 2/0",
            "    run 2/2",
        ],
        "the heaviest leaf first"
    );
    assert!(tree.inverted);
    assert_eq!(tree.title, "On-CPU time, inverted");
}

#[test]
fn threads_of_several_processes_are_groups_within_their_process_by_its_label() {
    let mut capture = drawn::folded("main;run 7\nworker;poll 8");
    for (index, line) in ["/ws/node lidar", "/ws/node map"].into_iter().enumerate() {
        let process =
            Process { command_line: line.to_owned(), executable: "/ws/node".to_owned(), ..Process::default() };
        capture.threads[index].process = Some(capture.add_process(process));
    }
    let rule = ProcessNameRule { command_line: "*lidar*".parse().unwrap(), label: "front lidar".to_owned() };
    let functions = Functions::of(&capture, &drawn::owned_by(&[]));
    let filter = Filter { naming: Naming { processes: vec![rule], ..Naming::default() }, ..Filter::default() };
    let selection = Selection::new(&capture, &functions, &filter).unwrap();
    let by_thread = of_samples(&selection, &Options { grouping: Grouping::Thread, ..Options::default() });
    assert_eq!(
        outline(&by_thread),
        [
            "all 15/0",
            "  front lidar 7/0",
            "    main (100) 7/0",
            "      run 7/7",
            "  node 8/0",
            "    worker (101) 8/0",
            "      poll 8/8",
        ]
    );
}

#[test]
fn threads_are_groups() {
    let by_thread = tree(&drawn::folded(STACKS), Order::CallersFirst, Grouping::Thread);
    assert_eq!(outline(&by_thread)[..3], ["all 31/0", "  main (100) 7/0", "    run 7/1"]);
    assert_eq!(by_thread.nodes[1].kind, FrameKind::Group);
    let by_name = tree(&drawn::folded(STACKS), Order::CallersFirst, Grouping::ThreadName);
    assert_eq!(outline(&by_name)[6..], ["  worker 24/0", "    (no stack) 16/16", "    poll 8/8"]);
}

#[test]
fn places_of_a_function_are_one_node_with_the_heaviest_place() {
    let capture = drawn::columns(
        "
        main                main                main
        run [file:a.cc:1]   run [file:a.cc:2]   run [file:a.cc:2]
        x                   y                   gz::z [inl]
        3                   2                   2
        ",
    );
    let tree = tree(&capture, Order::CallersFirst, Grouping::None);
    assert_eq!(outline(&tree), ["all 7/0", "  run 7/0", "    gz::z 2/2", "    x 3/3", "    y 2/2"]);
    assert_eq!(&*tree.nodes[1].source, "a.cc:2");
    assert_eq!((tree.nodes[2].owned, tree.nodes[2].inlined), (true, true));
    assert_eq!((tree.nodes[3].owned, tree.nodes[3].inlined), (false, false));
}

#[test]
fn blocked_time_is_a_tree_of_the_stacks_blocked_at() {
    let capture = Drawing::new()
        .blocked_then_runnable("main", 0..100, 30, "run;lock")
        .blocked("main", 200..250, "")
        .preempted("main", 300..900, "run")
        .capture;
    let tree = drawn::selected(&capture, &[], |selection| off_cpu(selection, &Options::default()));
    assert_eq!(outline(&tree), ["all 120/0", "  (no stack) 50/50", "  run 70/0", "    lock 70/70"]);
}

#[test]
fn samples_stand_below_the_scopes_that_their_thread_is_in() {
    let mut capture = Drawing::new()
        .window(0..1_000)
        .folded(Event::sampled("cpu-clock", "ns"), "@150 main;run;a 40\n@450 main;run 10\n@950 main;idle 5")
        .capture;
    let thread = ThreadId(0);
    for (name, start_ns, end_ns, depth) in [("Update", 100, 500, 0), ("Physics", 120, 200, 1)] {
        let name = capture.intern_text(name);
        capture.scopes.push(Scope { thread, name, start_ns, end_ns, depth });
    }
    let tree = tree(&capture, Order::CallersFirst, Grouping::Scope);
    assert_eq!(
        outline(&tree),
        [
            "all 55/0",
            "  Update 50/0",
            "    Physics 40/0",
            "      run 40/0",
            "        a 40/40",
            "    run 10/10",
            "  idle 5/5",
        ]
    );
    assert_eq!(tree.title, "On-CPU time by scope");
}

#[test]
fn a_tree_per_step_holds_what_steps_do_divided_by_their_number() {
    let capture = Drawing::new()
        .window(0..1_000)
        .steps("main", 100, 100, 4, 1)
        .folded(Event::sampled("cpu-clock", "ns"), "@150 main;run;a 40\n@450 main;run 10\n@50 main;load 900")
        .blocked("main", 50..300, "run;lock")
        .capture;
    drawn::selected(&capture, &[], |selection| {
        let tree = of_samples_per_step(selection, &Options::default()).unwrap();
        // 2.5 is rounded up.
        assert_eq!(outline(&tree), ["all 13/0", "  run 13/3", "    a 10/10"]);
        let tree = off_cpu_per_step(selection, &Options::default()).unwrap();
        assert_eq!(outline(&tree), ["all 50/0", "  run 50/0", "    lock 50/50"]);
    });
    assert_eq!(drawn::selected(&drawn::folded(STACKS), &[], |all| of_samples_per_step(all, &Options::default())), None);
}

#[test]
fn both_sorts_of_faults_are_one_tree() {
    let capture = Drawing::new()
        .folded(Event::sampled("minor-faults", "faults"), "main;a 1\nmain;b 1")
        .folded(Event::sampled("major-faults", "faults"), "main;a 1")
        .capture;
    let tree = drawn::selected(&capture, &[], |selection| faults(selection, &Options::default()));
    assert_eq!(outline(&tree), ["all 3/0", "  a 2/2", "  b 1/1"]);
    assert_eq!(tree.unit, "faults");
}

#[test]
fn a_tree_of_nothing_is_its_whole() {
    let tree = tree(&Capture::default(), Order::CallersFirst, Grouping::None);
    assert_eq!(outline(&tree), ["all 0/0"]);
}

#[test]
fn trees_of_bytes_are_not_called_time() {
    let event = stepscope_model::Event::weighed("inuse_space", "bytes");
    let drawing = Drawing::new().window(0..100).steps("main", 0, 10, 10, 1);
    let capture = drawing.folded(event, "@5 main;load;malloc 4096").capture;
    drawn::selected(&capture, &[], |selection| {
        assert_eq!(of_samples(selection, &Options::default()).title, "inuse_space");
        assert_eq!(of_samples_per_step(selection, &Options::default()).unwrap().title, "inuse_space per step");
        let report = (crate::analyses::tree::ANALYSIS.report)(selection);
        assert!(report.iter().all(|section| !section.title.contains("CPU")));
        assert_eq!(crate::analyses::hotspots::table(selection).title, "inuse_space by function");
    });
}
