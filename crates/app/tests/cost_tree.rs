//! The page's cost tree has the rows of the analysis. The page adds up and lays out by its own code, so both read one case:
//! `web/test/cost_tree.json`, which this test writes with `BLESS=1`.

mod columns;

use std::fmt::Write;

use stepscope_analyze::{Functions, Ownership, Selection, cost_tree};
use stepscope_app::{Limits, Profile};
use stepscope_convert::{ImportOptions, Source};
use stepscope_model::Value;

use self::columns::decoded;

const STACKS: &str = "\
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Each<gz::Pose>::operator();std::vector<int>::push_back;malloc;_int_malloc 31
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Each<gz::Name>::operator();std::vector<int>::push_back 17
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Each<gz::Name>::operator() 9
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Physics::Update;dart::step 200
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Physics::Update;dart::step;memcpy 12
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Physics::Update;gz::Contact 1
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Visit;gz::Child;gz::Visit;gz::Child;gz::Draw 25
sim;_start;main;gz::Server::Run;gz::Runner::Step;gz::Visit;gz::Child;gz::Visit 25
sim;_start;main;gz::Server::Run;gz::Load;stbi_load;stbi__jpeg;malloc 40
sim;_start;main;gz::Server::Run;gz::Load;stbi_load 40
sim;_start;main;gz::Server::Run;gz::Sort<gz::Pose>::Run 22
sim;_start;main;gz::Server::Run;gz::Sort<gz::Name>::Run 0
sim;_start;main;gz::Server::Run;gz::Tiny 2
sim;_start;main;idle 5
worker;clone;start_thread;gz::Render;gz::Scene::Draw 90
worker;clone;start_thread;pool::idle 3
";

#[test]
fn the_page_and_the_analysis_have_the_same_rows() {
    let capture =
        stepscope_convert::import(Source::stream("it", STACKS.as_bytes()), &ImportOptions::default()).unwrap();
    let owned = Ownership { namespaces: vec!["gz::".to_owned()], ..Ownership::default() }.compile().unwrap();
    let functions = Functions::of(&capture, &owned);
    let selection = Selection::all(&capture, &functions);
    let table = cost_tree::table(std::slice::from_ref(&selection), &cost_tree::Options::default());
    let number = |row: usize, column: &str| match table.get(row, column) {
        Some(Value::Float(value)) => *value,
        other => panic!("{column}: {other:?}"),
    };
    let text = |row: usize, column: &str| match table.get(row, column) {
        Some(Value::Text(value)) => value.clone(),
        _ => String::new(),
    };
    let rows = (0..table.rows.len()).map(|row| {
        serde_json::json!([text(row, "tree"), text(row, "kind"), number(row, "share"), number(row, "self_share")])
    });
    let profile = Profile::new(selection, Limits::default());
    let of = |name: &str| decoded(&profile.table(name).unwrap());
    let (nodes, places, samples) = (of("cost_nodes"), of("cost_places"), of("samples"));
    let mut weights = vec![0.0; places.rows()];
    for row in 0..samples.rows() {
        let stack = usize::try_from(samples.integers("stack")[row]).unwrap_or(places.rows() - 1);
        weights[stack] += samples.numbers("weight")[row];
    }
    let case = serde_json::json!({
        "nodes": {
            "parent": nodes.integers("parent"), "kind": nodes.texts("kind"), "name": nodes.texts("name"),
            "function": nodes.texts("function"), "module": nodes.texts("module"),
        },
        "places": { "node": places.integers("node") },
        "weights": weights,
        "rows": rows.collect::<Vec<_>>(),
    });
    let mut written = String::new();
    writeln!(written, "{case:#}").unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/test/cost_tree.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &written).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), written, "BLESS=1 writes it");
}
