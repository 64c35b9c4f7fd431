//! Tokens to declarations (CTF 1.8.3, section C.1.3), by recursive descent.

use std::collections::HashMap;
use std::rc::Rc;

use super::declared::{Block, Blocks, Declared, Field, Label, Length, Setting, Struct};
use super::lexer::{Kind, Token, tokens};
use super::syntax_error::SyntaxError;
use crate::number::{ByteOrder, FloatType, IntegerType};

/// Deepest nesting of types. Deeper ones are no metadata of a tracer.
const DEEPEST: usize = 64;

/// The metadata's blocks, and the statements that are not valid.
pub(crate) fn parse(text: &str) -> (Blocks, Vec<SyntaxError>) {
    let (tokens, error) = tokens(text);
    let mut parser = Parser {
        native: byte_order(&tokens),
        tokens: &tokens,
        next: 0,
        depth: 0,
        scopes: vec![HashMap::new()],
        blocks: Blocks::default(),
    };
    let mut errors = Vec::new();
    while parser.next < tokens.len() {
        let start = parser.next;
        if let Err(error) = parser.top_level() {
            errors.push(error);
            parser.scopes.truncate(1);
            parser.depth = 0;
            parser.next = end_of_statement(&tokens, start);
        }
    }
    if let Some(error) = error {
        // The statement that ends there is incomplete for that reason.
        if errors.last().is_some_and(|last: &SyntaxError| last.line == parser.line()) {
            errors.pop();
        }
        errors.push(error);
    }
    (parser.blocks, errors)
}

/// The trace's byte order, which types before the trace's block need, too.
fn byte_order(tokens: &[Token]) -> ByteOrder {
    let sign = |sign| move |token: &&Token| token.kind == Kind::Sign(sign);
    let is = |at: usize, text: &str| matches!(&tokens.get(at).map(|t| &t.kind), Some(Kind::Name(name)) if name == text);
    let mut depth = 0_usize;
    let mut in_trace = false;
    for (at, token) in tokens.iter().enumerate() {
        if sign("{")(&token) {
            in_trace |= depth == 0 && at > 0 && is(at - 1, "trace");
            depth += 1;
        } else if sign("}")(&token) {
            depth = depth.saturating_sub(1);
            in_trace &= depth > 0;
        } else if in_trace && depth == 1 && is(at, "byte_order") {
            let is_big = is(at + 2, "be") || is(at + 2, "network");
            return if is_big { ByteOrder::Big } else { ByteOrder::Little };
        }
    }
    ByteOrder::Little
}

