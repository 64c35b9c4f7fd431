//! Kinds with what looks like them.

use super::*;
use crate::analyses::diagnose::tests::{found, loading, looping, work};
use crate::columns::read::cells;
use crate::drawn;

const FIND: &str = "sim::Find;std::find<int*, int>";

#[test]
fn a_search_of_a_list_is_found_if_it_costs_much() {
    let capture = looping(|_, tenth| work(tenth, &[(4, FIND)], "sim::Move"));
    assert_eq!(found(&capture), ["list-search | sim::Find | 40"]);
    assert_eq!(found(&loading(|ms| work(ms % 10, &[(5, FIND)], "sim::Read"))), ["list-search | sim::Find | 50"]);
    let short = looping(|_, tenth| work(tenth, &[(1, FIND)], "sim::Move"));
    assert!(found(&short).is_empty(), "short lists are searched, too: {:?}", found(&short));
    let map = looping(|_, tenth| work(tenth, &[(4, "sim::Find;std::map<int, int>::find")], "sim::Move"));
    assert!(found(&map).is_empty(), "a map is no list: {:?}", found(&map));
}

#[test]
fn a_closure_is_part_of_the_function_that_it_is_written_in() {
    let asks = "sim::Find;std::find_if<int*>;sim::Find::{lambda(int)#1}::operator();memcmp";
    let of = |stack: &str| found(&looping(|_, tenth| work(tenth, &[(4, stack)], "sim::Move")));
    assert_eq!(of(asks), ["list-search | sim::Find | 40"]);
    let sorts = "sim::Run;sim::Order::{lambda(int)#1}::operator();std::sort<int*>";
    assert_eq!(of(sorts), ["sort-each-step | sim::Order::{lambda(int)#1}::operator() | 40"], "called by another one");
    assert_eq!(
        of("sim::Order;sim::Order::{lambda(int)#1}::operator();std::sort<int*>"),
        ["sort-each-step | sim::Order | 40"]
    );
}

#[test]
fn a_heap_that_is_made_again_is_found_and_one_that_elements_are_taken_from_is_not() {
    let of = |stack: &'static str| found(&looping(|_, tenth| work(tenth, &[(4, stack)], "sim::Move")));
    let compared = "sim::Delay;std::make_heap<sim::Due*>;std::__adjust_heap<sim::Due*>;sim::Due::operator>";
    assert_eq!(of(compared), ["heap-made-again | sim::Delay | 40"]);
    assert!(of("sim::Delay;std::pop_heap<sim::Due*>;std::__adjust_heap<sim::Due*>").is_empty());
}

#[test]
fn going_to_an_element_by_its_position_is_a_search_of_a_list_or_a_tree() {
    let next = "std::_Rb_tree_const_iterator<int>::operator++;std::_Rb_tree_increment";
    let walk = format!("sim::Draw;std::advance<std::_Rb_tree_const_iterator<int>, unsigned long>;{next}");
    let of = |stack: &str| found(&looping(|_, tenth| work(tenth, &[(4, stack)], "sim::Move")));
    assert_eq!(of(&walk), ["list-search | sim::Draw | 40"]);
    assert!(of(&format!("sim::Draw;{next}")).is_empty(), "it goes through all elements");
    assert!(of("sim::Draw;std::next<sim::Range>;sim::Range::Next").is_empty(), "an iterator of the program");
}

#[test]
fn objects_that_several_functions_copy_are_one_finding_with_their_memory() {
    let object = |user: &str, part: &str| format!("{user};sim::Player::Player;{part}");
    let elements = "std::vector<double>::vector;std::uninitialized_copy<double const*>;memmove";
    let memory = "std::vector<double>::vector;operator new;malloc";
    let releases = "sim::Look;sim::Player::~Player;std::vector<double>::~vector;operator delete;free";
    let capture = looping(|_, tenth| match tenth {
        0 => object("sim::Look", elements),
        1 => object("sim::Look", memory),
        2 => object("sim::Hear", elements),
        3 => object("sim::Hear", memory),
        4 | 5 => releases.to_owned(),
        _ => "sim::Move".to_owned(),
    });
    assert_eq!(found(&capture), ["copies-each-step | sim::Player::Player | 60"]);
    let by_one = looping(|_, tenth| match tenth {
        0 => object("sim::Look", elements),
        1 | 2 => object("sim::Look", memory),
        _ => "sim::Move".to_owned(),
    });
    assert_eq!(found(&by_one), ["copies-each-step | sim::Look | 30"]);
    let made = looping(|_, tenth| work(tenth, &[(3, &object("sim::Look", memory))], "sim::Move"));
    assert!(found(&made)[0].starts_with("allocations-each-step | sim::Player::Player"), "{:?}", found(&made));
}

