//! `[record]` and `stop`: what to record, and how to stop a program.

use std::time::Duration;

use stepscope_model::{Dimension, Phase};

use super::super::decode::{Field, Fields, Problems};
use super::super::settings::{RecordSettings, StopSettings};
use super::values::Reader;

const MOST_HZ: u64 = 100_000;

/// Evidence in `with`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Further {
    Dimension(Dimension),
    /// Caches, simulated in a run of its own.
    CacheSimulation,
    /// Python functions in stacks.
    Python,
    /// Messages and callbacks of ROS 2.
    Ros2,
}

/// The given keys of a `[record]`.
#[derive(Clone, Default)]
pub(super) struct PartialRecord {
    dimensions: Option<Vec<Dimension>>,
    with: Option<Vec<Further>>,
    frequency_hz: Option<u64>,
    phases: Option<Vec<Phase>>,
    loading_timeout: Option<Duration>,
    warmup: Option<Duration>,
    duration: Option<Duration>,
    pub(super) steps: Option<u64>,
    speed_probe: Option<bool>,
    python: Option<bool>,
}

impl PartialRecord {
    /// Whether these keys of a scenario need a `ready`: the scenario itself requests the loading phase, or no other phase is
    /// recorded.
    pub(super) fn needs_ready(&self, general: &PartialRecord) -> bool {
        let asks_itself = self.phases.as_ref().is_some_and(|phases| phases.contains(&Phase::Loading));
        let phases = self.phases.as_ref().or(general.phases.as_ref());
        asks_itself || phases.is_some_and(|phases| *phases == [Phase::Loading])
    }

    /// These keys; missing ones are those of `general`.
    pub(super) fn over(self, general: &PartialRecord) -> Self {
        Self {
            dimensions: self.dimensions.or_else(|| general.dimensions.clone()),
            with: self.with.or_else(|| general.with.clone()),
            frequency_hz: self.frequency_hz.or(general.frequency_hz),
            phases: self.phases.or_else(|| general.phases.clone()),
            loading_timeout: self.loading_timeout.or(general.loading_timeout),
            warmup: self.warmup.or(general.warmup),
            duration: self.duration.or(general.duration),
            steps: self.steps.or(general.steps),
            speed_probe: self.speed_probe.or(general.speed_probe),
            python: self.python.or(general.python),
        }
    }

    /// With defaults for missing keys.
    pub(super) fn settled(self, has_step: bool, has_ready: bool) -> RecordSettings {
        let default = RecordSettings::default();
        let mut dimensions = self.dimensions.unwrap_or(default.dimensions);
        let with = self.with.unwrap_or_default();
        for further in &with {
            match further {
                Further::Dimension(further) if !dimensions.contains(further) => dimensions.push(*further),
                Further::Dimension(_) | Further::CacheSimulation | Further::Python | Further::Ros2 => {}
            }
        }
        if has_step && !dimensions.contains(&Dimension::Steps) {
            dimensions.push(Dimension::Steps);
        }
        let mut phases = self.phases.unwrap_or(default.phases);
        if !has_ready {
            // Without `ready`, loading has no end and is not a phase.
            phases = vec![Phase::Steady];
        }
        RecordSettings {
            dimensions,
            simulates_caches: with.contains(&Further::CacheSimulation),
            python: self.python.or(with.contains(&Further::Python).then_some(true)),
            ros2: with.contains(&Further::Ros2),
            frequency_hz: self.frequency_hz.unwrap_or(default.frequency_hz),
            phases,
            loading_timeout: self.loading_timeout.unwrap_or(default.loading_timeout),
            warmup: self.warmup.unwrap_or(default.warmup),
            duration: self.duration.unwrap_or(default.duration),
            steps: self.steps,
            speed_probe: self.speed_probe.unwrap_or(default.speed_probe),
        }
    }
}

impl Reader {
    pub(super) fn record(&self, mut fields: Fields, problems: &mut Problems) -> PartialRecord {
        let dimensions = fields.take("dimensions").and_then(|field| self.dimensions(&field, problems));
        let with = fields.take("with").and_then(|field| self.further(&field, problems));
        let frequency_hz = fields.take("frequency_hz").and_then(|field| field.integer(problems, 1..=MOST_HZ));
        let phases = fields.take("phases").and_then(|field| self.phases(&field, problems));
        let speed_probe = fields.take("speed_probe").and_then(|field| field.boolean(problems));
        let python = fields.take("python").and_then(|field| field.boolean(problems));
        let mut partial =
            PartialRecord { dimensions, with, frequency_hz, phases, speed_probe, python, ..PartialRecord::default() };
        let loading = fields.take("loading");
        let expected = r#"a table, e.g. { timeout_s = 120 } (phases = ["steady"] leaves this phase out)"#;
        if let Some(mut loading) = loading.and_then(|field| field.table(problems, "`loading`".to_owned(), expected)) {
            partial.loading_timeout = loading.take("timeout_s").and_then(|field| field.seconds(problems));
            loading.finish(problems);
        }
        let steady = fields.take("steady");
        let expected =
            r#"a table, e.g. { warmup_s = 5, duration_s = 30 } (phases = ["loading"] leaves this phase out)"#;
        if let Some(mut steady) = steady.and_then(|field| field.table(problems, "`steady`".to_owned(), expected)) {
            partial.warmup = steady.take("warmup_s").and_then(|field| field.seconds(problems));
            partial.steps = steady.take("steps").and_then(|field| field.integer(problems, 1..=u64::MAX));
            partial.duration = steady.take("duration_s").and_then(|field| {
                let duration = field.seconds(problems)?;
                if duration.is_zero() {
                    problems.add(
                        field.span(),
                        r#"a duration of 0 s records nothing; to leave out the steady phase, write phases = ["loading"]"#,
                    );
                }
                Some(duration)
            });
            steady.finish(problems);
        }
        fields.finish(problems);
        partial
    }

    fn dimensions(&self, field: &Field, problems: &mut Problems) -> Option<Vec<Dimension>> {
        self.choices(field, "dimension", &Dimension::ALL.map(|dimension| (dimension.name(), dimension)), problems)
    }

    fn further(&self, field: &Field, problems: &mut Problems) -> Option<Vec<Further>> {
        let dimensions = Dimension::ALL.iter().map(|dimension| (dimension.name(), Further::Dimension(*dimension)));
        let others = [("cache-sim", Further::CacheSimulation), ("python", Further::Python), ("ros2", Further::Ros2)];
        let known: Vec<_> = dimensions.chain(others).collect();
        self.choices(field, "dimension", &known, problems)
    }

    fn phases(&self, field: &Field, problems: &mut Problems) -> Option<Vec<Phase>> {
        let known = [("loading", Phase::Loading), ("steady", Phase::Steady)];
        let mut phases = self.choices(field, "phase", &known, problems)?;
        phases.sort_unstable();
        Some(phases)
    }

    pub(super) fn stop(&self, field: &Field, default: StopSettings, problems: &mut Problems) -> StopSettings {
        let expected = "a table, e.g. { interrupt_s = 5, terminate_s = 5 }";
        let Some(mut fields) = field.table(problems, "`stop`".to_owned(), expected) else { return default };
        let interrupt = fields.take("interrupt_s").and_then(|field| field.seconds(problems));
        let terminate = fields.take("terminate_s").and_then(|field| field.seconds(problems));
        fields.finish(problems);
        StopSettings {
            interrupt: interrupt.unwrap_or(default.interrupt),
            terminate: terminate.unwrap_or(default.terminate),
        }
    }
}
