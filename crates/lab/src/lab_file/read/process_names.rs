//! `[process_names]`: names of processes by rule, one per line (`"*lidar_driver*" = "lidar"`).

use stepscope_analyze::Pattern;
use stepscope_analyze::process_label::ProcessNameRule;

use crate::lab_file::decode::{Fields, Problems};

/// The rules, in the order of the file.
pub(super) fn read(mut fields: Fields, problems: &mut Problems) -> Vec<ProcessNameRule> {
    let mut rules = Vec::new();
    for (pattern, field) in fields.take_all() {
        let label = field.string(problems, r#"the name to show, e.g. "*lidar_driver*" = "lidar""#);
        match pattern.parse::<Pattern>() {
            Ok(command_line) => rules.extend(label.map(|label| ProcessNameRule { command_line, label })),
            Err(error) => problems.add(field.key_span.clone(), error.to_string()),
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use crate::lab_file::LabFile;

    fn rules(text: &str) -> Result<Vec<String>, String> {
        let text = format!("[scenario.s]\ncommand = [\"sim\"]\n[process_names]\n{text}\n");
        let lab = LabFile::parse("/lab/stepscope.toml".as_ref(), &text).map_err(|error| error.to_string())?;
        Ok(lab.naming.processes.iter().map(|rule| format!("{} is {}", rule.command_line, rule.label)).collect())
    }

    #[test]
    fn rules_keep_the_order_of_the_file() {
        assert_eq!(
            rules("\"*lidar*\" = \"lidar\"\n\"/node [0-9]+$/\" = \"node\"\n\"*\" = \"other\"").unwrap(),
            ["*lidar* is lidar", "/node [0-9]+$/ is node", "* is other"]
        );
    }

    #[test]
    fn wrong_rules_are_refused_with_their_place() {
        let error = rules("\"/node(/\" = \"node\"\n\"*map*\" = 3").unwrap_err();
        assert!(error.contains("stepscope.toml:4:1: `/node(/` is not a regular expression"), "{error}");
        assert!(error.contains("stepscope.toml:5:") && error.contains("must be the name to show"), "{error}");
    }
}
