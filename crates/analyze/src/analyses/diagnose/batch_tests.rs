//! Costs in one stage of programs without steps: many pieces of work are found, one piece is not.

use super::tests::found;
use crate::drawn::Drawing;
use stepscope_model::Event;

const WHOLE_MS: u64 = 1000;

/// A program that ended by itself with this status: a stack for each millisecond, below `main`.
fn batch(status: Option<i32>, of_ms: impl Fn(u64) -> String) -> Drawing {
    let whole = 0..WHOLE_MS * 1_000_000;
    let mut drawing = Drawing::new().window(whole.clone()).process(1, "job");
    drawing = drawing.lived("main", whole.clone(), whole.end).lived("other", whole, 100_000_000);
    drawing.capture.processes[0].exit_status = status;
    let line = |ms: u64| format!("@{} main;{} 1000000", ms * 1_000_000 + 500_000, of_ms(ms));
    let text: Vec<String> = (0..WHOLE_MS).map(line).collect();
    drawing.folded(Event::sampled("cpu-clock", "ns"), &text.join("\n"))
}

/// A program that loads, has a stage of 300 ms from `start_ms` on, and writes. `of` has the work in each millisecond of the stage.
fn stage(start_ms: u64, of: impl Fn(u64) -> &'static str) -> Drawing {
    batch(Some(0), |ms| match ms.checked_sub(start_ms) {
        None => "sim::Main;sim::Load".to_owned(),
        Some(ms) if ms < 300 => format!("sim::Main;{}", of(ms)),
        Some(_) => "sim::Main;sim::Write".to_owned(),
    })
}

/// A stage in which `stack` takes two of three milliseconds, between other work of the same function.
fn alternating(start_ms: u64, stack: &'static str) -> Drawing {
    stage(start_ms, move |ms: u64| if ms.is_multiple_of(3) { "sim::Convert" } else { stack })
}

fn kinds(drawing: &Drawing) -> Vec<String> {
    found(&drawing.capture).into_iter().filter(|row| !row.starts_with("single-threaded")).collect()
}

const THROW: &str = "sim::Convert;sim::Add;__cxa_throw";

#[test]
fn what_comes_back_in_one_stage_is_found_wherever_the_stage_is() {
    for start in [0, 200, 700] {
        assert_eq!(kinds(&alternating(start, THROW)), ["exceptions-each-step | sim::Add | 20"], "from {start} ms on");
    }
    assert_eq!(kinds(&alternating(200, "sim::Convert;__cxa_throw")), ["exceptions-each-step | sim::Convert | 20"]);
    assert_eq!(
        kinds(&alternating(200, "sim::Convert;std::vector<int>::erase;memmove")),
        ["elements-moved-each-step | sim::Convert | 20"]
    );
}

#[test]
fn what_is_done_once_is_no_finding() {
    let once = stage(200, |ms| if ms < 250 { THROW } else { "sim::Convert" });
    assert!(kinds(&once).is_empty(), "{:?}", kinds(&once));
    let for_few_items = stage(200, |ms| if ms % 60 < 50 { THROW } else { "sim::Convert" });
    assert!(kinds(&for_few_items).is_empty(), "{:?}", kinds(&for_few_items));
}

#[test]
fn a_stack_that_was_cut_short_ends_no_piece() {
    let cut = batch(Some(0), |ms| match ms {
        200..500 if ms.is_multiple_of(5) => "sim::Less".to_owned(),
        200..500 => format!("sim::Main;{THROW}"),
        _ => "sim::Main;sim::Write".to_owned(),
    });
    assert!(kinds(&cut).is_empty(), "{:?}", kinds(&cut));
}

#[test]
fn the_start_of_a_program_that_does_not_end_is_no_stage() {
    let of_ms = |start: u64| {
        move |ms: u64| match ms {
            _ if (start..start + 300).contains(&ms) && !ms.is_multiple_of(3) => format!("sim::Main;{THROW}"),
            _ if (start..start + 300).contains(&ms) => "sim::Main;sim::Convert".to_owned(),
            _ => "sim::Main;sim::Write".to_owned(),
        }
    };
    for status in [None, Some(143)] {
        assert!(kinds(&batch(status, of_ms(0))).is_empty(), "start-up, {status:?}");
        assert_eq!(kinds(&batch(status, of_ms(200))), ["exceptions-each-step | sim::Add | 20"], "later, {status:?}");
    }
}

