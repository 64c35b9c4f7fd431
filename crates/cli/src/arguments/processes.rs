//! Flags that choose running processes.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use stepscope_record::proc::ProcessSelection;

/// Which running processes. All flags can be repeated and combined: a process belongs to the set if one of them matches.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Processes")]
#[group(id = "running", multiple = true)]
pub struct ProcessArguments {
    /// This process; repeatable. `record` follows its children, `monitor` does not.
    #[arg(short, long = "pid", value_name = "PID")]
    pids: Vec<u32>,
    /// This process, its children, and the processes that they start.
    #[arg(long = "tree", value_name = "PID")]
    trees: Vec<u32>,
    /// Processes of this name, now and later: a glob over the process name, the file name of the program, or of its script.
    #[arg(long = "name", value_name = "GLOB", value_parser = glob)]
    names: Vec<glob::Pattern>,
    /// Processes in this cgroup and below it, now and later: /system.slice/NAME.service, or a folder of /sys/fs/cgroup.
    #[arg(long = "cgroup", value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    cgroups: Vec<String>,
    /// Processes in this container: its name, or the start of its id (docker, podman, containerd, LXC, systemd-nspawn). Names need root.
    #[arg(long = "container", value_name = "NAME|ID")]
    containers: Vec<String>,
}

fn glob(text: &str) -> Result<glob::Pattern, String> {
    glob::Pattern::new(text).map_err(|error| error.to_string())
}

impl ProcessArguments {
    /// What they select.
    pub fn selection(&self) -> ProcessSelection {
        ProcessSelection {
            pids: self.pids.clone(),
            trees: self.trees.clone(),
            names: self.names.clone(),
            names_below: None,
            cgroups: self.cgroups.clone(),
            containers: self.containers.clone(),
        }
    }
}
