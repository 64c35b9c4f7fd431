//! Tests of the cost tree.

use proptest::prelude::*;
use stepscope_model::{Capture, Event, Phase};

use super::*;
use crate::columns::read::cells;
use crate::drawn::{self, Drawing, owned_by};
use crate::query::functions::Functions;
use crate::query::ownership::{Owned, Ownership};

fn tree_of(captures: &[&Capture]) -> Table {
    tree_with(captures, &owned_by(&["gz::"]))
}

fn tree_with(captures: &[&Capture], owned: &Owned) -> Table {
    let functions: Vec<Functions> = captures.iter().map(|capture| Functions::of(capture, owned)).collect();
    let selections: Vec<Selection<'_>> =
        captures.iter().zip(&functions).map(|(capture, functions)| Selection::all(capture, functions)).collect();
    table(&selections, &Options::default())
}

fn rows(stacks: &str) -> Vec<String> {
    cells(&tree_of(&[&drawn::folded(stacks)]), &["tree", "share", "self_share"])
}

#[test]
fn a_defect_is_one_row_with_its_parts_below() {
    assert_eq!(
        rows(
            "
            main;main;gz::Run;gz::Step;gz::Each;gz::Match;find 30
            main;main;gz::Run;gz::Step;gz::Each;gz::Vertices 20
            main;main;gz::Run;gz::Step;gz::Each 2
            main;main;gz::Run;gz::Step;gz::Write;write 18
            worker;pool;gz::Render 20
            worker;pool;idle 10
            "
        ),
        [
            "all | 100 | 0",
            "  gz::Run > gz::Step | 70 | 0",
            "    gz::Each | 52 | 2",
            "      gz::Match | 30 | 30",
            "      gz::Vertices | 20 | 20",
            "    gz::Write | 18 | 18",
            "  gz::Render | 20 | 20",
            "  (no owned caller) | 10 | 10",
        ]
    );
}

#[test]
fn a_function_below_itself_is_one_row() {
    assert_eq!(
        rows("main;gz::Visit;gz::Child;gz::Visit;gz::Child;gz::Draw 60\nmain;gz::Visit;gz::Child;gz::Visit 40"),
        ["all | 100 | 0", "  gz::Visit | 100 | 40", "    gz::Child > gz::Draw | 60 | 60"]
    );
}

#[test]
fn light_rows_are_added_up_and_a_chain_keeps_what_its_callers_spend_beside_it() {
    assert_eq!(
        rows("main;gz::A;gz::B;gz::C 985\nmain;gz::A;gz::B 5\nmain;gz::A;gz::X 6\nmain;gz::Y 4"),
        [
            "all | 100 | 0",
            "  gz::A > … > gz::C (3 functions) | 99.6 | 99",
            "    (1 more) | 0.6 | 0.6",
            "  (1 more) | 0.4 | 0.4",
        ]
    );
}

#[test]
fn a_library_is_one_row_from_its_first_named_function_on() {
    let capture = drawn::columns(
        "
        main                                                main                                                main
        py::<module>:/srv/fall.py                           py::<module>:/srv/fall.py                           py::<module>:/srv/fall.py
        _f.so+0x10 [lib:/v/site-packages/mujoco/_f.so]      _f.so+0x10 [lib:/v/site-packages/mujoco/_f.so]      py::policy:/srv/fall.py
        mj_step [lib:/v/site-packages/mujoco/libmujoco.so]  mj_step [lib:/v/site-packages/mujoco/libmujoco.so]  ones [lib:/v/site-packages/numpy/_c.so]
        malloc [lib:libc.so.6]
        3                                                   4                                                   3
        ",
    );
    assert_eq!(
        cells(&tree_with(&[&capture], &Owned::nothing()), &["tree", "share", "self_share"]),
        [
            "all | 100 | 0",
            "  <module> | 100 | 0",
            "    [mujoco] mj_step | 70 | 70",
            "    policy | 30 | 0",
            "      [numpy] ones | 30 | 30",
        ]
    );
}

