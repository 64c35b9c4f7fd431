//! Traces drawn as lines of text.

use std::collections::BTreeMap;
use std::fs;

use stepscope_model::{Capture, Dimension, DimensionStatus, FlowNumber, WaitState};

use crate::{ImportError, ImportOptions, Source, import};

const HEAD: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := i64;
trace { major = 1; minor = 8; byte_order = le; };
env { hostname = "robot"; kernel_release = "6.1"; };
clock { name = "monotonic"; freq = 1000000000; offset = 1000000000000000000; };
stream {
    packet.context := struct { u32 cpu_id; };
    event.header := struct { u32 id; integer { size = 64; align = 8; map = clock.monotonic.value; } timestamp; };
    event.context := struct { u32 _vpid; u32 _vtid; string _procname; };
};
"#;

/// Events with their fields: `s` for a text, `i` for a signed number, `g` for an id of 16 bytes, `u` for another number.
const EVENTS: &[(&str, &str)] = &[
    ("sched_switch", "s:prev_comm u:prev_tid i:prev_state s:next_comm u:next_tid"),
    ("sched_waking", "s:comm u:tid"),
    ("sched_process_fork", "u:parent_tid u:parent_pid s:child_comm u:child_tid u:child_pid"),
    ("sched_process_exit", "s:comm u:tid"),
    ("lttng_statedump_process_state", "u:tid u:pid s:name"),
    ("irq_handler_entry", "u:irq"),
    ("irq_handler_exit", "u:irq"),
    ("ros2:rcl_node_init", "u:node_handle s:node_name s:namespace"),
    ("ros2:rcl_subscription_init", "u:subscription_handle u:node_handle s:topic_name u:rmw_subscription_handle"),
    ("ros2:rcl_publisher_init", "u:publisher_handle u:node_handle u:rmw_publisher_handle s:topic_name"),
    ("ros2:rclcpp_subscription_init", "u:subscription_handle u:subscription"),
    ("ros2:rclcpp_subscription_callback_added", "u:subscription u:callback"),
    ("ros2:rcl_timer_init", "u:timer_handle u:period"),
    ("ros2:rclcpp_timer_callback_added", "u:timer_handle u:callback"),
    ("ros2:rclcpp_callback_register", "u:callback s:symbol"),
    ("ros2:callback_start", "u:callback"),
    ("ros2:callback_end", "u:callback"),
    ("ros2:rclcpp_timer_link_node", "u:timer_handle u:node_handle"),
    ("ros2:rclcpp_publish", "u:publisher_handle u:message"),
    ("ros2:rcl_publish", "u:publisher_handle u:message"),
    ("ros2:rmw_publish", "u:message"),
    ("ros2:rmw_take", "u:rmw_subscription_handle u:message i:source_timestamp u:taken"),
    ("ros2:rcl_service_init", "u:service_handle u:node_handle u:rmw_service_handle s:service_name"),
    ("ros2:rclcpp_service_callback_added", "u:service_handle u:callback"),
    ("ros2:rmw_client_init", "u:rmw_client_handle g:gid"),
    ("ros2:rcl_client_init", "u:client_handle u:node_handle u:rmw_client_handle s:service_name"),
    ("ros2:rmw_send_request", "u:rmw_client_handle u:request i:sequence_number"),
    ("ros2:rmw_take_request", "u:rmw_service_handle u:request g:client_gid i:sequence_number u:taken"),
    ("ros2:rmw_send_response", "u:rmw_service_handle u:response g:client_gid i:sequence_number i:timestamp"),
    ("ros2:rmw_take_response", "u:rmw_client_handle u:response i:sequence_number i:source_timestamp u:taken"),
    ("ros2:rclcpp_executor_execute", "u:handle"),
    ("lttng_ust_statedump:bin_info", "u:baddr u:memsz s:path"),
    ("lttng_ust_cyg_profile:func_entry", "u:addr"),
    ("lttng_ust_cyg_profile:func_exit", "u:addr"),
];

