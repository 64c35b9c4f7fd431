//! The proving ground: a small, real, headless simulator whose performance pathologies are known and switchable.
//!
//! It reads a world from SDF ([`sdf`]), holds it in an entity component store ([`ecs`]), moves it with a physics
//! engine ([`physics`]) and steps it in phases over several threads ([`runner`]). Each entry of
//! [`switches::PATHOLOGIES`] makes one thing slow, as a published study found it in a real simulator, without changing
//! what is simulated: [`runner::SimulationRunner::state_hash`] is the same.
//!
//! ```
//! use ground::server::{Server, ServerOptions};
//! use ground::worlds::{Mobility, WorldKind, WorldSpec};
//!
//! let world = WorldSpec { kind: WorldKind::Shapes, shapes: 20, robots: 4, mobility: Mobility::Static };
//! let mut server = Server::load(&world.into(), ServerOptions::default())?;
//! for _ in 0..10 {
//!     server.runner().step();
//! }
//! assert_eq!(server.runner().steps(), 10);
//! # Ok::<(), ground::server::LoadError>(())
//! ```

pub mod components;
pub mod ecs;
pub mod physics;
pub mod runner;
pub mod sdf;
pub mod server;
pub mod switches;
pub mod systems;
pub mod textures;
pub mod transport;
pub mod worlds;
