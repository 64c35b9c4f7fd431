// defect: each controller looks its joint up by name in a hash map of strings, in each cycle
// kinds: text-keys-each-step, allocations-each-step
// guilty: actuators::Robot::command, actuators::cycle
use std::collections::HashMap;

struct Joint { position: f64, effort: f64 }

struct Robot { joints: HashMap<String, Joint>, order: Vec<Joint>, names: Vec<String>, by_name: bool }

impl Robot {
    #[inline(never)]
    fn command(&mut self, index: usize, effort: f64) {
        if self.by_name {
            let joint = self.joints.get_mut(self.names[index].as_str()).unwrap();
            joint.effort = effort;
            joint.position += 1e-4 * joint.effort;
        } else {
            let joint = &mut self.order[index];
            joint.effort = effort;
            joint.position += 1e-4 * joint.effort;
        }
    }
}

#[inline(never)]
fn dynamics(state: &mut [f64]) {
    for round in 0..6 {
        for value in state.iter_mut() { *value += 1e-4 * (*value * f64::from(round)).sin(); }
    }
}

#[inline(never)]
fn cycle(robot: &mut Robot, state: &mut [f64]) {
    dynamics(state);
    for index in 0..robot.names.len() { robot.command(index, state[index]); }
}

fn main() {
    let by_name = std::env::args().nth(1).as_deref() == Some("slow");
    let names: Vec<String> = (0..120).map(|i| format!("arm_{}/joint_{i}/position_controller", i % 7)).collect();
    let joint = || Joint { position: 0.0, effort: 0.0 };
    let joints = names.iter().map(|name| (name.clone(), joint())).collect();
    let mut robot = Robot { joints, order: names.iter().map(|_| joint()).collect(), names, by_name };
    let mut state: Vec<f64> = (0..400).map(f64::from).collect();
    loop { cycle(&mut robot, &mut state); }
}
