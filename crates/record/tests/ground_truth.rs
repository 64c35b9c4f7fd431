//! Recordings of a program whose profile is known by construction. `truth/truth.cpp` prints the CPU time of its functions
//! by the thread's own clock, and the recording must agree.
//!
//! The program is built in three ways: without frame pointers (as distributions do), with them (leaf functions still have
//! no prologue), and stripped (only exported names and unwind tables are left).

mod recorded;

use recorded::{Build, programs, record, record_command, record_unwinding};
use stepscope_record::launch::Launch;

#[test]
fn shares_of_cpu_time_are_true() {
    record("shares_of_cpu_time_are_true", &["shares"], |recorded| {
        for function in ["fifty", "thirty", "fifteen", "five"] {
            recorded.has_the_true_share_of(function);
            recorded.is_called_by(function, &["main"]);
        }
        recorded.is_rooted_and_named();
    });
}

#[test]
fn a_loop_in_step_with_the_samples_has_its_true_shares() {
    // At the sampling rate of 997 Hz, and at the usual 1 kHz of simulations.
    for period_ns in ["1003009", "1000000"] {
        record("a_loop_in_step_with_the_samples_has_its_true_shares", &["paced", period_ns], |recorded| {
            recorded.has_the_true_share_of("early");
            recorded.has_the_true_share_of("late");
        });
    }
}

#[test]
fn a_hot_leaf_without_a_prologue_keeps_its_callers() {
    record("a_hot_leaf_without_a_prologue_keeps_its_callers", &["leaf"], |recorded| {
        recorded.is_called_by("hot_leaf", &["leaf_often", "leaf_seldom"]);
        recorded.has_the_true_share_of("leaf_often");
        recorded.has_the_true_share_of("leaf_seldom");
        recorded.is_rooted_and_named();
    });
}