#[test]
fn a_map_that_is_copied_node_by_node_is_a_copy() {
    let node = "sim::Turn;std::map<int, sim::Jar>::map;std::_Rb_tree<int, sim::Jar>::_M_copy";
    let capture = looping(|_, tenth| match tenth {
        0 | 1 => format!("{node};std::_Rb_tree<int, sim::Jar>::_M_clone_node;operator new;malloc"),
        2 => format!("{node};sim::Jar::Jar"),
        _ => "sim::Move".to_owned(),
    });
    assert_eq!(found(&capture)[0], "copies-each-step | sim::Turn | 30", "{:?}", found(&capture));
}

#[test]
fn texts_that_a_function_makes_for_the_look_ups_of_another_belong_to_them() {
    let looks_up = "sim::At;std::unordered_map<std::__cxx11::basic_string<char>, int>::operator[];std::_Hash_bytes";
    let capture = |caller: &'static str| {
        looping(move |_, tenth| match tenth {
            0 | 1 => looks_up.to_owned(),
            2..5 => format!("{caller}sim::Key;std::__cxx11::to_string;malloc"),
            _ => "sim::Move".to_owned(),
        })
    };
    let text_keys = |capture| found(&capture).into_iter().find(|row| row.starts_with("text-keys")).unwrap();
    assert_eq!(text_keys(capture("sim::At;")), "text-keys-each-step | sim::At | 50");
    assert_eq!(text_keys(capture("sim::Name;")), "text-keys-each-step | sim::At | 20", "texts for something else");
}

#[test]
fn a_search_that_is_written_out_as_a_loop_does_nothing_but_go_on_and_compare() {
    let (next, compare) = ("sim::Find;core::iter::adapters::zip::Zip::next", "sim::Find;core::slice::cmp::eq");
    let of_ms = |ms: u64| work(ms % 10, &[(1, compare), (4, next), (7, "sim::Find")], "sim::Read");
    assert_eq!(found(&loading(of_ms)), ["list-search | sim::Find | 70"]);
    let with_work = |ms: u64| work(ms % 10, &[(1, compare), (4, next), (7, "sim::Find;memcpy")], "sim::Read");
    assert!(found(&loading(with_work)).is_empty(), "{:?}", found(&loading(with_work)));
}

#[test]
fn text_that_loading_writes_is_one_weak_finding() {
    let (number, grow) = ("sim::Write;sim::Value;std::ostream::_M_insert<double>", "sim::Write;realloc");
    let capture = loading(|ms| work(ms % 10, &[(1, number), (3, grow), (4, "sim::Write")], "sim::Read"));
    assert_eq!(found(&capture), ["values-through-text | sim::Write | -"]);
    let little = loading(|ms| work(ms % 10, &[(1, number), (8, "sim::Write")], "sim::Read"));
    assert!(found(&little).iter().all(|row| !row.contains("sim::Write")), "{:?}", found(&little));
}

#[test]
fn texts_that_are_compared_one_by_one_are_distinguished_from_those_of_a_map() {
    let one_by_one =
        looping(|_, tenth| work(tenth, &[(2, "sim::Get;__memcmp_avx2_movbe"), (3, "sim::Get")], "sim::Move"));
    assert_eq!(found(&one_by_one), ["text-compared-each-step | sim::Get | 30"]);
    let in_map = "sim::Get;std::map<std::string, int>::find;__memcmp_avx2_movbe";
    let in_map = looping(|_, tenth| work(tenth, &[(4, in_map)], "sim::Move"));
    assert_eq!(found(&in_map), ["text-keys-each-step | sim::Get | 40"], "a map has a kind of its own");
}