fn metadata() -> String {
    let mut text = HEAD.to_owned();
    for (id, (name, fields)) in EVENTS.iter().enumerate() {
        let declared: Vec<String> = fields
            .split(' ')
            .map(|field| match field.split_once(':').unwrap() {
                ("s", name) => format!("string _{name};"),
                ("i", name) => format!("i64 _{name};"),
                ("g", name) => format!("integer {{ size = 8; align = 8; signed = false; }} _{name}[16];"),
                (_, name) => format!("u64 _{name};"),
            })
            .collect();
        text += &format!("event {{ name = \"{name}\"; id = {id}; fields := struct {{ {} }}; }};\n", declared.join(" "));
    }
    text
}

/// A trace: lines of `TIME CPU PID/TID EVENT ARGUMENT...`, by time. Events of the kernel have no thread (`0/0`).
fn trace(drawn: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut streams: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for line in drawn.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [time, cpu, ids, event, arguments @ ..] = &words[..] else { panic!("{line}") };
        let cpu: u32 = cpu.parse().unwrap();
        let stream = streams.entry(cpu).or_insert_with(|| cpu.to_le_bytes().to_vec());
        let id = EVENTS.iter().position(|(name, _)| name == event).unwrap_or_else(|| panic!("no event {event}"));
        stream.extend((id as u32).to_le_bytes());
        stream.extend(time.parse::<u64>().unwrap().to_le_bytes());
        let (pid, tid) = ids.split_once('/').unwrap();
        stream.extend(pid.parse::<u32>().unwrap().to_le_bytes());
        stream.extend(tid.parse::<u32>().unwrap().to_le_bytes());
        stream.extend(format!("thread{tid}\0").bytes());
        let fields = EVENTS[id].1.split(' ');
        for (field, argument) in fields.zip(arguments) {
            match field.as_bytes()[0] {
                b's' => stream.extend(argument.bytes().chain([0])),
                b'g' => stream.extend(argument.parse::<u128>().unwrap().to_be_bytes()),
                _ => stream.extend(argument.parse::<i64>().unwrap().to_le_bytes()),
            }
        }
    }
    fs::write(folder.path().join("metadata"), metadata()).unwrap();
    for (cpu, stream) in streams {
        fs::write(folder.path().join(format!("channel0_{cpu}")), stream).unwrap();
    }
    folder
}

fn read(drawn: &str) -> Capture {
    let folder = trace(drawn);
    import(Source::open(folder.path()).unwrap(), &ImportOptions::default()).unwrap()
}

fn thread(capture: &Capture, tid: u32) -> (u32, &str, Option<u64>, Option<u64>) {
    let thread = capture.threads.iter().find(|thread| thread.tid == tid).unwrap();
    let process = &capture.processes[thread.process.unwrap().index()];
    (process.pid, &thread.name, thread.cpu_ns, thread.runnable_ns)
}

fn scopes(capture: &Capture) -> Vec<String> {
    let shown = |scope: &stepscope_model::Scope| {
        let tid = capture.threads[scope.thread.index()].tid;
        format!("{tid} {}-{} {} {}", scope.start_ns, scope.end_ns, scope.depth, scope.name)
    };
    capture.scopes.iter().map(shown).collect()
}

#[test]
fn switches_and_wake_ups_become_waits_that_add_up() {
    let capture = read(
        "100 0 0/0 lttng_statedump_process_state 11 10 sim
         110 0 0/0 sched_switch swapper/0 0 0 sim 11
         150 0 0/0 sched_switch sim 11 1 swapper/0 0
         160 1 0/0 sched_switch swapper/1 0 0 net 20
         170 1 0/0 sched_waking sim 11
         190 0 0/0 sched_switch swapper/0 0 0 sim 11
         200 0 0/0 sched_switch sim 11 256 other 30
         230 0 0/0 sched_switch other 30 0 sim 11
         250 1 0/0 sched_switch net 20 2 swapper/1 0",
    );
    let waits: Vec<_> = capture
        .waits
        .iter()
        .filter(|wait| capture.threads[wait.thread.index()].tid == 11)
        .map(|wait| {
            let waker = wait.waker.map(|waker| capture.threads[waker.index()].tid);
            (wait.start_ns, wait.end_ns, wait.state, wait.runnable_ns, waker, wait.cpu)
        })
        .collect();
    assert_eq!(
        waits,
        [
            (100, 110, WaitState::Blocked, None, None, Some(0)),
            (150, 190, WaitState::Blocked, Some(20), Some(20), Some(0)),
            (200, 230, WaitState::Preempted, Some(30), None, Some(0)),
        ]
    );
    // 110 to 150, 190 to 200, 230 to 250.
    assert_eq!(thread(&capture, 11), (10, "sim", Some(70), Some(50)));
    assert_eq!(thread(&capture, 20).2, Some(90));
    assert_eq!((capture.info.start_ns, capture.info.end_ns), (Some(100), Some(250)));
    assert_eq!(capture.info.dimensions[&Dimension::Sched], DimensionStatus::Recorded);
    let machine = capture.info.machine.as_ref().unwrap();
    assert_eq!((machine.host.as_str(), machine.kernel.as_str(), machine.cores), ("robot", "6.1", 2));
    assert_eq!(capture.info.clock.as_deref(), Some("CLOCK_MONOTONIC"));
}

