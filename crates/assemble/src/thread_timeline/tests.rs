use super::*;

#[test]
fn a_look_from_outside_gives_the_wait_that_it_falls_into_its_stack() {
    let mut timeline = ThreadTimeline::running(0);
    let stack = StackRef;
    // The events come later than the looks.
    assert!(timeline.lacks_stack(u64::MAX));
    timeline.see_blocked(150, stack(1));
    timeline.switch_out(100, false);
    let first = timeline.switch_in(200, None).unwrap();
    timeline.switch_out(300, false);
    let unseen = timeline.switch_in(310, None).unwrap();
    assert_eq!((first.stack, unseen.stack), (Some(stack(1)), None));
    // A wait that goes on is not looked at again.
    timeline.see_blocked(450, stack(2));
    timeline.switch_out(400, false);
    assert!(!timeline.lacks_stack(u64::MAX));
    assert_eq!(timeline.switch_in(900, None).unwrap().stack, Some(stack(2)));
    // Neither a wait after the look nor one with a stack of its own takes it.
    timeline.see_blocked(950, stack(3));
    timeline.will_switch_at(Some(stack(4)));
    timeline.switch_out(940, false);
    assert_eq!(timeline.switch_in(960, None).unwrap().stack, Some(stack(4)));
    timeline.see_blocked(970, stack(5));
    timeline.switch_out(980, false);
    assert_eq!(timeline.end(990).unwrap().stack, None);
    assert_eq!([970, 971].map(|since_ns| timeline.lacks_stack(since_ns)), [false, true]);
    let mut asleep = ThreadTimeline::initial(0, InitialState::Blocked);
    asleep.see_blocked(10, stack(6));
    assert!(!asleep.lacks_stack(u64::MAX));
    assert_eq!(asleep.end(990).unwrap().stack, Some(stack(6)));
}

/// Plays a timeline drawn as `TIME EVENT` lines: `in`, `out` (blocks), `preempt`, `wake` (by thread 7), `irq` (woken
/// by an interrupt), `seen` (sampled), `end`. Gives the intervals off the CPU as `START-END STATE runnable`.
fn play(mut timeline: ThreadTimeline, drawn: &str) -> (Vec<String>, u64, u64) {
    let mut waits = Vec::new();
    for line in drawn.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (time, event) = line.split_once(' ').unwrap();
        let time = time.parse().unwrap();
        let ended = match event {
            "in" => timeline.switch_in(time, Some(1)),
            "out" => timeline.switch_out(time, false),
            "preempt" => timeline.switch_out(time, true),
            "seen" => timeline.on_cpu(time, Some(1)),
            "end" => timeline.end(time),
            "wake" | "irq" => {
                let waker = (event == "wake").then_some(ThreadRef(7));
                timeline.wake_up(WakeUp { time_ns: time, waker, stack: None });
                None
            }
            other => panic!("no event `{other}`"),
        };
        waits.extend(ended.map(|wait| {
            let by = wait.wake_up.map_or("", |wake| if wake.waker.is_some() { " by 7" } else { " by interrupt" });
            let runnable = wait.runnable_ns.map_or("?".to_owned(), |ns| ns.to_string());
            format!("{}-{} {:?} {runnable}{by}", wait.start_ns, wait.end_ns, wait.state)
        }));
    }
    (waits, timeline.running_ns, timeline.runnable_ns)
}

#[test]
fn blocked_time_splits_at_the_wake_up_into_blocked_and_runnable() {
    let (waits, running, runnable) = play(
        ThreadTimeline::created(100),
        "110 in
         150 out
         250 wake
         280 in
         290 preempt
         300 in
         310 end",
    );
    assert_eq!(waits, ["100-110 Preempted 10", "150-280 Blocked 30 by 7", "290-300 Preempted 10"]);
    assert_eq!((running, runnable), (40 + 10 + 10, 50));
}

#[test]
fn a_first_switch_in_means_that_the_thread_was_off_since_the_start() {
    let (waits, running, _) = play(ThreadTimeline::initial(0, InitialState::Blocked), "70 in\n100 end");
    assert_eq!((waits, running), (vec!["0-70 Blocked ?".to_owned()], 30));
}