#[test]
fn parsing_each_text_of_a_batch_once_is_no_finding() {
    for stack in
        ["sim::Convert;tinyxml2::XMLDocument::Parse", "sim::Convert;strtod", "sim::Convert;std::istream::operator>>"]
    {
        assert!(kinds(&alternating(200, stack)).is_empty(), "{stack}");
    }
}

#[test]
fn a_stream_for_each_value_is_found() {
    let reparses = stage(200, |ms| match ms % 4 {
        0 => "sim::Convert",
        1 => "sim::Convert;sim::Scale;std::basic_istringstream<char>::basic_istringstream;std::locale::locale",
        _ => "sim::Convert;sim::Scale;std::istream::operator>>;std::num_get::do_get",
    });
    assert_eq!(kinds(&reparses), ["values-through-text | sim::Scale | 22.5"]);
    let of_lines = stage(200, |ms| match ms % 20 {
        0..5 => "sim::Convert",
        5 => "sim::Convert;std::getline<char>",
        one if one.is_multiple_of(3) => {
            "sim::Convert;sim::Scale;std::basic_istringstream<char>::basic_istringstream;std::locale::locale"
        }
        _ => "sim::Convert;sim::Scale;std::istream::operator>>;std::num_get::do_get",
    });
    assert!(kinds(&of_lines).is_empty(), "each line is another text: {:?}", kinds(&of_lines));
}

#[test]
fn copies_that_are_kept_fault_in_new_memory() {
    const COPY: &str =
        "sim::Convert;sim::Check;std::vector<int>::vector;std::__uninitialized_copy<false>::__uninit_copy;memmove";
    const FAULT: &str = "sim::Convert;sim::Check;std::vector<int>::vector;std::__uninitialized_copy<false>::__uninit_copy;memmove;\
                         asm_exc_page_fault [kernel]";
    assert_eq!(kinds(&alternating(200, COPY)), ["copies-each-step | sim::Check | 20"]);
    let kept = stage(200, |ms| match ms % 3 {
        0 => "sim::Convert",
        1 => COPY,
        _ => FAULT,
    });
    assert!(!kinds(&kept).iter().any(|row| row.starts_with("copies")), "{:?}", kinds(&kept));
    let returned = stage(200, |ms| match ms % 4 {
        0 => "sim::Convert",
        1 => COPY,
        2 => FAULT,
        _ => "sim::Convert;sim::Check;free;munmap;__x64_sys_munmap [kernel]",
    });
    assert!(
        kinds(&returned).iter().any(|row| row.starts_with("copies-each-step | sim::Check")),
        "{:?}",
        kinds(&returned)
    );
}

#[test]
fn memory_that_is_taken_and_released_in_turns_is_found_in_a_stage() {
    let made = stage(200, |ms| match ms % 4 {
        0 => "sim::Convert",
        1 | 2 => "sim::Convert;sim::Names;operator new;malloc",
        _ => "sim::Convert;sim::Names;operator delete;free",
    });
    assert!(kinds(&made)[0].starts_with("allocations-each-step | sim::Names | 22"), "{:?}", kinds(&made));
    let kept =
        stage(
            200,
            |ms| if ms.is_multiple_of(4) { "sim::Convert" } else { "sim::Convert;sim::Names;operator new;malloc" },
        );
    assert!(kinds(&kept).is_empty(), "{:?}", kinds(&kept));
}

