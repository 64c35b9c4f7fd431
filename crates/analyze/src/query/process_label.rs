//! Labels of processes, which differ among processes of one program.
//!
//! Sixteen nodes of a robot may all be `rosnode_bench`. The only process of a program has the program's name as its label.
//! Otherwise the label adds a part of the command line:
//!
//! 1. the node name: `__node:=NAME` (ROS 2: `--ros-args -r __node:=NAME`) or `__name:=NAME` (ROS 1), with its `__ns:=`;
//! 2. a name given as `-n NAME`, `--name NAME` or `--name=NAME`;
//! 3. the script, module or archive that an interpreter runs: `python3 lidar.py`, `java -jar sim.jar`;
//! 4. the first argument that differs among the processes that still share a label, and the next ones as needed;
//! 5. a number, where even the arguments are equal.
//!
//! Rules of a lab file come first and may give several processes one label.
//!
//! In a merged capture, the name of the machine comes before the label: `robot/planner`. Labels differ among the processes of one
//! machine.

use std::collections::BTreeMap;

use stepscope_model::Process;
use stepscope_model::command_line::{file_name, script};

use crate::query::pattern::Pattern;

/// Longest part of a command line in a label.
const MAX_DETAIL_CHARS: usize = 40;

/// A label that the user chose for processes: `[process_names]` of a lab file, one rule per line (`"*lidar_driver*" = "lidar"`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessNameRule {
    /// Matches the whole command line.
    pub command_line: Pattern,
    /// The label.
    pub label: String,
}

/// The label of each process, in their order. The first rule that matches decides; rules come from
/// [`Naming`](crate::query::naming::Naming).
pub fn process_labels(processes: &[Process], rules: &[ProcessNameRule]) -> Vec<String> {
    if processes.iter().all(|process| process.machine.is_none()) {
        return labels_of_machine(&processes.iter().collect::<Vec<_>>(), rules);
    }
    let mut labels = vec![String::new(); processes.len()];
    let mut machines: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for (index, process) in processes.iter().enumerate() {
        machines.entry(process.machine.as_deref()).or_default().push(index);
    }
    for (machine, indices) in machines {
        let own: Vec<&Process> = indices.iter().map(|&index| &processes[index]).collect();
        for (index, label) in indices.into_iter().zip(labels_of_machine(&own, rules)) {
            labels[index] = machine.map_or(label.clone(), |machine| format!("{machine}/{label}"));
        }
    }
    labels
}

/// The labels of processes of one machine.
fn labels_of_machine(processes: &[&Process], rules: &[ProcessNameRule]) -> Vec<String> {
    let arguments: Vec<Vec<String>> = processes.iter().map(|process| arguments(&process.command_line)).collect();
    let rule = |process: &Process| rules.iter().find(|rule| rule.command_line.matches(&process.command_line));
    let mut labels: Vec<String> = processes.iter().map(|process| process_name(process).to_owned()).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let unnamed = (0..processes.len()).filter(|&index| match rule(processes[index]) {
        Some(rule) => {
            labels[index].clone_from(&rule.label);
            false
        }
        None => true,
    });
    groups.extend(grouped(unnamed.collect::<Vec<_>>(), |index| process_name(processes[index]).to_owned()));
    for group in groups.into_iter().filter(|group| group.len() > 1) {
        for same in refine(group, &mut labels, |index| own_name(&arguments[index])) {
            for equal in refine_by_differences(same, &mut labels, &arguments) {
                for (number, index) in equal.into_iter().enumerate() {
                    labels[index] += &format!(" #{}", number + 1);
                }
            }
        }
    }
    labels
}

/// The file name of a process's executable, or of the first word of its command line.
pub fn process_name(process: &Process) -> &str {
    let path = match process.executable.as_str() {
        "" => process.command_line.split_whitespace().next().unwrap_or(""),
        path => path,
    };
    file_name(path)
}

/// The arguments of a command line, which a capture quotes as a shell would.
fn arguments(command_line: &str) -> Vec<String> {
    let words = shlex::split(command_line);
    words.unwrap_or_else(|| command_line.split_whitespace().map(str::to_owned).collect())
}

