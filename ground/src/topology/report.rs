//! Prints the report of a run as text and as JSON, and [writes](files) it in the framework's files.

#[cfg(test)]
mod example;
pub mod files;

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::executor::kind::ExecutorKind;
use super::latency::Latencies;
use super::resources::Resources;
use super::system::{Ipc, Middleware, Outcome};
use super::tracker::Tracker;
use crate::switches::name_of;

/// What was run and how.
#[derive(Debug, Clone, Serialize)]
pub struct Conditions {
    /// The topology's file.
    pub topology: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of executors; each has a thread.
    pub executors: usize,
    /// The executor.
    pub executor: ExecutorKind,
    /// Whether messages are passed by pointer within the process.
    pub ipc: Ipc,
    /// The middleware.
    pub middleware: Middleware,
    /// Switches that are slow.
    pub slow: String,
}

/// The report as text.
pub fn text(conditions: &Conditions, outcome: &Outcome) -> String {
    let Conditions { topology, nodes, executors, slow, .. } = conditions;
    let (executor, ipc) = (name_of(&conditions.executor), name_of(&conditions.ipc));
    let middleware = name_of(&conditions.middleware);
    let mut text = format!(
        "{topology}: {nodes} nodes on {executors} executors; executor {executor}, ipc {ipc}, middleware {middleware}, slow \
         {slow}\n\n"
    );
    let names = |tracker: &Tracker| (tracker.node.len(), tracker.entity.len());
    let all = || outcome.subscriptions.iter().chain(&outcome.clients);
    let (wide, wider) = all().map(names).fold((4, 5), |(a, b), (c, d)| (a.max(c), b.max(d)));
    let header = "received  late  too late  lost  mean us    sd us   p50 us   p99 us    max us";
    let _ = writeln!(text, "{:<wide$}  {:<wider$}  {header}", "node", "topic");
    for tracker in all() {
        let Tracker { node, entity, late, too_late, latencies, .. } = tracker;
        let (received, lost) = (tracker.received(), tracker.lost());
        let _ = write!(text, "{node:<wide$}  {entity:<wider$}  {received:>8} {late:>5} {too_late:>9} {lost:>5}");
        let _ = writeln!(text, "{}", durations_text(latencies));
    }
    let total = outcome.total();
    let (received, late, too_late, lost) = (total.received(), total.late, total.too_late, total.lost);
    let _ = write!(text, "{:<wide$}  {:<wider$}  {received:>8} {late:>5} {too_late:>9} {lost:>5}", "total", "");
    let _ = writeln!(text, "{}", durations_text(&total.latencies));
    let Resources { cpu_percent, user_percent, rss_kb, peak_rss_kb, .. } = outcome.resources;
    let _ = writeln!(
        text,
        "\nCPU   {cpu_percent:.2} % of all CPUs; user time {user_percent:.2} % of wall time\n\
         RSS   {rss_kb} KiB at the end, {peak_rss_kb} KiB at most"
    );
    text
}

fn durations_text(durations: &Latencies) -> String {
    let cell = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
    format!(
        " {:>8} {:>8} {:>8} {:>8} {:>9}",
        cell(durations.mean_us()),
        cell(durations.sd_us()),
        cell(durations.percentile_us(0.5)),
        cell(durations.percentile_us(0.99)),
        cell(durations.max_us()),
    )
}

/// The report as JSON. Percentages and durations without data are `null`.
pub fn json(conditions: &Conditions, outcome: &Outcome) -> Value {
    let total = outcome.total();
    let resources = &outcome.resources;
    json!({
        "schema": 1,
        "conditions": conditions,
        "subscriptions": outcome.subscriptions.iter().map(tracker_json).collect::<Vec<_>>(),
        "clients": outcome.clients.iter().map(tracker_json).collect::<Vec<_>>(),
        "publishers": outcome.publishers.iter().map(|published| json!({
            "node": published.node,
            "topic": published.topic,
            "size_bytes": published.size_bytes,
            "frequency_hz": 1.0 / published.period.as_secs_f64(),
            "published": published.durations.count(),
            "duration": durations_json(&published.durations),
        })).collect::<Vec<_>>(),
        "total": {
            "received": total.received(),
            "late": total.late,
            "late_percent": total.late_percent(),
            "too_late": total.too_late,
            "too_late_percent": total.too_late_percent(),
            "lost": total.lost,
            "lost_percent": total.lost_percent(),
            "latency": durations_json(&total.latencies),
        },
        "resources": {
            "wall_s": resources.elapsed.as_secs_f64(),
            "cpu_s": resources.cpu.as_secs_f64(),
            "cpu_percent_of_all_processors": resources.cpu_percent, // phrase kept: a key that programs read
            "user_percent_of_wall": resources.user_percent,
            "rss_kb": resources.rss_kb,
            "peak_rss_kb": resources.peak_rss_kb,
        },
        "events": outcome.events.count(),
    })
}

fn tracker_json(tracker: &Tracker) -> Value {
    json!({
        "node": tracker.node,
        "topic": tracker.entity,
        "size_bytes": tracker.size_bytes,
        "frequency_hz": tracker.frequency_hz(),
        "received": tracker.received(),
        "late": tracker.late,
        "too_late": tracker.too_late,
        "lost": tracker.lost(),
        "unserved": tracker.unserved,
        "latency": durations_json(&tracker.latencies),
        "mean_without_too_late_us": tracker.in_time.mean_us(),
    })
}

fn durations_json(durations: &Latencies) -> Value {
    json!({
        "mean_us": durations.mean_us(),
        "sd_us": durations.sd_us(),
        "min_us": durations.min_us(),
        "p50_us": durations.percentile_us(0.5),
        "p99_us": durations.percentile_us(0.99),
        "max_us": durations.max_us(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_null_and_not_nan() {
        let conditions = Conditions {
            topology: "x.json".to_owned(),
            nodes: 2,
            executors: 1,
            executor: ExecutorKind::Events,
            ipc: Ipc::On,
            middleware: Middleware::Ground,
            slow: "none".to_owned(),
        };
        let json = json(&conditions, &example::outcome());
        assert_eq!(json["subscriptions"][1]["latency"]["mean_us"], Value::Null);
        assert_eq!(json["total"]["latency"]["mean_us"].as_f64().map(f64::round), Some(4133.0));
        assert_eq!(json["events"], 1);
        assert_eq!(json["subscriptions"][0]["mean_without_too_late_us"], 200.0);
        let text = text(&conditions, &example::outcome());
        assert!(text.contains("listener               /chatter         3     0         1     2   4133.3"), "{text}");
        assert!(!text.to_lowercase().contains("nan") && !text.contains("inf"), "{text}");
    }
}