#[test]
fn files_of_a_stage_are_opened_again_if_they_are_written_and_not_made() {
    let files = |opening: &'static str| {
        stage(200, move |ms| match ms % 4 {
            0 => "sim::Convert",
            1 => "sim::Convert;sim::Log;fclose;write;__x64_sys_write [kernel];vfs_write [kernel]",
            _ => opening,
        })
    };
    let again = "sim::Convert;sim::Log;fopen;__x64_sys_openat [kernel];do_filp_open [kernel]";
    assert_eq!(kinds(&files(again)), ["file-opened-each-time | sim::Log | 22.5"]);
    let made = "sim::Convert;sim::Log;fopen;__x64_sys_openat [kernel];do_filp_open [kernel];ext4_create [kernel]";
    assert!(kinds(&files(made)).is_empty(), "{:?}", kinds(&files(made)));
    assert!(kinds(&alternating(200, again)).is_empty(), "files that are only read may all be others");
    let all_the_time = |opening: &'static str| {
        kinds(&batch(Some(0), move |ms| if ms % 2 == 0 { opening.to_owned() } else { "sim::Convert".to_owned() }))
    };
    assert_eq!(all_the_time(again), ["file-opened-each-time | sim::Log | 50"]);
    assert!(all_the_time(made).is_empty(), "each is another file");
}

#[test]
fn looking_for_the_ends_of_texts_is_a_search() {
    assert_eq!(kinds(&alternating(200, "sim::Convert;sim::Append;__strcat_evex")), ["list-search | sim::Append | 20"]);
    let all_the_time = batch(Some(0), |ms| {
        if ms.is_multiple_of(2) { "sim::Main;sim::Join;strlen".to_owned() } else { "sim::Main;sim::Write".to_owned() }
    });
    assert_eq!(kinds(&all_the_time), ["list-search | sim::Join | 50"]);
}

#[test]
fn a_pattern_that_pythons_library_compiles_again_is_found() {
    let compiles = alternating(200, "sim::Convert;sim::Mark;py::_code:/usr/lib/python3.11/re/_compiler.py");
    assert_eq!(kinds(&compiles), ["pattern-compiled-each-step | sim::Mark | 20"]);
}

#[test]
fn a_long_text_that_is_copied_to_append_to_it_is_found() {
    let appended = |moves: u64| {
        stage(200, move |ms| match ms % 6 {
            0 => "sim::Convert",
            phase if phase <= moves => {
                "sim::Convert;sim::Report;std::operator+<char>;std::basic_string::append;__memmove_evex"
            }
            _ => "sim::Convert;sim::Report;std::operator+<char>;malloc",
        })
    };
    assert!(kinds(&appended(4))[0].starts_with("copies-each-step | sim::Report | 25"), "{:?}", kinds(&appended(4)));
    let short = kinds(&appended(2));
    assert!(!short.iter().any(|row| row.starts_with("copies")), "short texts cost more for their memory: {short:?}");
}

#[test]
fn a_program_that_only_compresses_is_there_for_that() {
    let of = |others: u64| {
        batch(Some(0), move |ms| match ms % 10 < others {
            true => "sim::Main;sim::Read".to_owned(),
            false => "sim::Main;sim::Pack;deflate_slow".to_owned(),
        })
    };
    assert_eq!(kinds(&of(2)), ["encoding-in-steps | sim::Pack | 80"]);
    let written = batch(Some(0), |ms| match ms % 10 {
        0 | 1 => "sim::Main;sim::Read".to_owned(),
        2 => "sim::Main;sim::Pack;write;__x64_sys_write [kernel];vfs_write [kernel]".to_owned(),
        _ => "sim::Main;sim::Pack;deflate_slow".to_owned(),
    });
    assert_eq!(kinds(&written), ["encoding-in-steps | sim::Pack | -"], "somebody may need it");
    assert!(kinds(&of(0)).is_empty());
}

#[test]
fn comparisons_of_a_sort_of_the_programs_own_are_no_search_by_name() {
    let compares = |second: &'static str| {
        let stack = move |ms: u64| match ms % 4 {
            0 => "sim::Main;sim::Read".to_owned(),
            1 => format!("sim::Main;sim::Merge [file:a.c:{second}];sim::Merge [file:a.c:9];sim::Less;strcmp"),
            _ => "sim::Main;sim::Merge [file:a.c:7];sim::Merge [file:a.c:9];sim::Less;strcmp".to_owned(),
        };
        kinds(&batch(Some(0), stack))
    };
    assert!(compares("8").is_empty(), "two halves: {:?}", compares("8"));
    assert_eq!(compares("7"), ["text-compared-each-step | sim::Less | 75"], "one place: a chain");
}