#[test]
fn a_statement_per_item_is_distinguished_from_one_for_all() {
    let step = "sim::Items;sqlite3_step;sqlite3VdbeExec";
    let locks = format!("{step};sqlite3BtreeBeginTrans");
    let each =
        loading(|ms| work(ms % 10, &[(3, "sim::Items;sqlite3_prepare_v2"), (5, &locks), (7, step)], "sim::Read"));
    assert_eq!(found(&each), ["query-per-item | sim::Items | 50"]);
    let once = loading(|ms| work(ms, &[(3, "sim::Items;sqlite3_prepare_v2"), (70, step)], "sim::Read"));
    assert!(found(&once).is_empty(), "{:?}", found(&once));
}

#[test]
fn many_messages_have_no_gain_without_their_receivers() {
    let send = "sim::Tell;sendto;__x64_sys_sendto [kernel]";
    assert_eq!(
        found(&looping(|_, tenth| work(tenth, &[(4, send)], "sim::Move"))),
        ["many-messages-each-step | sim::Tell | -"]
    );
    assert!(found(&looping(|_, tenth| work(tenth, &[(1, send)], "sim::Move"))).is_empty());
    let receive = "sim::Hear;recv;__x64_sys_recvfrom [kernel]";
    assert_eq!(
        found(&looping(|_, tenth| work(tenth, &[(4, receive)], "sim::Move"))),
        ["many-messages-each-step | sim::Hear | -"]
    );
}

#[test]
fn allocations_of_several_callees_are_one_finding_at_their_caller() {
    let rows = "sim::Frames;sim::Row;malloc";
    let images = "sim::Frames;sim::Image;malloc";
    let capture = looping(|_, tenth| work(tenth, &[(3, rows), (6, images)], "sim::Move"));
    assert_eq!(found(&capture), ["allocations-each-step | sim::Frames | 60"]);
    let busy = looping(|_, tenth| work(tenth, &[(2, rows), (5, "sim::Frames")], "sim::Move"));
    assert_eq!(found(&busy), ["allocations-each-step | sim::Row | 20"], "a caller with work of its own is not named");
}

#[test]
fn elements_that_a_container_has_room_for_do_not_rebuild_it() {
    let push = "sim::Send;std::vector<int>::push_back";
    let every_fifth = |step: u64, stack: &'static str| if step.is_multiple_of(2) { stack } else { "sim::Move" };
    let stays = looping(|step, tenth| work(tenth, &[(1, every_fifth(step, push))], "sim::Move"));
    assert!(found(&stays).is_empty(), "{:?}", found(&stays));
    let memory = "sim::Send;std::vector<int>::push_back;operator new;malloc";
    let built = looping(|step, tenth| work(tenth, &[(1, every_fifth(step, memory))], "sim::Move"));
    assert_eq!(found(&built), ["allocations-each-step | sim::Send | 5"]);
}

#[test]
fn a_file_per_item_is_found_in_loading_and_files_of_the_kernel_are_not_reopened() {
    let open = "sim::Compile;open64;__x64_sys_openat [kernel]";
    let each = loading(|ms| work(ms % 10, &[(3, open)], "sim::Read"));
    assert_eq!(found(&each), ["file-opened-each-time | sim::Compile | 30"]);
    let few = loading(|ms| work(ms, &[(5, open)], "sim::Read"));
    assert!(found(&few).is_empty(), "{:?}", found(&few));
    let table = "sim::Watch;read;__x64_sys_read [kernel];seq_read_iter [kernel]";
    let watch =
        looping(|_, tenth| work(tenth, &[(1, "sim::Watch;open64;__x64_sys_openat [kernel]"), (4, table)], "sim::Move"));
    assert_eq!(found(&watch), ["kernel-files-read-again | sim::Watch | -"]);
    let of_itself = looping(|_, tenth| {
        let of_path = "sim::Watch;open64;__x64_sys_openat [kernel];pick_link [kernel];proc_self_get_link [kernel]";
        let read = "sim::Watch;read;__x64_sys_read [kernel];seq_read_iter [kernel]";
        work(tenth, &[(1, of_path), (2, read), (3, "sim::Watch;std::num_get<char>::do_get")], "sim::Move")
    });
    assert_eq!(found(&of_itself), ["kernel-files-read-again | sim::Watch | 30"], "the files of the own process");
}

