//! Events and their fields, borrowed from the reader.

use std::borrow::Cow;

use crate::decode::{Item, Place, float, integer};
use crate::layout::{ArrayForm, Named, NodeKind};
use crate::number::{FloatType, IntegerType};
use crate::schema::{EventClass, Schema};
use crate::stream::Stream;
use crate::tsdl::declared::Label;

/// An event. It borrows from the reader until the next one is read.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) trace: usize,
    pub(crate) number: usize,
}

impl<'a> Event<'a> {
    /// Its name, such as `sched_switch`.
    pub fn name(&self) -> &'a str {
        &self.class().name
    }

    /// Its class in the trace's [`Schema::events`].
    pub fn class(&self) -> &'a EventClass {
        &self.stream.schema.events[self.stream.event as usize]
    }

    /// The index of its class in the trace's [`Schema::events`].
    pub fn class_index(&self) -> usize {
        self.stream.event as usize
    }

    /// The index of its trace in [`Reader::traces`](crate::Reader::traces).
    pub fn trace(&self) -> usize {
        self.trace
    }

    /// The number of its stream, unique in the reader. Packets of one stream share their context's kind.
    pub fn stream(&self) -> usize {
        self.number
    }

    /// Its time in ns since the clock's origin (of LTTng's clocks, since 1970); `None` if its stream has no clock.
    pub fn time_ns(&self) -> Option<i64> {
        self.stream.time_ns()
    }

    /// The value of its clock in cycles; `None` if its stream has no clock.
    pub fn cycles(&self) -> Option<u64> {
        self.stream.cycles()
    }

    fn fields_of(&self, from: usize, to: usize) -> Fields<'a> {
        let items = &self.stream.items[from..to];
        let context = Context { schema: &self.stream.schema, bytes: self.stream.event_bytes() };
        Fields::of_scope(context, items)
    }

    /// The fields of its payload.
    pub fn fields(&self) -> Fields<'a> {
        self.fields_of(self.stream.ends.context, self.stream.items.len())
    }

    /// The fields of its header: id and time.
    pub fn header(&self) -> Fields<'a> {
        self.fields_of(0, self.stream.ends.header)
    }

    /// The fields of the context that all events of its stream have, such as `vpid` and `vtid`.
    pub fn stream_context(&self) -> Fields<'a> {
        self.fields_of(self.stream.ends.header, self.stream.ends.stream_context)
    }

    /// The fields of the context that events of its class have.
    pub fn event_context(&self) -> Fields<'a> {
        self.fields_of(self.stream.ends.stream_context, self.stream.ends.context)
    }

    fn packet_fields(&self, from: usize, to: usize) -> Fields<'a> {
        let context = Context { schema: &self.stream.schema, bytes: &self.stream.packet_bytes };
        Fields::of_scope(context, &self.stream.packet_items[from..to])
    }

    /// The fields of its packet's header.
    pub fn packet_header(&self) -> Fields<'a> {
        self.packet_fields(0, self.stream.packet_header_end)
    }

    /// The fields of its packet's context, such as `cpu_id`.
    pub fn packet_context(&self) -> Fields<'a> {
        self.packet_fields(self.stream.packet_header_end, self.stream.packet_items.len())
    }

    /// A field of its payload by name, without the underscore that tracers put before it.
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        self.fields().get(name)
    }

    /// A context field by name: of its class, else of its stream, else of its packet.
    pub fn context(&self, name: &str) -> Option<Value<'a>> {
        let of_event = || self.event_context().get(name).or_else(|| self.stream_context().get(name));
        of_event().or_else(|| self.packet_context().get(name))
    }
}

#[derive(Clone, Copy)]
struct Context<'a> {
    schema: &'a Schema,
    bytes: &'a [u8],
}

/// The value of a field.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Value<'a> {
    /// An integer without sign.
    Unsigned(u64),
    /// An integer with a sign.
    Signed(i64),
    /// A floating-point number; one of 32 bits is widened.
    Float(f64),
    /// A string or an array of characters, up to its first NUL. By the metadata it is UTF-8 or ASCII; it is not checked.
    Text(&'a [u8]),
    /// An enumeration.
    Enumeration(Enumeration<'a>),
    /// A struct.
    Struct(Fields<'a>),
    /// An array or a sequence.
    Array(Elements<'a>),
}

impl<'a> Value<'a> {
    /// The value as an integer, if it is one, or an enumeration, and not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => u64::try_from(value).ok(),
            Value::Enumeration(value) => value.value().as_u64(),
            _ => None,
        }
    }

    /// The value as an integer, if it is one, or an enumeration, and has 63 bits at most.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Unsigned(value) => i64::try_from(value).ok(),
            Value::Signed(value) => Some(value),
            Value::Enumeration(value) => value.value().as_i64(),
            _ => None,
        }
    }

    /// The value as text, if it is one. Bytes that are no UTF-8 become U+FFFD.
    pub fn as_text(&self) -> Option<Cow<'a, str>> {
        match *self {
            Value::Text(bytes) => Some(String::from_utf8_lossy(bytes)),
            _ => None,
        }
    }
}

/// A value of an enumeration.
#[derive(Clone, Copy)]
pub struct Enumeration<'a> {
    bits: u64,
    kind: IntegerType,
    labels: &'a [Label],
}