#[test]
fn an_interrupt_is_no_waker() {
    let capture = read(
        "100 0 0/0 sched_switch a 11 1 b 12
         110 0 0/0 irq_handler_entry 7
         115 0 0/0 sched_waking a 11
         120 0 0/0 irq_handler_exit 7
         130 0 0/0 sched_switch b 12 0 a 11",
    );
    let wait = capture.waits.iter().find(|wait| wait.start_ns == 100 && wait.end_ns == 130).unwrap();
    assert_eq!((wait.runnable_ns, wait.waker), (Some(15), None));
}

#[test]
fn a_thread_that_ends_makes_room_for_another_with_its_id() {
    let capture = read(
        "100 0 0/0 sched_process_fork 10 10 child 11 11
         110 0 0/0 sched_switch a 10 0 child 11
         120 0 0/0 sched_process_exit child 11
         125 0 0/0 sched_switch child 11 64 a 10
         200 0 0/0 sched_process_fork 10 10 again 11 10
         210 0 0/0 sched_switch a 10 0 again 11",
    );
    let lives: Vec<_> = capture
        .threads
        .iter()
        .filter(|thread| thread.tid == 11)
        .map(|thread| (thread.name.as_str(), thread.start_ns, thread.end_ns, thread.cpu_ns))
        .collect();
    assert_eq!(lives, [("child", Some(100), Some(125), Some(15)), ("again", Some(200), Some(210), Some(0))]);
    let process = capture.processes.iter().find(|process| process.pid == 11).unwrap();
    assert_eq!((process.parent_pid, process.start_ns, process.end_ns), (Some(10), Some(100), Some(120)));
    assert_eq!(thread(&capture, 10).0, 10);
}

#[test]
fn callbacks_of_ros_2_are_scopes_named_by_node_and_topic() {
    let capture = read(
        "10 0 5/5 ros2:rcl_node_init 100 listener /
         11 0 5/5 ros2:rcl_subscription_init 200 100 /chatter 201
         12 0 5/5 ros2:rclcpp_subscription_init 200 300
         13 0 5/5 ros2:rclcpp_subscription_callback_added 300 400
         14 0 5/5 ros2:rclcpp_callback_register 400 Listener::on
         15 0 5/5 ros2:rcl_timer_init 500 100000000
         16 0 5/5 ros2:rclcpp_timer_callback_added 500 600
         20 0 5/6 ros2:callback_start 400
         22 0 5/7 ros2:callback_start 600
         25 0 5/6 ros2:rclcpp_executor_execute 9
         30 0 5/6 ros2:callback_end 400
         31 0 5/7 ros2:callback_end 600
         40 0 8/8 ros2:callback_start 400
         50 0 8/8 ros2:callback_end 400
         60 0 8/8 ros2:callback_start 401
         61 0 8/8 ros2:callback_end 999",
    );
    assert_eq!(
        scopes(&capture),
        ["6 20-30 0 /listener: /chatter", "7 22-31 0 timer 100 ms", "8 40-50 0 callback 0x190"]
    );
    assert_eq!(thread(&capture, 6), (5, "thread6", None, None));
    let notes = capture.info.notes.join("\n");
    assert!(notes.contains("1 of 16 events fill no table: ros2:rclcpp_executor_execute (1)."), "{notes}");
    assert!(notes.contains("1 start and 1 end of scopes have no counterpart"), "{notes}");
}