#[test]
fn a_directory_scan_includes_what_its_callees_open() {
    let list = "sim::Clean;readdir64;__x64_sys_getdents64 [kernel]";
    let open = "sim::Clean;sim::IsOld;open64;__x64_sys_openat [kernel]";
    let capture = loading(|ms| work(ms % 10, &[(1, list), (6, open)], "sim::Read"));
    let rows = drawn::selected(&capture, &["sim::"], |selection| {
        cells(&table(std::slice::from_ref(selection), &Calls::default()), &["kind", "function", "within"])
    });
    assert_eq!(rows, ["directory-scan | sim::Clean | -", "file-opened-each-time | sim::IsOld | 1"]);
}

#[test]
fn a_library_that_loading_runs_is_weak_without_the_steady_phase() {
    let start = "sim::Start;Py_Initialize [lib:/usr/lib/libpython3.11.so]";
    let capture = loading(|ms| work(ms, &[(40, start)], "sim::Read"));
    assert_eq!(found(&capture), ["unused-initialisation | sim::Start | -"]);
    let linked = "sim::Start [lib:/opt/sim];physics::init [lib:/opt/sim]";
    let capture = loading(|ms| work(ms, &[(40, linked)], "sim::Read"));
    assert!(found(&capture).is_empty(), "a library in the program's own file: {:?}", found(&capture));
}

#[test]
fn library_calls_are_found_at_their_owned_caller_if_they_cost_much_all_the_time() {
    let of = |stack: &str, tenths: u64| found(&looping(|_, tenth| work(tenth, &[(tenths, stack)], "sim::Move")));
    let sort = "sim::Order;std::sort<int*>;std::__introsort_loop<int*>;sim::Order::Less";
    assert_eq!(of(sort, 4)[0], "sort-each-step | sim::Order | 40");
    assert_eq!(of(sort, 3)[0], "sort-each-step | sim::Order | -", "its data may be new in each step");
    assert_eq!(of("sim::Get;__cxa_throw;_Unwind_RaiseException;memcmp", 4)[0], "exceptions-each-step | sim::Get | 40");
    assert_eq!(of("sim::Visit;__dynamic_cast;__strcmp_evex", 3)[0], "dynamic-casts-each-step | sim::Visit | 30");
    let stream = of("sim::Read;std::istream::_M_extract<double>;std::use_facet<int>;__dynamic_cast;__strcmp_evex", 3);
    assert!(!stream.iter().any(|row| row.starts_with("dynamic")), "a stream's own cast: {stream:?}");
    assert_eq!(of("sim::Touch;clock_gettime;__vdso_clock_gettime", 2)[0], "clock-read-often | sim::Touch | 20");
    assert_eq!(of("sim::Wait;clock_gettime;__vdso_clock_gettime", 6)[0], "busy-wait-for-time | sim::Wait | 60");
    let yields = |step: u64, tenth: u64| match (step + tenth) % 10 {
        0 => "sim::Wait;clock_gettime;__vdso_clock_gettime",
        1..6 => "sim::Wait;std::this_thread::yield;sched_yield;__x64_sys_sched_yield [kernel]",
        _ => "sim::Move",
    };
    assert_eq!(found(&looping(|step, tenth| yields(step, tenth).to_owned())), ["busy-wait-for-time | sim::Wait | 60"]);
    let for_thread = of("sim::Wait;std::this_thread::yield;sched_yield;__x64_sys_sched_yield [kernel]", 6);
    assert_eq!(for_thread, ["busy-wait | sim::Wait | 60"], "it looks at no clock");
    let rarely = of("sim::Wait;std::this_thread::yield;sched_yield;__x64_sys_sched_yield [kernel]", 0);
    assert!(rarely.is_empty(), "{rarely:?}");
    let of_library = of("sim::Wait;std::sync::mpmc::array::Channel<T>::send;std::thread::yield_now;sched_yield", 6);
    assert!(!of_library.iter().any(|row| row.starts_with("busy-wait |")), "{of_library:?}");
    let once = looping(|step, tenth| work(tenth, &[(u64::from(step == 50) * 10, sort)], "sim::Move"));
    assert!(found(&once).iter().all(|row| !row.starts_with("sort")), "one step sorts: {:?}", found(&once));
}

