//! Runs compiled scripts on a stack machine with variables and functions of the world.

/// An operation. In code it is a byte, followed by an operand of two bytes if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// Pushes the constant of this number.
    Constant,
    /// Pushes a variable.
    Load,
    /// Pops a variable.
    Store,
    /// Continues at this position of the code.
    Jump,
    /// Pops a value and continues at this position if it is 0.
    JumpIfZero,
    /// Calls a [`Function`], which pops its arguments and pushes its result.
    Call,
    /// Pops and drops a value.
    Drop,
    /// a + b.
    Add,
    /// a - b.
    Subtract,
    /// a * b.
    Multiply,
    /// a / b.
    Divide,
    /// 1 if a < b, else 0; the others likewise.
    Less,
    /// a <= b.
    LessOrEqual,
    /// a == b.
    Equal,
    /// 1 if both are not 0.
    And,
    /// 1 if one is not 0.
    Or,
    /// 1 if it is 0, else 0.
    Not,
    /// Ends the event.
    End,
}

impl Op {
    const ALL: [Op; 18] = [
        Op::Constant,
        Op::Load,
        Op::Store,
        Op::Jump,
        Op::JumpIfZero,
        Op::Call,
        Op::Drop,
        Op::Add,
        Op::Subtract,
        Op::Multiply,
        Op::Divide,
        Op::Less,
        Op::LessOrEqual,
        Op::Equal,
        Op::And,
        Op::Or,
        Op::Not,
        Op::End,
    ];
}

/// A function of the world that scripts call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Function {
    /// Requests timer events with this period, s.
    SetTimerEvent,
    /// The prim's rotation about the vertical axis, radians.
    SetRot,
    /// The prim's colour: red, green, blue from 0 to 1.
    SetColor,
    /// A random number from 0 up to this one.
    Frand,
    /// Sine.
    Sin,
}

impl Function {
    /// Each with its name in scripts and its number of arguments.
    pub const ALL: [(Function, &'static str, usize); 5] = [
        (Function::SetTimerEvent, "llSetTimerEvent", 1),
        (Function::SetRot, "llSetRot", 1),
        (Function::SetColor, "llSetColor", 3),
        (Function::Frand, "llFrand", 1),
        (Function::Sin, "llSin", 1),
    ];
}

/// The functions of the world.
pub trait Api {
    /// Calls a function. The result is 0 for functions without one.
    fn call(&mut self, function: Function, arguments: &[f64]) -> f64;
}

/// An event that a script handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The script starts.
    StateEntry,
    /// Its timer is due.
    Timer,
}

impl Event {
    /// Each with its name in scripts.
    pub const ALL: [(Event, &'static str); 2] = [(Event::StateEntry, "state_entry"), (Event::Timer, "timer")];
}

/// A compiled script. Only the compiler creates it, so all operands are within bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub(super) code: Vec<u8>,
    pub(super) constants: Vec<f64>,
    pub(super) variables: usize,
    /// Start of the code of each event, in the order of [`Event::ALL`].
    pub(super) events: [Option<usize>; Event::ALL.len()],
    /// Start of the code of each line: position and line, ascending.
    pub(super) line_map: Vec<(u16, u16)>,
}

/// Most operations of an event, so that an endless script does not block the region.
const LONGEST_EVENT: u32 = 100_000;

impl Program {
    /// The variables with their initial values.
    pub fn initial_variables(&self, stack: &mut Vec<f64>, api: &mut impl Api) -> Vec<f64> {
        let mut variables = vec![0.0; self.variables];
        self.run(0, &mut variables, stack, api);
        variables
    }

    /// Handles an event, if the script has code for it.
    pub fn handle(&self, event: Event, variables: &mut [f64], stack: &mut Vec<f64>, api: &mut impl Api) {
        if let Some(start) = self.events[event as usize] {
            self.run(start, variables, stack, api);
        }
    }

    /// The file format: code, constants, line map.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = b"LSLB".to_vec();
        bytes.extend_from_slice(&self.code);
        self.constants.iter().for_each(|constant| bytes.extend_from_slice(&constant.to_le_bytes()));
        let words = self.line_map.iter().flat_map(|(place, line)| [place, line]);
        words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
    }

    fn run(&self, start: usize, variables: &mut [f64], stack: &mut Vec<f64>, api: &mut impl Api) {
        stack.clear();
        let mut at = start;
        for _ in 0..LONGEST_EVENT {
            let op = Op::ALL[usize::from(self.code[at])];
            at += 1;
            match op {
                Op::Constant => stack.push(self.constants[self.operand(&mut at)]),
                Op::Load => stack.push(variables[self.operand(&mut at)]),
                Op::Store => variables[self.operand(&mut at)] = pop(stack),
                Op::Jump => at = self.operand(&mut at),
                Op::JumpIfZero => {
                    let to = self.operand(&mut at);
                    if pop(stack) == 0.0 {
                        at = to;
                    }
                }
                Op::Call => {
                    let (function, _, arity) = Function::ALL[self.operand(&mut at)];
                    let arguments = stack.len() - arity;
                    let result = api.call(function, &stack[arguments..]);
                    stack.truncate(arguments);
                    stack.push(result);
                }
                Op::Drop => drop(pop(stack)),
                Op::Not => {
                    let value = pop(stack);
                    stack.push(truth(value == 0.0));
                }
                Op::End => return,
                binary => {
                    let (right, left) = (pop(stack), pop(stack));
                    stack.push(evaluate(binary, left, right));
                }
            }
        }
    }

    fn operand(&self, at: &mut usize) -> usize {
        let bytes = [self.code[*at], self.code[*at + 1]];
        *at += 2;
        usize::from(u16::from_le_bytes(bytes))
    }
}

fn pop(stack: &mut Vec<f64>) -> f64 {
    stack.pop().expect("the compiler pops no more than it pushes")
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn evaluate(op: Op, left: f64, right: f64) -> f64 {
    match op {
        Op::Add => left + right,
        Op::Subtract => left - right,
        Op::Multiply => left * right,
        Op::Divide => left / right,
        Op::Less => truth(left < right),
        Op::LessOrEqual => truth(left <= right),
        Op::Equal => truth(left == right),
        Op::And => truth(left != 0.0 && right != 0.0),
        Op::Or => truth(left != 0.0 || right != 0.0),
        _ => unreachable!("the others are not binary"),
    }
}
