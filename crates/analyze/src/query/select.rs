//! [`Selection`]: the part of a capture that an analysis is about.
//!
//! Every analysis takes one. It copies no samples. Filters on threads and processes become one flag per thread; filters on
//! functions, modules and ownership become one flag per node of the call tree.
//!
//! What the filters mean:
//!
//! - *thread*, *process*: samples, waits and readings of these.
//! - *function*, *module*, *owned*: stacks that contain a matching function anywhere. The rest of the stack stays in view, as
//!   with `focus` in pprof. Filters of one kind are alternatives; filters of different kinds must all match.
//! - *time*: samples within it. Waits and lifetimes are cut to it.
//! - *steps*: the time from the start of the first of these steps to the end of the last, of the loop with the most steps
//!   among the chosen threads. A range of time cuts it further.
//! - *event*: samples of this event. Weights of two events are never added up, so there is always exactly one event; by
//!   default [the event of CPU time](crate::query::events::primary).
//!
//! A filter that matches nothing in the capture is an error that lists the choices.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use stepscope_model::{
    Capture, Dimension, DimensionStatus, Event, EventId, ProcessId, Sample, StackId, Step, Thread, ThreadId, Wait,
};

use crate::query::categories::{Categories, CategoryRules};
use crate::query::events;
use crate::query::filter::describe;
pub use crate::query::filter::{Filter, ProcessPattern, StepRange, ThreadPattern, TimeRange, Under};
use crate::query::filter_matches::{absolute, chosen_stacks, chosen_threads, find_event, recording};
use crate::query::functions::Functions;
use crate::query::loops::{Loops, Steps};
use crate::query::off_cpu::{OffCpu, Order};
use crate::query::process_label::process_labels;
pub use crate::query::select_error::SelectError;
use crate::query::step_paths::KnownPaths;
use crate::query::thinned_stacks::ThinnedStacks;
use crate::query::waits;

/// A part of a capture, and the functions in it.
#[derive(Debug, Clone)]
pub struct Selection<'a> {
    capture: &'a Capture,
    functions: &'a Functions,
    threads: Option<Arc<[bool]>>,
    stacks: Option<Arc<[bool]>>,
    time: Option<Range<u64>>,
    event: Option<EventId>,
    process_labels: Arc<[String]>,
    description: Vec<String>,
    thinned_stacks: Arc<OnceLock<Option<ThinnedStacks>>>,
    wait_order: Arc<OnceLock<Arc<Order>>>,
    category_rules: Arc<CategoryRules>,
    categories: Arc<OnceLock<Categories>>,
    pub(crate) steps: Arc<KnownSteps>,
}

/// The steps and wake-ups of a selection, found when they are first asked for: several analyses need the same.
///
/// They depend on the selected threads and the selected time, not on the event and the stacks.
#[derive(Debug, Default)]
pub(crate) struct KnownSteps {
    pub loops: OnceLock<Option<Arc<Loops>>>,
    pub paths: OnceLock<Option<Arc<KnownPaths>>>,
    /// Blocked intervals without the wake-up that they should have, and all of them.
    pub wake_ups: OnceLock<(usize, usize)>,
}

impl KnownSteps {
    /// The same loops, if all their steps lie in a shorter time: a program may take millions of steps.
    fn within(&self, time: &Range<u64>) -> Self {
        let is_inside = |steps: &Steps| time.start <= steps.span.start && steps.span.end <= time.end;
        let same = self.loops.get().filter(|loops| loops.as_ref().is_some_and(|loops| loops.all().all(is_inside)));
        Self { loops: same.cloned().map_or_else(OnceLock::new, OnceLock::from), ..Self::default() }
    }
}

impl<'a> Selection<'a> {
    /// All of a capture. `functions` must be of this capture.
    pub fn all(capture: &'a Capture, functions: &'a Functions) -> Self {
        let event = events::primary(capture);
        let process_labels = process_labels(&capture.processes, &[]).into();
        Self {
            capture,
            functions,
            threads: None,
            stacks: None,
            time: None,
            event,
            process_labels,
            description: Vec::new(),
            thinned_stacks: Arc::default(),
            wait_order: Arc::default(),
            category_rules: Arc::default(),
            categories: Arc::default(),
            steps: Arc::default(),
        }
    }

