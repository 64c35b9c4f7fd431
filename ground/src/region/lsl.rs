//! Compiles scripts of a small language, like that of virtual worlds, with numbers as its only values.
//!
//! ```text
//! script     = {variable} "default" "{" {event} "}"
//! variable   = ("integer" | "float") NAME "=" expression ";"
//! event      = NAME "(" ")" block
//! block      = "{" {statement} "}"
//! statement  = block | variable | NAME "=" expression ";" | call ";"
//!            | "if" "(" expression ")" statement ["else" statement]
//!            | "while" "(" expression ")" statement
//! expression = operands joined by || && == < > <= >= + - * /, weakest binding first
//! operand    = NUMBER | NAME | call | "(" expression ")" | ("!" | "-") operand
//! ```
//!
//! Variables of a block live as long as the script, because no event calls itself. The compiler makes one pass.

use std::collections::HashMap;
use std::fmt;

use super::vm::{Event, Function, Op, Program};

/// Why a script cannot be compiled.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line} of the script: {problem}")]
pub struct CompileError {
    /// Counted from 1.
    pub line: u16,
    /// The mistake, and what to write instead.
    pub problem: String,
}

/// Compiles a script.
///
/// # Errors
/// If the text is not a script.
pub fn compile(text: &str) -> Result<Program, CompileError> {
    let mut compiler = Compiler::new(tokens(text)?);
    compiler.script()?;
    Ok(compiler.program)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Name(&'a str),
    Number(f64),
    Symbol(&'a str),
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(text) | Token::Symbol(text) => write!(out, "`{text}`"),
            Token::Number(number) => write!(out, "`{number}`"),
            Token::End => out.write_str("the end"),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Placed<'a> {
    token: Token<'a>,
    line: u16,
}

const LONG_SYMBOLS: [&str; 5] = ["==", "<=", ">=", "&&", "||"];

fn tokens(text: &str) -> Result<Vec<Placed<'_>>, CompileError> {
    let mut tokens = Vec::new();
    for (index, line_text) in text.lines().enumerate() {
        let line = u16::try_from(index + 1)
            .map_err(|_| CompileError { line: u16::MAX, problem: "a script has at most 65,535 lines".into() })?;
        let mut rest = line_text.split("//").next().unwrap_or_default().trim_start();
        while !rest.is_empty() {
            let (token, length) = first_token(rest)
                .ok_or_else(|| CompileError { line, problem: format!("`{rest}` starts with an unknown symbol") })?;
            tokens.push(Placed { token, line });
            rest = rest[length..].trim_start();
        }
    }
    let line = tokens.last().map_or(1, |last| last.line);
    tokens.push(Placed { token: Token::End, line });
    Ok(tokens)
}

fn first_token(text: &str) -> Option<(Token<'_>, usize)> {
    let length_of = |is_in: fn(char) -> bool| text.find(|c| !is_in(c)).unwrap_or(text.len());
    let first = text.chars().next()?;
    if first.is_ascii_digit() {
        let length = length_of(|c| c.is_ascii_digit() || c == '.');
        return Some((Token::Number(text[..length].parse().ok()?), length));
    }
    if first.is_ascii_alphabetic() {
        let length = length_of(|c| c.is_ascii_alphanumeric() || c == '_');
        return Some((Token::Name(&text[..length]), length));
    }
    if let Some(symbol) = LONG_SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol)) {
        return Some((Token::Symbol(&text[..symbol.len()]), symbol.len()));
    }
    "{}();,=<>+-*/!".contains(first).then(|| (Token::Symbol(&text[..1]), 1))
}

/// Binary operators, weakest binding first: symbol, operation, and whether to negate its result.
const BINARY: [&[(&str, Op, bool)]; 5] = [
    &[("||", Op::Or, false)],
    &[("&&", Op::And, false)],
    &[
        ("==", Op::Equal, false),
        ("<=", Op::LessOrEqual, false),
        (">=", Op::Less, true),
        ("<", Op::Less, false),
        (">", Op::LessOrEqual, true),
    ],
    &[("+", Op::Add, false), ("-", Op::Subtract, false)],
    &[("*", Op::Multiply, false), ("/", Op::Divide, false)],
];

/// Deepest nesting of expressions and statements.
const DEEPEST: u32 = 100;

struct Compiler<'a> {
    tokens: Vec<Placed<'a>>,
    at: usize,
    depth: u32,
    variables: HashMap<&'a str, u16>,
    program: Program,
}

type Compiled<T = ()> = Result<T, CompileError>;

