//! Types as they are declared, before the fields that they refer to are known.

use std::rc::Rc;

use crate::number::{FloatType, IntegerType};

/// A declared type. Named types are shared.
#[derive(Debug)]
pub(crate) enum Declared {
    /// An integer with the name of the clock whose time it is, if any.
    Integer(IntegerType, Option<Rc<str>>),
    Float(FloatType),
    Enumeration(IntegerType, Rc<[Label]>),
    String,
    Struct(Struct),
    /// A variant with the path of its tag, if it has one already.
    Variant(Option<Vec<String>>, Vec<Field>),
    Array(Rc<Declared>, Length),
}

#[derive(Debug)]
pub(crate) enum Length {
    Fixed(u64),
    /// The path of the field with the length.
    Field(Vec<String>),
}

#[derive(Debug)]
pub(crate) struct Struct {
    /// Least alignment in bits.
    pub align: u32,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub name: String,
    pub kind: Rc<Declared>,
}

/// A label of an enumeration with its inclusive range. Signed values keep their bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub name: String,
    pub first: u64,
    pub last: u64,
}

impl Label {
    pub fn holds(&self, value: u64, signed: bool) -> bool {
        if signed {
            (self.first as i64..=self.last as i64).contains(&(value as i64))
        } else {
            (self.first..=self.last).contains(&value)
        }
    }
}

/// The metadata's blocks, in order.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub trace: Option<Block>,
    pub streams: Vec<Block>,
    pub events: Vec<Block>,
    pub clocks: Vec<Block>,
    pub environment: Option<Block>,
}

/// A block such as `stream { ... };`.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub line: u32,
    pub values: Vec<(String, Setting)>,
    pub types: Vec<(String, Rc<Declared>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Setting {
    Number(i128),
    Text(String),
    /// A name or dotted path.
    Name(String),
}

impl Block {
    pub fn value(&self, key: &str) -> Option<&Setting> {
        self.values.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub fn number(&self, key: &str) -> Option<i128> {
        match self.value(key)? {
            Setting::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Setting::Text(text) | Setting::Name(text) => Some(text),
            Setting::Number(_) => None,
        }
    }

    pub fn declared(&self, key: &str) -> Option<&Rc<Declared>> {
        self.types.iter().rev().find(|(name, _)| name == key).map(|(_, kind)| kind)
    }
}
