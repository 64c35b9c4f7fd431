//! The proving ground: a small, real, headless simulator whose performance pathologies are known and switchable.
//!
//! Its worlds are what the published studies were about: a robot simulator ([`server`]: SDF, entities, physics, systems
//! on threads), the region of a virtual world ([`region`]), writers of records ([`stats`]), a monitor of processes
//! ([`monitor`]), and nodes that publish and subscribe ([`topology`]). All are [stepped](simulation). Each entry of the
//! [`catalogue`] makes one thing slow, as a study found it in a real program, without changing what is simulated:
//! [`simulation::Simulation::state_hash`] is the same. What a run did and what it took is [accounted for](account) by the
//! program itself.
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