impl<'a> Compiler<'a> {
    fn new(tokens: Vec<Placed<'a>>) -> Self {
        let program =
            Program { code: Vec::new(), constants: Vec::new(), variables: 0, events: [None; 2], line_map: Vec::new() };
        Self { tokens, at: 0, depth: 0, variables: HashMap::new(), program }
    }

    fn script(&mut self) -> Compiled {
        while self.is_type() {
            self.variable()?;
        }
        self.emit(Op::End)?;
        self.expect_name("default")?;
        self.expect("{")?;
        while !self.takes("}") {
            self.event()?;
        }
        match self.next() {
            Token::End => Ok(()),
            other => Err(self.problem(format!("expected the end after the state, found {other}"))),
        }
    }

    fn event(&mut self) -> Compiled {
        let name = self.name()?;
        let known = Event::ALL.iter().find(|(_, known)| *known == name);
        let (event, _) =
            known.ok_or_else(|| self.problem(format!("unknown event `{name}`; use state_entry or timer")))?;
        self.program.events[*event as usize] = Some(self.program.code.len());
        self.expect("(")?;
        self.expect(")")?;
        self.statement()?;
        self.emit(Op::End)
    }

    fn statement(&mut self) -> Compiled {
        self.deeper()?;
        self.program.line_map.push((self.position()?, self.line()));
        match self.peek() {
            Token::Symbol("{") => self.block()?,
            Token::Name("if") => self.condition()?,
            Token::Name("while") => self.repetition()?,
            _ if self.is_type() => self.variable()?,
            _ => self.assignment_or_call()?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn block(&mut self) -> Compiled {
        self.expect("{")?;
        while !self.takes("}") {
            self.statement()?;
        }
        Ok(())
    }

    fn condition(&mut self) -> Compiled {
        self.expect_name("if")?;
        let past_then = self.guarded_statement()?;
        if self.peek() != Token::Name("else") {
            return self.land(past_then);
        }
        self.expect_name("else")?;
        let past_else = self.emit_jump(Op::Jump)?;
        self.land(past_then)?;
        self.statement()?;
        self.land(past_else)
    }

    fn repetition(&mut self) -> Compiled {
        self.expect_name("while")?;
        let again = self.position()?;
        let past = self.guarded_statement()?;
        self.emit_with(Op::Jump, again)?;
        self.land(past)
    }

    /// Compiles `( expression ) statement` and returns the jump past it, whose target is still open.
    fn guarded_statement(&mut self) -> Compiled<usize> {
        self.expect("(")?;
        self.expression(0)?;
        self.expect(")")?;
        let past = self.emit_jump(Op::JumpIfZero)?;
        self.statement()?;
        Ok(past)
    }

    fn variable(&mut self) -> Compiled {
        self.name()?;
        let name = self.name()?;
        let number = self.program.variables;
        self.assigned_value()?;
        let slot = u16::try_from(number).map_err(|_| self.problem("a script has at most 65,536 variables".into()))?;
        if self.variables.insert(name, slot).is_some() {
            return Err(self.problem(format!("the variable `{name}` exists already; use another name")));
        }
        self.program.variables += 1;
        self.emit_with(Op::Store, slot)
    }

    fn assignment_or_call(&mut self) -> Compiled {
        let name = self.name()?;
        if self.peek() == Token::Symbol("(") {
            self.call(name)?;
            self.emit(Op::Drop)?;
            return self.expect(";");
        }
        let slot = self.variable_named(name)?;
        self.assigned_value()?;
        self.emit_with(Op::Store, slot)
    }

    fn assigned_value(&mut self) -> Compiled {
        self.expect("=")?;
        self.expression(0)?;
        self.expect(";")
    }

    /// Compiles an expression of operators that bind at least this strongly.
    fn expression(&mut self, strength: usize) -> Compiled {
        let Some(operators) = BINARY.get(strength) else { return self.operand() };
        self.expression(strength + 1)?;
        while let Token::Symbol(symbol) = self.peek()
            && let Some((_, op, is_negated)) = operators.iter().find(|(known, ..)| *known == symbol)
        {
            self.next();
            self.expression(strength + 1)?;
            self.emit(*op)?;
            if *is_negated {
                self.emit(Op::Not)?;
            }
        }
        Ok(())
    }

    fn operand(&mut self) -> Compiled {
        self.deeper()?;
        match self.next() {
            Token::Number(number) => self.constant(number)?,
            Token::Name(name) if self.peek() == Token::Symbol("(") => self.call(name)?,
            Token::Name(name) => {
                let slot = self.variable_named(name)?;
                self.emit_with(Op::Load, slot)?;
            }
            Token::Symbol("(") => {
                self.expression(0)?;
                self.expect(")")?;
            }
            Token::Symbol("!") => {
                self.operand()?;
                self.emit(Op::Not)?;
            }
            Token::Symbol("-") => {
                self.constant(0.0)?;
                self.operand()?;
                self.emit(Op::Subtract)?;
            }
            other => return Err(self.problem(format!("expected a value, found {other}"))),
        }
        self.depth -= 1;
        Ok(())
    }

    fn call(&mut self, name: &str) -> Compiled {
        let known = Function::ALL.iter().find(|(_, known, _)| *known == name);
        let (function, _, arity) = known.ok_or_else(|| self.problem(format!("unknown function `{name}`")))?;
        self.expect("(")?;
        for argument in 0..*arity {
            if argument > 0 {
                self.expect(",")?;
            }
            self.expression(0)?;
        }
        self.expect(")")?;
        self.emit_with(Op::Call, *function as u16)
    }

    fn constant(&mut self, number: f64) -> Compiled {
        let known = self.program.constants.iter().position(|constant| *constant == number);
        let index = known.unwrap_or_else(|| {
            self.program.constants.push(number);
            self.program.constants.len() - 1
        });
        let index = u16::try_from(index).map_err(|_| self.problem("a script has at most 65,536 numbers".into()))?;
        self.emit_with(Op::Constant, index)
    }

    fn variable_named(&self, name: &str) -> Compiled<u16> {
        let known = self.variables.get(name).copied();
        known.ok_or_else(|| self.problem(format!("unknown variable `{name}`; declare it with `float {name} = 0;`")))
    }

    fn emit(&mut self, op: Op) -> Compiled {
        self.program.code.push(op as u8);
        self.position().map(drop)
    }

    fn emit_with(&mut self, op: Op, operand: u16) -> Compiled {
        self.emit(op)?;
        self.program.code.extend_from_slice(&operand.to_le_bytes());
        Ok(())
    }

    /// Emits a jump with an open target and returns where to write it.
    fn emit_jump(&mut self, op: Op) -> Compiled<usize> {
        self.emit_with(op, 0)?;
        Ok(self.program.code.len() - 2)
    }

    /// Sets the target of a jump to the next instruction.
    fn land(&mut self, jump: usize) -> Compiled {
        let place = self.position()?;
        self.program.code[jump..jump + 2].copy_from_slice(&place.to_le_bytes());
        Ok(())
    }

    fn position(&self) -> Compiled<u16> {
        let place = u16::try_from(self.program.code.len());
        place.map_err(|_| self.problem("the script is longer than 64 KiB of code; split it".into()))
    }

    fn deeper(&mut self) -> Compiled {
        self.depth += 1;
        match self.depth <= DEEPEST {
            true => Ok(()),
            false => Err(self.problem(format!("nested deeper than {DEEPEST}; use variables for the parts"))),
        }
    }

    fn is_type(&self) -> bool {
        matches!(self.peek(), Token::Name("integer" | "float"))
    }

    fn peek(&self) -> Token<'a> {
        self.tokens[self.at].token
    }

    fn line(&self) -> u16 {
        self.tokens[self.at].line
    }

    /// Returns the next token and advances, but never past the end.
    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let is_it = self.peek() == Token::Symbol(symbol);
        if is_it {
            self.next();
        }
        is_it
    }

