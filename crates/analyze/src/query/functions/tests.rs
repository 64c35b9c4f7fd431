use super::*;
use crate::drawn::{self, owned_by};
use crate::query::ownership::Ownership;

#[test]
fn places_of_one_function_are_one_function_and_equal_names_in_two_modules_are_two() {
    let capture = drawn::columns(
        "
        main                    main                    main
        Run [file:run.cc:10]    Run [file:run.cc:20]    Run [lib:/usr/lib/libother.so]
        1                       1                       1
        ",
    );
    let functions = Functions::of(&capture, &Owned::nothing());
    let names: Vec<(&str, &str)> = functions.all().map(|(_, one)| (&*one.name, &*one.module)).collect();
    assert_eq!(names, [("Run", ""), ("Run", "libother.so")]);
}

#[test]
fn the_nearest_owned_function_is_sought_from_the_leaf() {
    let capture = drawn::folded("main;gz::Run;dart::step;gz::collide;std::find;malloc 1");
    let functions = Functions::of(&capture, &owned_by(&["gz::"]));
    let leaf = capture.samples[0].stack.unwrap();
    let nearest: Vec<Option<&str>> = capture
        .nodes_of(Some(leaf))
        .map(|node| functions.nearest_owned(node).map(|id| &*functions.get(id).name))
        .collect();
    let (run, collide) = (Some("gz::Run"), Some("gz::collide"));
    assert_eq!(nearest, [collide, collide, collide, run, run]);
}

#[test]
fn where_nothing_is_owned_nameless_code_of_a_program_is_attributed_and_that_of_no_module_is_not() {
    let capture = drawn::columns(
        "
        sim                             sim
        sim+0x6e90 [lib:/usr/bin/sim]   0x7f00aa10
        strchr [lib:/lib/libc.so.6]     strchr [lib:/lib/libc.so.6]
        1                               1
        ",
    );
    let functions = Functions::of(&capture, &Owned::nothing());
    let attributed = |sample: usize| {
        let leaf = capture.samples[sample].stack.unwrap();
        functions.attributed(leaf).map(|id| &*functions.get(id).name)
    };
    assert_eq!((attributed(0), attributed(1)), (Some("sim+0x6e90"), None));
}

#[test]
fn python_functions_are_owned_by_name_or_file_and_exceptions_are_not() {
    let mut capture = drawn::columns(
        "
        python                                    python                               python
        py::main:/srv/run.py                      py::main:/srv/run.py                 Arm.move [file:/srv/controllers/arm.py:7]
        py::Robot.step:/srv/controllers/robot.py  py::Robot.log:/srv/lib/log.py
        1                                         1                                    1
        ",
    );
    let language = |frame: &mut Frame| frame.language = stepscope_model::Language::Python;
    capture.frames.iter_mut().for_each(language);
    let owned = |ownership: Ownership| -> Vec<String> {
        let functions = Functions::of(&capture, &ownership.compile().unwrap());
        let owned = functions.all().filter(|(_, function)| function.owned);
        owned.map(|(_, function)| own_name(&function.name).into_owned()).collect()
    };
    let list = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
    let by_file = Ownership { sources: list(&["/srv/controllers/*.py"]), ..Ownership::default() };
    assert_eq!(owned(by_file.clone()), ["Robot.step", "Arm.move"]);
    assert_eq!(owned(Ownership { not_owned: list(&["Robot.*"]), ..by_file }), ["Arm.move"]);
    let by_name = Ownership { namespaces: list(&["robot.py:Robot.step", "main"]), ..Ownership::default() };
    assert_eq!(owned(by_name), ["main", "Robot.step"]);
}

