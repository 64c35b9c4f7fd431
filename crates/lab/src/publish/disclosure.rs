//! What a reader of a published run learns about the machine and the program.

use std::collections::BTreeSet;

use stepscope_analyze::Selection;

/// Parts of names that often stand for secrets.
const SECRET: [&str; 8] = ["token", "secret", "passw", "credential", "apikey", "api_key", "api-key", "private"];

/// What the files of a publication tell, besides profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disclosed {
    /// Names of machines.
    pub hosts: BTreeSet<String>,
    /// Commands that were recorded.
    pub commands: BTreeSet<String>,
    /// Folders of the source code, and those that commands ran in.
    pub folders: BTreeSet<String>,
    /// Environment variables that captures hold. Their values are published only where the lab file states them.
    pub environment: BTreeSet<String>,
    /// What may be a secret, in sentences.
    pub warnings: Vec<String>,
}

impl Disclosed {
    pub(super) fn of(selections: &[Selection<'_>], lab_file: Option<&str>) -> Self {
        let mut disclosed = Self::default();
        for selection in selections {
            let capture = selection.capture();
            let info = &capture.info;
            disclosed.hosts.extend(info.machine.iter().map(|machine| machine.host.clone()));
            let clocks = info.clocks.iter().flat_map(|clocks| clocks.peers.iter().map(|peer| peer.clock.host.clone()));
            disclosed.hosts.extend(clocks);
            disclosed.commands.extend(Some(info.command.join(" ")).filter(|command| !command.is_empty()));
            disclosed.folders.extend(info.working_directory.clone());
            disclosed.folders.extend(source_folders(capture));
            disclosed.environment.extend(info.environment.keys().cloned());
            disclosed.commands.extend(capture.processes.iter().map(|process| process.command_line.clone()));
        }
        disclosed.commands.remove("");
        disclosed.warnings = disclosed.suspicious(lab_file.unwrap_or_default());
        disclosed
    }

    fn suspicious(&self, lab_file: &str) -> Vec<String> {
        let has_secret = |text: &str| {
            let lower = text.to_lowercase();
            SECRET.iter().any(|word| lower.contains(word))
        };
        let commands = self.commands.iter().filter(|command| has_secret(command));
        let in_commands = commands.map(|command| format!("This command may hold a secret: {command}"));
        let lines = lab_file.lines().enumerate().filter(|(_, line)| has_secret(line));
        let in_lab = lines.map(|(number, _)| format!("Line {} of the lab file may hold a secret.", number + 1));
        in_commands.chain(in_lab).collect()
    }
}

/// The folders of the source files that frames name, at most a handful of roots.
fn source_folders(capture: &stepscope_model::Capture) -> BTreeSet<String> {
    const DEPTH: usize = 4;
    let root = |file: &str| {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        folder.starts_with('/').then(|| folder.split('/').take(DEPTH).collect::<Vec<_>>().join("/"))
    };
    capture.frames.iter().filter_map(|frame| root(frame.file.as_deref()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_stand_for_secrets_are_named_with_their_place() {
        let disclosed = Disclosed {
            commands: ["sim --api-key=abc".to_owned(), "sim world.sdf".to_owned()].into(),
            ..Disclosed::default()
        };
        assert_eq!(
            disclosed.suspicious("[variant.a]\nenv = { GITHUB_TOKEN = \"x\" }\n"),
            ["This command may hold a secret: sim --api-key=abc", "Line 2 of the lab file may hold a secret."]
        );
        assert!(Disclosed::default().suspicious("name = \"demo\"").is_empty());
    }
}