#[test]
fn a_note_names_the_function_with_most_of_the_cost_if_no_finding_is_about_it() {
    let notes = |stack: &str| {
        let capture = looping(|_, tenth| work(tenth, &[(6, stack)], "sim::Move"));
        let table = drawn::selected(&capture, &["sim::"], |selection| {
            table(std::slice::from_ref(selection), &Calls::default())
        });
        let notes = table.notes.iter().map(ToString::to_string);
        notes.filter(|note| note.contains("no finding says why")).collect::<Vec<_>>()
    };
    let note = notes("sim::Walk").pop().unwrap();
    assert!(note.contains("`sim::Walk` takes 60.00 % of the CPU time of steps"), "{note}");
    assert!(note.contains("`stepscope explain 'sim::Walk' RUN`"), "{note}");
    assert!(notes(FIND).is_empty(), "the search is found");
}

#[test]
fn look_ups_by_texts_are_distinguished_from_those_by_numbers() {
    let of = |stack: &str, tenths: u64| found(&looping(|_, tenth| work(tenth, &[(tenths, stack)], "sim::Move")));
    let hash = "sim::Get;std::_Hashtable<std::__cxx11::basic_string<char>, int>::find";
    assert_eq!(of(hash, 2), ["text-keys-each-step | sim::Get | 20"]);
    assert_eq!(of("sim::Get;std::_Rb_tree<std::__cxx11::basic_string<char>, int>::find;memcmp", 2).len(), 1);
    assert!(of("sim::Get;std::_Hashtable<int, std::__cxx11::basic_string<char> >::find", 4).is_empty());
    let compares = looping(|_, tenth| {
        let (find, text) = ("sim::Get;sim_map::RawTable<T>::find", "sim::Get;hashbrown::raw::RawTable<T>::get;memcmp");
        work(tenth, &[(2, text), (3, find)], "sim::Move")
    });
    assert_eq!(found(&compares), ["text-keys-each-step | sim::Get | 20"], "a look-up that compares texts");
    let of_rust = "sim::Get;std::collections::hash::map::HashMap<K,V,S,A>::get_mut;hashbrown::map::make_hash;\
                   <std::hash::random::DefaultHasher as core::hash::Hasher>::write_str";
    assert_eq!(of(of_rust, 2), ["text-keys-each-step | sim::Get | 20"]);
    let made = looping(|_, tenth| work(tenth, &[(1, "sim::Get;malloc"), (6, hash)], "sim::Move"));
    assert_eq!(
        found(&made),
        ["text-keys-each-step | sim::Get | 60", "allocations-each-step | sim::Get | 10"],
        "the key is made for each look-up"
    );
}

#[test]
fn a_copied_container_is_distinguished_from_one_that_grows_and_named_at_who_copies() {
    let of = |stack: &str| found(&looping(|_, tenth| work(tenth, &[(2, stack)], "sim::Move")));
    let copy = "std::vector<float>::vector;std::uninitialized_copy<float*>;memmove";
    assert_eq!(of(&format!("sim::Send;sim::Cloud::Cloud;{copy}")), ["copies-each-step | sim::Send | 20"]);
    let grown = of("sim::Send;std::vector<A>::_M_realloc_insert;std::uninitialized_copy<A*>;memmove");
    assert!(grown.iter().all(|row| !row.starts_with("copies")), "{grown:?}");
    assert!(of("sim::Send;memmove").is_empty(), "what is copied is not known");
}

