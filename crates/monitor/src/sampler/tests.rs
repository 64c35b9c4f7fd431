use std::fs;
use std::process::{Child, Command, Stdio};

use stepscope_model::{Capture, disk};
use stepscope_record::proc::ProcessSelection;

use super::*;
use crate::log::Log;
use crate::process::FIGURES;
use crate::{Csv, Screen};

const S: u64 = 1_000_000_000;

/// A child that is killed when the test ends.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        Self(command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// A program that sleeps already, so that nothing of it changes.
    fn asleep() -> Self {
        let running = Self::start("sleep", &["60"]);
        let sleeps =
            |pid| proc::stat(pid).is_ok_and(|stat| stat.name == "sleep" && stat.state == proc::State::Sleeping);
        while !sleeps(running.0.id()) {
            std::thread::yield_now();
        }
        running
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn of_pids(pids: &[u32]) -> Sampler {
    let selection = ProcessSelection { pids: pids.to_vec(), ..ProcessSelection::default() };
    Sampler::new(ProcessSet::open(selection).unwrap(), Pace::every(Duration::from_secs(1)))
}

fn value(sampler: &Sampler, pid: u32, figure: &str) -> Option<i64> {
    sampler.processes().find(|process| process.pid() == pid)?.value(figure)
}

/// A number of a file of a process, behind a key.
fn number_in(pid: u32, file: &str, key: &str) -> i64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key} in {file}"));
    line[key.len()..].split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn figures_of_a_process_equal_those_in_its_files_at_the_same_moment() {
    let running = Running::asleep();
    let pid = running.pid();
    // Processes that start or end meanwhile share its libraries.
    let pss = || number_in(pid, "smaps_rollup", "Pss:") * 1024;
    let (sampler, pss) = loop {
        let mut sampler = of_pids(&[pid]);
        let before = pss();
        sampler.sample(S);
        if pss() == before {
            break (sampler, before);
        }
    };
    let read = |figure: &str| value(&sampler, pid, figure).unwrap_or_else(|| panic!("{figure}"));
    assert_eq!(read("swap_bytes"), number_in(pid, "status", "VmSwap:") * 1024);
    assert_eq!(read("pss_bytes"), pss);
    assert_eq!(read("io_read_call_bytes"), number_in(pid, "io", "rchar:"));
    assert_eq!(read("io_write_call_bytes"), number_in(pid, "io", "wchar:"));
    assert_eq!(read("io_read_bytes"), number_in(pid, "io", "read_bytes:"));
    assert_eq!(read("context_switches_voluntary"), number_in(pid, "status", "voluntary_ctxt_switches:"));
    assert_eq!(read("context_switches_involuntary"), number_in(pid, "status", "nonvoluntary_ctxt_switches:"));
    assert_eq!((read("threads"), read("state")), (1, i64::from(b'S')));
    assert_eq!(read("fds"), fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as i64);
    assert_eq!(read("sockets"), 0);
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    assert_eq!(read("run_queue_delay_ns"), schedstat.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let field =
        |number: usize| stat.rsplit(") ").next().unwrap().split(' ').nth(number - 3).unwrap().parse::<i64>().unwrap();
    assert_eq!((read("minor_faults"), read("major_faults")), (field(10), field(12)));
    assert_eq!((read("cpu_user_ns"), read("cpu_system_ns")), (field(14) * 10_000_000, field(15) * 10_000_000));
    assert_eq!(read("rss_bytes"), field(24) * proc::page_bytes() as i64);
}

#[test]
fn the_machine_has_its_memory_cpus_and_network() {
    let running = Running::asleep();
    let mut sampler = of_pids(&[running.pid()]);
    sampler.sample(S);
    let names: Vec<&str> = sampler.machine().map(|(name, _)| &**name).collect();
    for name in
        ["system_cpu_user_ns", "core_busy_ns:0", "memory_available_bytes", "net_received_bytes:lo", "net_tcp_sockets"]
    {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}

#[test]
fn a_process_that_ends_is_reported_once_and_its_id_is_not_taken_for_it() {
    let mut running = Running::asleep();
    let other = Running::asleep();
    let pid = running.pid();
    let mut sampler = of_pids(&[pid, other.pid()]);
    sampler.sample(S);
    let start_ticks = sampler.processes().find(|process| process.pid() == pid).unwrap().start_ticks();
    assert!(sampler.ended().is_empty());
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    sampler.sample(2 * S);
    assert_eq!(sampler.ended(), [(pid, start_ticks)]);
    sampler.sample(3 * S);
    assert!(sampler.ended().is_empty() && value(&sampler, pid, "threads").is_none() && !sampler.is_over());
    // Another process has the id: it started later.
    assert!(WatchedProcess::open(other.pid(), start_ticks - 1, &Pace::every(Duration::from_secs(1))).is_none());
}

#[test]
fn dear_figures_are_read_in_turn_and_keep_their_value_between() {
    let running = Running::asleep();
    let pid = running.pid();
    let mut sampler = of_pids(&[pid]);
    sampler.sample(S);
    let turn = |sampler: &Sampler| {
        sampler.processes().next().map(|process| (process.slow.is_due(2 * S), process.rare.is_due(2 * S)))
    };
    assert_eq!(turn(&sampler), Some((false, false)));
    sampler.sample(2 * S);
    assert!(value(&sampler, pid, "pss_bytes").is_some() && value(&sampler, pid, "fds").is_some());
    assert!(sampler.notes()[0].contains("were read every"), "{:?}", sampler.notes());
}

fn finished(folder: &std::path::Path) -> Capture {
    let log = fs::File::open(folder.join(disk::RAW_LOG_FILE)).unwrap();
    stepscope_assemble::finish(log, &mut stepscope_symbolize::Symbolizer::default()).unwrap()
}

#[test]
fn the_log_is_a_capture_with_the_readings_that_changed() {
    let running = Running::asleep();
    let pid = running.pid();
    let folder = tempfile::tempdir().unwrap();
    let now_ns = clock::now_ns();
    let mut sampler = of_pids(&[pid]);
    let mut log = Log::start(folder.path(), &["monitor".to_owned()], now_ns, None).unwrap();
    for index in 0..5 {
        sampler.sample(now_ns + index * S);
        log.write(&sampler, now_ns + index * S).unwrap();
    }
    // As a monitor that is killed leaves it.
    let killed = finished(folder.path());
    assert_eq!(killed.info.origin, stepscope_model::Origin::Recovered);
    log.end(&sampler).unwrap();
    let capture = finished(folder.path());
    assert_eq!(capture.counters.len(), killed.counters.len(), "nothing was lost");
    assert_eq!((capture.processes[1].pid, &*capture.processes[1].command_line), (pid, "sleep 60"));
    assert_eq!(capture.info.wall_ns(), Some(4 * S));
    for name in FIGURES.iter().filter(|name| !name.starts_with("gpu")) {
        let of_child = |counter: &&stepscope_model::Counter| {
            counter.process.is_some_and(|process| process.index() == 1) && &*counter.name == *name
        };
        assert_eq!(capture.counters.iter().filter(of_child).count(), 1, "{name} of a process that sleeps");
    }
}

#[test]
fn rows_of_the_csv_have_a_cell_for_each_figure() {
    let running = Running::asleep();
    let mut sampler = of_pids(&[running.pid()]);
    let mut text = Vec::new();
    let mut csv = Csv::to(&mut text, S).unwrap();
    for time in [1, 2] {
        sampler.sample(time * S);
        csv.write(&sampler, time * S).unwrap();
    }
    let text = String::from_utf8(text).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.len() == 3 + FIGURES.len()), "{text}");
    assert_eq!((rows[2][0], rows[2][2], rows[2][5]), ("1.000", "sleep", "S"));
}