#[test]
fn code_that_is_not_owned_is_shown_by_family_and_a_decoder_keeps_its_allocations() {
    assert_eq!(
        rows(
            "
            main;gz::Load;stbi_load;stbi__jpeg;malloc;_int_malloc 30
            main;gz::Load;stbi_load 10
            main;gz::Load;std::vector<int>::push_back;operator new;malloc 20
            main;gz::Load;std::vector<int>::push_back 15
            main;gz::Load;dart::step 25
            "
        ),
        [
            "all | 100 | 0",
            "  gz::Load | 100 | 25",
            "    [image decoding] stbi_load | 40 | 40",
            "    [allocation] operator new | 20 | 20",
            "    [containers] std::vector::push_back | 15 | 15",
        ]
    );
}

#[test]
fn instances_of_a_template_and_groups_of_the_user_are_one_row_each() {
    let stacks = "
        main;gz::Step;gz::Each<gz::Pose>;gz::Look 30
        main;gz::Step;gz::Each<gz::Name> 20
        main;gz::Step;gz::WriteFile 25
        main;gz::Step;gz::WriteLog 25
        ";
    let list = |pattern: &str| vec![pattern.to_owned()];
    let owned = Ownership { namespaces: list("gz::"), groups: list("gz::Write*"), ..Ownership::default() };
    assert_eq!(
        cells(&tree_with(&[&drawn::folded(stacks)], &owned.compile().unwrap()), &["tree", "share", "kind"]),
        [
            "all | 100 | group",
            "  gz::Step | 100 | function",
            "    gz::Each (2 functions) | 50 | instances",
            "      gz::Each<gz::Pose> > gz::Look | 30 | function",
            "      gz::Each<gz::Name> | 20 | function",
            "    gz::Write* (2 functions) | 50 | instances",
            "      gz::WriteFile | 25 | function",
            "      gz::WriteLog | 25 | function",
        ]
    );
}

/// Two functions that a reader takes for one, of which one has no cost, are one row with the short name.
#[test]
fn an_instance_that_alone_has_cost_is_a_plain_row() {
    let mut drawing = Drawing::new();
    drawing = drawing.folded(
        Event::weighed("cycles", "cycles"),
        "main;gz::Step;gz::Each<int>;gz::Look 60\nmain;gz::Step;gz::Each<char> 0\nmain;gz::Step 40",
    );
    let owned = Ownership { namespaces: vec!["gz::".to_owned()], ..Ownership::default() };
    assert_eq!(
        cells(&tree_with(&[&drawing.capture], &owned.compile().unwrap()), &["tree", "share", "kind"]),
        ["all | 100 | group", "  gz::Step | 100 | function", "    gz::Each > gz::Look | 60 | function"]
    );
}

#[test]
fn every_scenario_has_its_columns_and_a_row_that_one_of_them_needs_is_shown() {
    let of = |scenario: &str, stacks: &str| {
        let mut capture = Drawing::new().folded(Event::weighed("cycles", "cycles"), stacks).capture;
        (capture.info.scenario, capture.info.phase) = (Some(scenario.to_owned()), Some(Phase::Steady));
        capture
    };
    let small = of("small", "main;gz::Step;gz::Scan 1\nmain;gz::Step;gz::Draw 999");
    let large = of("large", "main;gz::Step;gz::Scan 400\nmain;gz::Step;gz::Draw 600");
    let table = tree_of(&[&small, &large]);
    assert_eq!(
        cells(&table, &["tree", "share.small", "share.large", "self_share.large"]),
        [
            "all | 100 | 100 | 0",
            "  gz::Step | 100 | 100 | 0",
            "    gz::Draw | 99.9 | 60 | 60",
            "    gz::Scan | 0.1 | 40 | 40",
        ]
    );
    let headers: Vec<&str> =
        table.columns.iter().map(|column| column.header()).filter(|name| name.contains("large")).collect();
    assert_eq!(headers, ["share large", "self_share large"]);
}

#[test]
fn costs_are_per_step_with_gain_bound_and_blocked_time() {
    let capture = Drawing::new()
        .window(0..500)
        .process(1, "sim")
        .lived("main", 0..500, None)
        .lived("logger", 0..500, None)
        .steps("main", 0, 100, 5, 1)
        .folded(
            Event::sampled("cpu-clock", "ns"),
            "@150 main;gz::Step;gz::Solve 300\n@250 main;gz::Step 100\n@350 logger;gz::Log 200",
        )
        .blocked_then_runnable("main", 410..420, 5, "gz::Step;gz::Wait;futex_wait")
        .capture;
    let mut capture = capture;
    capture.waits.change_last(|wait| wait.waker = Some(wait.thread));
    assert_eq!(
        cells(&tree_of(&[&capture]), &["tree", "cost", "share", "gain_bound", "blocked"])[..2],
        ["all | 120 | 100 | 101.25 | 1", "  gz::Step | 80 | 66.666667 | 101.25 | 1"]
    );
}