/// Groups in the order of their first members.
fn grouped(indices: Vec<usize>, key: impl Fn(usize) -> String) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for index in indices {
        groups.entry(key(index)).or_default().push(index);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort_by_key(|group| group[0]);
    groups
}

/// Adds a detail to the labels of a group. Returns the groups that still share a label.
fn refine(group: Vec<usize>, labels: &mut [String], detail: impl Fn(usize) -> Option<String>) -> Vec<Vec<usize>> {
    for &index in &group {
        if let Some(detail) = detail(index).filter(|detail| !detail.is_empty()) {
            let cut = detail.char_indices().nth(MAX_DETAIL_CHARS).map_or(detail.len(), |(at, _)| at);
            let ellipsis = if cut < detail.len() { "…" } else { "" };
            labels[index] += &format!(" {}{ellipsis}", &detail[..cut]);
        }
    }
    grouped(group, |index| labels[index].clone()).into_iter().filter(|group| group.len() > 1).collect()
}

/// Adds differing arguments to the labels of a group until they differ. Returns the groups with equal arguments.
fn refine_by_differences(group: Vec<usize>, labels: &mut [String], arguments: &[Vec<String>]) -> Vec<Vec<usize>> {
    let longest = group.iter().map(|&index| arguments[index].len()).max().unwrap_or(0);
    // The first argument is the program, which may be named by different paths.
    let mut groups = vec![group];
    for position in 1..longest {
        let differs = |group: &[usize]| {
            let mut values = group.iter().map(|&index| arguments[index].get(position));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let (different, same): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| differs(group));
        let argument = |index: usize| Some(file_name(arguments[index].get(position)?).to_owned());
        groups = same;
        groups.extend(different.into_iter().flat_map(|group| refine(group, labels, argument)));
    }
    groups
}

/// The name that a process was given by its arguments, or that of the script that it interprets.
fn own_name(arguments: &[String]) -> Option<String> {
    node_name(arguments).or_else(|| given_name(arguments)).or_else(|| script(arguments).map(str::to_owned))
}

/// The last remapped node name, with its namespace.
fn node_name(arguments: &[String]) -> Option<String> {
    let remapped = |key: &str| {
        arguments.iter().rev().find_map(|argument| {
            let (before, value) = argument.split_once(key)?;
            // ROS 2 may limit a remapping to a node: `OLD:__node:=NEW`.
            (before.is_empty() || before.ends_with(':')).then_some(value)
        })
    };
    let name = remapped("__node:=").or_else(|| remapped("__name:="))?;
    Some(match remapped("__ns:=").map(|namespace| namespace.trim_matches('/')) {
        Some(namespace) if !namespace.is_empty() => format!("/{namespace}/{name}"),
        _ => name.to_owned(),
    })
}