#[test]
fn a_first_switch_out_means_that_the_thread_ran_since_the_start_whatever_proc_said() {
    let (waits, running, _) = play(ThreadTimeline::initial(0, InitialState::Blocked), "70 out\n100 end");
    assert_eq!((waits, running), (vec!["70-100 Blocked ?".to_owned()], 70));
}

#[test]
fn a_thread_without_any_event_is_what_it_was_at_the_start() {
    let (waits, ..) = play(ThreadTimeline::initial(5, InitialState::Blocked), "100 end");
    assert_eq!(waits, ["5-100 Blocked ?"]);
}

#[test]
fn a_wake_up_recorded_just_before_the_switch_out_makes_the_whole_wait_runnable() {
    let (waits, ..) = play(ThreadTimeline::running(0), "990 wake\n1000 out\n1500 in");
    assert_eq!(waits, ["1000-1500 Blocked 500 by 7"]);
}

#[test]
fn a_wake_up_long_before_the_switch_out_cancelled_an_earlier_sleep() {
    let (waits, ..) = play(ThreadTimeline::running(0), "990 wake\n1000000 out\n1000500 in");
    assert_eq!(waits, ["1000000-1000500 Blocked ?"]);
}

#[test]
fn a_wakers_stack_completes_its_wake_up_and_no_others() {
    let mut timeline = ThreadTimeline::running(0);
    let wake = WakeUp { time_ns: 30, waker: None, stack: None };
    timeline.switch_out(10, false);
    assert!(!timeline.lacks_stack_of(ThreadRef(7)), "nobody woke it yet");
    timeline.wake_up(wake);
    assert!(!timeline.lacks_stack_of(ThreadRef(7)), "an interrupt did");
    timeline.switch_in(50, Some(1));
    timeline.wake_up(WakeUp { time_ns: 90, waker: Some(ThreadRef(7)), ..wake });
    assert!(
        timeline.lacks_stack_of(ThreadRef(7)) && !timeline.lacks_stack_of(ThreadRef(8)),
        "before it is switched out"
    );
    timeline.switch_out(100, false);
    assert!(timeline.lacks_stack_of(ThreadRef(7)));
    timeline.set_waker_stack(Some(StackRef(3)));
    assert!(!timeline.lacks_stack_of(ThreadRef(7)));
    let woken = timeline.switch_in(120, Some(1)).unwrap().wake_up.unwrap();
    assert_eq!((woken.waker, woken.stack), (Some(ThreadRef(7)), Some(StackRef(3))));
}

#[test]
fn a_sample_of_a_thread_whose_switch_in_was_lost_ends_its_wait() {
    let (waits, running, _) = play(ThreadTimeline::running(0), "10 out\n40 seen\n50 preempt\n60 in\n70 end");
    assert_eq!(waits, ["10-40 Blocked ?", "50-60 Preempted 10"]);
    assert_eq!(running, 10 + 10 + 10);
}

#[test]
fn a_lost_switch_out_ends_the_running_time_where_the_thread_was_last_seen() {
    let mut timeline = ThreadTimeline::created(0);
    timeline.switch_in(10, Some(1));
    timeline.on_cpu(14, Some(1));
    timeline.lose_switch_out(504);
    let wait = timeline.switch_in(600, Some(1)).unwrap();
    assert_eq!((wait.start_ns, wait.end_ns), (14, 600));
    timeline.end(610);
    assert_eq!((timeline.running_ns, timeline.unknown_ns), (4 + 10, 490));
}

#[test]
fn a_lost_switch_in_leaves_the_time_since_the_cpu_was_free_open() {
    let mut timeline = ThreadTimeline::running(0);
    timeline.switch_out(10, false);
    timeline.was_elsewhere_until(90);
    timeline.switch_out(100, false);
    timeline.end(120);
    assert_eq!((timeline.running_ns, timeline.unknown_ns), (10, 10));
}