    /// What `filter` selects of a capture. `functions` must be of this capture.
    ///
    /// # Errors
    /// If a filter matches nothing in the capture.
    pub fn new(capture: &'a Capture, functions: &'a Functions, filter: &Filter) -> Result<Self, SelectError> {
        let mut selection = Self::all(capture, functions);
        let naming = &filter.naming;
        if !naming.processes.is_empty() {
            selection.process_labels = process_labels(&capture.processes, &naming.processes).into();
        }
        if naming.categories != CategoryRules::default() {
            selection.category_rules = Arc::new(naming.categories.clone());
        }
        selection.threads = chosen_threads(capture, &selection.process_labels, filter)?;
        selection.stacks = chosen_stacks(capture, functions, filter)?;
        if let Some(range) = filter.time {
            selection.time = Some(absolute(capture, range)?);
        }
        if let Some(range) = filter.steps {
            selection.time = Some(span_of_steps(&selection, range)?);
        }
        if let Some(name) = &filter.event {
            selection.event = Some(find_event(capture, name)?);
        }
        selection.description = describe(filter);
        Ok(selection)
    }

    /// The same selection of another event's samples.
    pub fn of_event(&self, event: EventId) -> Self {
        Self { event: Some(event), ..self.clone() }
    }

    /// The same selection, cut to a range of the capture's clock.
    pub fn within(&self, range: Range<u64>) -> Self {
        let time = match &self.time {
            Some(time) => time.start.max(range.start)..time.end.min(range.end),
            None => range,
        };
        let steps = Arc::new(self.steps.within(&time));
        Self { time: Some(time), steps, ..self.clone() }
    }

    /// The same selection, of one thread only.
    pub fn of_thread(&self, thread: ThreadId) -> Self {
        let only: Arc<[bool]> = (0..self.capture.threads.len()).map(|index| index == thread.index()).collect();
        Self { threads: Some(only), steps: Arc::default(), ..self.clone() }
    }

    /// The [label](crate::query::process_label) of a process.
    pub fn process_label(&self, process: ProcessId) -> &str {
        &self.process_labels[process.index()]
    }

    /// The label of a thread's process; empty if that is unknown.
    pub fn process_label_of(&self, thread: &Thread) -> &str {
        thread.process.map_or("", |process| self.process_label(process))
    }

    /// The categories of the capture's samples.
    pub fn categories(&self) -> &Categories {
        let make = || Categories::of(self.capture, self.functions, &self.process_labels, &self.category_rules);
        self.categories.get_or_init(make)
    }

