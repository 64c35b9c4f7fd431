//! `look/look.py` in a program that checks itself, with the Python that is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const NAME: &str = "calls_are_compared_and_all_that_the_program_does_is_as_without";

#[test]
fn calls_are_compared_and_all_that_the_program_does_is_as_without() {
    let folder = std::env::temp_dir().join(format!("stepscope-look-test-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Warnings are errors: a program may run so.
    let arguments = ["-b", "-W", "error"];
    let program = [here.join("tests/program.py"), folder.clone(), here.join("look/look.py")];
    let Ok(ran) = Command::new("python3").args(arguments).args(program).output() else {
        return println!("skipped: {NAME}: no python3");
    };
    let results = fs::read_dir(&folder).unwrap().flatten().map(|file| file.path());
    let results = results.filter(|path| path.extension().is_some_and(|one| one == "json")).map(fs::read_to_string);
    let results: Vec<String> = results.map(Result::unwrap).collect();
    fs::remove_dir_all(&folder).unwrap();
    let error = String::from_utf8_lossy(&ran.stderr).into_owned();
    if error.contains("is needed for this test") {
        return println!("skipped: {NAME}: {error}");
    }
    assert!(ran.status.success(), "{error}");
    let [results] = &results[..] else { panic!("{results:?}") };
    let rows: BTreeMap<&str, Row> = results.split("{\"name\": \"").skip(1).map(Row::of).collect();
    assert!(rows.len() > 25, "{results}");
    let short = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    for (name, row) in &rows {
        let again = short(name).starts_with("again_");
        // A recursive function, a function below a decorator, and one that others call also do the same again.
        if ["deep", "inner", "cost"].contains(&&*short(name)) {
            continue;
        }
        let part = row.repeated as f64 / row.compared.max(1) as f64;
        assert!(if again { row.repeated >= 3 && part > 0.5 } else { row.repeated == 0 }, "{name}: {results}");
    }
    let number = rows.keys().filter(|name| short(name).starts_with("again_")).count();
    assert_eq!(number, 10, "{:?}", rows.keys());
    assert!(results.contains(r#"["self.map", "start", "end"]"#), "what a call reads is named: {results}");
    assert!(
        !results.contains("\"generates\"") && !results.contains("\"World.generates\""),
        "generators are left alone"
    );
}

struct Row {
    compared: u64,
    repeated: u64,
}

impl Row {
    /// From the text after the start of a row.
    fn of(text: &str) -> (&str, Self) {
        let number = |name: &str| {
            let rest = text.split(&format!("\"{name}\": ")).nth(1).unwrap_or_default();
            rest.split([',', '}']).next().unwrap_or_default().parse().unwrap_or_default()
        };
        let name = text.split('"').next().unwrap_or_default();
        (name, Self { compared: number("compared"), repeated: number("repeated") })
    }
}
