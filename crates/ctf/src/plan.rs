//! The header of an event as numbers to read one after the other.
//!
//! Headers are small and come with each event, so they are worth a form of their own: no structs, no names, nothing to keep.
//! Most events have a short header and fields in fixed places: these are read at once ([`ShortHeader`], [`FixedEvent`]).

use crate::decode::{Decoder, Stop, integer};
use crate::layout::{Layouts, NodeId, NodeKind, Register, Role, Uses, VariantOption};
use crate::number::{ByteOrder, IntegerType};
use crate::tsdl::declared::Label;

/// Deepest variants within each other. Tracers write one.
const DEEPEST: u32 = 4;

/// What is read, in order.
#[derive(Debug, Clone)]
pub(crate) struct Plan(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    /// A number that means something to the decoder.
    Number { align: u32, kind: IntegerType, uses: Uses },
    /// Bits that mean nothing to it.
    Skip { align: u32, bits: u32 },
    /// One of several plans, by the value of a field before.
    Choice(Box<Choice>),
}

#[derive(Debug, Clone)]
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

    #[inline]
    fn number(&self, value: u64) -> Option<usize> {
        let known = self.by_tag.get(value as usize).filter(|option| **option != u8::MAX);
        known.map(|&option| option.into()).or_else(|| self.search(value))
    }

    fn option(&self, value: u64) -> Option<&Plan> {
        Some(&self.options[self.number(value)?].1)
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

/// Headers whose numbers are all in their first 64 bits, as those of LTTng are for nearly all events.
#[derive(Debug)]
pub(crate) struct ShortHeader {
    /// The number that says which form a header has, if there are several.
    tag: Option<(Bits, Choice)>,
    /// By option of the choice.
    forms: Vec<Option<HeaderForm>>,
}

/// Where the numbers of a short header are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeaderForm {
    /// The id; without it, the stream has one class of events.
    pub id: Option<Bits>,
    pub time: Option<Bits>,
    /// The header's size.
    pub bits: u32,
}

/// A number without sign in a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bits {
    first: u8,
    pub count: u8,
}

impl Bits {
    #[inline]
    pub fn of(self, word: u64) -> u64 {
        word >> self.first & (u64::MAX >> (64 - self.count))
    }
}

impl HeaderForm {
    /// Adds the steps of a plan up to its choice, which must be the last one. `align` is that of the header's start.
    fn add<'a>(
        &mut self,
        plan: &'a Plan,
        align: u32,
        tag: &mut Option<(Register, Bits)>,
    ) -> Option<Option<&'a Choice>> {
        let mut is_at = |step_align: u32, bits: u32| {
            // Places are the same in all headers if none is aligned more than their start.
            let first = Some(self.bits).filter(|_| step_align <= align)?.checked_next_multiple_of(step_align)?;
            self.bits = first.checked_add(bits)?;
            (self.bits <= u64::BITS).then_some(first as u8)
        };
        for (at, step) in plan.0.iter().enumerate() {
            match step {
                Step::Skip { align, bits } => _ = is_at(*align, *bits)?,
                Step::Number { align, kind, uses } => {
                    let number = Bits { first: is_at(*align, kind.bits.into())?, count: kind.bits };
                    let is_plain = !kind.signed && (kind.order == ByteOrder::Little);
                    if !is_plain || uses.role.is_some_and(|role| role != Role::EventId) {
                        return None;
                    }
                    if let Some(register) = uses.register {
                        *tag = Some((register, number));
                    }
                    if uses.role.is_some() {
                        self.id = Some(number);
                    }
                    if uses.clock.is_some() && self.time.replace(number).is_some() {
                        return None;
                    }
                }
                Step::Choice(choice) => return (at + 1 == plan.0.len()).then_some(Some(choice)),
            }
        }
        Some(None)
    }
}

