// defect: each boid is a task of its own in the pool: taking a task costs more than the task
// kinds: tiny-tasks
// guilty: swarm_pool::Pool::run, swarm_pool::worker, swarm_pool::Pool::submit
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};

type Task = Box<dyn FnOnce() + Send>;
struct State { tasks: VecDeque<Task>, left: usize }
struct Pool { state: Arc<(Mutex<State>, Condvar, Condvar)> }

#[inline(never)]
fn worker(state: &(Mutex<State>, Condvar, Condvar)) {
    loop {
        let mut guard = state.0.lock().unwrap();
        while guard.tasks.is_empty() { guard = state.1.wait(guard).unwrap(); }
        let task = guard.tasks.pop_front().unwrap();
        drop(guard);
        task();
        let mut guard = state.0.lock().unwrap();
        guard.left -= 1;
        if guard.left == 0 { state.2.notify_one(); }
    }
}

impl Pool {
    fn new(threads: usize) -> Self {
        let state = Arc::new((Mutex::new(State { tasks: VecDeque::new(), left: 0 }), Condvar::new(), Condvar::new()));
        for _ in 0..threads { let state = state.clone(); std::thread::spawn(move || worker(&state)); }
        Pool { state }
    }
    #[inline(never)]
    fn submit(&self, task: Task) {
        let mut guard = self.state.0.lock().unwrap();
        guard.tasks.push_back(task);
        guard.left += 1;
        drop(guard);
        self.state.1.notify_one();
    }
    #[inline(never)]
    fn run(&self) {
        let mut guard = self.state.0.lock().unwrap();
        while guard.left > 0 { guard = self.state.2.wait(guard).unwrap(); }
    }
}

#[inline(never)]
fn boid(at: usize) -> f64 {
    let mut sum = 0.0;
    for i in 0..60 { sum += ((at + i) as f64).sqrt(); }
    sum
}

fn main() {
    let size = if std::env::args().nth(1).as_deref() == Some("slow") { 1 } else { 1000 };
    let pool = Pool::new(2);
    loop {
        for begin in (0..4000).step_by(size) {
            pool.submit(Box::new(move || { std::hint::black_box((begin..begin + size).map(boid).sum::<f64>()); }));
        }
        pool.run();
    }
}
