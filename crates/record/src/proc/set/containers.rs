//! Containers: from their names to control groups, without asking a daemon.
//!
//! Container engines put the id of a container into the path of its control group: `/docker/ID`, `docker-ID.scope`, `libpod-ID.scope`,
//! `cri-containerd-ID.scope`, `/k8s.io/ID`. Names are in files of the engine, which only root may read. A container that `runc` or `crun`
//! started without an engine has any id; the runtime's file of its state names its first process.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::cgroups::Cgroup;

/// The fewest characters of an id that are enough.
const SHORTEST_ID: usize = 4;

/// Why a container was not found.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// No process runs in such a container.
    #[error("no running container is called {name}, or has an id that starts so; running: {running}")]
    NotRunning {
        /// The name or id that was given.
        name: String,
        /// Ids of the containers that run.
        running: String,
    },
    /// Several containers match.
    #[error("{name} is the start of several ids: {ids}; give more of the id")]
    Ambiguous {
        /// What was given.
        name: String,
        /// The ids.
        ids: String,
    },
}

/// The control groups of a container.
pub(super) fn cgroups_of(name: &str) -> Result<Vec<Cgroup>, ContainerError> {
    let paths = cgroup_paths();
    let running: BTreeSet<&str> = paths.iter().filter_map(|path| id_in(path)).collect();
    let list = |ids: &BTreeSet<&str>| match ids.is_empty() {
        true => "none".to_owned(),
        false => {
            ids.iter().map(|id| id.get(..12).filter(|_| id.len() == 64).unwrap_or(id)).collect::<Vec<_>>().join(", ")
        }
    };
    let named = id_of_name(Path::new("/"), name);
    let is_meant = |id: &str| match &named {
        Some(named) => id == named,
        None => id == name || name.len() >= SHORTEST_ID && id.starts_with(name),
    };
    let ids: BTreeSet<&str> = running.iter().copied().filter(|id| is_meant(id)).collect();
    if ids.len() > 1 {
        return Err(ContainerError::Ambiguous { name: name.to_owned(), ids: list(&ids) });
    }
    let of_runtime = first_process(Path::new("/"), name).map(own_cgroup_paths).unwrap_or_default();
    let of_container = |path: &&String| match ids.first() {
        Some(id) => id_in(path) == Some(id),
        // LXC and systemd-nspawn put the name into the path.
        None => path.split('/').any(|part| is_machine(part, name)) || of_runtime.contains(*path),
    };
    let found: BTreeSet<&String> = paths.iter().filter(of_container).collect();
    let cgroups: Vec<Cgroup> = found.into_iter().filter_map(|path| Cgroup::open(path)).collect();
    match cgroups.is_empty() {
        true => {
            let of_runtimes = ids_of_runtimes(Path::new("/"));
            let running = running.into_iter().chain(of_runtimes.iter().map(String::as_str)).collect();
            Err(ContainerError::NotRunning { name: name.to_owned(), running: list(&running) })
        }
        false => Ok(cgroups),
    }
}

/// The paths of the control groups of all processes.
fn cgroup_paths() -> BTreeSet<String> {
    let texts = crate::proc::all_pids().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
    let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    texts.flat_map(|text| text.lines().filter_map(path).collect::<Vec<_>>()).collect()
}

/// The first process of the container of this id, from the state of `runc` and `crun`.
fn first_process(root: &Path, id: &str) -> Option<u32> {
    if id.contains('/') || id.starts_with('.') {
        return None;
    }
    let of_users = folders(&root.join("run/user"));
    let mut states = [root.join("run")].into_iter().chain(of_users).flat_map(|run| {
        let runc = (run.join("runc").join(id).join("state.json"), "init_process_pid");
        [runc, (run.join("crun").join(id).join("status"), "pid")]
    });
    states.find_map(|(file, key)| json(&file)?[key].as_u64()?.try_into().ok())
}

/// The ids of containers that `runc` and `crun` run, from the folders of their states.
fn ids_of_runtimes(root: &Path) -> Vec<String> {
    let runs = [root.join("run")].into_iter().chain(folders(&root.join("run/user")));
    let states = runs.flat_map(|run| [folders(&run.join("runc")), folders(&run.join("crun"))]).flatten();
    let is_alive = |pid: u32| root.join("proc").join(pid.to_string()).exists();
    states.filter_map(|state| file_name(&state)).filter(|id| first_process(root, id).is_some_and(is_alive)).collect()
}

/// The control groups of a process that are not ours: without a control group of its own, a container has those of its parent.
fn own_cgroup_paths(pid: u32) -> BTreeSet<String> {
    let of = |process: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).map(str::to_owned).collect()
    };
    let ours = of("self");
    of(&pid.to_string()).into_iter().filter(|path| path != "/" && !ours.contains(path)).collect()
}