#[test]
fn streams_that_are_flushed_are_found_and_full_buffers_are_not() {
    let of = |stack: &str| found(&looping(|_, tenth| work(tenth, &[(1, stack)], "sim::Move")));
    let write = "write;__x64_sys_write [kernel]";
    let rows = of(&format!("sim::Log;std::endl<char>;std::ostream::flush;{write}"));
    assert_eq!(rows, ["small-writes-each-step | sim::Log | 10"]);
    assert!(of(&format!("sim::Log;std::basic_filebuf<char>::overflow;{write}")).is_empty());
}

#[test]
fn a_wait_set_that_is_built_again_is_found_at_who_builds_it() {
    let change = "epoll_ctl;__x64_sys_epoll_ctl [kernel];do_epoll_ctl [kernel]";
    let (add, remove) = (format!("sim::Spin;sim::Add;{change}"), format!("sim::Spin;{change}"));
    let built = looping(|_, tenth| work(tenth, &[(2, &add), (4, &remove)], "sim::Move"));
    assert_eq!(found(&built), ["wait-set-rebuilt | sim::Spin | 40"]);
    let poll = "sim::Spin;poll;__x64_sys_poll [kernel];do_sys_poll [kernel]";
    let each = looping(|_, tenth| work(tenth, &[(3, &format!("{poll};sock_poll [kernel]"))], "sim::Move"));
    assert_eq!(found(&each), ["wait-set-rebuilt | sim::Spin | 30"]);
    let few = looping(|_, tenth| work(tenth, &[(3, poll)], "sim::Move"));
    assert!(found(&few).is_empty(), "the wait itself is no set: {:?}", found(&few));
    let at_start = looping(|step, tenth| work(tenth + step * 10, &[(200, &add)], "sim::Move"));
    assert!(found(&at_start).iter().all(|row| !row.starts_with("wait-set")), "{:?}", found(&at_start));
}

#[test]
fn what_python_code_does_shows_in_functions_of_cpython() {
    let lib = "[lib:/usr/lib/libpython3.11.so]";
    let of = |rows: &[(u64, &str)]| found(&looping(|_, tenth| work(tenth, rows, "sim::Move")));
    let search = format!("_PyEval_EvalFrameDefault {lib};list_contains {lib};PyObject_RichCompare {lib}");
    let rows = of(&[(5, &search)]);
    assert!(rows.iter().any(|row| row.starts_with("list-search") && row.ends_with("50")), "{rows:?}");
    let (write, read) = (format!("encoder_call {lib}"), format!("scanner_call {lib}"));
    let rows = of(&[(2, &write), (3, &read)]);
    assert!(rows.iter().any(|row| row.starts_with("values-through-text") && row.ends_with("30")), "{rows:?}");
    assert!(of(&[(2, &write)]).is_empty(), "what is only written may have to be text");
}

#[test]
fn patterns_generators_references_and_file_states_are_found_at_who_asks_for_them() {
    let of = |stack: &str, tenths: u64| found(&looping(|_, tenth| work(tenth, &[(tenths, stack)], "sim::Move")));
    let pattern = "sim::Match;std::__cxx11::basic_regex<char>::_M_compile;std::__detail::_Compiler<T>::_M_term;malloc";
    assert_eq!(of(pattern, 4), ["pattern-compiled-each-step | sim::Match | 40"], "its memory is part of it");
    assert!(of("sim::Match;std::regex_match<char>;std::__detail::_Executor<T>::_M_dfs", 4).is_empty(), "a match");
    let seed = "sim::Noise;std::mersenne_twister_engine<unsigned long, 32ul>::seed";
    assert_eq!(of(seed, 2), ["generator-seeded-each-step | sim::Noise | 20"]);
    assert!(of("sim::Noise;std::mersenne_twister_engine<unsigned long, 32ul>::_M_gen_rand", 2).is_empty(), "numbers");
    let release = "sim::Range;std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release";
    let count = format!("{release};__gnu_cxx::__exchange_and_add");
    assert_eq!(of(&count, 3), ["references-counted-each-step | sim::Range | 30"]);
    assert!(of(&format!("{release};sim::Mesh::Clear"), 3).is_empty(), "the last reference releases the mesh");
    let state = "sim::Refresh;stat64;__x64_sys_newfstatat [kernel];vfs_statx [kernel]";
    assert_eq!(of(state, 1), ["file-state-each-step | sim::Refresh | 10"]);
}

