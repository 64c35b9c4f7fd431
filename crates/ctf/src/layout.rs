//! Types of fields with all that decoding needs (CTF 1.8.3, section 4).
//!
//! Each use of a declared type becomes nodes of its own, so that a length or a variant's tag is a known register.

use std::rc::Rc;
use std::sync::Arc;

use crate::number::{FloatType, IntegerType};
use crate::tsdl::declared::{Declared, Field as DeclaredField, Label, Length, Struct};

/// A named part of a struct or variant.
#[derive(Debug)]
pub(crate) struct Named {
    /// The name as declared.
    pub raw: Arc<str>,
    pub node: NodeId,
}

impl Named {
    /// The name without the underscore that tracers put before it (section 7.3.2 asks readers to remove it).
    #[inline]
    pub fn name(&self) -> &str {
        self.raw.strip_prefix('_').unwrap_or(&self.raw)
    }
}

pub(crate) type NodeId = u32;
pub(crate) type Register = u32;

/// A type at one place.
#[derive(Debug)]
pub(crate) struct Node {
    /// Alignment in bits.
    pub align: u32,
    pub kind: NodeKind,
    /// What an integer or enumeration is for; the decoder looks closer if it is for anything.
    pub uses: Option<Uses>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Uses {
    /// Where its value is kept, for lengths and variants.
    pub register: Option<Register>,
    /// The clock that it advances.
    pub clock: Option<u16>,
    pub role: Option<Role>,
}

/// Fields with a meaning for the format itself (sections 5 and 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Magic,
    StreamId,
    StreamInstance,
    ContentSize,
    PacketSize,
    PacketNumber,
    TimeBegin,
    TimeEnd,
    Discarded,
    EventId,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Integer(IntegerType),
    Float(FloatType),
    Enumeration(IntegerType, Arc<[Label]>),
    String,
    Struct(Box<[Named]>),
    Variant { tag: Register, signed: bool, options: Box<[VariantOption]> },
    Array { element: NodeId, length: Count, form: ArrayForm },
}

#[derive(Debug)]
pub(crate) struct VariantOption {
    pub ranges: Box<[Label]>,
    pub named: Named,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    Fixed(u64),
    Register(Register),
}

/// How the elements of an array are kept once decoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ArrayForm {
    /// Bytes of text, up to a NUL.
    Text,
    /// Numbers of one size without gaps: left where they are.
    Numbers { bits: u32 },
    /// One item an element.
    Items,
}

/// Where a type stands (section 7.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    PacketHeader,
    PacketContext,
    EventHeader,
    StreamEventContext,
    EventContext,
    Payload,
}

impl Scope {
    fn prefix(self) -> &'static [&'static str] {
        match self {
            Scope::PacketHeader => &["trace", "packet", "header"],
            Scope::PacketContext => &["stream", "packet", "context"],
            Scope::EventHeader => &["stream", "event", "header"],
            Scope::StreamEventContext => &["stream", "event", "context"],
            Scope::EventContext => &["event", "context"],
            Scope::Payload => &["event", "fields"],
        }
    }

    fn role(self, name: &str) -> Option<Role> {
        Some(match (self, name) {
            (Scope::PacketHeader, "magic") => Role::Magic,
            (Scope::PacketHeader, "stream_id") => Role::StreamId,
            (Scope::PacketHeader, "stream_instance_id") => Role::StreamInstance,
            (Scope::PacketContext, "content_size") => Role::ContentSize,
            (Scope::PacketContext, "packet_size") => Role::PacketSize,
            (Scope::PacketContext, "packet_seq_num") => Role::PacketNumber,
            (Scope::PacketContext, "timestamp_begin") => Role::TimeBegin,
            (Scope::PacketContext, "timestamp_end") => Role::TimeEnd,
            (Scope::PacketContext, "events_discarded") => Role::Discarded,
            (Scope::EventHeader, "id") => Role::EventId,
            _ => return None,
        })
    }
}

/// Most nodes of one trace. The largest kernel traces have some 50,000.
const MOST_NODES: usize = 1 << 20;

/// All nodes of a trace, and the names that fields can refer to.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    pub nodes: Vec<Node>,
    pub registers: Register,
    clocks: Vec<String>,
    /// The places of each node, if they are fixed; see [`Self::fix`].
    fixed: Vec<Option<Fixed>>,
}

/// A type whose parts are always in the same places, and mean nothing to the decoder: it is passed over, and read when it is
/// asked for.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// Its size.
    pub bits: u32,
    /// Its alignment in bits.
    pub align: u32,
    /// Of a struct: bits from its start to each field.
    pub offsets: Box<[u32]>,
}

/// Most bits of a type with fixed places: those of the largest window, so that places are numbers of 32 bits.
const MOST_FIXED_BITS: u64 = 64 << 23;

/// The structs around a field, from the outermost. Of each, the fields so far.
pub(crate) type Scopes = Vec<(Scope, Vec<Level>)>;
pub(crate) type Level = Vec<(String, NodeId)>;

impl Layouts {
    pub fn new(clocks: Vec<String>) -> Self {
        Self { clocks, ..Self::default() }
    }

