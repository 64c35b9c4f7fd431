//! When a scenario is ready: the conditions that end its loading phase.
//!
//! A [`Watch`] is a state machine. It receives an [`Observation`] every few milliseconds and reports when its condition
//! is met. It asks [`Surroundings`] for the state of the system, so that tests need no processes.

use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;

use crate::lab_file::Ready;
use crate::output::printable;

mod surroundings;

pub use surroundings::{FileState, Listener, Surroundings, TreeSurroundings};

/// Most bytes kept of a line without an end; the last part is kept.
const LONGEST_LINE: usize = 64 << 10;

/// Time between checks of conditions that read `/proc`.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Events since the last observation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observation<'a> {
    /// Time since the scenario was launched.
    pub since_launch: Duration,
    /// New output of the scenario.
    pub output: &'a [u8],
    /// Steps that have ended so far, if they are counted.
    pub steps: Option<u64>,
}

/// Waits for the condition of one launch.
#[derive(Debug)]
pub struct Watch {
    condition: Condition,
}

#[derive(Debug)]
enum Condition {
    Log { wanted: Wanted, line: Vec<u8> },
    Port { port: u16, next_look: Duration },
    File { path: PathBuf, at_launch: Option<FileState> },
    Steps(u64),
    After(Duration),
}

#[derive(Debug)]
enum Wanted {
    Text(String),
    Match(Regex),
}

impl Watch {
    /// A watch for `ready`, made before the launch: an existing file does not count.
    pub fn new(ready: &Ready, surroundings: &mut dyn Surroundings) -> Self {
        let condition = match ready {
            Ready::Log(text) => Condition::Log { wanted: Wanted::Text(text.clone()), line: Vec::new() },
            Ready::LogRegex(regex) => Condition::Log { wanted: Wanted::Match(regex.clone()), line: Vec::new() },
            Ready::Port(port) => Condition::Port { port: *port, next_look: Duration::ZERO },
            Ready::File(path) => Condition::File { path: path.clone(), at_launch: surroundings.file(path) },
            Ready::Steps(steps) => Condition::Steps(*steps),
            Ready::After(time) => Condition::After(*time),
        };
        Self { condition }
    }

    /// What met the condition, such as ``output "Loaded world"``; `None` if it is not met yet.
    pub fn look(&mut self, seen: &Observation, surroundings: &mut dyn Surroundings) -> Option<String> {
        match &mut self.condition {
            Condition::Log { wanted, line } => {
                let line = find_line(wanted, line, seen.output)?;
                Some(format!("output \"{}\"", shortened(&line)))
            }
            Condition::Port { port, next_look } => {
                if seen.since_launch < *next_look {
                    return None;
                }
                *next_look = seen.since_launch + LOOK_EVERY;
                let pid = surroundings.listeners(*port).into_iter().find_map(|listener| listener.pid)?;
                Some(format!("port {port} open in process {pid}"))
            }
            Condition::File { path, at_launch } => {
                let now = surroundings.file(path)?;
                (Some(now) != *at_launch).then(|| format!("file {}", path.display()))
            }
            Condition::Steps(steps) => (seen.steps? >= *steps).then(|| format!("{steps} steps")),
            Condition::After(time) => {
                (seen.since_launch >= *time).then(|| format!("{} s after launch", time.as_secs_f64()))
            }
        }
    }

    /// Why the condition was not met, and what may help, in a sentence.
    pub fn explain_failure(&self, surroundings: &mut dyn Surroundings) -> String {
        match &self.condition {
            Condition::Log { wanted, .. } => {
                let wanted = match wanted {
                    Wanted::Text(text) => format!("held \"{text}\""),
                    Wanted::Match(regex) => format!("matched `{regex}`"),
                };
                format!(
                    "no line of its output {wanted}. A program may buffer its output when it does not write to a \
                     terminal: run it under `stdbuf -oL`, or with PYTHONUNBUFFERED=1 for Python"
                )
            }
            Condition::Port { port, .. } => {
                let others = surroundings.listeners(*port);
                match others.iter().find(|listener| listener.pid.is_none()) {
                    Some(_) => format!(
                        "none of its processes listened on TCP port {port}; a program outside the scenario does: end \
                         it, or take another port"
                    ),
                    None => format!("none of its processes listened on TCP port {port}"),
                }
            }
            Condition::File { path, at_launch } => {
                let change = if at_launch.is_some() { "changed" } else { "appeared" };
                format!("the file {} never {change}", path.display())
            }
            Condition::Steps(steps) => {
                format!("fewer than {steps} steps ended, or none is counted; `stepscope doctor` shows what steps need")
            }
            Condition::After(time) => {
                format!("`after_s` is {} s, longer than the loading timeout", time.as_secs_f64())
            }
        }
    }
}

