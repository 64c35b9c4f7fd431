//! The captures of a recording: where each log starts, ends, and what it says at its end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use stepscope_assemble::{CountedEvent, Entry, MachineReading, RecordingEnd, Sink};
use stepscope_model::{CaptureInfo, Clocks, Dimension, DimensionStatus, Origin, RecordingCost};

use super::Recorder;
use crate::clock;
use crate::clock_exchange::ClockWatch;
use crate::conditions::read_machine;
use crate::error_logs::ErrorLogs;
use crate::finish::create_log;
use crate::marks::Cut;
use crate::perf::{CounterGroups, Kind};
use crate::ros2::Ros2;
use crate::session::log::{Counted, Output};
use crate::session::plan::WITHOUT_COUNTERS;
use crate::session::privilege::Priority;
use crate::session::{Label, RecordError};

impl Recorder {
    /// Starts a log in this folder with what is known so far.
    pub(super) fn new_log(&self, folder: &Path, start_ns: u64) -> Result<Output, RecordError> {
        fs::create_dir_all(folder).map_err(|source| RecordError::Folder { path: folder.to_owned(), source })?;
        let mut writer = create_log(folder)?;
        let (command, working_directory, environment) = self.program.clone();
        let start = Box::new(read_machine());
        writer.take(Entry::Start(Box::new(CaptureInfo {
            origin: Origin::Recorded,
            scenario: self.label.scenario.clone(),
            variant: self.label.variant.clone(),
            phase: self.label.phase,
            command,
            working_directory,
            environment,
            started_at: Some(clock::utc_now()),
            clock: Some("CLOCK_MONOTONIC".to_owned()),
            start_ns: Some(start_ns),
            recording_start_ns: self.recording_start_ns,
            clocks: Some(Clocks { own: clock::id(), wall: vec![clock::wall_reading()], peers: Vec::new() }),
            machine: Some(self.machine.clone()),
            conditions: Some(start.conditions_until(None, None)),
            dimensions: self.dimensions.clone(),
            ..CaptureInfo::default()
        })));
        Ok(Output::Log {
            writer: Box::new(writer),
            folder: folder.to_owned(),
            cpu_before_ns: clock::thread_cpu_ns(),
            start,
        })
    }

    pub(super) fn begin_next(&mut self, folder: &Path, label: Label) -> Result<(), RecordError> {
        self.read_before_cut();
        self.label = label;
        self.recording_start_ns = None;
        let output = self.new_log(folder, self.looked_ns)?;
        self.cut(output, Cut::Phase);
        self.error_logs.iter_mut().for_each(|logs| logs.continue_in(folder));
        Ok(())
    }

    /// Brings records and readings up to date. A log starts with the last readings: from an old one on, the kernel's account of
    /// CPU time would have time from before the cut.
    pub(super) fn read_before_cut(&mut self) {
        if let Some(heap) = &mut self.heap {
            heap.snapshot();
        }
        self.read_pending_waits();
        self.round();
        self.read_resources();
        self.add_sums();
    }

    /// Goes on in another folder. Steps across the cut belong to the log in which they end.
    pub(super) fn rotate(&mut self, folder: &Path) -> Result<(), RecordError> {
        self.read_before_cut();
        self.flush();
        if let Some(failure) = &self.failure {
            return Err(RecordError::Broken(failure.clone()));
        }
        let before_ns = self.recording_start_ns;
        self.recording_start_ns = before_ns.or(Some(self.window_ns));
        match self.new_log(folder, self.looked_ns) {
            Ok(output) => {
                self.cut(output, Cut::Segment);
                self.error_logs.iter_mut().for_each(|logs| logs.continue_in(folder));
                Ok(())
            }
            Err(error) => {
                self.recording_start_ns = before_ns;
                Err(error)
            }
        }
    }

    /// Ends the present log at the time up to which records have been taken, and goes on with another.
    pub(super) fn cut(&mut self, output: Output, cut: Cut) {
        self.holds_launch = false;
        // Everything up to the last look has arrived.
        let now_ns = self.looked_ns;
        self.drain(now_ns);
        let mut next = Counted { steps: self.sink.steps, cpu_event: self.sink.cpu_event, ..Counted::new(output) };
        let reading = read_machine();
        if let Some(heap) = &mut self.heap {
            heap.finish(&mut self.assembler, &mut self.sink);
            heap.begin_log(now_ns);
        }
        if let Output::Log { cpu_before_ns, start, .. } = &mut next.output {
            *cpu_before_ns = clock::thread_cpu_ns();
            **start = reading.clone();
        }
        self.add_pending_waits();
        self.assembler.split(now_ns, &mut self.sink, &mut next);
        let mut ended = std::mem::replace(&mut self.sink, next);
        self.close(&mut ended, now_ns, reading);
        self.marks.cut(cut);
        if cut == Cut::Segment {
            self.assembler.continue_steps(&mut self.sink);
        }
        self.window_ns = now_ns;
        if let Some(resources) = &self.resources {
            resources.repeat(now_ns, &self.assembler, &mut self.sink);
        }
    }