    /// The capture.
    pub fn capture(&self) -> &'a Capture {
        self.capture
    }

    /// The capture's functions.
    pub fn functions(&self) -> &'a Functions {
        self.functions
    }

    /// The event whose samples are selected; absent if the capture has none.
    pub fn event_id(&self) -> Option<EventId> {
        self.event
    }

    /// The event whose samples are selected; absent if the capture has none.
    pub fn event(&self) -> Option<&'a Event> {
        self.event.map(|event| self.capture.event(event))
    }

    /// The filters, in words: empty if everything is selected.
    pub fn description(&self) -> String {
        self.description.join(", ")
    }

    /// The selected samples of the selected event.
    pub fn samples(&self) -> impl Iterator<Item = &'a Sample> + '_ {
        self.capture.samples.iter().filter(|sample| {
            Some(sample.event) == self.event
                && self.has_thread(sample.thread)
                && self.has_time(sample.time_ns)
                && self.has_stack(sample.stack)
        })
    }

    /// The selected waits, cut to the selected time. Those whose stack was left out have that of a
    /// [similar wait](crate::query::thinned_stacks).
    pub fn waits(&self) -> impl Iterator<Item = Wait> + '_ {
        self.thread_waits().filter(|wait| self.has_stack(wait.stack))
    }

    /// The waits of the selected threads at *any* stack, cut to the selected time: for sums that make up a lifetime.
    pub fn thread_waits(&self) -> impl Iterator<Item = Wait> + '_ {
        self.thread_wait_rows().map(|(_, wait)| wait)
    }

    /// The same, with their rows in the capture.
    pub(crate) fn thread_wait_rows(&self) -> impl Iterator<Item = (usize, Wait)> + '_ {
        let thinned = self.thinned_stacks();
        let complete = move |row, wait| thinned.map_or(wait, |thinned| thinned.completed(self.capture, row, wait));
        let rows = self.capture.waits.iter().enumerate().filter(|(_, wait)| self.has_thread(wait.thread));
        rows.filter_map(move |(row, wait)| Some((row, complete(row, self.cut(&wait)?))))
    }

    /// The wait in a row of the capture, not cut, with the stack of a [similar wait](crate::query::thinned_stacks) if its own was
    /// left out.
    #[inline]
    pub fn completed_wait(&self, row: usize) -> Wait {
        let wait = self.capture.waits.at(row);
        self.thinned_stacks().map_or(wait, |thinned| thinned.completed(self.capture, row, wait))
    }

    /// Stacks for waits without one; `None` if no stacks were left out.
    #[inline]
    pub(crate) fn thinned_stacks(&self) -> Option<&ThinnedStacks> {
        self.thinned_stacks.get_or_init(|| ThinnedStacks::of(self.capture)).as_ref()
    }

    /// The time off the CPU of *all* threads, in order. It is put in order once.
    pub fn off_cpu(&self) -> OffCpu<'a> {
        let order = self.wait_order.get_or_init(|| OffCpu::of(self.capture).order());
        OffCpu::in_order(self.capture, order.clone())
    }

    /// The selected threads.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &'a Thread)> + '_ {
        let rows = self.capture.threads.iter().enumerate();
        rows.map(|(index, thread)| (ThreadId::from_index(index), thread)).filter(|(id, _)| self.has_thread(*id))
    }

    /// Whether the thread is selected.
    #[inline]
    pub fn has_thread(&self, thread: ThreadId) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads[thread.index()])
    }

    /// One flag per thread; absent if all are selected.
    pub(crate) fn thread_flags(&self) -> Option<&[bool]> {
        self.threads.as_deref()
    }

    /// Whether stacks are filtered, so that only a part of a thread's time is selected.
    pub fn filters_stacks(&self) -> bool {
        self.stacks.is_some()
    }

    /// Whether threads or processes are filtered.
    pub fn filters_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Whether a range of time is selected.
    pub fn filters_time(&self) -> bool {
        self.time.is_some()
    }

    /// The selected part of the recording window, on the capture's clock; absent where times are unknown.
    pub fn window(&self) -> Option<Range<u64>> {
        let recorded = recording(self.capture)?;
        Some(match &self.time {
            Some(time) => {
                recorded.start.max(time.start)..recorded.end.min(time.end).max(recorded.start.max(time.start))
            }
            None => recorded,
        })
    }

    /// Length of the selected part of the recording, where times are known.
    pub fn wall_ns(&self) -> Option<u64> {
        self.window().map(|window| window.end - window.start)
    }

    /// When the thread lived, within the selected time; absent where that is unknown.
    pub fn lifetime(&self, thread: ThreadId) -> Option<Range<u64>> {
        let row = &self.capture.threads[thread.index()];
        let (start, end) = (row.start_ns?, row.end_ns?);
        let (start, end) = match &self.time {
            Some(time) => (start.max(time.start), end.min(time.end)),
            None => (start, end),
        };
        Some(start..end.max(start))
    }

    /// Exact CPU time of each thread in the selected time, from context switches. Absent if unknown, and for threads that
    /// are not selected.
    pub fn cpu_times(&self) -> Vec<Option<u64>> {
        if self.time.is_none() {
            let of_row =
                |index: usize, thread: &Thread| self.has_thread(ThreadId::from_index(index)).then_some(thread.cpu_ns?);
            return self.capture.threads.iter().enumerate().map(|(index, thread)| of_row(index, thread)).collect();
        }
        if !self.has_switches() {
            return vec![None; self.capture.threads.len()];
        }
        let mut off_cpu = vec![0_u64; self.capture.threads.len()];
        for wait in self.thread_waits() {
            let off_cpu = &mut off_cpu[wait.thread.index()];
            *off_cpu = off_cpu.saturating_add(wait.end_ns - wait.start_ns);
        }
        let on_cpu = |(index, off_cpu): (usize, u64)| {
            let thread = ThreadId::from_index(index);
            let life = self.has_thread(thread).then(|| self.lifetime(thread)).flatten()?;
            Some((life.end - life.start).saturating_sub(off_cpu))
        };
        off_cpu.into_iter().enumerate().map(on_cpu).collect()
    }

    /// Whether context switches were recorded, so that the absence of waits means that there were none.
    pub fn has_switches(&self) -> bool {
        let recorded = |dimension| {
            matches!(
                self.capture.info.dimensions.get(&dimension),
                Some(DimensionStatus::Recorded | DimensionStatus::Partial { .. })
            )
        };
        !self.capture.waits.is_empty() || recorded(Dimension::Sched) || recorded(Dimension::Offcpu)
    }

    /// Whether a stack passes the filters on functions, modules and ownership.
    #[inline]
    pub fn has_stack(&self, stack: Option<StackId>) -> bool {
        match (&self.stacks, stack) {
            (None, _) => true,
            (Some(flags), Some(stack)) => flags[stack.index()],
            // The last flag is that of no stack.
            (Some(flags), None) => flags[flags.len() - 1],
        }
    }

    /// Whether a moment is selected. What has no time is in no range of time.
    #[inline]
    pub fn has_time(&self, time_ns: Option<u64>) -> bool {
        match (&self.time, time_ns) {
            (None, _) => true,
            (Some(range), Some(time)) => range.contains(&time),
            (Some(_), None) => false,
        }
    }

    /// A wait within the selected time; `None` if it is outside.
    #[inline]
    fn cut(&self, wait: &Wait) -> Option<Wait> {
        match &self.time {
            Some(time) => waits::cut(wait, time),
            None => Some(*wait),
        }
    }
}