    /// Adds the type of a scope. `before` has the scopes that it can refer to; it is added to them.
    pub fn add(&mut self, scope: Scope, declared: &Declared, before: &mut Scopes) -> Result<NodeId, String> {
        before.push((scope, Vec::new()));
        let node = self.node(declared, before, None);
        if node.is_err() {
            before.pop();
        }
        node
    }

    /// Finds the types with fixed places, once all types are added: a later type can refer to a field of an earlier one.
    pub fn fix(&mut self) {
        self.fixed.clear();
        for node in &self.nodes {
            let fixed = self.fixed_of(node);
            self.fixed.push(fixed);
        }
    }

    /// The places of a type, by those of its parts, which come before it; `None` if they are not fixed.
    fn fixed_of(&self, node: &Node) -> Option<Fixed> {
        if node.uses.is_some() {
            return None;
        }
        let mut offsets = Vec::new();
        let bits = match &node.kind {
            NodeKind::Integer(kind) | NodeKind::Enumeration(kind, _) => kind.bits.into(),
            NodeKind::Float(kind) => 32 << u32::from(kind.is_double),
            NodeKind::Struct(fields) => {
                let mut bits = 0_u64;
                for field in fields {
                    let mask = u64::from(self.nodes[field.node as usize].align) - 1;
                    bits = (bits + mask) & !mask;
                    offsets.push(bits as u32);
                    bits += u64::from(self.fixed(field.node)?.bits);
                    if bits > MOST_FIXED_BITS {
                        return None;
                    }
                }
                bits
            }
            NodeKind::Array { length: Count::Fixed(count), form: ArrayForm::Text, .. } => count.checked_mul(8)?,
            NodeKind::Array { length: Count::Fixed(count), form: ArrayForm::Numbers { bits }, .. } => {
                count.checked_mul((*bits).into())?
            }
            NodeKind::Array { .. } | NodeKind::String | NodeKind::Variant { .. } => return None,
        };
        let bits = u32::try_from(bits).ok().filter(|&bits| u64::from(bits) <= MOST_FIXED_BITS)?;
        Some(Fixed { bits, align: node.align, offsets: offsets.into() })
    }

    /// The places of a type, if they are fixed.
    #[inline]
    pub fn fixed(&self, node: NodeId) -> Option<&Fixed> {
        self.fixed.get(node as usize)?.as_ref()
    }

    fn push(&mut self, align: u32, kind: NodeKind, uses: Option<Uses>) -> Result<NodeId, String> {
        if self.nodes.len() >= MOST_NODES {
            return Err(format!("types have more than {MOST_NODES} parts"));
        }
        self.nodes.push(Node { align, kind, uses });
        Ok(self.nodes.len() as NodeId - 1)
    }

    fn uses(&self, scope: Scope, name: Option<&str>, clock: Option<&str>) -> Option<Uses> {
        let name = name.map(|name| name.strip_prefix('_').unwrap_or(name));
        // A field of that name in a payload is one of the program's own.
        let is_of_tracer = matches!(scope, Scope::PacketHeader | Scope::PacketContext | Scope::EventHeader);
        let is_time = matches!(name, Some("timestamp" | "timestamp_begin" | "timestamp_end"));
        let by_name = is_time && is_of_tracer && self.clocks.len() < 2;
        let clock = match clock {
            Some(clock) => self.clocks.iter().position(|name| name == clock),
            // Tracers that map no field to the only clock name it so.
            None => by_name.then_some(0),
        };
        let uses = Uses {
            register: None,
            clock: clock.map(|clock| clock as u16),
            role: name.and_then(|name| scope.role(name)),
        };
        (uses != Uses::default()).then_some(uses)
    }

    fn node(&mut self, declared: &Declared, scopes: &mut Scopes, name: Option<&str>) -> Result<NodeId, String> {
        let scope = scopes.last().map_or(Scope::Payload, |(scope, _)| *scope);
        match declared {
            Declared::Integer(kind, clock) => {
                let uses = self.uses(scope, name, clock.as_deref());
                self.push(kind.align, NodeKind::Integer(*kind), uses)
            }
            Declared::Float(kind) => self.push(kind.align, NodeKind::Float(*kind), None),
            Declared::Enumeration(kind, labels) => {
                let uses = self.uses(scope, name, None);
                self.push(kind.align, NodeKind::Enumeration(*kind, labels.iter().cloned().collect()), uses)
            }
            Declared::String => self.push(8, NodeKind::String, None),
            Declared::Struct(declared) => self.structure(declared, scopes),
            Declared::Variant(tag, options) => self.variant(tag.as_deref(), options, scopes),
            Declared::Array(element, length) => self.array(element, length, scopes),
        }
    }

