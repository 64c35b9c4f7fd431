//! What every world has in common: it is stepped.

use crate::account;

/// A world that runs.
pub trait Simulation {
    /// A name that tells worlds of different kinds and sizes apart.
    fn name(&self) -> String;

    /// Simulates one step.
    fn step(&mut self, step: u64);

    /// Simulated time of a step, s.
    fn step_s(&self) -> f64;

    /// Simulated time per wall time that the world asks for; 0 is as fast as possible.
    fn real_time_factor(&self) -> f64 {
        0.0
    }

    /// A hash of all that was simulated. Equal for all switches.
    fn state_hash(&self) -> u64;

    /// Completes files and removes what is temporary. The program ends after this without dropping anything.
    fn close(&mut self) {}

    /// What else there is to say when it is ready, as ` name=value` words, each with a space before it.
    fn ready_fields(&self) -> String {
        String::new()
    }

    /// What else there is to say at its end, in the same form.
    fn final_fields(&self) -> String {
        String::new()
    }
}

/// The step marker: the whole of one step runs inside, its number is the first argument.
///
/// A probe on its entry and its return sees each step begin and end.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn ground_step(step: u64, simulation: &mut Box<dyn Simulation>) {
    simulation.step(step);
    account::step_ended();
}

/// A simulation, and how far it is.
pub struct Stepper {
    simulation: Box<dyn Simulation>,
    steps: u64,
}

impl Stepper {
    /// At its beginning.
    pub fn new(simulation: Box<dyn Simulation>) -> Self {
        Self { simulation, steps: 0 }
    }

    /// Simulates one step, and marks that it ended.
    pub fn step(&mut self) {
        ground_step(self.steps, &mut self.simulation);
        self.steps += 1;
        stepscope_marks::step!(self.sim_time_s());
    }

    /// Completes what the world writes. No step can follow.
    pub fn close(&mut self) {
        self.simulation.close();
    }

    /// Number of steps simulated.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Simulated time, s.
    pub fn sim_time_s(&self) -> f64 {
        self.steps as f64 * self.simulation.step_s()
    }

    /// The world.
    pub fn simulation(&self) -> &dyn Simulation {
        &*self.simulation
    }
}
