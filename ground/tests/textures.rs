//! When textures are decoded. Alone in its program, as decodes are counted for all of it.

use ground::account::Moment;
use ground::server::{Server, ServerOptions};
use ground::switches::{Switch, Switches};
use ground::worlds::{Mobility, WorldKind, WorldSpec};

/// The steps in which a texture is decoded, of the first thousand.
fn steps_that_decode(switches: Switches) -> Vec<u64> {
    let world =
        WorldSpec { kind: WorldKind::Marina, shapes: 128, robots: 1, mobility: Mobility::Static, cameras: 0 }.into();
    let options = ServerOptions { switches, ..ServerOptions::default() };
    let mut server = Server::load(&world, options).expect("the world is whole");
    let mut decodes = || {
        let before = Moment::now();
        server.runner().step();
        Moment::now().since(&before).counts.contains_key("decodes")
    };
    (0..1000).filter(|_| decodes()).collect()
}

#[test]
fn textures_are_decoded_at_first_sight_in_every_fiftieth_step_or_when_the_world_is_loaded() {
    let decoding = steps_that_decode(Switches::only(Switch::LazyTexture));
    let apart: Vec<u64> = decoding.windows(2).map(|pair| pair[1] - pair[0]).skip(1).collect();
    assert!(apart.len() >= 18 && apart.iter().all(|steps| (49..=51).contains(steps)), "{decoding:?}");
    assert_eq!(steps_that_decode(Switches::default()), [0]);
}
