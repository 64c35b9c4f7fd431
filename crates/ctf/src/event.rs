//! Events and their fields, borrowed from the reader.

use std::borrow::Cow;

use crate::decode::{Item, Part, Place, float, integer};
use crate::layout::{ArrayForm, Count, Named, NodeId, NodeKind};
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
    #[inline]
    pub fn name(&self) -> &'a str {
        &self.class().name
    }

    /// Its class in the trace's [`Schema::events`].
    #[inline]
    pub fn class(&self) -> &'a EventClass {
        &self.stream.schema.events[self.stream.event as usize]
    }

    /// The index of its class in the trace's [`Schema::events`].
    #[inline]
    pub fn class_index(&self) -> usize {
        self.stream.event as usize
    }

    /// The index of its trace in [`Reader::traces`](crate::Reader::traces).
    #[inline]
    pub fn trace(&self) -> usize {
        self.trace
    }

    /// The number of its stream, unique in the reader. Packets of one stream share their context's kind.
    #[inline]
    pub fn stream(&self) -> usize {
        self.number
    }

    /// Its time in ns since the clock's origin (of LTTng's clocks, since 1970); `None` if its stream has no clock.
    #[inline]
    pub fn time_ns(&self) -> Option<i64> {
        self.stream.time_ns()
    }

    /// The value of its clock in cycles; `None` if its stream has no clock.
    pub fn cycles(&self) -> Option<u64> {
        self.stream.cycles()
    }

    #[inline]
    fn values(&self) -> Context<'a> {
        Context { schema: &self.stream.schema, bytes: self.stream.event_bytes() }
    }

    #[inline]
    fn fields_of(&self, part: Part) -> Fields<'a> {
        let context = self.values();
        match part.node.map(|node| (node, context.schema.layouts.fixed(node))) {
            Some((node, Some(_))) => Fields::fixed(context, node, part.bit as usize),
            _ => Fields::of_scope(context, &self.stream.items[part.items.0 as usize..part.items.1 as usize]),
        }
    }

    /// The fields of its payload.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        self.fields_of(self.stream.parts.payload)
    }

    /// The fields of its header: id and time. They are decoded when they are asked for.
    pub fn header(&self) -> Fields<'a> {
        Fields::of_scope(self.values(), self.stream.header_items())
    }

    /// The fields of the context that all events of its stream have, such as `vpid` and `vtid`.
    pub fn stream_context(&self) -> Fields<'a> {
        self.fields_of(self.stream.parts.stream_context)
    }

    /// The bytes of these fields, if they always have the same places and no others share their bytes: equal bytes have equal
    /// values, if the events are of one stream.
    #[inline]
    pub fn stream_context_bytes(&self) -> Option<&'a [u8]> {
        let part = self.stream.parts.stream_context;
        let bits = self.stream.schema.layouts.fixed(part.node?)?.bits;
        if !part.bit.is_multiple_of(8) || !bits.is_multiple_of(8) {
            return None;
        }
        let first = part.bit as usize / 8;
        self.stream.event_bytes().get(first..first + bits as usize / 8)
    }

    /// The fields of the context that events of its class have.
    pub fn event_context(&self) -> Fields<'a> {
        self.fields_of(self.stream.parts.event_context)
    }

    /// The value of a field that was [found](Schema::field) in its class before, as [`Value::as_u64`] gives it. The fastest way
    /// to read numbers of many events.
    #[inline]
    pub fn number(&self, field: FieldPlace) -> Option<u64> {
        if let (Some(bit), Some(kind)) = (field.bit, &field.number)
            && field.class == self.stream.event
            && let Some(part) = self.part(field.scope)
        {
            let value = integer(self.stream.event_bytes(), (part.bit + bit) as usize, kind);
            return Some(value).filter(|&value| !kind.signed || value as i64 >= 0);
        }
        if let (Some(item), Some(kind)) = (field.item, &field.number)
            && field.class == self.stream.event
        {
            let value = self.stream.packet_items.get(self.stream.packet_header_end + item as usize)?.value;
            return Some(value).filter(|&value| !kind.signed || value as i64 >= 0);
        }
        self.value(field)?.as_u64()
    }

    /// The part with the fields of a scope, if it is of the event.
    #[inline]
    fn part(&self, scope: PlaceScope) -> Option<Part> {
        match scope {
            PlaceScope::Payload => Some(self.stream.parts.payload),
            PlaceScope::EventContext => Some(self.stream.parts.event_context),
            PlaceScope::StreamContext => Some(self.stream.parts.stream_context),
            PlaceScope::PacketContext => None,
        }
    }

    /// The value of a field that was [found](Schema::field) in its class before. It has none if it is of another class.
    #[inline]
    pub fn value(&self, field: FieldPlace) -> Option<Value<'a>> {
        if field.class != self.stream.event {
            return None;
        }
        let Some(part) = self.part(field.scope) else { return self.packet_context().at(field.index as usize) };
        match field.bit {
            Some(bit) => fixed_value(self.values(), field.node, (part.bit + bit) as usize),
            None => self.fields_of(part).at(field.index as usize),
        }
    }

    #[inline]
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
    #[inline]
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        self.fields().get(name)
    }

    /// A context field by name: of its class, else of its stream, else of its packet.
    pub fn context(&self, name: &str) -> Option<Value<'a>> {
        let of_event = || self.event_context().get(name).or_else(|| self.stream_context().get(name));
        of_event().or_else(|| self.packet_context().get(name))
    }
}

