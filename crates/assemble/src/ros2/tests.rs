use stepscope_model::FlowNumber;

use super::*;

/// Arguments by name, as `name=value`; texts begin with a letter or a slash.
struct Drawn<'a>(Vec<(&'a str, &'a str)>);

impl Fields for Drawn<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        self.0.iter().find(|(name, _)| *name == field)?.1.parse().ok()
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        let text = self.0.iter().find(|(name, _)| *name == field)?.1;
        (!text.starts_with(|first: char| first.is_ascii_digit())).then_some(text.as_bytes())
    }
}

/// The stages of calls, one a line: `time pid/tid function argument=value ...`; the origin is 1,000,000 ns after 1970.
fn stages(calls: &str) -> (Messages, Vec<String>) {
    let mut messages = Messages::new(1_000_000);
    for line in calls.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let time_ns = words.next().unwrap().parse().unwrap();
        let (pid, tid) = words.next().unwrap().split_once('/').unwrap();
        let caller = Caller { pid: pid.parse().unwrap(), tid: tid.parse().unwrap() };
        let kind = Kind::of(words.next().unwrap()).unwrap();
        let call = Drawn(words.map(|word| word.split_once('=').unwrap()).collect());
        messages.take(kind, &call, caller, time_ns);
    }
    let shown = |stage: Stage| {
        let flow = stage.flow.map_or("-".to_owned(), |flow| match FlowNumber::of(flow) {
            FlowNumber::Stamped(unix_ns) => format!("@{unix_ns}"),
            number => number.shown().to_string(),
        });
        let name = stage.name.as_deref().unwrap_or("-").to_owned();
        format!("{} {} {} {flow} {} {name}", stage.time_ns, stage.caller.tid, stage.topic, stage.stage.name())
    };
    let stages = std::iter::from_fn(|| messages.next_stage()).map(shown).collect();
    (messages, stages)
}

#[test]
fn messages_within_a_process_are_followed_by_their_place_in_each_buffer() {
    let (messages, stages) = stages(
        "1 5/5 rcl_node_init node_handle=100 node_name=lidar namespace=/
         2 5/5 rcl_publisher_init publisher_handle=110 node_handle=100 rmw_publisher_handle=111 topic_name=/scan
         10 5/6 rclcpp_intra_publish publisher_handle=110 message=9
         11 5/6 rclcpp_ring_buffer_enqueue buffer=70 index=0
         12 5/6 rclcpp_ring_buffer_enqueue buffer=80 index=3
         20 5/6 rclcpp_intra_publish publisher_handle=110 message=9
         21 5/6 rclcpp_ring_buffer_enqueue buffer=70 index=0
         30 5/7 rclcpp_ring_buffer_dequeue buffer=70 index=0
         31 5/7 callback_start callback=400
         32 5/7 callback_end callback=400
         33 5/8 rclcpp_ring_buffer_dequeue buffer=80 index=3
         34 5/8 callback_start callback=500",
    );
    assert_eq!(
        stages,
        [
            "10 6 /scan 0 published /lidar",
            "20 6 /scan 1 published /lidar",
            // The second message replaced the first one in this buffer.
            "30 7 /scan 1 taken -",
            "31 7 /scan 1 callback_start -",
            "32 7 /scan 1 callback_end -",
            "33 8 /scan 0 taken -",
            "34 8 /scan 0 callback_start -",
        ]
    );
    assert_eq!((messages.unmatched, messages.unknown), (0, 0));
}

#[test]
fn a_message_for_its_own_process_and_others_is_one_message() {
    let (_, stages) = stages(
        "2 5/5 rcl_publisher_init publisher_handle=110 node_handle=100 rmw_publisher_handle=111 topic_name=/scan
         3 8/8 rcl_subscription_init subscription_handle=200 node_handle=100 rmw_subscription_handle=201 topic_name=/scan
         10 5/6 rclcpp_intra_publish publisher_handle=110 message=9
         11 5/6 rclcpp_ring_buffer_enqueue buffer=70 index=0
         12 5/6 rclcpp_publish publisher_handle=0 message=9
         13 5/6 rcl_publish publisher_handle=110 message=9
         14 5/6 rmw_publish rmw_publisher_handle=111 message=9 timestamp=1000014
         20 8/9 rmw_take rmw_subscription_handle=201 message=77 source_timestamp=1000014 taken=1
         30 5/7 rclcpp_ring_buffer_dequeue buffer=70 index=0",
    );
    assert_eq!(
        stages,
        ["10 6 /scan 0 published -", "14 6 /scan 0 sent -", "20 9 /scan 0 taken -", "30 7 /scan 0 taken -"]
    );
}