    fn expect(&mut self, symbol: &str) -> Compiled {
        match self.takes(symbol) {
            true => Ok(()),
            false => Err(self.problem(format!("expected `{symbol}`, found {}", self.peek()))),
        }
    }

    fn expect_name(&mut self, wanted: &str) -> Compiled {
        match self.next() {
            Token::Name(name) if name == wanted => Ok(()),
            other => Err(self.problem(format!("expected `{wanted}`, found {other}"))),
        }
    }

    fn name(&mut self) -> Compiled<&'a str> {
        match self.next() {
            Token::Name(name) => Ok(name),
            other => Err(self.problem(format!("expected a name, found {other}"))),
        }
    }

    fn problem(&self, problem: String) -> CompileError {
        CompileError { line: self.line(), problem }
    }
}

#[cfg(test)]
mod tests {
    use super::super::vm::Api;
    use super::*;

    /// Records what scripts set.
    #[derive(Default)]
    struct World {
        calls: Vec<(Function, Vec<f64>)>,
    }

    impl Api for World {
        fn call(&mut self, function: Function, arguments: &[f64]) -> f64 {
            if function == Function::Sin {
                return arguments[0].sin();
            }
            self.calls.push((function, arguments.to_vec()));
            0.0
        }
    }

    /// The arguments of llSetRot at the start of a script.
    fn rotations(script: &str) -> Vec<f64> {
        let program = compile(script).unwrap();
        let (mut world, mut stack) = (World::default(), Vec::new());
        let mut variables = program.initial_variables(&mut stack, &mut world);
        program.handle(Event::StateEntry, &mut variables, &mut stack, &mut world);
        world.calls.iter().map(|(_, arguments)| arguments[0]).collect()
    }