    fn structure(&mut self, declared: &Struct, scopes: &mut Scopes) -> Result<NodeId, String> {
        if let Some((_, levels)) = scopes.last_mut() {
            levels.push(Level::new());
        }
        let mut align = declared.align;
        let mut fields = Vec::with_capacity(declared.fields.len());
        for field in &declared.fields {
            let node = self.node(&field.kind, scopes, Some(&field.name))?;
            align = align.max(self.nodes[node as usize].align);
            if let Some(level) = scopes.last_mut().and_then(|(_, levels)| levels.last_mut()) {
                level.push((field.name.clone(), node));
            }
            fields.push(Named { raw: field.name.as_str().into(), node });
        }
        let node = self.push(align, NodeKind::Struct(fields.into()), None)?;
        // The outermost struct of a scope stays visible to the scopes after it.
        if let Some((_, levels)) = scopes.last_mut()
            && levels.len() > 1
        {
            levels.pop();
        }
        Ok(node)
    }

    fn variant(
        &mut self,
        tag: Option<&[String]>,
        options: &[DeclaredField],
        scopes: &mut Scopes,
    ) -> Result<NodeId, String> {
        let tag = tag.ok_or("a variant has no tag")?;
        let shown = tag.join(".");
        let tag =
            self.find(tag, scopes).ok_or_else(|| format!("the tag `{shown}` of a variant is no field before it"))?;
        let NodeKind::Enumeration(kind, labels) = &self.nodes[tag as usize].kind else {
            return Err(format!("the tag `{shown}` of a variant is no enumeration"));
        };
        let (signed, labels) = (kind.signed, labels.clone());
        let register = self.register(tag)?;
        let mut made = Vec::with_capacity(options.len());
        for option in options {
            let node = self.node(&option.kind, scopes, Some(&option.name))?;
            let plain = |name: &str| name.strip_prefix('_').unwrap_or(name).to_owned();
            let exact = labels.iter().any(|label| label.name == option.name);
            let is_of = |label: &&Label| match exact {
                true => label.name == option.name,
                false => plain(&label.name) == plain(&option.name),
            };
            let ranges = labels.iter().filter(is_of).cloned().collect();
            made.push(VariantOption { ranges, named: Named { raw: option.name.as_str().into(), node } });
        }
        // A variant has no alignment of its own (section 4.2.2).
        self.push(1, NodeKind::Variant { tag: register, signed, options: made.into() }, None)
    }

    fn array(&mut self, element: &Rc<Declared>, length: &Length, scopes: &mut Scopes) -> Result<NodeId, String> {
        let length = match length {
            Length::Fixed(length) => Count::Fixed(*length),
            Length::Field(path) => {
                let missing = || format!("the length `{}` of a sequence is no integer before it", path.join("."));
                let node = self.find(path, scopes).ok_or_else(missing)?;
                match &self.nodes[node as usize].kind {
                    NodeKind::Integer(kind) if !kind.signed => Count::Register(self.register(node)?),
                    _ => return Err(missing()),
                }
            }
        };
        let element = self.node(element, scopes, None)?;
        let node = &self.nodes[element as usize];
        let align = node.align;
        let form = match &node.kind {
            NodeKind::Integer(kind) if kind.is_text && kind.bits == 8 && kind.align == 8 => ArrayForm::Text,
            NodeKind::Integer(kind) if u32::from(kind.bits).is_multiple_of(kind.align) && node.uses.is_none() => {
                ArrayForm::Numbers { bits: kind.bits.into() }
            }
            NodeKind::Float(kind) if (32 << u32::from(kind.is_double)) % kind.align == 0 => {
                ArrayForm::Numbers { bits: 32 << u32::from(kind.is_double) }
            }
            _ => ArrayForm::Items,
        };
        self.push(align, NodeKind::Array { element, length, form }, None)
    }

    fn register(&mut self, node: NodeId) -> Result<Register, String> {
        let uses = self.nodes[node as usize].uses.get_or_insert_default();
        if let Some(register) = uses.register {
            return Ok(register);
        }
        let register = self.registers;
        self.registers = register.checked_add(1).ok_or("too many lengths and variants")?;
        uses.register = Some(register);
        Ok(register)
    }

    /// The field with this path (section 7.3.2): absolute, or from the innermost struct outwards, then in the scopes before.
    fn find(&self, path: &[String], scopes: &Scopes) -> Option<NodeId> {
        for (scope, levels) in scopes.iter().rev() {
            let prefix = scope.prefix();
            if path.len() > prefix.len() && path.iter().zip(prefix).all(|(part, prefix)| part == prefix) {
                return self.descend(levels.first()?, &path[prefix.len()..]);
            }
        }
        let levels = scopes.iter().rev().flat_map(|(_, levels)| levels.iter().rev());
        levels.into_iter().find_map(|level| self.descend(level, path))
    }

    fn descend(&self, level: &Level, path: &[String]) -> Option<NodeId> {
        let same = |name: &str, wanted: &str| name == wanted;
        let loose = |name: &str, wanted: &str| name.strip_prefix('_') == Some(wanted);
        let (first, rest) = path.split_first()?;
        let found = level.iter().rev().find(|(name, _)| same(name, first));
        let &(_, mut node) = found.or_else(|| level.iter().rev().find(|(name, _)| loose(name, first)))?;
        for part in rest {
            let NodeKind::Struct(fields) = &self.nodes[node as usize].kind else { return None };
            node = fields.iter().find(|field| &*field.raw == part || field.name() == part)?.node;
        }
        Some(node)
    }
}