/// The first wanted line in `output`. `line` holds the start of a line that has not ended.
fn find_line(wanted: &Wanted, line: &mut Vec<u8>, output: &[u8]) -> Option<String> {
    let mut rest = output;
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r') {
        line.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        let complete = printable(&std::mem::take(line));
        let found = match wanted {
            Wanted::Text(text) => complete.contains(text.as_str()),
            Wanted::Match(regex) => regex.is_match(&complete),
        };
        if found {
            return Some(complete);
        }
    }
    line.extend_from_slice(rest);
    // A prompt may never get a line end, but a pattern may refer to it, so only text matches without one.
    if let Wanted::Text(text) = wanted {
        let so_far = printable(line);
        if !rest.is_empty() && so_far.contains(text.as_str()) {
            return Some(so_far);
        }
    }
    if line.len() > LONGEST_LINE {
        line.drain(..line.len() - LONGEST_LINE / 2);
    }
    None
}

fn shortened(line: &str) -> String {
    const LONGEST: usize = 100;
    let line = line.trim();
    if line.chars().count() <= LONGEST {
        return line.to_owned();
    }
    line.chars().take(LONGEST).chain(std::iter::once('\u{2026}')).collect()
}

/// Checks that the condition can be observed without steps, which are not counted for this reason.
///
/// # Errors
/// The reason, and what to write instead.
pub fn check_observable_without_steps(ready: &Ready, reason: &str) -> Result<(), String> {
    match ready {
        Ready::Steps(_) => Err(format!(
            "`ready = {{ steps = ... }}` needs steps to be counted while recording: {reason}; \
             otherwise use `log`, `port`, `file` or `after_s`"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[derive(Default)]
    struct Fake {
        file: Option<FileState>,
        listeners: Vec<Listener>,
        looks: usize,
    }

    impl Surroundings for Fake {
        fn file(&mut self, _: &Path) -> Option<FileState> {
            self.file
        }

        fn listeners(&mut self, _: u16) -> Vec<Listener> {
            self.looks += 1;
            self.listeners.clone()
        }
    }

    /// Feeds pieces of output, and returns the matches with the number of the piece.
    fn found(ready: &Ready, pieces: &[&str]) -> Option<(usize, String)> {
        let mut watch = Watch::new(ready, &mut Fake::default());
        pieces.iter().enumerate().find_map(|(index, piece)| {
            let seen = Observation { output: piece.as_bytes(), ..Observation::default() };
            Some((index, watch.look(&seen, &mut Fake::default())?))
        })
    }

    #[test]
    fn text_is_found_in_a_line_that_comes_in_pieces_with_colours_and_without_an_end() {
        let ready = Ready::Log("Loaded world".into());
        let line = |line: &str| format!("output \"{line}\"");
        assert_eq!(found(&ready, &["[Msg] Load", "ed wor", "ld.\n"]), Some((2, line("[Msg] Loaded world."))));
        assert_eq!(found(&ready, &["Loaded\nworld\n", ""]), None);
        assert_eq!(found(&ready, &["\x1b[1mLoaded\x1b[0m world> "]), Some((0, line("Loaded world>"))));
        assert_eq!(found(&ready, &["10 %\rLoaded world\r"]), Some((0, line("Loaded world"))));
    }

    #[test]
    fn a_pattern_waits_for_the_end_of_the_line() {
        let ready = Ready::LogRegex(Regex::new("^Loaded [0-9]+$").unwrap());
        assert_eq!(found(&ready, &["Loaded 3", "0\n"]), Some((1, "output \"Loaded 30\"".into())));
        assert_eq!(found(&ready, &["was Loaded 30\n"]), None);
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory_and_its_last_part_is_still_searched() {
        let mut watch = Watch::new(&Ready::Log("needle".into()), &mut Fake::default());
        let hay = vec![b'h'; 100_000];
        for _ in 0..5 {
            let seen = Observation { output: &hay, ..Observation::default() };
            assert_eq!(watch.look(&seen, &mut Fake::default()), None);
        }
        let Condition::Log { line, .. } = &watch.condition else { panic!() };
        assert!(line.len() <= LONGEST_LINE);
        let seen = Observation { output: b"nee", ..Observation::default() };
        assert_eq!(watch.look(&seen, &mut Fake::default()), None);
        let seen = Observation { output: b"dle", ..Observation::default() };
        assert!(watch.look(&seen, &mut Fake::default()).is_some());
    }

    #[test]
    fn a_port_counts_only_when_a_process_of_the_scenario_holds_it() {
        let mut fake = Fake { listeners: vec![Listener { pid: None }], ..Fake::default() };
        let mut watch = Watch::new(&Ready::Port(11345), &mut fake);
        let at = |ms| Observation { since_launch: Duration::from_millis(ms), ..Observation::default() };
        assert_eq!(watch.look(&at(0), &mut fake), None);
        assert!(watch.explain_failure(&mut fake).contains("a program outside the scenario does"));
        fake.listeners.push(Listener { pid: Some(7) });
        assert_eq!(watch.look(&at(100), &mut fake), Some("port 11345 open in process 7".into()));
    }

    #[test]
    fn proc_is_looked_at_ten_times_a_second_and_not_more() {
        let mut fake = Fake::default();
        let mut watch = Watch::new(&Ready::Port(1), &mut fake);
        for ms in 0..1000 {
            let seen = Observation { since_launch: Duration::from_millis(ms), ..Observation::default() };
            watch.look(&seen, &mut fake);
        }
        assert_eq!(fake.looks, 10);
    }

    #[test]
    fn a_file_counts_when_it_appears_or_is_written_anew() {
        let state = |modified_ns| Some(FileState { identity: (1, 2), bytes: 3, modified_ns });
        let ready = Ready::File("/run/ready".into());
        let mut fake = Fake::default();
        let mut watch = Watch::new(&ready, &mut fake);
        assert_eq!(watch.look(&Observation::default(), &mut fake), None);
        fake.file = state(1);
        assert_eq!(watch.look(&Observation::default(), &mut fake), Some("file /run/ready".into()));

        let mut watch = Watch::new(&ready, &mut fake);
        assert_eq!(watch.look(&Observation::default(), &mut fake), None);
        assert_eq!(watch.explain_failure(&mut fake), "the file /run/ready never changed");
        fake.file = state(2);
        assert!(watch.look(&Observation::default(), &mut fake).is_some());
    }

    #[test]
    fn time_and_steps_are_counted_from_the_launch() {
        let mut fake = Fake::default();
        let mut watch = Watch::new(&Ready::After(Duration::from_millis(1500)), &mut fake);
        let at = |ms, steps| Observation { since_launch: Duration::from_millis(ms), steps, output: b"" };
        assert_eq!(watch.look(&at(1499, None), &mut fake), None);
        assert_eq!(watch.look(&at(1500, None), &mut fake), Some("1.5 s after launch".into()));
        let mut watch = Watch::new(&Ready::Steps(10), &mut fake);
        assert_eq!(watch.look(&at(0, None), &mut fake), None);
        assert_eq!(watch.look(&at(0, Some(9)), &mut fake), None);
        assert_eq!(watch.look(&at(0, Some(10)), &mut fake), Some("10 steps".into()));
    }

    #[test]
    fn steps_are_refused_as_a_condition_when_no_one_counts_them() {
        let never = "the scenario has no `step`";
        let error = check_observable_without_steps(&Ready::Steps(10), never).unwrap_err();
        assert!(error.contains("the scenario has no `step`"), "{error}");
        assert_eq!(check_observable_without_steps(&Ready::Port(1), never), Ok(()));
    }
}