#[test]
fn a_chain_shows_the_end_of_each_name() {
    assert_eq!(
        rows("main;gz::sim::v11::Runner::Step;gz::sim::v11::Physics::Update(int) 1")[1],
        "  Runner::Step > Physics::Update | 100 | 100"
    );
}

#[test]
fn nothing_has_no_rows() {
    assert!(tree_of(&[&Capture::default()]).rows.is_empty());
}

proptest! {
    #[test]
    fn a_row_is_its_self_cost_and_the_rows_below_it(
        stacks in proptest::collection::vec((proptest::collection::vec(0_usize..9, 1..9), 1_u64..1000), 1..60),
        least_percent in 0.0..30.0,
    ) {
        const NAMES: [&str; 9] =
            ["gz::A", "gz::B", "gz::C<int>", "gz::C<char>", "malloc", "std::vector<int>::find", "stbi_load", "dart::x", "write"];
        let line = |(frames, weight): &(Vec<usize>, u64)| {
            let names: Vec<&str> = frames.iter().map(|&name| NAMES[name]).collect();
            format!("main;{} {weight}", names.join(";"))
        };
        let capture = drawn::folded(&stacks.iter().map(line).collect::<Vec<_>>().join("\n"));
        let functions = Functions::of(&capture, &owned_by(&["gz::"]));
        let selection = Selection::all(&capture, &functions);
        let mut owners = Owners::new(1);
        let places = owners.places(&selection);
        let weights = StackWeights::of_samples(&selection);
        owners.add(0, &places, &weights, |cost| Weights { cost, ..Weights::default() });
        owners.finish();
        let rows = outline::rows(&owners, least_percent);
        prop_assert_eq!(rows[0].total[0].cost, weights.total().weight);
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.node.is_some()) {
            let below = rows[index + 1..].iter().take_while(|other| other.indent > row.indent);
            let below: u128 = below.filter(|other| other.indent == row.indent + 1).map(|other| other.total[0].cost).sum();
            prop_assert_eq!(row.own[0].cost + below, row.total[0].cost);
        }
        let attributed = weights.attributed_by_function(&functions);
        for (id, function) in functions.all().filter(|(_, function)| function.owned) {
            let of_it = |node: &&owners::Node| matches!(&node.place, Place::Function(one) if one.name == function.name);
            let families = |node: &owners::Node| -> u128 {
                let children = node.children.iter().map(|&child| &owners.nodes[child]);
                children.filter(|child| matches!(child.place, Place::Family(_))).map(|child| child.total[0].cost).sum()
            };
            let total: u128 = owners.nodes.iter().filter(of_it).map(|node| node.own[0].cost + families(node)).sum();
            prop_assert_eq!(total, attributed[id.index()].weight);
        }
    }
}

#[test]
fn libraries_have_the_owned_caller_that_decides_their_cost() {
    let one = drawn::folded("main;gz::Run;gz::Load;decode 30\nmain;gz::Run;decode 10\nmain;gz::Run 50\nmain;idle 10");
    let other = drawn::folded("main;gz::Run;decode 80\nmain;gz::Run 20");
    let owned = owned_by(&["gz::"]);
    let functions: Vec<Functions> = [&one, &other].map(|capture| Functions::of(capture, &owned)).into();
    let selections = [Selection::all(&one, &functions[0]), Selection::all(&other, &functions[1])];
    let table = external_code(&selections[..1], &Options::default());
    assert_eq!(
        cells(&table, &["library", "caller", "caller_share", "callers", "share"]),
        ["(unknown) | gz::Load | 60 | 2 | 50"]
    );
    let both = external_code(&selections, &Options::default());
    assert_eq!(cells(&both, &["library", "caller"]), ["(unknown) | gz::Run"], "90 of 130 over both");
}
