use super::*;
use crate::import::{Source, import};

fn read(text: &str) -> Capture {
    import(Source::stream("it", text.as_bytes()), &ImportOptions::default()).unwrap()
}

/// Interval, place or thread, event, count, unit, running of enabled.
fn rows(capture: &Capture) -> Vec<String> {
    let row = |row: &EventCount| {
        let interval = match (row.start_ns, row.end_ns) {
            (Some(start), Some(end)) => format!("{start}..{end} "),
            _ => String::new(),
        };
        let thread = row.thread.map(|thread| format!("{} ", capture.threads[thread.index()].name));
        let place = row.place.as_ref().map(|place| format!("{place} "));
        let count = row.count.map_or("-".to_owned(), |count| count.to_string());
        let time = |time: Option<u64>| time.map_or("-".to_owned(), |time| time.to_string());
        let (running, enabled) = (time(row.running_ns), time(row.enabled_ns));
        let of = thread.or(place).unwrap_or_default();
        format!("{interval}{of}{} {count} {} {running}/{enabled}", row.event, row.unit)
    };
    capture.event_counts.iter().map(row).collect()
}

#[test]
fn rows_with_points_have_counts_units_and_running_times() {
    let capture = read(
        "# started on Mon Nov 23 15:00:00 2026\n\n3.70,msec,task-clock,3704195,100.00,0.313,CPUs utilized\n\
         8000,,cycles:u,3000000,75.00,2.1,GHz\n<not supported>,,LLC-load-misses,0,100.00,,\n<not counted>,,branches,0,0.00,,\n\
         12,,cpu/event=0x3c,umask=0x0/,3704195,100.00,,\n,,,,,,29.4,%  tma_backend_bound\n",
    );
    assert_eq!(
        rows(&capture),
        [
            "task-clock 3700000 ns 3704195/3704195",
            "cycles:u 8000 cycles 3000000/4000000",
            "LLC-load-misses - misses 0/0",
            "branches - branches 0/-",
            "cpu/event=0x3c,umask=0x0/ 12 events 3704195/3704195",
        ]
    );
    let status = DimensionStatus::Partial {
        lacks: vec!["Not counted, at least in part: `LLC-load-misses`, `branches`.".to_owned()],
    };
    assert_eq!(capture.info.dimensions[&Dimension::Cache], status);
    assert_eq!(capture.info.losses.malformed_records, 0);
}

/// As perf prints it in a German locale.
#[test]
fn decimal_commas_are_read_with_any_separator() {
    let expected = ["task-clock 3700000 ns 3704195/3704195", "cycles 8000 cycles 3000000/4000000"];
    for text in [
        "3,70;msec;task-clock;3704195;100,00;0,313;CPUs utilized\n8000;;cycles;3000000;75,00;2,1;GHz\n",
        "3,70,msec,task-clock,3704195,100,00,0,313,CPUs utilized\n8000,,cycles,3000000,75,00,2,100,GHz\n",
        "3,70\tmsec\ttask-clock\t3704195\t100,00\n8000\t\tcycles\t3000000\t75,00\t\t\n",
        "{\"counter-value\" : \"3,700000\", \"unit\" : \"msec\", \"event\" : \"task-clock\", \"event-runtime\" : 3704195, \
          \"pcnt-running\" : 100,00, \"metric-value\" : 0,24, \"metric-unit\" : \"CPUs utilized\"}\n\
          {\"counter-value\" : \"8000,000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"event-runtime\" : 3000000, \"pcnt-running\" : 75,00}\n",
    ] {
        assert_eq!(rows(&read(text)), expected, "{text}");
    }
    let interval = "     0,053848266,0,77,msec,task-clock,770843,100,00,0,015,CPUs utilized\n     0,053848266,9,,cycles,770843,100,00,,\n";
    assert_eq!(
        rows(&read(interval)),
        ["0..53848266 task-clock 770000 ns 770843/770843", "0..53848266 cycles 9 cycles 770843/770843"]
    );
}

#[test]
fn intervals_start_where_the_one_before_ends_and_summaries_do_not_count_twice() {
    let capture = read(
        "     0.050000000,0.77,msec,task-clock,770843,100.00,,\n     0.050000000,10,,cycles,770843,100.00,,\n\
         \u{20}    0.100000000,<not counted>,,cycles,0,0.00,,\n         summary,0.77,msec,task-clock,770843,100.00,,\n",
    );
    assert_eq!(
        rows(&capture),
        [
            "0..50000000 task-clock 770000 ns 770843/770843",
            "0..50000000 cycles 10 cycles 770843/770843",
            "50000000..100000000 cycles - cycles 0/-",
        ]
    );
    assert_eq!((capture.info.start_ns, capture.info.end_ns), (Some(0), Some(100_000_000)));
}