impl<'a> Enumeration<'a> {
    /// Its integer.
    pub fn value(&self) -> Value<'a> {
        whole(self.bits, &self.kind)
    }

    /// Its labels: none, or more than one if ranges overlap.
    pub fn labels(&self) -> impl Iterator<Item = &'a str> {
        let Self { bits, kind, labels } = *self;
        labels.iter().filter(move |label| label.holds(bits, kind.signed)).map(|label| &*label.name)
    }
}

/// The fields of a struct, in order.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    context: Context<'a>,
    names: &'a [Named],
    items: &'a [Item],
    /// The index of the first item in its event.
    first: u32,
}

impl<'a> Fields<'a> {
    fn of_scope(context: Context<'a>, items: &'a [Item]) -> Self {
        let names = items.first().map(|item| &context.schema.layouts.nodes[item.node as usize].kind);
        match (names, items) {
            (Some(NodeKind::Struct(names)), [root, rest @ ..]) => {
                Self { context, names, items: rest, first: root.next - items.len() as u32 + 1 }
            }
            _ => Self { context, names: &[], items: &[], first: 0 },
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// A field by name, without the underscore that tracers put before it. The first one of that name.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        let mut items = Siblings { items: self.items, first: self.first };
        for named in self.names {
            let field = items.next()?;
            if named.name() == name {
                return Some(value(self.context, field.items, field.first));
            }
        }
        None
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let (context, items) = (self.context, Siblings { items: self.items, first: self.first });
        let value = move |field: Siblings<'a>| value(context, field.items, field.first);
        self.names.iter().zip(items).map(move |(named, field)| (named.name(), value(field)))
    }
}

/// Items beside each other, each with all that is in it.
#[derive(Clone, Copy)]
struct Siblings<'a> {
    items: &'a [Item],
    first: u32,
}

impl<'a> Iterator for Siblings<'a> {
    type Item = Siblings<'a>;

    fn next(&mut self) -> Option<Siblings<'a>> {
        let item = self.items.first()?;
        let length = (item.next - self.first) as usize;
        let (this, rest) = self.items.split_at(length);
        let first = std::mem::replace(&mut self.first, item.next);
        self.items = rest;
        Some(Siblings { items: this, first })
    }
}

/// The elements of an array or a sequence.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    context: Context<'a>,
    form: Form<'a>,
}

#[derive(Clone, Copy)]
enum Form<'a> {
    Integers(Place, IntegerType),
    Floats(Place, FloatType),
    Items(usize, Siblings<'a>),
}

impl<'a> Elements<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self.form {
            Form::Integers(place, _) | Form::Floats(place, _) => place.count as usize,
            Form::Items(count, _) => count,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        let Self { context, mut form } = *self;
        (0..self.len()).map_while(move |at| match &mut form {
            Form::Integers(place, kind) => {
                let bit = place.bit as usize + at * usize::from(kind.bits);
                Some(whole(integer(context.bytes, bit, kind), kind))
            }
            Form::Floats(place, kind) => {
                let bits = 32 << u32::from(kind.is_double);
                let bit = place.bit as usize + at * bits as usize;
                Some(Value::Float(float(context.bytes, bit, bits, kind.order)))
            }
            Form::Items(_, items) => items.next().map(|element| value(context, element.items, element.first)),
        })
    }
}

fn whole<'a>(bits: u64, kind: &IntegerType) -> Value<'a> {
    if kind.signed { Value::Signed(bits as i64) } else { Value::Unsigned(bits) }
}

/// The value of the first of `items`, whose index in the event is `first`.
fn value<'a>(context: Context<'a>, items: &'a [Item], first: u32) -> Value<'a> {
    let item = &items[0];
    let inner = Siblings { items: &items[1..], first: first + 1 };
    let nodes = &context.schema.layouts.nodes;
    match &nodes[item.node as usize].kind {
        NodeKind::Integer(kind) => whole(item.value, kind),
        NodeKind::Float(_) => Value::Float(f64::from_bits(item.value)),
        NodeKind::Enumeration(kind, labels) => {
            Value::Enumeration(Enumeration { bits: item.value, kind: *kind, labels })
        }
        NodeKind::String => Value::Text(text(context, Place::unpacked(item.value))),
        NodeKind::Struct(names) => Value::Struct(Fields { context, names, items: inner.items, first: inner.first }),
        // The option stands for the variant.
        NodeKind::Variant { .. } => value(context, inner.items, inner.first),
        NodeKind::Array { element, form, .. } => {
            let place = Place::unpacked(item.value);
            let form = match (form, &nodes[*element as usize].kind) {
                (ArrayForm::Text, _) => return Value::Text(text(context, place)),
                (ArrayForm::Numbers { .. }, NodeKind::Integer(kind)) => Form::Integers(place, *kind),
                (ArrayForm::Numbers { .. }, NodeKind::Float(kind)) => Form::Floats(place, *kind),
                _ => Form::Items(item.value as usize, inner),
            };
            Value::Array(Elements { context, form })
        }
    }
}

fn text(context: Context<'_>, place: Place) -> &[u8] {
    let first = place.bit as usize / 8;
    let bytes = &context.bytes[first..first + place.count as usize];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}