impl ShortHeader {
    /// The form of a header with this plan; `None` if it has a part that is not in the first 64 bits.
    pub fn of(plan: &Plan, align: u32) -> Option<Self> {
        if !align.is_multiple_of(8) {
            return None;
        }
        let mut tag = None;
        let mut start = HeaderForm { id: None, time: None, bits: 0 };
        let Some(choice) = start.add(plan, align, &mut tag)? else {
            return Some(Self { tag: None, forms: vec![Some(start)] });
        };
        let (_, tag) = tag.filter(|(register, _)| *register == choice.tag)?;
        let form = |(_, plan): &(_, Plan)| {
            let mut form = start;
            // No choice within a choice.
            form.add(plan, align, &mut None).filter(Option::is_none).map(|_| form)
        };
        let forms = choice.options.iter().map(form).collect();
        Some(Self { tag: Some((tag, choice.clone())), forms })
    }

    /// The form of the header in this word; `None` if it is not short.
    #[inline]
    pub fn form(&self, word: u64) -> Option<&HeaderForm> {
        let option = match &self.tag {
            Some((tag, choice)) => choice.number(tag.of(word))?,
            None => 0,
        };
        self.forms[option].as_ref()
    }
}

/// The places of the parts of an event behind its header, where they are fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FixedEvent {
    /// Alignment of the first part.
    pub align: u32,
    /// First bits of the parts, from the start of the first part: the stream's context, the event's, the payload.
    pub parts: [u32; 3],
    /// Size of all parts.
    pub bits: u32,
}

impl FixedEvent {
    /// The places of these parts; `None` if they are not fixed.
    pub fn of(layouts: &Layouts, parts: [Option<NodeId>; 3]) -> Option<Self> {
        let mut event = Self { align: 1, parts: [0; 3], bits: 0 };
        let mut is_first = true;
        for (place, node) in event.parts.iter_mut().zip(parts) {
            let Some(node) = node else { continue };
            let fixed = layouts.fixed(node)?;
            if std::mem::take(&mut is_first) {
                event.align = fixed.align;
            } else if fixed.align > event.align {
                return None;
            }
            *place = event.bits.checked_next_multiple_of(fixed.align)?;
            event.bits = place.checked_add(fixed.bits)?;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::Schema;

    /// The form of a little-endian header, as `id time size`; `-` if it is not short.
    fn form(header: &str, word: u64) -> String {
        let text = format!(
            r#"trace {{ major = 1; minor = 8; byte_order = le; }}; clock {{ name = "c"; }};
            typealias integer {{ size = 16; align = 8; signed = false; }} := u16;
            typealias integer {{ size = 32; align = 8; signed = false; }} := u32;
            typealias integer {{ size = 64; align = 8; signed = false; }} := u64;
            typealias integer {{ size = 27; align = 1; signed = false; }} := u27;
            stream {{ event.header := struct {{ {header} }} align(8); }};
            event {{ name = "e"; id = 1; }};"#
        );
        let schema = Schema::parse(&text).unwrap();
        assert!(schema.defects.is_empty(), "{:?}", schema.defects);
        let form = schema.streams[0].short_header.as_ref().and_then(|short| short.form(word));
        let number = |bits: Option<super::Bits>| bits.map(|bits| bits.of(word));
        form.map_or("-".to_owned(), |form| format!("{:?} {:?} {}", number(form.id), number(form.time), form.bits))
    }

    #[test]
    fn the_headers_of_lttng_are_short_unless_they_are_extended() {
        let compact = "enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
            variant <id> { struct { u27 timestamp; } compact; struct { u32 id; u64 timestamp; } extended; } v;";
        assert_eq!(form(compact, 7 | 99 << 5), "Some(7) Some(99) 32");
        assert_eq!(form(compact, 31), "-");
        let large = "enum : u16 { compact = 0 ... 65534, extended = 65535 } id;
            variant <id> { struct { u32 timestamp; } compact; struct { u32 id; u64 timestamp; } extended; } v;";
        assert_eq!(form(large, 700 | 99 << 16), "Some(700) Some(99) 48");
        assert_eq!(form(large, 65_535), "-");
    }

    #[test]
    fn headers_of_more_than_64_bits_or_with_places_that_vary_are_not_short() {
        assert_eq!(form("u16 id; u32 timestamp;", 5 | 6 << 16), "Some(5) Some(6) 48");
        assert_eq!(form("u32 timestamp;", 6), "None Some(6) 32");
        assert_eq!(form("u16 id; u64 timestamp;", 5), "-");
        assert_eq!(form("u16 id; integer { size = 32; align = 8; signed = true; } timestamp;", 5), "-");
    }
}