#[test]
fn equal_timestamps_join_what_the_order_of_publications_would_not() {
    let (_, stages) = stages(
        "1 5/5 rcl_publisher_init publisher_handle=110 node_handle=100 rmw_publisher_handle=111 topic_name=/scan
         2 8/8 rcl_subscription_init subscription_handle=200 node_handle=100 rmw_subscription_handle=201 topic_name=/scan
         10 5/6 rcl_publish publisher_handle=110 message=9
         11 5/6 rmw_publish rmw_publisher_handle=111 message=9 timestamp=1000050
         12 5/7 rcl_publish publisher_handle=110 message=8
         13 5/7 rmw_publish rmw_publisher_handle=111 message=8 timestamp=1000049
         60 8/9 rmw_take rmw_subscription_handle=201 message=77 source_timestamp=1000050 taken=1
         61 8/9 rmw_take rmw_subscription_handle=201 message=77 source_timestamp=1000049 taken=1
         62 8/9 rmw_take rmw_subscription_handle=201 message=77 source_timestamp=1000051 taken=1",
    );
    // The third one was published on another machine.
    assert_eq!(stages[4..], ["60 9 /scan 0 taken -", "61 9 /scan 1 taken -", "62 9 /scan @1000051 taken -"]);
}

#[test]
fn topics_of_handles_stand_in_for_publishers_and_subscriptions_that_were_made_before() {
    let (messages, stages) = stages(
        "10 5/6 rclcpp_publish publisher_handle=0 message=9
         11 5/6 rcl_publish publisher_handle=110 message=9
         12 5/6 rmw_publish rmw_publisher_handle=111 message=9 timestamp=1000012 topic_name=/scan
         20 8/9 rmw_take rmw_subscription_handle=201 message=77 source_timestamp=1000012 taken=1 topic_name=/scan
         21 8/9 callback_start callback=400",
    );
    assert_eq!(
        stages,
        ["10 6 /scan 0 published -", "12 6 /scan 0 sent -", "20 9 /scan 0 taken -", "21 9 /scan 0 callback_start -",]
    );
    assert_eq!((messages.unmatched, messages.unknown), (0, 0));
}

#[test]
fn before_jazzy_the_only_argument_of_rmw_publish_is_the_message() {
    // What is in the other registers, and at the address that is no handle, means nothing.
    let (messages, stages) = stages(
        "1 5/5 rcl_publisher_init publisher_handle=110 node_handle=100 rmw_publisher_handle=111 topic_name=/scan
         2 8/8 rcl_subscription_init subscription_handle=200 node_handle=100 rmw_subscription_handle=201 topic_name=/scan
         10 5/6 rcl_publish publisher_handle=110 message=9
         11 5/6 rmw_publish rmw_publisher_handle=9 message=3 timestamp=4 topic_name=/junk
         20 8/9 rmw_take rmw_subscription_handle=201 message=77 source_timestamp=1000012 taken=1
         30 5/6 rcl_publish publisher_handle=999 message=9
         31 5/6 rmw_publish rmw_publisher_handle=9 message=3 timestamp=4 topic_name=/junk",
    );
    assert_eq!(stages, ["10 6 /scan 0 published -", "11 6 /scan 0 sent -", "20 9 /scan 0 taken -"]);
    assert_eq!(messages.unknown, 1, "a publisher of before the recording has no topic");
}

#[test]
fn a_text_that_is_no_name_is_no_topic() {
    for topic in ["x", "/", "/sc\u{1}an", "/größe"] {
        let take = format!("1 8/9 rmw_take rmw_subscription_handle=201 source_timestamp=5 taken=1 topic_name={topic}");
        let (messages, stages) = stages(&take);
        assert_eq!((stages.len(), messages.unknown, messages.unmatched), (0, 1, 0), "{topic}");
    }
}