/// A talker (process 5) and a listener (process 8), who share no handles, as in ros2_tracing of Humble.
const TALKER_AND_LISTENER: &str = "
    10 0 5/5 ros2:rcl_node_init 100 talker /
    11 0 5/5 ros2:rcl_publisher_init 110 100 111 /chatter
    12 0 5/5 ros2:rcl_timer_init 500 100000000
    13 0 5/5 ros2:rclcpp_timer_callback_added 500 600
    14 0 5/5 ros2:rclcpp_timer_link_node 500 100
    20 0 8/8 ros2:rcl_node_init 100 listener /
    21 0 8/8 ros2:rcl_subscription_init 200 100 /chatter 201
    22 0 8/8 ros2:rclcpp_subscription_init 200 300
    23 0 8/8 ros2:rclcpp_subscription_callback_added 300 400
    100 0 5/6 ros2:callback_start 600
    110 0 5/6 ros2:rclcpp_publish 110 9
    115 0 5/6 ros2:rcl_publish 110 9
    120 0 5/6 ros2:rmw_publish 9
    150 0 5/6 ros2:callback_end 600
    160 1 8/9 ros2:rmw_take 201 77 STAMP 1
    170 1 8/9 ros2:callback_start 400
    180 1 8/9 ros2:callback_end 400
    190 1 8/9 ros2:rmw_take 201 77 0 0
    200 1 8/9 ros2:rmw_take 201 77 1000000000000000005 1
    210 1 8/9 ros2:callback_start 400
    220 1 8/9 ros2:callback_end 400
    230 1 8/9 ros2:rmw_take 999 77 1000000000000000125 1";

fn flows(capture: &Capture) -> Vec<String> {
    let shown = |event: &stepscope_model::FlowEvent| {
        let tid = capture.threads[event.thread.index()].tid;
        let number = |flow| match FlowNumber::of(flow) {
            FlowNumber::Stamped(unix_ns) => format!("@{unix_ns}"),
            number => number.shown().to_string(),
        };
        let (flow, name) = (event.flow.map_or("-".to_owned(), number), event.name.as_deref());
        format!("{} {tid} {} {flow} {} {}", event.time_ns, event.topic, event.stage.name(), name.unwrap_or("-"))
    };
    capture.flows.iter().map(shown).collect()
}

#[test]
fn messages_of_ros_2_are_followed_by_their_source_timestamps() {
    // DDS stamps the message after rcl_publish.
    let capture = read(&TALKER_AND_LISTENER.replace("STAMP", "1000000000000000118"));
    assert_eq!(
        flows(&capture),
        [
            "100 6 timer 100 ms - callback_start /talker: timer 100 ms",
            "110 6 /chatter 0 published /talker",
            "120 6 /chatter 0 sent -",
            "150 6 timer 100 ms - callback_end /talker: timer 100 ms",
            "160 9 /chatter 0 taken -",
            "170 9 /chatter 0 callback_start /listener: /chatter",
            "180 9 /chatter 0 callback_end /listener: /chatter",
            // Published before the trace, or on another machine.
            "200 9 /chatter @1000000000000000005 taken -",
            "210 9 /chatter @1000000000000000005 callback_start /listener: /chatter",
            "220 9 /chatter @1000000000000000005 callback_end /listener: /chatter",
        ]
    );
    assert_eq!(capture.flows[0].period_ns, Some(100_000_000));
    let notes = capture.info.notes.join("\n");
    assert!(notes.contains("1 message without a publication"), "{notes}");
    assert!(notes.contains("1 message of unknown publishers and subscriptions"), "{notes}");
}

#[test]
fn a_source_timestamp_long_after_the_last_publication_is_of_no_message() {
    let capture = read(&TALKER_AND_LISTENER.replace("STAMP", "1000000000060000000"));
    let is_matched = |event: &String| event.contains("taken") && !event.contains('@');
    assert!(!flows(&capture).iter().any(is_matched), "{:?}", flows(&capture));
}