#[test]
fn where_nothing_is_owned_python_functions_have_the_cost_of_cpython_and_its_library() {
    let capture = drawn::columns(
        "
        python                                              python
        py::step:/srv/sim.py                                main [lib:/usr/bin/python3.11]
        _PyEval_EvalFrameDefault [lib:/usr/bin/python3.11]  py::Solver.run:/opt/lib/python3.11/site-packages/solver.py
        py::dumps:/usr/lib/python3.11/json/__init__.py      mj_step [lib:/opt/libmujoco.so]
        encoder_call [lib:/usr/lib/_json.cpython-311.so]
        1                                                   1
        ",
    );
    let functions = Functions::of(&capture, &Owned::nothing());
    let attributed = |sample: usize| {
        let leaf = capture.samples[sample].stack.unwrap();
        functions.attributed(leaf).map(|id| own_name(&functions.get(id).name))
    };
    assert_eq!((attributed(0).as_deref(), attributed(1).as_deref()), (Some("step"), Some("mj_step")));
}

#[test]
fn only_the_first_of_recursive_calls_is_outermost() {
    let capture = drawn::folded("main;a;b;a;a;c 1\nmain;b;a 1");
    let functions = Functions::of(&capture, &Owned::nothing());
    let outermost = |sample: usize| -> Vec<bool> {
        capture.nodes_of(capture.samples[sample].stack).map(|node| functions.is_outermost(node)).collect()
    };
    assert_eq!(outermost(0), [true, false, false, true, true]);
    assert_eq!(outermost(1), [true, true]);
}

#[test]
fn one_owned_place_makes_the_function_owned() {
    let capture = drawn::columns(
        "
        main                                main
        Each [file:/usr/include/each.hh:1]  Each [file:/srv/sim/src/each.cc:7]
        1                                   1
        ",
    );
    let ownership =
        Ownership { sources: vec!["/srv/sim/src/**".to_owned()], ..crate::query::ownership::Ownership::default() };
    let functions = Functions::of(&capture, &ownership.compile().unwrap());
    assert!(functions.all().next().unwrap().1.owned);
    assert_eq!(functions.len(), 1);
}

#[test]
fn the_largest_namespaces_of_the_program_are_offered() {
    let capture = drawn::folded(
        "main;gz::A;gz::B<int> 1\nmain;dart::a;std::sort;(anonymous namespace)::f;plain;gz::C 1\nmain;bullet::b;dart::c 1",
    );
    let functions = Functions::of(&capture, &Owned::nothing());
    assert_eq!(functions.largest_namespaces(&capture, 2), ["gz::*", "dart::*"]);
    let capture = drawn::folded(
        "main;stepscope_python_preload::run [lib:/tmp/stepscope-python-1-a.so];py::step:/srv/arm.py;gz::A 1\n\
         main;stepscope_python_preload::run [lib:/tmp/stepscope-python-1-a.so];py::draw:/srv/arm.py 1\n\
         main;py::dumps:/usr/lib/python3.11/json/__init__.py 1",
    );
    let functions = Functions::of(&capture, &Owned::nothing());
    assert_eq!(functions.largest_namespaces(&capture, 9), ["arm.py:*", "gz::*"]);
}

#[test]
fn functions_of_our_libraries_are_the_same_in_each_recording() {
    let identity = |file: &str| {
        let capture = drawn::folded(&format!("main;stepscope_python_preload::evaluate [lib:/tmp/{file}] 1"));
        let functions = Functions::of(&capture, &Owned::nothing());
        functions.functions.iter().map(Function::identity).collect::<Vec<Identity>>()
    };
    assert_eq!(identity("stepscope-python-11-2c8b.so"), identity("stepscope-python-12-01ef.so"));
    assert_ne!(identity("libsim-11.so"), identity("libsim-12.so"));
}

#[test]
fn a_stack_of_a_million_frames_is_walked() {
    let mut capture = Capture::default();
    let frame = capture.intern_function("f");
    capture.stacks = (0..1_000_000_u32)
        .map(|index| stepscope_model::StackNode { parent: index.checked_sub(1).map(StackId), frame })
        .collect();
    let functions = Functions::of(&capture, &Owned::nothing());
    assert!(functions.is_outermost(StackId(0)) && !functions.is_outermost(StackId(999_999)));
}
