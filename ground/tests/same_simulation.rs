//! A switch changes what a step costs, never what it computes.

use ground::catalogue;
use ground::catalogue::pathology::{Pathology, World};
use ground::sdf::Source;
use ground::server::{Server, ServerOptions};
use ground::switches::{Switch, Switches};
use ground::worlds::{Mobility, WorldKind, WorldSpec};

/// The switches of the worlds that are made here.
fn of_entities() -> impl Iterator<Item = &'static Pathology> {
    catalogue::pathologies().filter(|one| matches!(one.world, World::Shapes | World::Sensors | World::Marina))
}

fn world(shapes: u32, mobility: Mobility) -> Source {
    WorldSpec { kind: WorldKind::Shapes, shapes, robots: 16, mobility, cameras: 0 }.into()
}

fn load(world: &Source, switches: Switches) -> Server {
    Server::load(world, ServerOptions { switches, ..ServerOptions::default() }).expect("the world is whole")
}

fn state_after(steps: u64, world: &Source, switches: Switches) -> u64 {
    let mut server = load(world, switches);
    for _ in 0..steps {
        server.runner().step();
    }
    server.runner().state_hash()
}

/// Long enough for the engine to put to sleep what stands still, which it does after half a simulated second.
#[test]
fn every_switch_gives_the_same_static_world_at_every_size() {
    for shapes in [1, 20, 150] {
        let world = world(shapes, Mobility::Static);
        let fast = state_after(700, &world, Switches::default());
        for pathology in of_entities() {
            let slow = state_after(700, &world, Switches::only(pathology.switch));
            assert_eq!(slow, fast, "{} with {shapes} shapes", pathology.name());
        }
        assert_eq!(state_after(700, &world, Switches::all()), fast, "all with {shapes} shapes");
    }
}

#[test]
fn every_switch_gives_what_sensors_and_cameras_see() {
    for (kind, shapes) in [(WorldKind::Sensors, 10), (WorldKind::Sensors, 40), (WorldKind::Marina, 40)] {
        let world = WorldSpec { kind, shapes, robots: 8, mobility: Mobility::Static, cameras: 3 }.into();
        let fast = state_after(200, &world, Switches::default());
        for switch in [Switch::Derived, Switch::Imbalance, Switch::AllocChurn, Switch::LazyTexture] {
            assert_eq!(state_after(200, &world, Switches::only(switch)), fast, "{switch:?} in {kind:?} {shapes}");
        }
        assert_eq!(state_after(200, &world, Switches::all()), fast, "all in {kind:?} {shapes}");
    }
}

/// With many directions, so that some are inexact rotations: moving such a body by zero would turn it a little.
#[test]
fn cameras_that_never_move_look_the_same_way_in_every_setting() {
    let world = WorldSpec { kind: WorldKind::Sensors, shapes: 5, robots: 0, mobility: Mobility::Static, cameras: 64 };
    let world = world.into();
    let fast = state_after(3, &world, Switches::default());
    assert_eq!(state_after(3, &world, Switches::only(Switch::StaticKinematic)), fast);
    assert_eq!(state_after(3, &world, Switches::all()), fast);
}

/// Long enough for the shapes to settle and fall asleep, which the fast pose map must not miss.
#[test]
fn every_switch_gives_the_same_world_of_shapes_that_fall_asleep() {
    let world = world(12, Mobility::Dynamic);
    let fast = state_after(3000, &world, Switches::default());
    for pathology in of_entities() {
        assert_eq!(state_after(3000, &world, Switches::only(pathology.switch)), fast, "{}", pathology.name());
    }
}

#[test]
fn the_state_differs_after_another_number_of_steps_and_in_another_world() {
    let small = world(10, Mobility::Static);
    let states = [
        state_after(50, &small, Switches::default()),
        state_after(51, &small, Switches::default()),
        state_after(50, &world(11, Mobility::Static), Switches::default()),
        state_after(50, &world(10, Mobility::Dynamic), Switches::default()),
    ];
    for (index, state) in states.iter().enumerate() {
        assert!(!states[..index].contains(state), "state {index} is one of {states:x?}");
    }
}

#[test]
fn a_model_that_is_recreated_starts_again_where_it_first_stood_whichever_way_it_is_found() {
    let world = world(10, Mobility::Static);
    let recreated = |switches: Switches| {
        let mut server = load(&world, switches);
        let runner = server.runner();
        for _ in 0..100 {
            runner.step();
        }
        let before = runner.state_hash();
        assert_eq!(runner.request_recreate("patrol_3"), 1);
        assert_eq!(runner.request_recreate("nobody"), 0);
        assert_eq!(runner.state_hash(), before, "nothing happens before the next step");
        for _ in 0..100 {
            runner.step();
        }
        runner.state_hash()
    };
    let fast = recreated(Switches::default());
    for pathology in of_entities() {
        assert_eq!(recreated(Switches::only(pathology.switch)), fast, "{}", pathology.name());
    }
    assert_ne!(fast, state_after(200, &world, Switches::default()), "the model did go back");
}
