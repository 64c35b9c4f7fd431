//! The script engine: runs the events of scripts and collects their requests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::compiler::ScriptCompiler;
use super::scene::{Appearance, Change, SceneObjectPart};
use super::timers::{TimerKey, TimerRequest, Timers};
use super::vm::{Api, Event, Function, Program};
use crate::account;
use crate::random::{Random, StateHash};
use crate::switches::Switches;

/// The requests of scripts in a step, in order. They are applied after all events, like OpenSim's asynchronous commands.
#[derive(Debug, Default)]
pub struct Commands {
    /// Changes of prims.
    pub changes: Vec<Change>,
    timers: Vec<TimerRequest>,
}

/// A script in a prim.
struct Script {
    key: TimerKey,
    program: Arc<Program>,
    variables: Vec<f64>,
    random: Random,
}

/// The functions that a script can call.
struct ScriptApi<'a> {
    key: TimerKey,
    script: usize,
    random: &'a mut Random,
    commands: &'a mut Commands,
}

impl Api for ScriptApi<'_> {
    fn call(&mut self, function: Function, arguments: &[f64]) -> f64 {
        match function {
            Function::Sin => return arguments[0].sin(),
            Function::Frand => return self.random.next_unit() * arguments[0],
            Function::SetRot => self.change(Appearance::Rotation(arguments[0] as f32)),
            Function::SetColor => self.change(Appearance::Colour([0, 1, 2].map(|i| arguments[i] as f32))),
            Function::SetTimerEvent => {
                let request = TimerRequest { key: self.key, script: self.script, interval_s: arguments[0] };
                self.commands.timers.push(request);
            }
        }
        0.0
    }
}

impl ScriptApi<'_> {
    fn change(&mut self, to: Appearance) {
        self.commands.changes.push(Change { local_id: self.key.local_id, to });
    }
}

/// Runs the scripts of a region.
pub struct ScriptEngine {
    compiler: ScriptCompiler,
    scripts: Vec<Script>,
    /// Number of scripts that have started.
    started: usize,
    timers: Timers,
    commands: Commands,
    stack: Vec<f64>,
}

impl ScriptEngine {
    /// An engine without scripts, its files in this directory.
    ///
    /// # Errors
    /// If the directory cannot be read or written.
    pub fn start(directory: &Path, switches: &Switches) -> io::Result<Self> {
        Ok(Self {
            compiler: ScriptCompiler::start(directory, switches)?,
            scripts: Vec::new(),
            started: 0,
            timers: Timers::new(switches),
            commands: Commands::default(),
            stack: Vec::new(),
        })
    }

    /// Compiles and adds the scripts of prims. `texts` are the scripts that items refer to.
    ///
    /// # Errors
    /// If a script cannot be compiled or its files cannot be written.
    #[inline(never)]
    pub fn rez_scripts<'a>(
        &mut self,
        prims: impl Iterator<Item = &'a SceneObjectPart>,
        texts: &[Arc<str>],
    ) -> io::Result<()> {
        let _timed = account::scope("ground::region::scripts::ScriptEngine::rez_scripts");
        for prim in prims {
            for item in &prim.inventory {
                let Some(text) = item.script.and_then(|script| texts.get(script as usize)) else { continue };
                let program = self.compiler.perform_script_compile(text, item.item_id)?;
                self.add(TimerKey { local_id: prim.local_id, item_id: item.item_id }, program);
            }
        }
        Ok(())
    }

    fn add(&mut self, key: TimerKey, program: Arc<Program>) {
        let (script, mut random) = (self.scripts.len(), Random::new(u64::from(key.item_id)));
        let mut api = ScriptApi { key, script, random: &mut random, commands: &mut self.commands };
        let variables = program.initial_variables(&mut self.stack, &mut api);
        self.scripts.push(Script { key, program, variables, random });
    }

    /// Runs the events of a step: starts new scripts and fires due timers. Returns the requests.
    pub fn run(&mut self, step: u64) -> &Commands {
        self.commands.changes.clear();
        self.commands.timers.clear();
        self.run_events(step);
        self.timers.set_timer_events(&self.commands.timers, step);
        &self.commands
    }

    #[inline(never)]
    fn run_events(&mut self, step: u64) {
        let _timed = account::scope("ground::region::scripts::ScriptEngine::run_events");
        for script in self.started..self.scripts.len() {
            self.handle(script, Event::StateEntry);
        }
        self.started = self.scripts.len();
        for script in self.timers.check_timer_events(step) {
            self.handle(script, Event::Timer);
        }
    }

    fn handle(&mut self, index: usize, event: Event) {
        let Script { key, program, variables, random } = &mut self.scripts[index];
        let mut api = ScriptApi { key: *key, script: index, random, commands: &mut self.commands };
        program.handle(event, variables, &mut self.stack, &mut api);
    }

    /// Adds the variables of all scripts to a hash.
    pub fn hash(&self, hash: &mut StateHash) {
        for script in &self.scripts {
            hash.add(u64::from(script.key.item_id));
            script.variables.iter().for_each(|value| hash.add(value.to_bits()));
        }
    }
}