#[test]
fn a_container_that_keeps_its_memory_is_not_called_rebuilt() {
    let push = "sim::Fill;std::vector<int>::push_back";
    let of = |memory: &str| {
        found(&looping(|step, tenth| {
            work(tenth, &[(1, if step % 5 == 0 { memory } else { push }), (4, push)], "sim::Move")
        }))
    };
    assert!(of(push).is_empty(), "{:?}", of(push));
    let grown = of(&format!("{push};std::vector<int>::_M_realloc_insert;operator new;malloc"));
    assert_eq!(grown, ["allocations-each-step | sim::Fill | 40"]);
}

#[test]
fn python_sorts_and_its_interpreter_is_never_named() {
    let lib = "[lib:/usr/bin/python3.11]";
    let stack = format!("_PyEval_EvalFrameDefault {lib};list_sort_impl {lib};unsafe_tuple_compare {lib}");
    let capture = looping(|_, tenth| work(tenth, &[(5, &stack)], "sim::Move"));
    assert_eq!(found(&capture), ["sort-each-step | sim::Step | 50"], "an owned function calls it");
    // Nothing is configured as owned.
    let rows = drawn::selected(&capture, &[], |selection| {
        let table = table(std::slice::from_ref(selection), &Calls::default());
        cells(&table, &["kind", "function", "finding"])
    });
    assert!(rows.iter().any(|row| row == "sort-each-step | - | Python code sorts in every step"), "{rows:?}");
}

#[test]
fn containers_of_python_that_are_built_and_released_are_found_at_who_builds_them() {
    let python = "[lib:/usr/bin/python3.11]";
    let file = "/srv/sim.py";
    let build = format!(
        "py::Gate.open:{file};py::Road.index:{file};py::Road.index.<locals>.<dictcomp>:{file};PyDict_New {python}"
    );
    let release = format!("py::Gate.open:{file};dict_dealloc {python};tupledealloc {python}");
    let of = |released: u64| {
        let capture = looping(|_, tenth| {
            work(tenth, &[(released, release.as_str()), (6, build.as_str())], "py::Car.drive:/srv/sim.py")
        });
        drawn::selected(&capture, &[], |selection| {
            let table = table(std::slice::from_ref(selection), &Calls::default());
            cells(&table, &["kind", "function", "gain_share"])
        })
    };
    assert_eq!(of(2), ["allocations-each-step | py::Road.index:/srv/sim.py | 60"]);
    assert!(of(0).is_empty(), "what is kept is not built in vain");
}

#[test]
fn gains_include_their_part_of_what_releasing_memory_costs() {
    let copy = "sim::Send;sim::Cloud::Cloud;std::vector<float>::vector";
    let (copied, taken) = (format!("{copy};std::uninitialized_copy<float*>;memmove"), format!("{copy};malloc"));
    let capture = looping(|_, tenth| match tenth {
        0 | 1 => copied.clone(),
        2 => taken.clone(),
        3 => "sim::Plan;malloc".to_owned(),
        4 | 5 => "sim::Drop;std::vector<float>::~vector;free".to_owned(),
        _ => "sim::Move".to_owned(),
    });
    let rows = found(&capture);
    // Half of the memory is taken for the copies.
    assert!(rows.contains(&"copies-each-step | sim::Send | 40".to_owned()), "{rows:?}");
    assert!(rows.contains(&"allocations-each-step | sim::Plan | 20".to_owned()), "{rows:?}");
}

#[test]
fn page_faults_include_their_part_of_mapping_memory() {
    let faults = "sim::Draw;asm_exc_page_fault [kernel];clear_page [kernel]";
    let unmaps = "sim::Drop;__munmap;__x64_sys_munmap [kernel];unmap_region [kernel]";
    let capture = looping(|_, tenth| work(tenth, &[(3, faults), (4, unmaps)], "sim::Move"));
    let rows = found(&capture);
    assert!(rows.contains(&"page-faults-each-step | sim::Draw | 40".to_owned()), "{rows:?}");
}