/// Where the statement from `start` ends: behind its semicolon outside of braces.
fn end_of_statement(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.kind {
            Kind::Sign("{") => depth += 1,
            Kind::Sign("}") => depth = depth.saturating_sub(1),
            Kind::Sign(";") if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Whether the last name before the end of a type is that of a field.
#[derive(Clone, Copy, PartialEq)]
enum Follows {
    Declarator,
    Nothing,
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    native: ByteOrder,
    depth: usize,
    /// Named types by scope, the outermost first.
    scopes: Vec<HashMap<String, Rc<Declared>>>,
    blocks: Blocks,
}

type Parsed<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    fn line(&self) -> u32 {
        let token = self.tokens.get(self.next).or(self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    fn error<T>(&self, what: impl Into<String>) -> Parsed<T> {
        Err(SyntaxError { line: self.line(), what: what.into() })
    }

    fn peek(&self) -> Option<&'a Kind> {
        self.tokens.get(self.next).map(|token| &token.kind)
    }

    fn peek_name(&self) -> Option<&'a str> {
        match self.peek() {
            Some(Kind::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Kind::Sign(found)) if *found == sign);
        self.next += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.sign(sign) { Ok(()) } else { self.error(format!("`{sign}` is missing")) }
    }

    fn name(&mut self) -> Parsed<&'a str> {
        let Some(name) = self.peek_name() else { return self.error("a name is missing") };
        self.next += 1;
        Ok(name)
    }

    fn path(&mut self) -> Parsed<Vec<String>> {
        let mut path = vec![self.name()?.to_owned()];
        while self.sign(".") || self.sign("->") {
            path.push(self.name()?.to_owned());
        }
        Ok(path)
    }

    fn number(&mut self) -> Parsed<i128> {
        let negative = self.sign("-");
        self.sign("+");
        let Some(Kind::Number(number)) = self.peek() else { return self.error("a number is missing") };
        self.next += 1;
        Ok(if negative { -i128::from(*number) } else { i128::from(*number) })
    }

    fn top_level(&mut self) -> Parsed<()> {
        if self.sign(";") {
            return Ok(());
        }
        let line = self.line();
        let is_block = matches!(self.tokens.get(self.next + 1).map(|token| &token.kind), Some(Kind::Sign("{")));
        match self.peek_name() {
            Some(kind @ ("trace" | "stream" | "event" | "clock" | "env" | "callsite")) if is_block => {
                self.next += 1;
                let block = Block { line, ..self.block()? };
                self.expect(";")?;
                match kind {
                    "trace" => self.blocks.trace = Some(block),
                    "stream" => self.blocks.streams.push(block),
                    "event" => self.blocks.events.push(block),
                    "clock" => self.blocks.clocks.push(block),
                    "env" => self.blocks.environment = Some(block),
                    _ => {}
                }
                Ok(())
            }
            _ if self.declaration()? => Ok(()),
            _ => self.error("neither a block nor a declaration of a type"),
        }
    }

    /// `{ key = value; key := type; ... }` with declarations of types among them.
    fn block(&mut self) -> Parsed<Block> {
        self.expect("{")?;
        self.scopes.push(HashMap::new());
        let mut block = Block::default();
        while !self.sign("}") {
            if self.sign(";") || self.declaration()? {
                continue;
            }
            let key = self.path()?.join(".");
            if self.sign(":=") {
                let kind = self.kind(Follows::Nothing)?;
                block.types.push((key, kind));
            } else {
                self.expect("=")?;
                let value = self.setting()?;
                block.values.push((key, value));
            }
            self.expect(";")?;
        }
        self.scopes.pop();
        Ok(block)
    }

    fn setting(&mut self) -> Parsed<Setting> {
        match self.peek() {
            Some(Kind::Text(text)) => {
                self.next += 1;
                Ok(Setting::Text(text.clone()))
            }
            Some(Kind::Name(_)) => Ok(Setting::Name(self.path()?.join("."))),
            _ => Ok(Setting::Number(self.number()?)),
        }
    }

    /// A declaration of a named type, if there is one here. What comes then was not touched otherwise.
    fn declaration(&mut self) -> Parsed<bool> {
        match self.peek_name() {
            Some("typealias") => {
                self.next += 1;
                let kind = self.kind(Follows::Nothing)?;
                self.expect(":=")?;
                let mut words = vec![self.name()?.to_owned()];
                while let Some(word) = self.peek_name() {
                    words.push(word.to_owned());
                    self.next += 1;
                }
                self.declare(words.join(" "), kind);
            }
            Some("typedef") => {
                self.next += 1;
                let kind = self.kind(Follows::Declarator)?;
                for field in self.declarators(kind)? {
                    self.declare(field.name, field.kind);
                }
                return Ok(true);
            }
            Some("struct" | "variant" | "enum") => {
                let start = self.next;
                self.kind(Follows::Nothing)?;
                // A key follows: this is no declaration alone.
                if !matches!(self.peek(), Some(Kind::Sign(";"))) {
                    self.next = start;
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
        self.expect(";")?;
        Ok(true)
    }

    fn declare(&mut self, name: String, kind: Rc<Declared>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, kind);
        }
    }

    fn named(&self, name: &str) -> Parsed<Rc<Declared>> {
        match self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            Some(kind) => Ok(kind.clone()),
            None => self.error(format!("the type `{name}` is not declared")),
        }
    }

    fn kind(&mut self, follows: Follows) -> Parsed<Rc<Declared>> {
        if self.depth >= DEEPEST {
            return self.error(format!("types are nested more than {DEEPEST} deep"));
        }
        self.depth += 1;
        while self.peek_name() == Some("const") {
            self.next += 1;
        }
        let kind = match self.peek_name() {
            Some("integer") => self.integer(),
            Some("floating_point") => self.float(),
            Some("string") => self.string(),
            Some("struct") => self.structure(),
            Some("variant") => self.variant(),
            Some("enum") => self.enumeration(),
            _ => self.alias(follows),
        }?;
        self.depth -= 1;
        Ok(kind)
    }

    fn alias(&mut self, follows: Follows) -> Parsed<Rc<Declared>> {
        let mut words = Vec::new();
        while let Some(word) = self.peek_name() {
            let ends = !matches!(self.tokens.get(self.next + 1).map(|token| &token.kind), Some(Kind::Name(_)));
            if follows == Follows::Declarator && ends && !words.is_empty() {
                break;
            }
            words.push(word);
            self.next += 1;
        }
        if words.is_empty() {
            return self.error("a type is missing");
        }
        self.named(&words.join(" "))
    }

    fn order(&self, block: &Block) -> Parsed<ByteOrder> {
        match block.text("byte_order") {
            None | Some("native") => Ok(self.native),
            Some("le") => Ok(ByteOrder::Little),
            Some("be" | "network") => Ok(ByteOrder::Big),
            Some(other) => self.error(format!("`{other}` is no byte order")),
        }
    }

    fn align(&self, align: Option<i128>, default: u32) -> Parsed<u32> {
        match align {
            None => Ok(default),
            Some(align) => match u32::try_from(align) {
                Ok(align) if align.is_power_of_two() && align <= 1 << 20 => Ok(align),
                _ => self.error(format!("an alignment of {align} bits is not valid")),
            },
        }
    }

    fn integer(&mut self) -> Parsed<Rc<Declared>> {
        self.next += 1;
        let block = self.block()?;
        let bits = match block.number("size") {
            Some(bits @ 1..=64) => bits as u8,
            Some(bits) => return self.error(format!("integers of {bits} bits cannot be read, only of 1 to 64")),
            None => return self.error("an integer has no size"),
        };
        let signed = match block.value("signed") {
            Some(Setting::Number(number)) => *number != 0,
            Some(Setting::Name(name) | Setting::Text(name)) => matches!(name.as_str(), "true" | "TRUE"),
            None => false,
        };
        let base = match (block.number("base"), block.text("base")) {
            (Some(base @ (2 | 8 | 10 | 16)), _) => base as u8,
            (_, Some("hexadecimal" | "hex" | "x" | "X" | "p")) => 16,
            (_, Some("octal" | "oct" | "o")) => 8,
            (_, Some("binary" | "b")) => 2,
            _ => 10,
        };
        let clock = block.text("map").map(|map| {
            let name = map.strip_prefix("clock.").unwrap_or(map);
            Rc::from(name.strip_suffix(".value").unwrap_or(name))
        });
        let align = self.align(block.number("align"), if bits.is_multiple_of(8) { 8 } else { 1 })?;
        let is_text = matches!(block.text("encoding"), Some("UTF8" | "utf8" | "ASCII" | "ascii"));
        let kind = IntegerType { bits, align, signed, order: self.order(&block)?, base, is_text };
        Ok(Rc::new(Declared::Integer(kind, clock)))
    }

    fn float(&mut self) -> Parsed<Rc<Declared>> {
        self.next += 1;
        let block = self.block()?;
        let is_double = match (block.number("exp_dig"), block.number("mant_dig")) {
            (Some(8), Some(24)) => false,
            (Some(11), Some(53)) => true,
            _ => return self.error("only floating-point numbers of 32 and 64 bits can be read"),
        };
        let align = self.align(block.number("align"), 8)?;
        Ok(Rc::new(Declared::Float(FloatType { is_double, align, order: self.order(&block)? })))
    }

    fn string(&mut self) -> Parsed<Rc<Declared>> {
        self.next += 1;
        if matches!(self.peek(), Some(Kind::Sign("{"))) {
            self.block()?;
        }
        Ok(Rc::new(Declared::String))
    }

    /// The name of a struct, variant or enumeration, if it has one.
    fn tag(&mut self) -> Option<&'a str> {
        let name = self.peek_name()?;
        self.next += 1;
        Some(name)
    }

    fn structure(&mut self) -> Parsed<Rc<Declared>> {
        self.next += 1;
        let name = self.tag().map(|name| format!("struct {name}"));
        if !matches!(self.peek(), Some(Kind::Sign("{"))) {
            return match name {
                Some(name) => self.named(&name),
                None => self.error("a struct has neither name nor body"),
            };
        }
        let fields = self.body()?;
        let mut align = 1;
        if self.peek_name() == Some("align") {
            self.next += 1;
            self.expect("(")?;
            let wanted = self.number()?;
            align = self.align(Some(wanted), 1)?;
            self.expect(")")?;
        }
        let kind = Rc::new(Declared::Struct(Struct { align, fields }));
        if let Some(name) = name {
            self.declare(name, kind.clone());
        }
        Ok(kind)
    }

    fn variant(&mut self) -> Parsed<Rc<Declared>> {
        self.next += 1;
        let name = self.tag().map(|name| format!("variant {name}"));
        let mut tag = None;
        if self.sign("<") {
            tag = Some(self.path()?);
            self.expect(">")?;
        }
        if matches!(self.peek(), Some(Kind::Sign("{"))) {
            let options = self.body()?;
            if let Some(name) = name {
                self.declare(name, Rc::new(Declared::Variant(None, options.clone())));
            }
            return Ok(Rc::new(Declared::Variant(tag, options)));
        }
        let Some(name) = name else { return self.error("a variant has neither name nor body") };
        match &*self.named(&name)? {
            Declared::Variant(_, options) => Ok(Rc::new(Declared::Variant(tag, options.clone()))),
            _ => self.error(format!("`{name}` is no variant")),
        }
    }

    fn enumeration(&mut self) -> Parsed<Rc<Declared>> {
        self.next += 1;
        let name = self.tag().map(|name| format!("enum {name}"));
        let mut integer = None;
        if self.sign(":") {
            integer = Some(self.kind(Follows::Nothing)?);
        }
        if !matches!(self.peek(), Some(Kind::Sign("{"))) {
            return match name {
                Some(name) => self.named(&name),
                None => self.error("an enumeration has neither name nor body"),
            };
        }
        let integer = match integer {
            Some(integer) => integer,
            None => self.named("int")?,
        };
        let Declared::Integer(integer, _) = &*integer else {
            return self.error("the type of an enumeration is no integer");
        };
        let labels = self.labels()?;
        let kind = Rc::new(Declared::Enumeration(*integer, labels.into()));
        if let Some(name) = name {
            self.declare(name, kind.clone());
        }
        Ok(kind)
    }

    fn labels(&mut self) -> Parsed<Vec<Label>> {
        self.expect("{")?;
        let mut labels: Vec<Label> = Vec::new();
        while !self.sign("}") {
            let name = match self.peek() {
                Some(Kind::Name(name) | Kind::Text(name)) => name.clone(),
                _ => return self.error("a label is missing"),
            };
            self.next += 1;
            let mut first = labels.last().map_or(0, |before| before.last.wrapping_add(1));
            let mut last = first;
            if self.sign("=") {
                first = self.number()? as u64;
                last = if self.sign("...") { self.number()? as u64 } else { first };
            }
            labels.push(Label { name, first, last });
            if !self.sign(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(labels)
    }

    /// Fields of a struct, options of a variant.
    fn body(&mut self) -> Parsed<Vec<Field>> {
        self.expect("{")?;
        self.scopes.push(HashMap::new());
        let mut fields = Vec::new();
        while !self.sign("}") {
            if self.sign(";") || matches!(self.peek_name(), Some("typealias" | "typedef")) && self.declaration()? {
                continue;
            }
            let kind = self.kind(Follows::Declarator)?;
            // `struct name { ... };` declares a type alone.
            if self.sign(";") {
                continue;
            }
            fields.extend(self.declarators(kind)?);
        }
        self.scopes.pop();
        Ok(fields)
    }

    /// `name[4][length], other;`
    fn declarators(&mut self, kind: Rc<Declared>) -> Parsed<Vec<Field>> {
        let mut fields = Vec::new();
        loop {
            let name = self.name()?.to_owned();
            let mut lengths = Vec::new();
            while self.sign("[") {
                lengths.push(match self.peek() {
                    Some(Kind::Number(number)) => {
                        self.next += 1;
                        Length::Fixed(*number)
                    }
                    _ => Length::Field(self.path()?),
                });
                self.expect("]")?;
            }
            if lengths.len() > DEEPEST {
                return self.error(format!("an array has more than {DEEPEST} dimensions"));
            }
            let nested = |kind, length| Rc::new(Declared::Array(kind, length));
            let kind = lengths.into_iter().rev().fold(kind.clone(), nested);
            fields.push(Field { name, kind });
            if !self.sign(",") {
                self.expect(";")?;
                return Ok(fields);
            }
        }
    }
}