    fn rotation_of(expression: &str) -> f64 {
        rotations(&format!("default {{ state_entry() {{ llSetRot({expression}); }} }}"))[0]
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        assert_eq!(rotation_of("1 + 2 * 3 - 8 / 4"), 5.0);
        assert_eq!(rotation_of("(1 + 2) * -3"), -9.0);
        assert_eq!(rotation_of("1 + 1 == 2 && !(3 < 2) || 0"), 1.0);
        assert_eq!(rotation_of("10 - 4 - 3"), 3.0);
        assert_eq!(rotation_of("llSin(0.5) * 2"), 0.5_f64.sin() * 2.0);
    }

    #[test]
    fn comparisons_hold_at_both_sides_of_equality() {
        let outcomes = |operator: &str| [1, 2, 3].map(|left| rotation_of(&format!("{left} {operator} 2")));
        assert_eq!(outcomes("<"), [1.0, 0.0, 0.0]);
        assert_eq!(outcomes("<="), [1.0, 1.0, 0.0]);
        assert_eq!(outcomes(">"), [0.0, 0.0, 1.0]);
        assert_eq!(outcomes(">="), [0.0, 1.0, 1.0]);
    }

    #[test]
    fn conditions_choose_and_repetitions_end() {
        let script = "integer n = 3;
            default { state_entry() {
                while (n > 0) { llSetRot(n); n = n - 1; }
                if (n == 0) llSetRot(10); else llSetRot(11);
                if (n) llSetRot(20); else if (n + 1) llSetRot(21);
            } }";
        assert_eq!(rotations(script), [3.0, 2.0, 1.0, 10.0, 21.0]);
    }

    #[test]
    fn variables_keep_their_values_from_event_to_event() {
        let script = "float a = 1.5; default { timer() { a = a * 2; llSetColor(a, 0, a + 1); } }";
        let program = compile(script).unwrap();
        let (mut world, mut stack) = (World::default(), Vec::new());
        let mut variables = program.initial_variables(&mut stack, &mut world);
        program.handle(Event::StateEntry, &mut variables, &mut stack, &mut world);
        program.handle(Event::Timer, &mut variables, &mut stack, &mut world);
        program.handle(Event::Timer, &mut variables, &mut stack, &mut world);
        let colours = [vec![3.0, 0.0, 4.0], vec![6.0, 0.0, 7.0]];
        assert_eq!(world.calls, colours.map(|colour| (Function::SetColor, colour)));
    }

    #[test]
    fn an_endless_script_is_stopped() {
        assert_eq!(rotations("default { state_entry() { llSetRot(1); while (1) { } llSetRot(2); } }"), [1.0]);
    }

    #[test]
    fn the_line_map_maps_code_to_lines() {
        let program = compile("default\n{\n timer()\n {\n llSetRot(1);\n llSetRot(2);\n }\n}").unwrap();
        // The event's block starts at 1, after the code of the variables; a constant, a call and a drop are 7 bytes.
        assert_eq!(program.line_map, [(1, 4), (1, 5), (8, 6)]);
    }

    #[test]
    fn errors_name_their_line() {
        let problem = |script: &str| compile(script).unwrap_err().to_string();
        assert_eq!(
            problem("default {\n timer() { x = 1; } }"),
            "line 2 of the script: unknown variable `x`; declare it with `float x = 0;`"
        );
        assert_eq!(
            problem("float a = 1;\nfloat a = 2;").split(';').next(),
            Some("line 2 of the script: the variable `a` exists already")
        );
        assert_eq!(
            problem("default { touch() { } }"),
            "line 1 of the script: unknown event `touch`; use state_entry or timer"
        );
        assert_eq!(problem("default { timer() { llDie(); } }"), "line 1 of the script: unknown function `llDie`");
        assert_eq!(problem("default { timer() { llSetRot(1;"), "line 1 of the script: expected `)`, found `;`");
        assert_eq!(problem("default { § }"), "line 1 of the script: `§ }` starts with an unknown symbol");
        assert!(
            problem(&format!("float a = {}1;", "(".repeat(101)))
                .ends_with("nested deeper than 100; use variables for the parts")
        );
        assert!(problem("").ends_with("expected `default`, found the end"));
    }
}