#[test]
fn cpus_cores_and_threads_are_distinguished() {
    let capture = read(
        "CPU0,52.04,msec,cpu-clock,52038718,100.00,1.000,CPUs utilized\nS0-D0-C1,2,7,,cycles,52050164,100.00,,\n\
         S0,2,9,,cycles,52050164,100.00,,\nros2 node-4711,8,,cycles,52050164,100.00,,\n",
    );
    assert_eq!(
        rows(&capture),
        [
            "CPU0 cpu-clock 52040000 ns 52038718/52038718",
            "S0-D0-C1 cycles 7 cycles 52050164/52050164",
            "S0 cycles 9 cycles 52050164/52050164",
            "ros2 node cycles 8 cycles 52050164/52050164",
        ]
    );
    assert_eq!(capture.threads[0].tid, 4711);
    let json = read(
        "{\"core\" : \"S0-D0-C0\", \"aggregate-number\" : 1, \"counter-value\" : \"5.000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"event-runtime\" : 5, \"pcnt-running\" : 100.00}\n\
         {\"cpu\" : \"3\", \"counter-value\" : \"6.000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"event-runtime\" : 5, \"pcnt-running\" : 100.00}\n\
         {\"interval\" : 1.5, \"thread\" : \"sim-12\", \"counter-value\" : \"7.000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"event-runtime\" : 5, \"pcnt-running\" : 100.00}\n",
    );
    assert_eq!(
        rows(&json),
        ["S0-D0-C0 cycles 5 cycles 5/5", "CPU3 cycles 6 cycles 5/5", "0..1500000000 sim cycles 7 cycles 5/5"]
    );
}

/// What perf 5.19 and 6.0 wrote.
#[test]
fn json_that_is_none_is_read() {
    let capture = read(
        "{\"counter-value\" : \"4.020534\", \"unit\" : \"msec\", \"event\" : \"task-clock\", \"event-runtime\" : 4020534100.00, \"pcnt-running\" : 100.00, }\n\
         {\"counter-value\" : \"1.0\", \"unit\" : \"\", \"event\" : \"cycles\", \"event-runtime\" : 9, \"pcnt-running\" : 100.00} {\"metric-value\" : 237.2, \"metric-unit\" : \"MB/s\"}\n\
         {\"counter-value\" : \"<not supported>\", \"unit\" : \"\", \"event\" : \"slots\", \"event-runtime\" : 0, \"pcnt-running\" : 100.00, \"metric-value\" : 0.0, \"metric-unit\" : \"(null)\"}\n",
    );
    assert_eq!(rows(&capture), ["task-clock 4020534 ns 4020534/4020534", "cycles 1 cycles 9/9", "slots - slots 0/0"]);
    assert_eq!(capture.info.losses.malformed_records, 0, "{:?}", capture.info.notes);
}

#[test]
fn variances_are_skipped_and_other_lines_counted() {
    let capture = read(
        "the program's own line\n3.70,msec,task-clock,1.23%,3704195,100.00,,\n5,,cycles,0.50%,370,50.00,,\n7,,cycles",
    );
    assert_eq!(rows(&capture), ["task-clock 3700000 ns 3704195/3704195", "cycles 5 cycles 370/740"]);
    assert_eq!(capture.info.losses.malformed_records, 2);
}

#[test]
fn a_machine_without_counters_is_named_as_such() {
    let capture = read("<not supported>,,cycles,0,100.00,,\n<not supported>,,cache-misses,0,100.00,,\n");
    let DimensionStatus::Missing { reason, .. } = &capture.info.dimensions[&Dimension::Cache] else { panic!() };
    assert_eq!(reason, "perf could not count `cache-misses`, `cycles`: the machine has no such counters.");
}

#[test]
fn a_truncated_text_keeps_its_whole_rows() {
    let text = "3.70,msec,task-clock,3704195,100.00,0.313,CPUs utilized\n8000,,cycles:u,3000000,75.00,2.1,GHz\n";
    for end in 0..text.len() {
        if let Ok(capture) = import(Source::stream("it", &text.as_bytes()[..end]), &ImportOptions::default()) {
            assert!(!capture.event_counts.is_empty() && capture.check().is_ok());
        }
    }
}
