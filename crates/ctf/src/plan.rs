//! The header of an event as numbers to read one after the other.
//!
//! Headers are small and come with each event, so they are worth a form of their own: no structs, no names, nothing to keep.

use crate::decode::{Decoder, Stop, integer};
use crate::layout::{Layouts, NodeId, NodeKind, Register, Uses, VariantOption};
use crate::number::IntegerType;
use crate::tsdl::declared::Label;

/// Deepest variants within each other. Tracers write one.
const DEEPEST: u32 = 4;

/// What is read, in order.
#[derive(Debug)]
pub(crate) struct Plan(Vec<Step>);

#[derive(Debug)]
enum Step {
    /// A number that means something to the decoder.
    Number { align: u32, kind: IntegerType, uses: Uses },
    /// Bits that mean nothing to it.
    Skip { align: u32, bits: u32 },
    /// One of several plans, by the value of a field before.
    Choice(Box<Choice>),
}

#[derive(Debug)]
struct Choice {
    tag: Register,
    signed: bool,
    /// The options of the values from 0 on, which tracers use.
    by_tag: [u8; SMALL],
    options: Vec<(Box<[Label]>, Plan)>,
}

/// Values of tags that need no search: LTTng's have 5 bits.
const SMALL: usize = 32;

impl Choice {
    /// The number of the option for a value.
    fn search(&self, value: u64) -> Option<usize> {
        let is_of = |label: &Label| label.holds(value, self.signed);
        self.options.iter().position(|(ranges, _)| ranges.iter().any(is_of))
    }

    fn option(&self, value: u64) -> Option<&Plan> {
        let known = self.by_tag.get(value as usize).filter(|option| **option != u8::MAX);
        let option = known.map(|&option| option.into()).or_else(|| self.search(value));
        Some(&self.options[option?].1)
    }
}

impl Plan {
    /// The plan of a type; `None` if it has parts of variable size but variants.
    pub fn of(layouts: &Layouts, node: NodeId) -> Option<Self> {
        let mut plan = Self(Vec::new());
        plan.add(layouts, node, DEEPEST)?;
        Some(plan)
    }

    fn add(&mut self, layouts: &Layouts, id: NodeId, depth: u32) -> Option<()> {
        let node = &layouts.nodes[id as usize];
        if let Some(fixed) = layouts.fixed(id) {
            self.0.push(Step::Skip { align: node.align, bits: fixed.bits });
            return Some(());
        }
        match &node.kind {
            NodeKind::Integer(kind) | NodeKind::Enumeration(kind, _) => {
                self.0.push(Step::Number { align: node.align, kind: *kind, uses: node.uses? });
            }
            NodeKind::Struct(fields) => {
                if node.align > 1 {
                    self.0.push(Step::Skip { align: node.align, bits: 0 });
                }
                fields.iter().try_for_each(|field| self.add(layouts, field.node, depth))?;
            }
            NodeKind::Variant { tag, signed, options } => {
                let depth = depth.checked_sub(1)?;
                let plan = |node| {
                    let mut plan = Self(Vec::new());
                    plan.add(layouts, node, depth)?;
                    Some(plan)
                };
                let option = |option: &VariantOption| Some((option.ranges.clone(), plan(option.named.node)?));
                let options = options.iter().map(option).collect::<Option<_>>()?;
                let mut choice = Choice { tag: *tag, signed: *signed, by_tag: [u8::MAX; SMALL], options };
                for value in 0..SMALL {
                    let option = choice.search(value as u64).and_then(|option| u8::try_from(option).ok());
                    choice.by_tag[value] = option.unwrap_or(u8::MAX);
                }
                self.0.push(Step::Choice(Box::new(choice)));
            }
            NodeKind::Float(_) | NodeKind::String | NodeKind::Array { .. } => return None,
        }
        Some(())
    }
}

impl Decoder<'_> {
    /// Reads what a plan says.
    pub fn run(&mut self, plan: &Plan) -> Result<(), Stop> {
        for step in &plan.0 {
            match step {
                Step::Number { align, kind, uses } => {
                    self.align(*align)?;
                    let bit = self.take(kind.bits.into())?;
                    let value = integer(self.bytes, bit, kind);
                    self.note(*uses, kind, value);
                }
                Step::Skip { align, bits } => {
                    self.align(*align)?;
                    self.take((*bits).into())?;
                }
                Step::Choice(choice) => {
                    let plan = choice.option(self.memory.registers[choice.tag as usize]);
                    self.run(plan.ok_or(Stop::Malformed("the tag of a variant has a value without an option"))?)?;
                }
            }
        }
        Ok(())
    }
}