#[test]
fn requests_and_responses_of_services_are_followed_by_the_ids_of_clients() {
    // The ids of the two clients differ in their last byte alone, and the requests have equal numbers.
    let capture = read(
        "1 0 5/5 ros2:rcl_node_init 100 client /
         2 0 5/5 ros2:rmw_client_init 111 256
         3 0 5/5 ros2:rcl_client_init 110 100 111 /add
         4 0 5/5 ros2:rmw_client_init 121 257
         5 0 5/5 ros2:rcl_client_init 120 100 121 /add
         6 0 8/8 ros2:rcl_node_init 200 server /
         7 0 8/8 ros2:rcl_service_init 210 200 211 /add
         8 0 8/8 ros2:rclcpp_service_callback_added 210 400
         10 0 5/5 ros2:rmw_send_request 111 77 1
         20 0 5/6 ros2:rmw_send_request 121 78 1
         30 0 8/9 ros2:rmw_take_request 211 79 257 1 1
         40 0 8/9 ros2:callback_start 400
         50 0 8/9 ros2:rmw_send_response 211 80 257 1 1000
         60 0 8/9 ros2:callback_end 400
         65 0 8/9 ros2:rmw_take_request 211 79 0 0 0
         70 0 5/6 ros2:rmw_take_response 121 81 1 1000 1
         80 0 5/5 ros2:rmw_take_response 111 81 1 1000 1
         90 0 5/5 ros2:rmw_send_request 999 77 2",
    );
    assert_eq!(
        flows(&capture),
        [
            "10 5 service /add 0 published /client",
            "10 5 service /add 0 sent -",
            "20 6 service /add 1 published /client",
            "20 6 service /add 1 sent -",
            "30 9 service /add 1 taken -",
            "40 9 service /add 1 callback_start /server: service /add",
            "50 9 service /add response 0 published /server",
            "50 9 service /add response 0 sent -",
            "60 9 service /add 1 callback_end /server: service /add",
            "70 6 service /add response 0 taken -",
        ]
    );
    let notes = capture.info.notes.join("\n");
    assert!(notes.contains("1 message without a publication"), "{notes}");
    assert!(notes.contains("1 message of unknown publishers and subscriptions"), "{notes}");
}

#[test]
fn functions_are_nested_scopes_named_by_their_file() {
    let capture = read(
        "10 0 5/5 lttng_ust_statedump:bin_info 4096 4096 /no/such/program
         20 0 5/5 lttng_ust_cyg_profile:func_entry 4112
         21 0 5/5 lttng_ust_cyg_profile:func_entry 4128
         22 0 5/5 lttng_ust_cyg_profile:func_exit 4128
         30 0 5/5 lttng_ust_cyg_profile:func_exit 4112
         40 0 5/5 lttng_ust_cyg_profile:func_entry 99
         41 0 5/5 lttng_ust_cyg_profile:func_exit 99",
    );
    assert_eq!(scopes(&capture), ["5 20-30 0 program+0x10", "5 21-22 1 program+0x20", "5 40-41 0 0x63"]);
}

#[test]
fn a_truncated_trace_keeps_what_is_whole_and_says_what_is_lost() {
    let folder = trace("10 0 5/5 ros2:callback_start 1\n20 0 5/5 ros2:callback_end 1\n30 0 5/5 ros2:callback_start 2");
    let stream = folder.path().join("channel0_0");
    let bytes = fs::read(&stream).unwrap();
    fs::write(&stream, &bytes[..bytes.len() - 3]).unwrap();
    let capture = import(Source::open(folder.path()).unwrap(), &ImportOptions::default()).unwrap();
    assert_eq!(scopes(&capture), ["5 10-20 0 callback 0x1"]);
    assert_eq!(capture.info.losses.malformed_records, 1);
    assert!(capture.info.notes[0].starts_with("The trace is damaged in 1 place; "), "{:?}", capture.info.notes);
}

#[test]
fn the_metadata_file_stands_for_its_folder_and_a_stream_of_it_is_an_error() {
    let folder = trace("10 0 5/5 ros2:callback_start 1\n20 0 5/5 ros2:callback_end 1");
    let metadata = folder.path().join("metadata");
    let capture = import(Source::open(&metadata).unwrap(), &ImportOptions::default()).unwrap();
    assert_eq!(capture.scopes.len(), 1);
    let bytes = fs::read(metadata).unwrap();
    let error = import(Source::stream("-", &bytes[..]), &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, ImportError::NotAFolder(_)), "{error}");
    let empty = trace("");
    let error = import(Source::open(empty.path()).unwrap(), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("has no valid record of ctf"), "{error}");
}

