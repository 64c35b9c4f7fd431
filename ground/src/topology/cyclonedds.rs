//! [Eclipse Cyclone DDS](https://cyclonedds.io) in the place of the small middleware: a participant, its readers and writers,
//! its wait sets and listeners. There where the program was built with it; otherwise none of it can be made.

#[cfg(not(cyclonedds))]
mod absent;
pub mod error;
#[cfg(cyclonedds)]
mod present;

#[cfg(not(cyclonedds))]
pub use absent::{Participant, Reader, WaitSet, Writer};
#[cfg(cyclonedds)]
pub use present::{Participant, Reader, WaitSet, Writer};
