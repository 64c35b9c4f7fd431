//! Marks compile the same way with and without the feature: in statements and expressions, generic functions, across
//! threads and children. `crates/record` tests what the recorder reads.

fn solve<T: Copy + Into<i64>>(value: T) -> i64 {
    stepscope_marks::scope!("solve");
    stepscope_marks::counter!("value", value.into());
    value.into()
}

#[test]
fn marks_are_statements_and_expressions() {
    for step in 0..4u32 {
        match step {
            0 => stepscope_marks::step!(f64::from(step)),
            1 => stepscope_marks::step!(ns: i64::from(step)),
            2 => stepscope_marks::step!(),
            _ => stepscope_marks::frame_mark!("render"),
        }
        stepscope_marks::scope!("step");
        let inner = stepscope_marks::begin!("inner");
        assert_eq!(solve(step) + solve(i64::from(step)), 2 * i64::from(step));
        drop(inner);
        let _named = stepscope_marks::scope_named(&format!("step {step}"));
    }
}

#[test]
fn steps_with_nan_as_simulated_time_are_marked() {
    for time_s in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
        stepscope_marks::step!(time_s);
    }
}

#[test]
fn threads_mark_until_and_after_their_destructors() {
    struct AtTheEnd;
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            stepscope_marks::scope!("at the end");
        }
    }
    thread_local!(static LATE: AtTheEnd = const { AtTheEnd });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                LATE.with(|_| {
                    stepscope_marks::scope!("early");
                });
            });
        }
    });
}
