//! [`Simulation`]: the interface of all worlds.

use crate::account;

/// A world that runs.
pub trait Simulation {
    /// The kind and size of the world.
    fn name(&self) -> String;

    /// Simulates one step.
    fn step(&mut self, step: u64);

    /// Simulated time of a step, s.
    fn step_s(&self) -> f64;

    /// Real-time factor that the world sets; 0 is as fast as possible.
    fn real_time_factor(&self) -> f64 {
        0.0
    }

    /// A hash of the simulated state. Equal for all switches.
    fn state_hash(&self) -> u64;

    /// Completes files and removes temporary ones. The program exits next, without dropping anything.
    fn close(&mut self) {}

    /// Further fields of the ready line, as ` name=value` with a leading space each.
    fn ready_fields(&self) -> String {
        String::new()
    }

    /// Further fields of the final line, in the same form.
    fn final_fields(&self) -> String {
        String::new()
    }
}

/// The step function: one step runs inside, and the step number is the first argument.
///
/// Probes on its entry and return see the start and end of each step.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn ground_step(step: u64, simulation: &mut Box<dyn Simulation>) {
    simulation.step(step);
    account::step_ended();
}

/// A simulation and the number of its steps.
pub struct Stepper {
    simulation: Box<dyn Simulation>,
    steps: u64,
}

impl Stepper {
    /// A stepper before the first step.
    pub fn new(simulation: Box<dyn Simulation>) -> Self {
        Self { simulation, steps: 0 }
    }

    /// Simulates one step, and marks that it ended.
    pub fn step(&mut self) {
        ground_step(self.steps, &mut self.simulation);
        self.steps += 1;
        stepscope_marks::step!(self.sim_time_s());
    }

    /// Closes the world. No step can follow.
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
