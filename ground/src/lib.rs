//! The bundled simulator: small, headless, with known performance pathologies that can be switched on.
//!
//! Its worlds are those of published studies: a robot simulator ([`server`]: SDF, entities, physics, systems on threads),
//! the region of a virtual world ([`region`]), network devices that write records ([`stats`]), a monitor of processes
//! ([`monitor`]), and nodes that publish and subscribe ([`topology`]). All implement [`simulation::Simulation`].
//!
//! Each pathology in the [`catalogue`] makes one thing slow, as a study found it in a real program. The simulated result
//! stays the same: [`simulation::Simulation::state_hash`] does not change. The program counts and times its own work in an
//! [`account`].
//!
//! ```
//! use ground::server::{Server, ServerOptions};
//! use ground::worlds::{Mobility, WorldKind, WorldSpec};
//!
//! let world = WorldSpec { kind: WorldKind::Shapes, shapes: 20, robots: 4, mobility: Mobility::Static, cameras: 0 };
//! let mut server = Server::load(&world.into(), ServerOptions::default())?;
//! for _ in 0..10 {
//!     server.runner().step();
//! }
//! assert_eq!(server.runner().steps(), 10);
//! # Ok::<(), ground::server::LoadError>(())
//! ```

pub mod account;
pub mod catalogue;
pub mod components;
pub mod ecs;
mod folder;
pub mod monitor;
pub mod physics;
pub mod python;
mod random;
pub mod region;
pub mod runner;
pub mod sdf;
pub mod server;
pub mod simulation;
pub mod stats;
pub mod switches;
pub mod systems;
pub mod textures;
pub mod topology;
pub mod transport;
pub mod worlds;
