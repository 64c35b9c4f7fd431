//! `[categories]`: what part of a system code belongs to, one rule per line (`planner = { process = "*planner*" }`).

use std::collections::BTreeSet;

use stepscope_analyze::Pattern;
use stepscope_analyze::categories::sets::SETS;
use stepscope_analyze::categories::{CategoryRule, CategoryRules, MOST_RULES};

use crate::lab_file::decode::{Field, Fields, Problems};
use crate::lab_file::problem::did_you_mean;

const EXPECTED: &str = r#"a table, e.g. { thread = "tev*" } or { process = "*lidar*", function = "lidar::*" }"#;

/// The rules, in the order of the file, and the sets in use.
pub(super) fn read(mut fields: Fields, problems: &mut Problems) -> CategoryRules {
    let mut categories = CategoryRules::default();
    for (name, field) in fields.take_all() {
        // A category may have the name `sets`, too: it is a table then.
        if name == "sets" && !field.is_table() {
            categories.sets = sets(&field, problems);
            continue;
        }
        if categories.rules.len() == MOST_RULES {
            problems.add(field.key_span.clone(), format!("[categories] can have {MOST_RULES} rules at most"));
            break;
        }
        categories.rules.extend(rule(name, &field, problems));
    }
    categories
}

fn sets(field: &Field, problems: &mut Problems) -> Option<BTreeSet<String>> {
    let items = field.items(problems, r#"an array of sets, e.g. ["ros2", "cyclonedds"]"#)?;
    let known = || SETS.iter().map(|set| set.name);
    let mut names = BTreeSet::new();
    for item in items {
        let Some(name) = item.string(problems, "the name of a set") else { continue };
        if known().any(|one| one == name) {
            names.insert(name);
        } else {
            let hint = match did_you_mean(&name, known()) {
                none if none.is_empty() => format!("; known here: `{}`", known().collect::<Vec<_>>().join("`, `")),
                nearest => nearest,
            };
            problems.add(item.span(), format!("there is no set `{name}` of categories{hint}"));
        }
    }
    Some(names)
}

fn rule(name: &str, field: &Field, problems: &mut Problems) -> Option<CategoryRule> {
    let mut fields = field.table(problems, format!("category `{name}`"), EXPECTED)?;
    let mut patterns = |key| fields.take(key).map(|field| patterns(&field, problems)).unwrap_or_default();
    let (processes, threads) = (patterns("process"), patterns("thread"));
    let (functions, modules) = (patterns("function"), patterns("module"));
    let rule = CategoryRule { name: name.to_owned(), processes, threads, functions, modules };
    fields.finish(problems);
    let is_empty = rule == CategoryRule { name: name.to_owned(), ..CategoryRule::default() };
    if is_empty {
        problems.add(field.span(), format!("category `{name}` needs `process`, `thread`, `function` or `module`"));
    }
    (!is_empty).then_some(rule)
}

/// One pattern, or an array of alternatives.
fn patterns(field: &Field, problems: &mut Problems) -> Vec<Pattern> {
    let expected = "a pattern or an array of patterns";
    let items = match field.is_string() {
        true => Some(vec![field.clone()]),
        false => field.items(problems, expected),
    };
    let mut patterns = Vec::new();
    for item in items.unwrap_or_default() {
        let Some(text) = item.string(problems, expected) else { continue };
        match text.parse::<Pattern>() {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => problems.add(item.span(), error.to_string()),
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::CategoryRules;
    use crate::lab_file::LabFile;

    fn categories(text: &str) -> Result<CategoryRules, String> {
        let text = format!("[scenario.s]\ncommand = [\"sim\"]\n[categories]\n{text}\n");
        let lab = LabFile::parse("/lab/stepscope.toml".as_ref(), &text).map_err(|error| error.to_string())?;
        Ok(lab.naming.categories)
    }

    #[test]
    fn rules_keep_the_order_of_the_file_and_their_patterns() {
        let text = r#"
            sets = ["ros2", "network"]
            planner = { process = "*planner*", function = ["plan", "replan::*"] }
            "lidar driver" = { thread = "lidar", module = "liblidar*" }"#;
        let categories = categories(text).unwrap();
        let names: Vec<&str> = categories.rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["planner", "lidar driver"]);
        assert_eq!(categories.rules[0].functions.len(), 2);
        assert_eq!(categories.rules[1].modules[0].as_str(), "liblidar*");
        assert_eq!(categories.sets.unwrap().len(), 2);
    }

    #[test]
    fn wrong_rules_are_refused_with_their_place() {
        let text = "sets = [\"ros\"]\na = { function = \"/f(/\" }\nb = {}\nc = { treads = \"t\" }\nd = 3";
        let error = categories(text).unwrap_err();
        assert!(error.contains("stepscope.toml:4:9: there is no set `ros` of categories"), "{error}");
        assert!(error.contains("stepscope.toml:5:18: `/f(/` is not a regular expression"), "{error}");
        assert!(error.contains("stepscope.toml:6:5: category `b` needs `process`, `thread`"), "{error}");
        assert!(error.contains("category `c` has no key `treads`") && error.contains("thread"), "{error}");
        assert!(error.contains("stepscope.toml:8:") && error.contains("must be a table"), "{error}");
    }
}