    /// Completes a log.
    pub(super) fn close(&mut self, sink: &mut Counted, end_ns: u64, end: MachineReading) {
        // Also without a log: what was counted until now is not of the next one.
        let counted = self.counters.as_mut().map(CounterGroups::take).unwrap_or_default();
        let Output::Log { writer, folder, cpu_before_ns, start } = &mut sink.output else { return };
        let files = &mut self.assembler.target_mut().kept;
        let mut file_notes = files.copy_to(folder);
        file_notes.extend(self.python.as_ref().and_then(|python| python.note(files)));
        let speed_probe_cpu_ns = self.speed.take_cpu_ns();
        let cpu_ns = clock::thread_cpu_ns().saturating_sub(*cpu_before_ns) + speed_probe_cpu_ns;
        let log_bytes = writer.bytes();
        write_peers(self.clock_watch.as_ref(), writer.as_mut());
        writer.take(Entry::MarksLost { count: self.marks.lost() });
        writer.take(Entry::RecordingEnd(Box::new(RecordingEnd {
            end_ns: Some(end_ns),
            cost: Some(RecordingCost { cpu_ns, speed_probe_cpu_ns, finish_cpu_ns: 0, log_bytes }),
            notes: self.notes().into_iter().chain(file_notes).collect(),
            found_step: self.found_step.clone(),
            dimensions: self.dimensions_at_end(&counted),
            machine: Some(((**start).clone(), end)),
            wall: Some(clock::wall_reading()),
            counted,
        })));
        writer.flush();
        if writer.error().is_some() {
            // A chunk that was written in part would count as damage.
            let _ = writer.out().set_len(writer.bytes());
        }
    }

    /// The notes of the capture.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.marks.notes();
        if self.unobserved > 0 {
            notes.push(format!(
                "{} processes that came during the recording could not be observed: they ended at once, or the limit on open \
                 files (`ulimit -n`) is too low.",
                self.unobserved
            ));
        }
        if self.unobserved_threads > 0 {
            notes.push(format!(
                "{} threads started while the recorder attached, and they or those that they started may be missing: the limit on \
                 open files (`ulimit -n`) is too low, or threads start faster than they are found.",
                self.unobserved_threads
            ));
        }
        notes.extend(self.ros2.iter().flat_map(Ros2::notes));
        notes.extend(self.speed.notes());
        notes.extend(self.error_logs.as_ref().and_then(ErrorLogs::note));
        if self.priority == Priority::Ordinary && self.assembler.losses().lost_records > 0 {
            notes.push(
                "The recorder had ordinary priority and waited for a CPU while records were lost. It may raise its \
                 priority with CAP_SYS_NICE, or where `ulimit -r` or `ulimit -e` allow it."
                    .to_owned(),
            );
        }
        notes
    }

    fn dimensions_at_end(&self, counted: &[CountedEvent]) -> BTreeMap<Dimension, DimensionStatus> {
        let mut dimensions = self.dimensions.clone();
        // In some virtual machines, counters can be opened and never count.
        if !counted.is_empty() && counted.iter().all(|event| event.count.is_none_or(|count| count == 0)) {
            let reason =
                "The hardware counters do not count: the virtual machine passes them through only partly.".to_owned();
            let status = DimensionStatus::Missing { reason, remedy: Some(WITHOUT_COUNTERS.to_owned()) };
            dimensions.insert(Dimension::Cache, status);
        }
        // Where the log has marked steps, the capture says so itself; here is why it has none.
        if let (false, Some(DimensionStatus::Missing { reason, .. })) =
            (self.meanings.contains_key(&Kind::Step), dimensions.get_mut(&Dimension::Steps))
        {
            self.marks.explain_no_steps(reason);
        }
        if let (Some(resources), Some(status)) = (&self.resources, dimensions.get_mut(&Dimension::Resources)) {
            let lacks = resources.lacks();
            if !lacks.is_empty() {
                *status = DimensionStatus::Partial { lacks };
            }
        }
        if let Some(heap) = &self.heap {
            dimensions.insert(Dimension::Heap, heap.status());
        }
        dimensions
    }

    pub(super) fn flush(&mut self) {
        let losses = self.assembler.losses().clone();
        self.sink.take(Entry::Losses(Box::new(losses)));
        self.sink.take(Entry::MarksLost { count: self.marks.lost() });
        if let Output::Log { writer, .. } = &mut self.sink.output {
            write_peers(self.clock_watch.as_ref(), writer.as_mut());
            writer.flush();
            self.check_log();
        }
    }

    /// Stops recording if the log cannot be written any more. It then ends with its last whole chunk.
    pub(super) fn check_log(&mut self) {
        let Output::Log { writer, .. } = &mut self.sink.output else { return };
        match writer.error() {
            None => self.written_ns = self.looked_ns,
            Some(error) if self.failure.is_none() => {
                let kept_s = self.written_ns.saturating_sub(self.window_ns) as f64 / 1e9;
                self.failure = Some(format!(
                    "the recording cannot be written any more ({error}): the first {kept_s:.1} s are kept, and the rest \
                     is missing"
                ));
                // A chunk that was written in part would count as damage.
                let _ = writer.out().set_len(writer.bytes());
                let _ = self.events.disable();
            }
            Some(_) => {}
        }
    }
}

/// Writes the exchanges with other machines since the last time.
fn write_peers(watch: Option<&ClockWatch>, sink: &mut impl Sink) {
    for peer in watch.into_iter().flat_map(ClockWatch::take) {
        sink.take(Entry::ClockPeer(Box::new(peer)));
    }
}
