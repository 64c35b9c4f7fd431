//! Ray: a task of the cluster per task, submitted by a small program in Python.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use super::{ClusterError, Job, Progress, Scheduler, Submission};

/// Ray's Python module.
pub(super) struct Ray;

const HINT: &str = "Ray needs Python with the module ray (`pip install ray`)";

/// Reads the tasks as JSON, and prints a line with number and fate for each that ends.
const SCRIPT: &str = r#"
import json, os, socket, subprocess, sys
import ray
job = json.load(sys.stdin)
address = os.environ.get("RAY_ADDRESS", "auto")
host, _, port = address.rpartition(":")
if host and port.isdigit() and "/" not in host:
    # Ray itself tries for a quarter of an hour.
    try:
        socket.create_connection((host.strip("[]"), int(port)), 20).close()
    except OSError as error:
        sys.exit(f"no cluster answers at RAY_ADDRESS={address}: {error}")
ray.init(address=address, log_to_driver=False, logging_level="ERROR")
cpus = job["cpus"] or min(node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"])

@ray.remote(num_cpus=cpus, max_retries=0, scheduling_strategy="SPREAD")
def run(command, log, limit, cpus):
    node = ray.util.get_node_ip_address() + "-" + ray.get_runtime_context().get_node_id()[:8]
    environment = {**os.environ, "STEPSCOPE_NODE": node}
    with open(log, "w") as output:
        child = subprocess.Popen(["sh", "-c", "exec " + command], stdout=output, stderr=output, env=environment)
        try:
            child.wait(limit)
            return "" if child.returncode in (0, 1) else f"its task ended with status {child.returncode}; see {log}"
        except subprocess.TimeoutExpired:
            child.terminate()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
            return "its task reached the time limit"

open_tasks = {run.remote(*task["arguments"], cpus): task["number"] for task in job["tasks"]}
while open_tasks:
    for done in ray.wait(list(open_tasks), num_returns=1)[0]:
        number = open_tasks.pop(done)
        try:
            fate = ray.get(done)
        except ray.exceptions.RayError as error:
            fate = "its node or worker was lost: " + str(error).strip().split("\n")[0].split(". ")[0]
        print(json.dumps([number, fate]), flush=True)
"#;

impl Scheduler for Ray {
    fn name(&self) -> &'static str {
        "ray"
    }

    fn submit(&self, job: &Job<'_>) -> Result<Box<dyn Submission>, ClusterError> {
        if job.placement.copies {
            return Err(ClusterError::Usage("Ray needs a shared folder for the run; leave out --copy".to_owned()));
        }
        let task = |number: &usize| {
            let log = job.folder().join(format!("task-{number}.log"));
            let limit = job.placement.time_limit.map(|limit| limit.as_secs());
            serde_json::json!({"number": number, "arguments": [job.command(job.run, &number.to_string()), log, limit]})
        };
        let tasks: Vec<serde_json::Value> = job.tasks.iter().map(task).collect();
        let request = serde_json::json!({"cpus": job.placement.cpus, "tasks": tasks}).to_string();
        let log = job.folder().join("ray.log");
        let errors = std::fs::File::create(&log).map_err(super::at(&log))?;
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|source| ClusterError::Start { program: "python3".to_owned(), source, hint: HINT })?;
        let mut input = child.stdin.take().expect("it has a pipe");
        // A program that ends early closes the pipe; its exit code says why.
        let _ = input.write_all(request.as_bytes());
        drop(input);
        let output = child.stdout.take().expect("it has a pipe");
        let fates: Arc<Mutex<BTreeMap<usize, String>>> = Arc::default();
        let received = fates.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok((task, fate)) = serde_json::from_str::<(usize, String)>(&line) {
                    received.lock().expect("no thread panics with it").insert(task, fate);
                }
            }
        });
        Ok(Box::new(Driver { child, fates, log }))
    }
}

/// The program that waits for the tasks.
struct Driver {
    child: Child,
    fates: Arc<Mutex<BTreeMap<usize, String>>>,
    log: std::path::PathBuf,
}

impl Submission for Driver {
    fn progress(&mut self) -> Result<Progress, ClusterError> {
        let start = |source| ClusterError::Start { program: "python3".to_owned(), source, hint: HINT };
        match self.child.try_wait().map_err(start)? {
            None => Ok(Progress::Open),
            Some(status) if status.success() => Ok(Progress::Over),
            // Its tasks have ended with it.
            Some(_) => {
                let text = std::fs::read_to_string(&self.log).unwrap_or_default();
                let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
                let hint = if last.contains("No module named") { format!("; {HINT}") } else { String::new() };
                Err(ClusterError::Refused { program: "Ray".to_owned(), message: format!("{last}{hint}") })
            }
        }
    }

    fn fate(&mut self, task: usize) -> Option<String> {
        let fates = self.fates.lock().expect("no thread panics with it");
        fates.get(&task).cloned().filter(|fate| !fate.is_empty())
    }

    fn cancel(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.cancel();
    }
}
