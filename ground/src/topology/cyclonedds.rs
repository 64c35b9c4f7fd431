//! [Eclipse Cyclone DDS](https://cyclonedds.io) instead of the simulator's own middleware: a participant with readers,
//! writers, wait sets and listeners. If the program was built without it, a participant cannot be created.

#[cfg(not(cyclonedds))]
mod absent;
pub mod error;
#[cfg(cyclonedds)]
mod present;

#[cfg(not(cyclonedds))]
pub use absent::{Participant, Reader, WaitSet, Writer};
#[cfg(cyclonedds)]
pub use present::{Participant, Reader, WaitSet, Writer};