#[test]
fn the_screen_has_no_line_longer_than_the_terminal() {
    let running = [Running::asleep(), Running::asleep()];
    let mut sampler = of_pids(&running.each_ref().map(Running::pid));
    let mut screen = Screen::default();
    for time in [1, 2] {
        sampler.sample(time * S);
        let lines = screen.draw(&sampler, time * S, 80, 4);
        assert!(lines.len() <= 4 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert!(lines[2].contains("sleep"), "{lines:#?}");
    }
}

/// In a process of its own, because other tests use memory, too.
#[test]
fn memory_does_not_grow_over_a_day() {
    let name = "sampler::tests::a_day";
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).args(["--exact", name, "--ignored", "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// A day at one reading in a minute, in 24 segments.
#[test]
#[ignore = "run by `memory_does_not_grow_over_a_day`"]
fn a_day() {
    const READINGS: u64 = 1440;
    let running = [Running::asleep(), Running::asleep()];
    let mut sampler = of_pids(&running.each_ref().map(Running::pid));
    let folder = tempfile::tempdir().unwrap();
    let start_ns = clock::now_ns();
    let own_rss = || proc::stat(std::process::id()).unwrap().rss_pages * proc::page_bytes();
    let (mut rss_after_an_hour, mut log, mut most_bytes) = (None, None, 0);
    for index in 0..READINGS {
        let now_ns = start_ns + index * 60 * S;
        if index % (READINGS / 24) == 0 {
            if let Some(log) = log.take() {
                most_bytes = Log::bytes(&log).max(most_bytes);
                log.end(&sampler).unwrap();
                rss_after_an_hour = rss_after_an_hour.or(Some(own_rss()));
            }
            let _ = fs::remove_file(folder.path().join(disk::RAW_LOG_FILE));
            log = Some(Log::start(folder.path(), &[], now_ns, Some(start_ns)).unwrap());
        }
        sampler.sample(now_ns);
        log.as_mut().unwrap().write(&sampler, now_ns).unwrap();
    }
    let grown = own_rss().saturating_sub(rss_after_an_hour.unwrap());
    assert!(grown < 1 << 20, "{grown} bytes more than after the first hour");
    assert!(most_bytes < 1 << 20, "{most_bytes} bytes in an hour");
}

#[test]
fn what_a_gpu_does_for_a_process_is_a_figure_of_it() {
    let running = Running::asleep();
    let folder = tempfile::tempdir().unwrap();
    let mut sampler = of_pids(&[running.pid()]);
    sampler.nvml = crate::nvml::tests::stand_in(folder.path(), running.pid());
    if sampler.nvml.is_none() {
        return;
    }
    sampler.sample(S);
    assert_eq!(value(&sampler, running.pid(), "gpu_memory_bytes"), Some(1 << 30));
    assert!(sampler.machine().any(|(name, value)| name.starts_with("gpu_busy_percent:0") && value == 40));
    // Not before it is due.
    sampler.sample(2 * S);
    assert_eq!(value(&sampler, running.pid(), "gpu_ns"), Some(0));
    assert!(!sampler.machine().any(|(name, _)| name.starts_with("gpu_busy_percent")));
}