#[test]
fn a_trace_of_another_version_and_one_without_a_clock_say_so() {
    let refused = |metadata: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("metadata"), metadata).unwrap();
        import(Source::open(folder.path()).unwrap(), &ImportOptions::default()).unwrap_err().to_string()
    };
    let error = refused("\u{1e}{\n \"type\": \"preamble\", \"version\": 2 }");
    assert!(error.contains("CTF 2"), "{error}");
    let error = refused("/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; event { name = \"a\"; };");
    assert!(error.contains("no clock"), "{error}");
}

/// The capture of a trace whose rows went to tables in a folder, and these tables.
fn read_to_folder(trace: &tempfile::TempDir) -> (Capture, tempfile::TempDir) {
    let tables = tempfile::tempdir().unwrap();
    let options = ImportOptions { folder: Some(tables.path().to_owned()), ..ImportOptions::default() };
    (import(Source::open(trace.path()).unwrap(), &options).unwrap(), tables)
}

#[test]
fn tables_in_a_folder_have_the_rows_that_an_import_keeps_in_memory() {
    let messages = TALKER_AND_LISTENER.replace("STAMP", "1000000000000000118");
    let switches =
        "300 0 0/0 sched_switch a 11 1 b 12\n310 0 0/0 sched_waking a 11\n330 0 0/0 sched_switch b 12 0 a 11";
    let trace = trace(&format!("{messages}\n{switches}"));
    let in_memory = import(Source::open(trace.path()).unwrap(), &ImportOptions::default()).unwrap();
    let (capture, tables) = read_to_folder(&trace);
    assert!(!in_memory.waits.is_empty() && !in_memory.scopes.is_empty() && !in_memory.flows.is_empty());
    assert_eq!(capture, in_memory);
    let written = tempfile::tempdir().unwrap();
    stepscope_model::disk::write(&capture, written.path()).unwrap();
    drop(tables);
    assert_eq!(stepscope_model::disk::read(written.path()).unwrap(), in_memory);
}

#[test]
fn scopes_of_several_groups_in_one_that_stays_open_are_read_in_order_with_names() {
    const CALLS: u64 = 140_000;
    let mut drawn = "10 0 5/5 lttng_ust_statedump:bin_info 4096 4096 /no/such/program\n\
                     20 0 5/5 lttng_ust_cyg_profile:func_entry 4112\n"
        .to_owned();
    for call in 0..CALLS {
        let time = 100 + call * 10;
        drawn += &format!("{time} 0 5/5 lttng_ust_cyg_profile:func_entry 4128\n");
        drawn += &format!("{} 0 5/5 lttng_ust_cyg_profile:func_exit 4128\n", time + 5);
    }
    drawn += "9000000 0 5/5 lttng_ust_cyg_profile:func_exit 4112";
    let (capture, _tables) = read_to_folder(&trace(&drawn));
    assert_eq!(capture.scopes.len() as u64, CALLS + 1);
    let shown = |at: usize| {
        let scope = &capture.scopes[at];
        format!("{} {}-{} {}", scope.name, scope.start_ns, scope.end_ns, scope.depth)
    };
    assert_eq!(shown(0), "program+0x10 20-9000000 0");
    assert_eq!(shown(1), "program+0x20 100-105 1");
    assert_eq!(shown(CALLS as usize), "program+0x20 1400090-1400095 1");
    assert!(capture.scopes.is_sorted_by_key(|scope| scope.start_ns));
    assert_eq!(capture.scopes.iter().filter(|scope| scope.depth == 1).count() as u64, CALLS);
}

#[test]
fn tables_that_cannot_be_written_are_an_error_with_a_remedy() {
    let trace = trace("10 0 5/5 ros2:callback_start 1\n20 0 5/5 ros2:callback_end 1");
    let options = ImportOptions { folder: Some(trace.path().join("missing")), ..ImportOptions::default() };
    let error = import(Source::open(trace.path()).unwrap(), &options).unwrap_err();
    assert!(matches!(error, ImportError::Write(_)), "{error}");
    assert!(error.to_string().ends_with("free space there, or write the capture elsewhere"), "{error}");
}