/// The value of `-n` or `--name`.
fn given_name(arguments: &[String]) -> Option<String> {
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        if let Some(name) = argument.strip_prefix("--name=") {
            return Some(name.to_owned());
        }
        if argument == "-n" || argument == "--name" {
            return rest.next().filter(|name| !name.starts_with('-')).cloned();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels of processes with these command lines, whose executables are their first words.
    fn labels(command_lines: &[&str]) -> Vec<String> {
        labels_by(command_lines, &[])
    }

    fn labels_by(command_lines: &[&str], rules: &[(&str, &str)]) -> Vec<String> {
        let processes: Vec<Process> = command_lines
            .iter()
            .map(|line| Process {
                command_line: (*line).to_owned(),
                executable: line.split(' ').next().unwrap_or("").to_owned(),
                ..Process::default()
            })
            .collect();
        let rules: Vec<ProcessNameRule> = rules
            .iter()
            .map(|(pattern, label)| ProcessNameRule { command_line: pattern.parse().unwrap(), label: (*label).into() })
            .collect();
        process_labels(&processes, &rules)
    }

    #[test]
    fn a_process_that_is_alone_keeps_its_plain_name() {
        assert_eq!(labels(&["/opt/ros/lidar __name:=front", "/usr/bin/python3 a.py"]), ["lidar", "python3"]);
        assert_eq!(labels(&[""]), [""]);
    }

    #[test]
    fn ros_nodes_have_their_node_names() {
        assert_eq!(
            labels(&["/ws/rosnode_bench __name:=lidar __log:=/x", "/ws/rosnode_bench __name:=map __ns:=/robot1"]),
            ["rosnode_bench lidar", "rosnode_bench /robot1/map"]
        );
        assert_eq!(
            labels(&[
                "/ws/component_container --ros-args -r __node:=camera -r __ns:=/",
                "/ws/component_container --ros-args -r component_container:__node:=planner",
            ]),
            ["component_container camera", "component_container planner"]
        );
    }

    #[test]
    fn a_given_name_is_the_label() {
        assert_eq!(
            labels(&["/bin/node -n left", "/bin/node --rate 5 --name right", "/bin/node --name=up"]),
            ["node left", "node right", "node up"]
        );
    }

    #[test]
    fn interpreters_are_labelled_by_what_they_run() {
        assert_eq!(
            labels(&[
                "/usr/bin/python3 -u -W ignore /ws/lidar.py --rate 10",
                "/usr/bin/python3 -m http.server",
                "/usr/bin/python3 'my script.py'",
            ]),
            ["python3 lidar.py", "python3 http.server", "python3 my script.py"]
        );
        assert_eq!(
            labels(&["/usr/bin/java -Xmx1g -jar /opt/sim.jar", "/usr/bin/java -cp a.jar:b.jar org.Main"]),
            ["java sim.jar", "java org.Main"]
        );
    }

    #[test]
    fn otherwise_the_first_differing_argument_is_added() {
        assert_eq!(
            labels(&["/bin/gz sim -s /w/shapes.sdf", "/bin/gz sim -g", "/bin/gz sim -s /w/empty.sdf"]),
            ["gz -s shapes.sdf", "gz -g", "gz -s empty.sdf"]
        );
        assert_eq!(labels(&["/bin/bench", "/bin/bench --fast"]), ["bench", "bench --fast"]);
        assert_eq!(
            labels(&["/usr/bin/python3 node.py --left", "/usr/bin/python3 node.py --right"]),
            ["python3 node.py --left", "python3 node.py --right"]
        );
    }

    #[test]
    fn identical_processes_are_numbered() {
        assert_eq!(labels(&["/bin/a x", "/bin/b", "/bin/a x", "/bin/a x"]), ["a #1", "b", "a #2", "a #3"]);
    }

    #[test]
    fn rules_come_first_and_may_give_one_label_to_several() {
        assert_eq!(
            labels_by(&["/bin/a lidar 1", "/bin/a lidar 2", "/bin/a map"], &[("*lidar*", "lidar"), ("* 2", "second")]),
            ["lidar", "lidar", "a"]
        );
    }

    #[test]
    fn processes_of_a_merged_capture_say_which_machine_they_are_of() {
        let process = |machine: &str, command_line: &str| Process {
            machine: Some(machine.into()),
            command_line: command_line.into(),
            executable: "/bin/node".into(),
            ..Process::default()
        };
        let of = [process("base", "/bin/node a"), process("robot", "/bin/node a"), process("robot", "/bin/node b")];
        assert_eq!(process_labels(&of, &[]), ["base/node", "robot/node a", "robot/node b"]);
        let rule = ProcessNameRule { command_line: "*a".parse().unwrap(), label: "planner".into() };
        assert_eq!(process_labels(&of, &[rule]), ["base/planner", "robot/planner", "robot/node"]);
    }

    #[test]
    fn long_arguments_are_cut_and_damaged_quotes_do_no_harm() {
        let long = "x".repeat(60);
        let found = labels(&[&format!("/bin/a {long}"), "/bin/a 'y"]);
        assert_eq!(found, [format!("a {}…", "x".repeat(MAX_DETAIL_CHARS)), "a 'y".to_owned()]);
    }
}