#[test]
fn messages_within_a_process_that_ran_before_are_followed_without_their_topic() {
    let (messages, stages) = stages(
        "10 5/6 rclcpp_intra_publish publisher_handle=110 message=9
         11 5/6 rclcpp_ring_buffer_enqueue buffer=70 index=0
         12 5/6 rclcpp_ring_buffer_enqueue buffer=80 index=3
         20 5/6 rclcpp_intra_publish publisher_handle=110 message=9
         21 5/6 rclcpp_ring_buffer_enqueue buffer=70 index=1
         22 5/6 rclcpp_intra_publish publisher_handle=120 message=9
         30 5/7 rclcpp_ring_buffer_dequeue buffer=70 index=0
         31 5/7 callback_start callback=400
         33 5/8 rclcpp_ring_buffer_dequeue buffer=80 index=3",
    );
    assert_eq!(
        stages,
        [
            "10 6 (unnamed 1 in process 5) 0 published -",
            "20 6 (unnamed 1 in process 5) 1 published -",
            "30 7 (unnamed 1 in process 5) 0 taken -",
            "31 7 (unnamed 1 in process 5) 0 callback_start -",
            "33 8 (unnamed 1 in process 5) 0 taken -",
        ]
    );
    // No subscription took the message of the other publisher.
    assert_eq!((messages.unmatched, messages.unknown), (0, 1));
}

#[test]
fn a_publisher_that_ran_before_is_named_once_a_message_leaves_its_process() {
    let (messages, stages) = stages(
        "10 5/6 rclcpp_intra_publish publisher_handle=110 message=9
         11 5/6 rclcpp_ring_buffer_enqueue buffer=70 index=0
         13 5/6 rcl_publish publisher_handle=110 message=9
         14 5/6 rmw_publish rmw_publisher_handle=111 message=9 timestamp=1000014 topic_name=/scan
         20 5/6 rclcpp_intra_publish publisher_handle=110 message=9
         21 5/6 rclcpp_ring_buffer_enqueue buffer=70 index=1
         30 5/7 rclcpp_ring_buffer_dequeue buffer=70 index=1",
    );
    assert_eq!(stages[stages.len() - 2..], ["20 6 /scan 1 published -", "30 7 /scan 1 taken -"]);
    assert_eq!((messages.unmatched, messages.unknown), (0, 0));
}

#[test]
fn timers_of_one_node_with_one_period_are_distinguished() {
    let (_, stages) = stages(
        "1 5/5 rcl_node_init node_handle=100 node_name=lidar namespace=/
         2 5/5 rcl_timer_init timer_handle=200 period=100000000
         3 5/5 rclcpp_timer_callback_added timer_handle=200 callback=400
         4 5/5 rclcpp_timer_link_node timer_handle=200 node_handle=100
         5 5/5 rcl_timer_init timer_handle=210 period=100000000
         6 5/5 rclcpp_timer_callback_added timer_handle=210 callback=410
         7 5/5 rclcpp_timer_link_node timer_handle=210 node_handle=100
         10 5/5 callback_start callback=400
         11 5/5 callback_end callback=400
         12 5/5 callback_start callback=410",
    );
    assert_eq!(
        stages,
        [
            "10 5 timer 100 ms - callback_start /lidar: timer 100 ms",
            "11 5 timer 100 ms - callback_end /lidar: timer 100 ms",
            "12 5 timer 100 ms #2 - callback_start /lidar: timer 100 ms #2",
        ]
    );
}

#[test]
fn actions_have_their_name_in_their_topics_and_services() {
    let (_, stages) = stages(
        "1 5/5 rcl_node_init node_handle=100 node_name=arm namespace=/
         2 5/5 rcl_publisher_init publisher_handle=110 node_handle=100 rmw_publisher_handle=111 topic_name=/move/_action/feedback
         3 5/5 rcl_service_init service_handle=120 node_handle=100 service_name=/move/_action/send_goal
         4 5/5 rclcpp_service_callback_added service_handle=120 callback=400
         10 5/6 rcl_publish publisher_handle=110 message=9
         11 5/6 rmw_publish rmw_publisher_handle=111 message=9 timestamp=1000011
         20 8/9 rmw_take rmw_subscription_handle=201 message=77 source_timestamp=1000011 taken=1 topic_name=/move/_action/feedback
         30 5/6 callback_start callback=400",
    );
    assert_eq!(
        stages,
        [
            "10 6 action /move: feedback 0 published /arm",
            "11 6 action /move: feedback 0 sent -",
            "20 9 action /move: feedback 0 taken -",
            "30 6 action /move: send_goal - callback_start /arm: action /move: send_goal",
        ]
    );
}