#[test]
fn a_thread_that_appears_on_a_cpu_ran_for_the_last_millisecond_if_it_was_woken() {
    let appears = |woken: bool, time_ns, switched_ns| {
        let mut timeline = ThreadTimeline::running(0);
        timeline.switch_out(100, false);
        if woken {
            timeline.wake_up(WakeUp { time_ns: 2_000, waker: None, stack: None });
        }
        let end_ns = timeline.appear(time_ns, switched_ns, None).map(|wait| wait.end_ns);
        (end_ns, timeline.unknown_ns)
    };
    assert_eq!(appears(true, 9_000, 1_000), (Some(2_000), 0));
    assert_eq!(appears(true, 9_000, 4_000), (Some(4_000), 0));
    assert_eq!(appears(true, 1_009_000, 4_000), (Some(9_000), 5_000));
    assert_eq!(appears(true, 9_000, 10_000), (Some(9_000), 0), "the rings of two CPUs can disagree");
    assert_eq!(appears(false, 9_000, 4_000), (None, 0), "when it was woken is unknown");
    assert!(ThreadTimeline::running(0).appear(9_000, 4_000, None).is_none(), "it is known to run");
}

#[test]
fn sums_take_as_much_time_as_their_waits_and_no_more_than_there_is() {
    let mut timeline = ThreadTimeline::running(100);
    timeline.set_summed(true);
    timeline.lose_switch_out(150);
    let sum =
        |blocked_ns, runnable_ns, count| Sum { state: WaitState::Blocked, place: None, count, blocked_ns, runnable_ns };
    let first = timeline.sum(&sum(300, 50, 7), Some(StackRef(3)), 1_100).unwrap();
    assert_eq!((first.start_ns, first.end_ns, first.runnable_ns, first.count), (100, 450, Some(50), 7));
    let second = timeline.sum(&sum(900, 10, 2), None, 1_100).unwrap();
    assert_eq!((second.start_ns, second.end_ns), (450, 1_100), "only 650 ns are left");
    timeline.switch_out(1_100, false);
    assert_eq!(timeline.switch_in(1_200, None).map(|wait| (wait.start_ns, wait.end_ns)), Some((1_100, 1_200)));
    timeline.end(1_250);
    assert_eq!((timeline.running_ns, timeline.runnable_ns, timeline.unknown_ns), (50, 60, 0));
}

#[test]
fn a_wait_that_is_cut_goes_on_in_the_next_capture() {
    let mut timeline = ThreadTimeline::running(0);
    timeline.switch_out(10, false);
    timeline.wake_up(WakeUp { time_ns: 30, waker: None, stack: None });
    let mut next = timeline.continued(40);
    assert_eq!(timeline.end(40).unwrap().runnable_ns, Some(10));
    let wait = next.switch_in(100, Some(1)).unwrap();
    assert_eq!((wait.start_ns, wait.end_ns, wait.runnable_ns), (40, 100, Some(60)));
}

proptest::proptest! {
    #[test]
    fn running_runnable_and_blocked_add_up_to_the_lifetime(
        born in 0..3u8,
        events in proptest::collection::vec((0u64..200_000, 0..8u8), 0..60),
    ) {
        let mut timeline = match born {
            0 => ThreadTimeline::created(1000),
            1 => ThreadTimeline::initial(1000, InitialState::Blocked),
            _ => ThreadTimeline::initial(1000, InitialState::Runnable),
        };
        let (mut time, mut off, mut last_end) = (1000, 0, 1000);
        let mut note = |wait: Option<OffCpu>| if let Some(wait) = wait {
            assert!(wait.start_ns >= last_end && wait.end_ns >= wait.start_ns);
            assert!(wait.runnable_ns.unwrap_or(0) <= wait.end_ns - wait.start_ns);
            last_end = wait.end_ns;
            off += wait.end_ns - wait.start_ns;
        };
        for (after, event) in events {
            // The rings of two CPUs can disagree slightly.
            time = (time + after).saturating_sub(3).max(1000);
            note(match event {
                0 | 1 => timeline.switch_in(time, Some(1)),
                2 => timeline.switch_out(time, false),
                3 => timeline.switch_out(time, true),
                4 => timeline.on_cpu(time, Some(1)),
                5 => { timeline.lose_switch_out(time); None }
                6 => timeline.appear(time, time.saturating_sub(after), Some(1)),
                _ => { timeline.wake_up(WakeUp { time_ns: time, waker: None, stack: None }); None }
            });
        }
        time += 10;
        note(timeline.end(time));
        proptest::prop_assert_eq!(timeline.running_ns + off, time - 1000);
    }
}