/// The id of the container in the path of a control group: the last part that has one.
fn id_in(path: &str) -> Option<&str> {
    path.rsplit('/').find_map(|part| {
        let name = part.strip_suffix(".scope").unwrap_or(part);
        let id = name.rsplit(['-', ':']).next()?;
        (id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
    })
}

fn is_machine(part: &str, name: &str) -> bool {
    let unescaped = part.replace("\\x2d", "-");
    unescaped == format!("lxc.payload.{name}") || unescaped == format!("machine-{name}.scope")
}

/// The id of the container with this name, from the files of Docker, Podman and containerd below `root`.
fn id_of_name(root: &Path, name: &str) -> Option<String> {
    let docker = folders(&root.join("var/lib/docker/containers")).into_iter().find_map(|folder| {
        let config = json(&folder.join("config.v2.json"))?;
        let is_meant = config["Name"].as_str()?.trim_start_matches('/') == name;
        is_meant.then(|| file_name(&folder))?
    });
    let podman = || {
        let lists = homes(root).into_iter().map(|home| home.join("overlay-containers/containers.json"));
        lists.filter_map(|list| json(&list)).find_map(|list| {
            let has_name =
                |one: &&serde_json::Value| one["names"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
            Some(list.as_array()?.iter().find(has_name)?["id"].as_str()?.to_owned())
        })
    };
    let containerd = || {
        let spaces = folders(&root.join("run/containerd/io.containerd.runtime.v2.task"));
        spaces.iter().flat_map(|space| folders(space)).find_map(|folder| {
            let config = json(&folder.join("config.json"))?;
            let labels = &config["annotations"];
            let is_meant = ["nerdctl/name", "io.kubernetes.cri.container-name"].iter().any(|key| labels[key] == name);
            is_meant.then(|| file_name(&folder))?
        })
    };
    docker.or_else(podman).or_else(containerd)
}

/// Folders in which Podman stores its containers: of root, and of each user.
fn homes(root: &Path) -> Vec<PathBuf> {
    let users = folders(&root.join("home")).into_iter().map(|home| home.join(".local/share/containers/storage"));
    [root.join("var/lib/containers/storage")].into_iter().chain(users).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

fn json(path: &Path) -> Option<serde_json::Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f4e0cdd7a0b44a8c6a8f0fdbd36b9f7ef3a0e5bb2b8a2a7b84d1b7d34b1c0de";

    #[test]
    fn the_id_is_found_in_the_paths_of_all_engines() {
        for path in [
            format!("/docker/{ID}"),
            format!("/system.slice/docker-{ID}.scope"),
            format!("/machine.slice/libpod-{ID}.scope/container"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope"),
            format!("/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{ID}"),
            format!("/k8s.io/{ID}/init"),
        ] {
            assert_eq!(id_in(&path), Some(ID), "{path}");
        }
        assert_eq!(id_in("/user.slice/user-1000.slice/session-2.scope"), None);
        assert_eq!(id_in("/"), None);
    }

    #[test]
    fn names_are_read_from_the_files_of_each_engine() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(&format!("var/lib/docker/containers/{ID}/config.v2.json"), r#"{"Name":"/planner","ID":"x"}"#);
        write("var/lib/docker/containers/broken/config.v2.json", "{");
        let list = format!(r#"[{{"id":"{ID}","names":["lidar"]}}]"#);
        write("home/me/.local/share/containers/storage/overlay-containers/containers.json", &list);
        let task = format!("run/containerd/io.containerd.runtime.v2.task/default/{ID}/config.json");
        write(&task, r#"{"annotations":{"nerdctl/name":"tf"}}"#);
        for name in ["planner", "lidar", "tf"] {
            assert_eq!(id_of_name(root.path(), name).as_deref(), Some(ID), "{name}");
        }
        assert_eq!(id_of_name(root.path(), "missing"), None);
    }

    #[test]
    fn the_first_process_is_read_from_the_state_of_each_runtime() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("run/runc/planner/state.json", r#"{"id":"planner","init_process_pid":15610}"#),
            ("run/user/1000/crun/lidar/status", r#"{"pid":77,"cgroup-path":"/lidar"}"#),
            ("run/runc/ended/state.json", "{}"),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found =
            ["planner", "lidar", "ended", "missing", "../runc/planner"].map(|id| first_process(root.path(), id));
        assert_eq!(found, [Some(15610), Some(77), None, None, None]);
        fs::create_dir_all(root.path().join("proc/77")).unwrap();
        assert_eq!(ids_of_runtimes(root.path()), ["lidar"], "the process of planner has ended");
    }

    #[test]
    fn machines_have_their_name_in_the_path() {
        assert!(is_machine("lxc.payload.robot", "robot"));
        assert!(is_machine("machine-my\\x2drobot.scope", "my-robot"));
        assert!(!is_machine("robot", "robot"));
    }

    #[test]
    fn a_container_that_does_not_run_is_an_error_that_lists_those_that_do() {
        let error = cgroups_of("no-such-container").unwrap_err();
        assert!(error.to_string().contains("no running container is called no-such-container"), "{error}");
    }
}