/// From the start of the first of these steps to the end of the last, of the main loop in the selection so far.
fn span_of_steps(selection: &Selection<'_>, range: StepRange) -> Result<Range<u64>, SelectError> {
    let loops = Loops::find(selection.capture, selection.window().as_ref(), selection.thread_flags())
        .ok_or(SelectError::NoSuchSteps(None))?;
    let rows = loops.main().rows();
    let wanted = |step: &&Step| step.index >= range.from && range.to.is_none_or(|to| step.index < to);
    let start = rows.iter().filter(wanted).map(|step| step.start_ns).min();
    let end = rows.iter().filter(wanted).map(|step| step.end_ns).max();
    start.zip(end).map(|(start, end)| start..end).ok_or_else(|| {
        let numbers = || rows.iter().map(|step| step.index);
        SelectError::NoSuchSteps(numbers().min().zip(numbers().max()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{self, Drawing, owned_by};
    use crate::query::naming::Naming;
    use crate::query::pattern::Pattern;
    use crate::query::process_label::ProcessNameRule;

    fn weights(capture: &Capture, filter: &Filter) -> Vec<u64> {
        drawn::filtered(capture, &["gz::"], filter, |selection| {
            selection.samples().map(|sample| sample.weight).collect()
        })
    }

    fn refused(capture: &Capture, filter: &Filter) -> SelectError {
        let functions = Functions::of(capture, &Owned::nothing());
        Selection::new(capture, &functions, filter).unwrap_err()
    }

    use crate::query::ownership::Owned;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn threads_are_chosen_by_id_name_and_expression() {
        let capture = drawn::folded("main;a 1\nworker-1;a 2\nworker-2;a 4\n100;a 8");
        let by = |text: &str| weights(&capture, &Filter { threads: vec![text.parse().unwrap()], ..Filter::default() });
        assert_eq!(by("100"), [1], "a number is a tid, not a name");
        assert_eq!(by("worker-*"), [2, 4]);
        assert_eq!(by("/er-[2-9]/"), [4]);
    }

    #[test]
    fn processes_are_chosen_by_id_and_executable() {
        let capture = Drawing::new()
            .process(7, "/usr/bin/gz-sim")
            .folded(Event::sampled("cpu-clock", "ns"), "main;a 1")
            .process(8, "/usr/bin/rviz")
            .folded(Event::sampled("cpu-clock", "ns"), "gui;a 2")
            .capture;
        let by =
            |text: &str| weights(&capture, &Filter { processes: vec![text.parse().unwrap()], ..Filter::default() });
        assert_eq!((by("gz-*"), by("8")), (vec![1], vec![2]));
    }

    #[test]
    fn processes_of_one_program_are_chosen_by_their_labels() {
        let mut capture = Drawing::new()
            .process(7, "/ws/rosnode_bench")
            .folded(Event::sampled("cpu-clock", "ns"), "main;a 1")
            .process(8, "/ws/rosnode_bench")
            .folded(Event::sampled("cpu-clock", "ns"), "loop;a 2")
            .capture;
        for (process, node) in capture.processes.iter_mut().zip(["lidar", "map"]) {
            process.command_line = format!("/ws/rosnode_bench __name:={node}");
        }
        let filter = |text: &str| Filter { processes: vec![text.parse().unwrap()], ..Filter::default() };
        let by = |text: &str| weights(&capture, &filter(text));
        assert_eq!((by("rosnode_bench"), by("rosnode_bench map"), by("*lidar")), (vec![1, 2], vec![2], vec![1]));
        assert_eq!(
            refused(&capture, &filter("camera")).to_string(),
            "no process matches `camera`; there are `rosnode_bench lidar`, `rosnode_bench map`"
        );
        assert_eq!(
            refused(&capture, &filter("Map")).to_string(),
            "no process matches `Map`; there are `rosnode_bench map`, `rosnode_bench lidar`"
        );
        let rule = ProcessNameRule { command_line: "*:=map".parse().unwrap(), label: "mapper".into() };
        assert_eq!(
            weights(
                &capture,
                &Filter { naming: Naming { processes: vec![rule], ..Naming::default() }, ..filter("mapper") }
            ),
            [2]
        );
    }

    #[test]
    fn a_function_selects_the_stacks_that_pass_through_it() {
        let capture = drawn::folded("main;run;gz::Each<int>;find 1\nmain;run;other 2\nmain;gz::Each<long> 4\nmain 8");
        let by = |text: &str| weights(&capture, &Filter { functions: patterns(&[text]), ..Filter::default() });
        assert_eq!(by("run"), [1, 2]);
        assert_eq!(by("gz::Each"), [1, 4], "the own qualified name selects every instance of a template");
        assert_eq!(by("gz::Each<int>"), [1]);
    }

    #[test]
    fn filters_of_one_kind_add_and_of_two_kinds_narrow() {
        let capture = drawn::folded("main;run;step 1\nmain;load 2\nworker;run 4");
        let functions = patterns(&["run", "load"]);
        assert_eq!(weights(&capture, &Filter { functions: functions.clone(), ..Filter::default() }), [1, 2, 4]);
        let filter = Filter { functions, threads: vec!["main".parse().unwrap()], ..Filter::default() };
        assert_eq!(weights(&capture, &filter), [1, 2]);
    }

    #[test]
    fn modules_are_chosen_by_file_name() {
        let capture = drawn::columns(
            "
            main                           main
            Run [lib:/usr/lib/libgz.so.1]  Run
            step
            1                              2
            ",
        );
        assert_eq!(weights(&capture, &Filter { modules: patterns(&["libgz.*"]), ..Filter::default() }), [1]);
    }

    #[test]
    fn stacks_are_under_owned_code_or_not_and_no_stack_is_not() {
        let capture = drawn::folded("main;gz::Run;malloc 1\nmain;malloc 2\nmain 4");
        let by = |side| weights(&capture, &Filter { ownership: Some(side), ..Filter::default() });
        assert_eq!((by(Under::Owned), by(Under::NotOwned)), (vec![1], vec![2, 4]));
        let filter = Filter { ownership: Some(Under::Owned), ..Filter::default() };
        assert_eq!(refused(&capture, &filter), SelectError::NothingOwned);
    }

    #[test]
    fn steps_are_selected_by_number_from_the_start_of_the_first_to_the_end_of_the_last() {
        let capture = Drawing::new()
            .window(0..1_000)
            .steps("main", 100, 100, 5, 1)
            .folded(
                Event::sampled("cpu-clock", "ns"),
                "@150 main;a 1\n@250 main;a 2\n@350 main;a 4\n@550 main;a 8\n@650 main;a 16",
            )
            .capture;
        let of = |from, to| weights(&capture, &Filter { steps: Some(StepRange { from, to }), ..Filter::default() });
        assert_eq!([of(0, Some(1)), of(1, Some(3)), of(3, None)], [vec![1], vec![2, 4], vec![8]]);
        let none = Filter { steps: Some(StepRange { from: 5, to: Some(9) }), ..Filter::default() };
        assert_eq!(refused(&capture, &none).to_string(), "no step has such a number: there are steps 0 to 4");
        assert_eq!(refused(&drawn::folded("main;a 1"), &none), SelectError::NoSuchSteps(None));
    }

    #[test]
    fn a_range_of_time_is_counted_from_the_start_and_half_open() {
        let drawing = Drawing::new().window(1_000..2_000);
        let capture =
            drawing.folded(Event::sampled("cpu-clock", "ns"), "@1000 main;a 1\n@1100 main;a 2\n@1200 main;a 4").capture;
        let by = |from_ns, to_ns| {
            weights(&capture, &Filter { time: Some(TimeRange { from_ns, to_ns }), ..Filter::default() })
        };
        assert_eq!(by(0, Some(100)), [1]);
        assert_eq!(by(100, None), [2, 4]);
        let error =
            refused(&capture, &Filter { time: Some(TimeRange { from_ns: 1_000, to_ns: None }), ..Filter::default() });
        assert_eq!(
            error.to_string(),
            "nothing was recorded 1.00 µs after the start or later: the recording lasted 1.00 µs"
        );
        let range = TimeRange { from_ns: 500, to_ns: Some(400) };
        assert_eq!(
            refused(&capture, &Filter { time: Some(range), ..Filter::default() }).to_string(),
            "a range from 500 ns to 400 ns after the start holds nothing; its end must be after its start"
        );
    }

    #[test]
    fn waits_and_lifetimes_are_cut_to_the_time_and_runnable_time_is_the_waits_end() {
        let capture = Drawing::new()
            .window(0..1_000)
            .lived("main", 0..1_000, 800)
            .blocked_then_runnable("main", 100..300, 50, "a")
            .capture;
        let cut = |from_ns, to_ns| {
            let filter = Filter { time: Some(TimeRange { from_ns, to_ns: Some(to_ns) }), ..Filter::default() };
            drawn::filtered(&capture, &[], &filter, |selection| {
                let waits: Vec<(u64, u64, Option<u64>)> =
                    selection.waits().map(|wait| (wait.start_ns, wait.end_ns, wait.runnable_ns)).collect();
                (waits, selection.lifetime(ThreadId(0)).unwrap(), selection.cpu_times()[0])
            })
        };
        assert_eq!(cut(0, 1_000), (vec![(100, 300, Some(50))], 0..1_000, Some(800)));
        assert_eq!(cut(200, 280), (vec![(200, 280, Some(30))], 200..280, Some(0)));
        assert_eq!(cut(150, 240), (vec![(150, 240, Some(0))], 150..240, Some(0)));
        assert_eq!(cut(260, 400), (vec![(260, 300, Some(40))], 260..400, Some(100)));
        assert_eq!(cut(300, 400), (vec![], 300..400, Some(100)));
    }

    #[test]
    fn a_filter_that_matches_nothing_says_what_there_is() {
        let capture = drawn::folded("main;RenderUtil::UpdateFromECM 1\nworker;b 2");
        let thread = Filter { threads: vec!["Main".parse().unwrap()], ..Filter::default() };
        assert_eq!(refused(&capture, &thread).to_string(), "no thread matches `Main`; there are `main`, `worker`");
        let function = Filter { functions: patterns(&["Update*"]), ..Filter::default() };
        assert_eq!(
            refused(&capture, &function).to_string(),
            "no function matches `Update*`; did you mean `'*Update*'`? there are `RenderUtil::UpdateFromECM`"
        );
        let event = Filter { event: Some("cycles".to_owned()), ..Filter::default() };
        assert_eq!(refused(&capture, &event).to_string(), "no event matches `cycles`; there are `cpu-clock`");
        let process = Filter { processes: vec!["gz".parse().unwrap()], ..Filter::default() };
        assert_eq!(refused(&capture, &process).to_string(), "no process matches `gz`; the capture has no processes");
        let time = Filter { time: Some(TimeRange { from_ns: 0, to_ns: None }), ..Filter::default() };
        assert_eq!(refused(&capture, &time), SelectError::NoTimes);
    }

    #[test]
    fn events_are_kept_apart() {
        let capture = Drawing::new()
            .folded(Event::sampled("minor-faults", "faults"), "main;a 1")
            .folded(Event::sampled("cpu-clock", "ns"), "main;a 1000")
            .capture;
        assert_eq!(weights(&capture, &Filter::default()), [1_000]);
        assert_eq!(weights(&capture, &Filter { event: Some("minor-faults".to_owned()), ..Filter::default() }), [1]);
    }

    #[test]
    fn a_selection_describes_its_filters() {
        let capture = drawn::folded("main;gz::a 1\nworker;b 2");
        let filter = Filter {
            threads: vec!["main".parse().unwrap(), "worker".parse().unwrap()],
            ownership: Some(Under::Owned),
            ..Filter::default()
        };
        let functions = Functions::of(&capture, &owned_by(&["gz::"]));
        let selection = Selection::new(&capture, &functions, &filter).unwrap();
        assert_eq!(selection.description(), "thread main or worker, under owned code");
    }
}