#[test]
fn a_callback_is_below_the_library_function_that_calls_it() {
    record("a_callback_is_below_the_library_function_that_calls_it", &["callback"], |recorded| {
        recorded.has_the_true_share_of("sorting");
        recorded.is_called_by("hot_leaf", &["slow_compare", "sorting"]);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn recursion_of_three_hundred_frames_keeps_its_root() {
    record("recursion_of_three_hundred_frames_keeps_its_root", &["recursion"], |recorded| {
        recorded.has_the_true_share_of("deep");
        recorded.is_rooted_and_named();
        recorded.is_called_by("recurse", &["deep"]);
        let hot = recorded.cpu_samples().filter(|sample| recorded.names(sample).contains(&"deep"));
        let depths: Vec<usize> =
            hot.map(|sample| recorded.names(sample).iter().filter(|&&name| name == "recurse").count()).collect();
        let whole = depths.iter().filter(|&&depth| depth == 301).count();
        assert!(whole * 100 >= depths.len() * 95, "{:?}: {whole} of {} at full depth", recorded.build, depths.len());
    });
}

#[test]
fn a_frame_larger_than_the_stack_copy_keeps_its_caller() {
    record("a_frame_larger_than_the_stack_copy_keeps_its_caller", &["big-frame"], |recorded| {
        recorded.has_the_true_share_of("big_frame");
        recorded.is_called_by("under_big_frame", &["big_frame"]);
        recorded.is_called_by("big_frame", &["main"]);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn a_caller_beyond_the_copy_is_not_confused_with_a_later_call() {
    record("a_caller_beyond_the_copy_is_not_confused_with_a_later_call", &["moved-on"], |recorded| {
        recorded.is_called_by("under_large_frame", &["large_frame"]);
        recorded.is_called_by("large_frame", &["works"]);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn a_realigned_frame_keeps_its_callers() {
    record("a_realigned_frame_keeps_its_callers", &["realigned"], |recorded| {
        recorded.has_the_true_share_of("realigns");
        recorded.is_called_by("under_realigned", &["realigned"]);
        recorded.is_called_by("realigned", &["realigns"]);
        recorded.is_called_by("realigns", &["main"]);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn an_inlined_function_has_its_own_frame() {
    record("an_inlined_function_has_its_own_frame", &["inlined"], |recorded| {
        recorded.has_the_true_share_of("inlines");
        if recorded.build != Build::Stripped {
            recorded.is_called_by("inlined_work", &["inlines"]);
        }
    });
}

#[test]
fn a_plugin_that_was_closed_keeps_its_names_and_callers() {
    record("a_plugin_that_was_closed_keeps_its_names_and_callers", &["plugin", "PLUGIN"], |recorded| {
        recorded.has_the_true_share_of("plugs");
        recorded.is_called_by("plugin_work", &["plugs"]);
        // The static function below it has lost its name, and must not get that of its neighbour.
        let hidden = recorded.cpu_samples().filter(|sample| {
            let names = recorded.names(sample);
            let at = names.iter().position(|&name| name == "plugin_work");
            at.is_some_and(|at| names[..at].iter().any(|name| name.starts_with("plugin.so+0x")))
        });
        let weight: u64 = hidden.map(|sample| sample.weight).sum();
        assert!(weight * 100 >= recorded.inclusive("plugin_work") * 99, "{:?}: {weight} ns", recorded.build);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn two_hundred_threads_are_each_accounted_for() {
    record("two_hundred_threads_are_each_accounted_for", &["crowd"], |recorded| {
        recorded.has_the_true_share_of("crowd_work");
        recorded.is_rooted_and_named();
        assert_eq!(recorded.capture.threads.len(), 201, "{:?}", recorded.build);
        let exact: u64 = recorded.capture.threads.iter().filter_map(|thread| thread.cpu_ns).sum();
        let burnt = recorded.truth_ns["crowd_work"];
        assert!(exact >= burnt && exact <= burnt + burnt / 4, "{:?}: {exact} ns of {burnt} ns", recorded.build);
    });
}

#[test]
fn threads_that_live_a_millisecond_have_their_share() {
    record("threads_that_live_a_millisecond_have_their_share", &["brief"], |recorded| {
        recorded.has_the_true_share_of("brief_work");
        recorded.has_the_true_share_of("fifty");
        recorded.is_rooted_and_named();
        assert_eq!(recorded.capture.threads.len(), 401, "{:?}", recorded.build);
    });
}

#[test]
fn children_are_recorded_through_fork_and_exec() {
    record("children_are_recorded_through_fork_and_exec", &["children"], |recorded| {
        recorded.has_the_true_share_of("forked_work");
        recorded.has_the_true_share_of("executed_work");
        recorded.is_called_by("forked_work", &["children"]);
        recorded.is_called_by("executed_work", &["main"]);
        recorded.is_rooted_and_named();
        let executed = recorded.capture.processes.iter().find(|process| process.command_line.ends_with(" executed"));
        assert!(executed.is_some(), "{:?}: {:?}", recorded.build, recorded.capture.processes);
    });
}

#[test]
fn generated_code_is_named_by_its_map_and_keeps_its_caller() {
    record("generated_code_is_named_by_its_map_and_keeps_its_caller", &["generated"], |recorded| {
        recorded.has_the_true_share_of("calls_generated");
        recorded.is_called_by("generated_loop", &["calls_generated"]);
        recorded.is_called_by("calls_generated", &["generated"]);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn a_signal_handler_is_under_the_code_that_it_interrupted() {
    record_unwinding("a_signal_handler_is_under_the_code_that_it_interrupted", "signal", |recorded| {
        recorded.is_under("handler_work", "interrupted", 99);
        recorded.is_under("handler_work", "caller_of_interrupted", 99);
        recorded.is_under("handler_work", "main", 99);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn a_signal_handler_on_its_own_stack_is_under_the_code_that_it_interrupted() {
    const TEST: &str = "a_signal_handler_on_its_own_stack_is_under_the_code_that_it_interrupted";
    record_unwinding(TEST, "signal-alternate-stack", |recorded| {
        recorded.is_under("handler_work", "interrupted", 99);
        // The stack of the interrupted code is read a little later.
        recorded.is_under("handler_work", "main", 90);
    });
}

#[test]
fn assembly_without_tables_keeps_its_callers() {
    record_unwinding("assembly_without_tables_keeps_its_callers", "assembly", |recorded| {
        recorded.is_under("called_by_assembly", "assembly_loop", 99);
        recorded.is_under("called_by_assembly", "calls_assembly", 99);
        recorded.is_under("called_once_by_assembly", "calls_assembly_once", 99);
        recorded.is_under("called_by_assembly", "main", 99);
        // What frees its frame and returns is no guess.
        let guessed = recorded.marked("[callers guessed]");
        assert!(guessed > 0 && guessed <= recorded.cpu_samples().count(), "{guessed}");
        let once: Vec<Vec<&str>> = recorded.cpu_samples().map(|sample| recorded.names(sample)).collect();
        let once = || once.iter().filter(|names| names.contains(&"called_once_by_assembly"));
        let known =
            once().filter(|names| names.windows(2).any(|pair| pair == ["assembly_once", "calls_assembly_once"]));
        assert!(known.count() * 100 >= once().count() * 99, "{:?}", recorded.build);
    });
}

#[test]
fn an_assembly_leaf_with_a_frame_keeps_its_callers() {
    record_unwinding("an_assembly_leaf_with_a_frame_keeps_its_callers", "assembly-leaf", |recorded| {
        recorded.is_under("assembly_leaf", "calls_assembly_leaf", 99);
        recorded.is_under("assembly_leaf", "main", 99);
    });
}

#[test]
fn a_callback_of_a_library_without_tables_keeps_its_callers() {
    record_unwinding("a_callback_of_a_library_without_tables_keeps_its_callers", "sort", |recorded| {
        recorded.is_under("slow_compare", "sorting", 99);
        recorded.is_under("slow_compare", "main", 99);
        recorded.is_rooted_and_named();
    });
}

#[test]
fn a_very_deep_recursion_keeps_its_leaf_and_its_root() {
    record_unwinding("a_very_deep_recursion_keeps_its_leaf_and_its_root", "bottomless", |recorded| {
        recorded.is_under("descend", "bottomless", 90);
        recorded.is_under("descend", "_start", 90);
        let deepest = recorded.cpu_samples().map(|sample| recorded.names(sample).len()).max();
        assert!(deepest.is_some_and(|frames| frames < 1_100), "{deepest:?}");
        assert!(recorded.marked("[frames omitted]") > 0);
        assert!(recorded.capture.info.losses.shortened_stacks > 0);
    });
}

#[test]
fn a_32_bit_program_is_sampled_and_its_stacks_are_counted() {
    const TEST: &str = "a_32_bit_program_is_sampled_and_its_stacks_are_counted";
    let Some(program) = programs().map(|programs| programs.join("unwinding-32")).filter(|program| program.exists())
    else {
        return println!("skipped: {TEST}: no compiler for 32 bits (Debian package: libc6-dev-i386)");
    };
    let command = [program.into_os_string(), "sort".into()];
    let Some((capture, _)) = record_command(TEST, Launch::new(command.to_vec())) else { return };
    let leaves = capture.samples.iter().filter_map(|sample| capture.frames_of(sample.stack).next());
    let named = leaves.filter(|&leaf| capture.function(leaf).starts_with("slow_compare")).count();
    assert!(named > 100, "{named}");
    assert!(capture.info.losses.stacks_of_32_bit_code > 100, "{:?}", capture.info.losses);
}
