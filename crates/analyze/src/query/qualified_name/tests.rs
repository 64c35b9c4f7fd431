use proptest::prelude::*;

use super::*;

/// Each line: as printed `=>` own qualified name.
fn check(cases: &str) {
    for case in cases.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (printed, own) = case.split_once(" => ").expect("a case is `printed => own`");
        assert_eq!(own_name(printed), own, "own name of `{printed}`");
    }
}

#[test]
fn return_types_and_template_arguments_are_not_part_of_the_name() {
    check(
        "
        gz::sim::v11::SimulationRunner::Run => gz::sim::v11::SimulationRunner::Run
        void gz::sim::v11::EntityComponentManager::EachNoCache<gz::sim::v11::components::Component<std::add_lvalue_reference<void>, gz::sim::Tag> > => gz::sim::v11::EntityComponentManager::EachNoCache
        unsigned long gz::sim::Manager::EntityByComponents<gz::A> => gz::sim::Manager::EntityByComponents
        std::vector<gz::math::Pose3, std::allocator<gz::math::Pose3> >::push_back => std::vector::push_back
        std::vector<gz::A>::~vector() => std::vector::~vector
        Eigen::Quaternion<double, 0>& Eigen::QuaternionBase<Eigen::Quaternion<double, 0> >::operator=<gz::B> => Eigen::QuaternionBase::operator=
        std::enable_if<std::is_same<gz::A, gz::B>::value, bool>::type sdf::f<gz::A>(gz::A const&) => sdf::f
        gz::math::v10::graph::Graph<unsigned long, bool, gz::math::DirectedEdge<bool> >::Vertices() const => gz::math::v10::graph::Graph::Vertices
        decltype (((forward<gz::A>)({parm#1})).size()) std::size<gz::A>(gz::A&) => std::size
        decltype(auto) gz::f<int>(int) => gz::f
        void (*gz::handler<int>(int))(char) => gz::handler
        A<(B)1, (3 > 2), true>::f(int) => A::f
        A<(1<<3)>::g => A::g
        A<&(B::operator<(B const&)), decltype (x->y)>::h() => A::h
        ",
    );
}

#[test]
fn instances_of_a_template_have_the_same_name_however_a_tool_prints_it() {
    let printed = [
        "void sim::Each<std::vector<sim::A, std::allocator<sim::A>>>(int) const",
        "sim::Each<std::vector<sim::A, std::allocator<sim::A> > >",
    ];
    assert_eq!(printed.map(instance_name), ["sim::Each<std::vector<sim::A,std::allocator<sim::A>>>"; 2]);
    assert_eq!(instance_name("std::__cxx11::basic_string<char>::size() const"), "std::basic_string<char>::size");
    assert_eq!(instance_name("sim::World::find(char const*) const"), "sim::World::find");
    assert_ne!(instance_name("sim::Each<int>(int)"), instance_name("sim::Each<long>(long)"));
    assert_eq!(["main", "[unknown]", "py::f:/a.py"].map(instance_name), ["main", "[unknown]", "f"]);
}

#[test]
fn names_cut_at_a_parenthesis_are_read_as_far_as_they_go() {
    check(
        "
        std::function<bool => std::function
        bool gz::sim::detail::applyFunction<gz::Gravity, std::function<bool => gz::sim::detail::applyFunction
        std::less<unsigned long>::operator => std::less::operator
        gz::f(std::function<void => gz::f
        gz::f(int)::{lambda => gz::f::{lambda
        std::enable_if<gz::A => std::enable_if
        ",
    );
}

#[test]
fn operators_are_names_and_not_brackets() {
    check(
        "
        gz::math::v10::operator<< => gz::math::v10::operator<<
        bool std::operator< <char, gz::Traits<char> >(gz::A const&) => std::operator<
        bool std::operator==<char, gz::Traits> => std::operator==
        A::operator()(int) const => A::operator()
        A::operator()<gz::B>(gz::B) => A::operator()
        A::operator[](unsigned long) => A::operator[]
        A::operator->() const => A::operator->
        A::operator->*(int) => A::operator->*
        A<B>::operator<=>(A<B> const&) => A::operator<=>
        std::atomic<bool>::operator bool() const => std::atomic::operator bool
        gz::Identity::operator bool => gz::Identity::operator bool
        A::Ptr<B>::operator dart::dynamics::BodyNode* => A::Ptr::operator dart::dynamics::BodyNode*
        A::operator std::vector<gz::X>() const => A::operator std::vector
        operator new(unsigned long) => operator new
        operator delete[] => operator delete[]
        A::operator new[](unsigned long) => A::operator new[]
        gz::operator\"\" _deg(long double) => gz::operator\"\" _deg
        gz::operators::f(int) => gz::operators::f
        gz::Xoperator::f() => gz::Xoperator::f
        ",
    );
}

#[test]
fn names_declared_in_a_function_contain_that_function() {
    check(
        "
        A::f()::{lambda(int)#1}::operator()(int) const => A::f::{lambda(int)#1}::operator()
        A::f(gz::B const&) const::{lambda(auto:1)#2}::operator()<int>(int) const => A::f::{lambda(auto:1)#2}::operator()
        A::f(int)::$_0::operator()(int) const => A::f::$_0::operator()
        A::f(int)::'lambda'(int)::operator()(int) const => A::f::'lambda'::operator()
        main::{lambda()#1}::operator() => main::{lambda()#1}::operator()
        void gz::g<int>(int)::Local::method() => gz::g::Local::method
        gz::(anonymous namespace)::helper(int) => gz::(anonymous namespace)::helper
        (anonymous namespace)::helper(gz::A) => (anonymous namespace)::helper
        int (anonymous namespace)::helper<gz::A>(gz::A) => (anonymous namespace)::helper
        std::_Function_handler<void (), gz::A::f()::{lambda()#1}>::_M_invoke(std::_Any_data const&) => std::_Function_handler::_M_invoke
        ",
    );
}

#[test]
fn remarks_of_compilers_and_linkers_are_removed() {
    check(
        "
        non-virtual thunk to gz::sim::systems::Physics::Update(gz::A const&) => gz::sim::systems::Physics::Update
        virtual thunk to gz::physics::SpecifyData<gz::R, gz::E>::~SpecifyData => gz::physics::SpecifyData::~SpecifyData
        construction vtable for gz::physics::World<gz::P>-in-std::World<gz::Q> => gz::physics::World
        gz::common::Image::Name[abi:cxx11] => gz::common::Image::Name
        gz::common::Image::Name[abi:cxx11](int) const => gz::common::Image::Name
        gz::f(int) [clone .constprop.0] => gz::f
        gz::f [clone .isra.0] [clone .cold] => gz::f
        stbi__load_main.constprop.0 => stbi__load_main
        stbi__load_main.cold => stbi__load_main
        _ZN3foo.llvm.1234 => _ZN3foo
        __libc_start_main@@GLIBC_2.34 => __libc_start_main
        malloc@plt => malloc
        malloc_[k] => malloc
        ",
    );
}

#[test]
fn constructors_destructors_and_plain_names_stay() {
    check(
        "
        gz::common::Image::Image(std::string const&) => gz::common::Image::Image
        ~MaybeGilScopedRelease => ~MaybeGilScopedRelease
        stbi__decode_jpeg_image => stbi__decode_jpeg_image
        [unknown] => [unknown]
        [libdart.so.6.13.2] => [libdart.so.6.13.2]
        _[i] => _[i]
        libdart.so.6.13.2+0x1f30 => libdart.so.6.13.2+0x1f30
        main.(*Server).Run => main.(*Server).Run
        py::World.step:/srv/gz/world.py => World.step
        ",
    );
}

#[test]
fn a_rust_method_is_named_by_its_type() {
    check(
        "
        <gz::Pose as core::fmt::Display>::fmt => gz::Pose::fmt
        <alloc::vec::Vec<gz::Pose> as core::ops::drop::Drop>::drop => alloc::vec::Vec::drop
        <&mut gz::Iter<'a, T> as core::iter::Iterator>::next => gz::Iter::next
        <dyn gz::Shape + core::marker::Send>::area => gz::Shape::area
        <gz::World>::step::<f64> => gz::World::step
        <[gz::Pose] as gz::Sum>::sum => [gz::Pose]::sum
        <<gz::A as gz::B>::C as core::fmt::Debug>::fmt => gz::A::C::fmt
        gz::world::_::<impl serde::Serialize for gz::world::World>::serialize => gz::world::_::serialize
        core::ptr::drop_in_place::<gz::Pose> => core::ptr::drop_in_place
        core::ptr::drop_in_place<alloc::vec::Vec<gz::Pose>> => core::ptr::drop_in_place
        gz::run::{{closure}} => gz::run::{{closure}}
        gz::run::{closure#0}::<f64> => gz::run::{closure#0}
        gz[5f3c9a]::run => gz::run
        <F as core::ops::function::FnOnce<A>>::call_once{{vtable.shim}} => F::call_once{{vtable.shim}}
        core::slice::sort::<fn(gz::A) -> gz::B>::run => core::slice::sort::run
        ",
    );
    assert_eq!(trait_name("<alloc::vec::Vec<T> as gz::Sum<f64>>::sum").as_deref(), Some("gz::Sum::sum"));
    assert_eq!(trait_name("<gz::World>::step"), None);
    assert_eq!(trait_name("gz::World::step"), None);
}

#[test]
fn thousands_of_nested_brackets_do_no_harm() {
    for open in ["<", "(", "{", "[", "<<x as y>::", "operator<"] {
        own_name(&open.repeat(20_000));
    }
    let nested = format!("{}a{}", "<".repeat(5_000), " as b>::c".repeat(5_000));
    own_name(&nested);
    trait_name(&nested);
}

#[test]
fn of_a_name_of_megabytes_the_start_decides() {
    let arguments = "std::vector<".repeat(1_000_000);
    assert_eq!(own_name(&format!("gz::World::step<{arguments}")), "gz::World::step");
    assert!(own_name(&"n::".repeat(3_000_000)).len() <= LONGEST);
    // Brackets that close nothing beside thousands of open ones.
    assert_eq!(own_name(&format!("gz::World::step<{}{}", "<".repeat(30_000), ")".repeat(30_000))), "gz::World::step");
    own_name(&"é".repeat(LONGEST));
}

proptest! {
    #[test]
    fn no_text_makes_it_fail(text in "[ a-zé:<>()\\[\\]{}'@&*~=.,-]{0,40}|(operator|<|>|::|\\(|\\)| as | const|gz| |\\[|\\{){0,12}") {
        own_name(&text);
        trait_name(&text);
    }

    #[test]
    fn a_function_is_found_behind_any_return_type_and_template_arguments(
        returned in prop::sample::select(vec!["", "void ", "std::vector<gz::A>& ", "unsigned long "]),
        arguments in prop::sample::select(vec!["", "<int>", "<gz::A, std::pair<long, long> >", "<std::function<bool (gz::A)> >"]),
        parameters in prop::sample::select(vec!["", "()", "(gz::A const&, int) const", "(std::function<bool (int)>)"]),
    ) {
        let printed = format!("{returned}dart::World{arguments}::step{arguments}{parameters}");
        prop_assert_eq!(own_name(&printed), "dart::World::step");
    }
}

#[test]
fn a_comprehension_is_written_in_its_function_and_a_nested_function_is_its_own() {
    assert_eq!(enclosing_python("Arm.observe.<locals>.<listcomp>"), Some("Arm.observe"));
    assert_eq!(enclosing_python("Arm.observe.<locals>.helper"), None);
    assert_eq!(enclosing_python("<listcomp>"), None);
}

#[test]
fn inline_namespaces_of_versions_are_left_out() {
    assert_eq!(without_version("sdf::v12::Root::Load"), "sdf::Root::Load");
    assert_eq!(without_version("a::v1::b::v23::c"), "a::b::c");
    assert_eq!(without_version("a::v1x::b"), "a::v1x::b");
    assert_eq!(without_version("geo::v2"), "geo::v2");
}