/// The place of a field in the events of one class of a trace, for [`Event::value`].
#[derive(Debug, Clone, Copy)]
pub struct FieldPlace {
    class: u32,
    scope: PlaceScope,
    /// Its number in its struct.
    index: u32,
    node: NodeId,
    /// Its first bit in its struct, if that has fixed places.
    bit: Option<u32>,
    /// Of a field of a packet's context, its number among the items, if that is the same in all packets.
    item: Option<u32>,
    /// Its kind, if it is an integer.
    number: Option<IntegerType>,
}

impl FieldPlace {
    /// Whether it is in the context that all events of a stream have ([`Event::stream_context`]).
    pub fn is_of_stream(&self) -> bool {
        self.scope == PlaceScope::StreamContext
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceScope {
    PacketContext,
    StreamContext,
    EventContext,
    Payload,
}

impl Schema {
    /// The place of a payload field, by the index of the class in [`Schema::events`] and the name as in [`Event::field`].
    pub fn field(&self, class: usize, name: &str) -> Option<FieldPlace> {
        self.place(class, PlaceScope::Payload, self.events.get(class)?.payload, name)
    }

    /// The place of a context field: of the class, else of its stream, else of its packet, as in [`Event::context`].
    pub fn context_field(&self, class: usize, name: &str) -> Option<FieldPlace> {
        let event = self.events.get(class)?;
        let stream = &self.streams[event.stream];
        self.place(class, PlaceScope::EventContext, event.context, name)
            .or_else(|| self.place(class, PlaceScope::StreamContext, stream.event_context, name))
            .or_else(|| self.place(class, PlaceScope::PacketContext, stream.packet_context, name))
    }

    fn place(&self, class: usize, scope: PlaceScope, node: Option<NodeId>, name: &str) -> Option<FieldPlace> {
        let node = node?;
        let NodeKind::Struct(names) = &self.layouts.nodes[node as usize].kind else { return None };
        let index = names.iter().position(|named| named.name() == name)?;
        let bit = self.layouts.fixed(node).map(|fixed| fixed.offsets[index]);
        let node = names[index].node;
        let number = match &self.layouts.nodes[node as usize].kind {
            NodeKind::Integer(kind) => Some(*kind),
            _ => None,
        };
        // The struct itself is the first item.
        let is_single = |named: &Named| match &self.layouts.nodes[named.node as usize].kind {
            NodeKind::Integer(_) | NodeKind::Enumeration(..) | NodeKind::Float(_) | NodeKind::String => true,
            NodeKind::Struct(_) | NodeKind::Variant { .. } | NodeKind::Array { .. } => false,
        };
        let is_of_packet = scope == PlaceScope::PacketContext && names[..index].iter().all(is_single);
        let item = is_of_packet.then_some(index as u32 + 1);
        Some(FieldPlace { class: class as u32, scope, index: index as u32, node, bit, item, number })
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
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => u64::try_from(value).ok(),
            Value::Enumeration(value) => value.value().as_u64(),
            _ => None,
        }
    }

    /// The value as an integer, if it is one, or an enumeration, and has 63 bits at most.
    #[inline]
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
    kept: Kept<'a>,
}

/// Where the values of fields are.
#[derive(Clone, Copy)]
enum Kept<'a> {
    Items(Siblings<'a>),
    /// At these bits after this one.
    Fixed(usize, &'a [u32]),
}

impl<'a> Fields<'a> {
    fn of_scope(context: Context<'a>, items: &'a [Item]) -> Self {
        let names = items.first().map(|item| &context.schema.layouts.nodes[item.node as usize].kind);
        match (names, items) {
            (Some(NodeKind::Struct(names)), [root, rest @ ..]) => {
                let first = root.next - items.len() as u32 + 1;
                Self { context, names, kept: Kept::Items(Siblings { items: rest, first }) }
            }
            _ => Self { context, names: &[], kept: Kept::Fixed(0, &[]) },
        }
    }

    /// The fields of a struct with fixed places that starts at this bit.
    #[inline]
    fn fixed(context: Context<'a>, node: NodeId, bit: usize) -> Self {
        let layouts = &context.schema.layouts;
        match (&layouts.nodes[node as usize].kind, layouts.fixed(node)) {
            (NodeKind::Struct(names), Some(fixed)) => Self { context, names, kept: Kept::Fixed(bit, &fixed.offsets) },
            _ => Self { context, names: &[], kept: Kept::Fixed(0, &[]) },
        }
    }

    /// The value of the field with this number.
    #[inline]
    fn at(&self, index: usize) -> Option<Value<'a>> {
        match self.kept {
            Kept::Items(mut items) => items.nth(index).map(|field| value(self.context, field.items, field.first)),
            Kept::Fixed(bit, offsets) => {
                let offset = *offsets.get(index)?;
                fixed_value(self.context, self.names[index].node, bit + offset as usize)
            }
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
    #[inline]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.at(self.names.iter().position(|named| named.name() == name)?)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let Self { context, names, mut kept } = *self;
        names.iter().enumerate().map_while(move |(index, named)| {
            let value = match &mut kept {
                Kept::Items(items) => items.next().map(|field| value(context, field.items, field.first)),
                Kept::Fixed(bit, offsets) => fixed_value(context, named.node, *bit + offsets[index] as usize),
            };
            Some((named.name(), value?))
        })
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

#[inline]
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
        NodeKind::Struct(names) => Value::Struct(Fields { context, names, kept: Kept::Items(inner) }),
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

/// The value of a type with fixed places that starts at this bit.
#[inline]
fn fixed_value<'a>(context: Context<'a>, node: NodeId, bit: usize) -> Option<Value<'a>> {
    let nodes = &context.schema.layouts.nodes;
    Some(match &nodes[node as usize].kind {
        NodeKind::Integer(kind) => whole(integer(context.bytes, bit, kind), kind),
        NodeKind::Enumeration(kind, labels) => {
            let bits = integer(context.bytes, bit, kind);
            Value::Enumeration(Enumeration { bits, kind: *kind, labels })
        }
        NodeKind::Float(kind) => Value::Float(float(context.bytes, bit, 32 << u32::from(kind.is_double), kind.order)),
        NodeKind::Struct(_) => Value::Struct(Fields::fixed(context, node, bit)),
        NodeKind::Array { element, length: Count::Fixed(count), form } => {
            let place = Place { bit: bit as u32, count: *count as u32 };
            let form = match (form, &nodes[*element as usize].kind) {
                (ArrayForm::Text, _) => return Some(Value::Text(text(context, place))),
                (ArrayForm::Numbers { .. }, NodeKind::Integer(kind)) => Form::Integers(place, *kind),
                (ArrayForm::Numbers { .. }, NodeKind::Float(kind)) => Form::Floats(place, *kind),
                _ => return None,
            };
            Value::Array(Elements { context, form })
        }
        NodeKind::Array { .. } | NodeKind::String | NodeKind::Variant { .. } => return None,
    })
}

#[inline]
fn text(context: Context<'_>, place: Place) -> &[u8] {
    let first = place.bit as usize / 8;
    let bytes = &context.bytes[first..first + place.count as usize];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}
