//! What the metadata describe: streams, events, clocks (CTF 1.8.3, sections 5 to 8).

use std::ops::Range;
use std::rc::Rc;

use crate::layout::{Layouts, Node, NodeId, NodeKind, Role, Scope, Scopes};
use crate::number::ByteOrder;
use crate::plan::{FixedEvent, Plan, ShortHeader};
use crate::tsdl::declared::{Block, Blocks, Declared, Setting};
use crate::tsdl::{SyntaxError, parse};

/// A clock (section 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// Its name, such as `monotonic`.
    pub name: String,
    /// Cycles per second.
    pub frequency: u64,
    /// Its origin: seconds since the epoch.
    pub offset_s: i64,
    /// Its origin: cycles after `offset_s`.
    pub offset_cycles: i64,
}

impl Clock {
    /// The time of a value in ns since the clock's origin: of LTTng's clocks, since 1970.
    pub fn ns(&self, cycles: u64) -> i64 {
        // Nearly all clocks: numbers of 64 bits suffice.
        if self.frequency == 1_000_000_000
            && let Some(ns) = self.offset_s.checked_mul(1_000_000_000)
            && let Some(ns) = ns.checked_add(self.offset_cycles)
            && let Some(ns) = ns.checked_add_unsigned(cycles)
        {
            return ns;
        }
        const NS: i128 = 1_000_000_000;
        let cycles = i128::from(self.offset_cycles) + i128::from(cycles);
        let ns = match self.frequency {
            1_000_000_000 => cycles,
            frequency => (cycles * NS).div_euclid(i128::from(frequency.max(1))),
        };
        let ns = ns + i128::from(self.offset_s) * NS;
        ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// A value of the trace's environment, such as `hostname`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentValue {
    /// An integer.
    Number(i64),
    /// A text.
    Text(String),
}

/// A kind of event (section 7.4).
#[derive(Debug)]
pub struct EventClass {
    /// Its name, such as `sched_switch` or `ros2:callback_start`.
    pub name: String,
    /// Its id within its stream class.
    pub id: u64,
    /// Its log level, if any.
    pub log_level: Option<i64>,
    /// Its stream class in [`Schema::streams`].
    pub(crate) stream: usize,
    pub(crate) context: Option<NodeId>,
    pub(crate) payload: Option<NodeId>,
    /// Where its parts are, if they are always in the same places.
    pub(crate) fixed: Option<FixedEvent>,
    /// Why events of it cannot be read.
    pub(crate) defect: Option<String>,
}

/// A kind of stream (section 7.4).
#[derive(Debug, Default)]
pub(crate) struct StreamClass {
    pub id: u64,
    pub packet_context: Option<NodeId>,
    pub header: Option<NodeId>,
    /// How the header is read; `None` if it is not as simple as tracers write it.
    pub header_plan: Option<Plan>,
    pub short_header: Option<ShortHeader>,
    pub header_align: u32,
    pub event_context: Option<NodeId>,
    pub clock: Option<u16>,
    /// Bits of the counter of discarded events.
    pub discarded_bits: u8,
    /// Event classes by id, in order.
    pub events: Vec<(u64, u32)>,
    /// Why its packets cannot be read.
    pub defect: Option<String>,
    scopes: Scopes,
}

impl StreamClass {
    pub fn event(&self, id: u64) -> Option<u32> {
        // Tracers number their events from 0 on.
        match self.events.get(id as usize) {
            Some((found, class)) if *found == id => Some(*class),
            _ => self.events.binary_search_by_key(&id, |event| event.0).ok().map(|at| self.events[at].1),
        }
    }
}

/// What a trace's metadata describe.
#[derive(Debug)]
pub struct Schema {
    /// The UUID, if any.
    pub uuid: Option<[u8; 16]>,
    /// The byte order of numbers that state none.
    pub byte_order: ByteOrder,
    /// The environment, in order: `hostname`, `tracer_name`, ...
    pub environment: Vec<(String, EnvironmentValue)>,
    /// The clocks.
    pub clocks: Vec<Clock>,
    /// The kinds of events.
    pub events: Vec<EventClass>,
    /// Statements of the metadata that cannot be understood, such as the last one of truncated metadata.
    pub defects: Vec<SyntaxError>,
    pub(crate) layouts: Layouts,
    pub(crate) packet_header: Option<NodeId>,
    pub(crate) streams: Vec<StreamClass>,
}

impl Schema {
    /// Reads metadata as text (TSDL).
    ///
    /// # Errors
    /// If there is neither a trace nor a stream nor an event.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let (blocks, mut defects) = parse(text);
        if blocks.trace.is_none() && blocks.streams.is_empty() && blocks.events.is_empty() {
            let nothing = || SyntaxError { line: 1, what: "no trace, stream or event is described".to_owned() };
            return Err(defects.into_iter().next().unwrap_or_else(nothing));
        }
        let mut clocks: Vec<Clock> = blocks.clocks.iter().map(clock).collect();
        let layouts = Layouts::new(clocks.iter().map(|clock| clock.name.clone()).collect());
        if clocks.is_empty() {
            clocks.push(Clock { name: String::new(), frequency: 1_000_000_000, offset_s: 0, offset_cycles: 0 });
        }
        let mut schema = Self {
            uuid: blocks.trace.as_ref().and_then(|trace| uuid(trace.text("uuid")?)),
            byte_order: match blocks.trace.as_ref().and_then(|trace| trace.text("byte_order")) {
                Some("be" | "network") => ByteOrder::Big,
                _ => ByteOrder::Little,
            },
            environment: blocks.environment.as_ref().map(environment).unwrap_or_default(),
            clocks,
            events: Vec::new(),
            defects: Vec::new(),
            layouts,
            packet_header: None,
            streams: Vec::new(),
        };
        schema.describe(&blocks, &mut defects);
        schema.defects = defects;
        Ok(schema)
    }

    /// A value of the environment, if it is a text.
    pub fn environment_text(&self, name: &str) -> Option<&str> {
        match &self.environment.iter().find(|(key, _)| key == name)?.1 {
            EnvironmentValue::Text(text) => Some(text),
            EnvironmentValue::Number(_) => None,
        }
    }

    fn describe(&mut self, blocks: &Blocks, defects: &mut Vec<SyntaxError>) {
        let mut scopes = Scopes::new();
        if let Some(trace) = &blocks.trace {
            let header = trace.declared("packet.header");
            self.packet_header = self.add(Scope::PacketHeader, header, &mut scopes, trace.line, defects);
        }
        let defect =
            defects.last().filter(|_| self.packet_header.is_none() && has_header(blocks)).map(ToString::to_string);
        for block in &blocks.streams {
            let mut stream = self.stream(block, scopes.clone(), defects);
            stream.defect = defect.clone().or(stream.defect);
            self.streams.push(stream);
        }
        // A trace may describe events alone (section 7.3).
        if self.streams.is_empty() {
            self.streams.push(StreamClass { scopes, defect, ..StreamClass::default() });
        }
        for block in &blocks.events {
            self.event(block, defects);
        }
        for stream in &mut self.streams {
            // The last one of an id counts; there are no two in a valid trace.
            stream.events.sort_by_key(|event| event.0);
            stream.events.dedup_by_key(|event| event.0);
            stream.scopes.clear();
        }
        self.layouts.fix();
        for stream in &mut self.streams {
            stream.header_plan = stream.header.and_then(|header| Plan::of(&self.layouts, header));
            stream.header_align = stream.header.map_or(1, |header| self.layouts.nodes[header as usize].align);
            let plan = stream.header_plan.as_ref();
            stream.short_header = plan.and_then(|plan| ShortHeader::of(plan, stream.header_align));
        }
        for event in self.events.iter_mut().filter(|event| event.defect.is_none()) {
            let of_stream = self.streams[event.stream].event_context;
            event.fixed = FixedEvent::of(&self.layouts, [of_stream, event.context, event.payload]);
        }
    }

    fn stream(&mut self, block: &Block, mut scopes: Scopes, defects: &mut Vec<SyntaxError>) -> StreamClass {
        let mut stream = StreamClass { id: block.number("id").unwrap_or(0) as u64, ..StreamClass::default() };
        let line = block.line;
        let before = defects.len();
        let start = self.layouts.nodes.len();
        let context = block.declared("packet.context");
        stream.packet_context = self.add(Scope::PacketContext, context, &mut scopes, line, defects);
        let of_context = start..self.layouts.nodes.len();
        stream.header = self.add(Scope::EventHeader, block.declared("event.header"), &mut scopes, line, defects);
        let of_header = of_context.end..self.layouts.nodes.len();
        let context = block.declared("event.context");
        stream.event_context = self.add(Scope::StreamEventContext, context, &mut scopes, line, defects);
        stream.clock = self.clock_of(of_header).or_else(|| self.clock_of(of_context.clone()));
        let is_discarded = |node: &&Node| node.uses.is_some_and(|it| it.role == Some(Role::Discarded));
        let discarded = self.layouts.nodes[of_context].iter().find(is_discarded).map(|node| &node.kind);
        stream.discarded_bits = if let Some(NodeKind::Integer(kind)) = discarded { kind.bits } else { 64 };
        stream.defect = defects.get(before).map(ToString::to_string);
        stream.scopes = scopes;
        stream
    }

    fn event(&mut self, block: &Block, defects: &mut Vec<SyntaxError>) {
        let id = block.number("id").unwrap_or(0) as u64;
        let wanted = block.number("stream_id").map(|id| id as u64);
        let stream = match wanted {
            Some(wanted) => self.streams.iter().position(|stream| stream.id == wanted),
            None => Some(0),
        };
        let Some(stream) = stream else {
            let what = format!("the event is of stream {}, which is not described", wanted.unwrap_or(0));
            return defects.push(SyntaxError { line: block.line, what });
        };
        let mut scopes = self.streams[stream].scopes.clone();
        let before = defects.len();
        let context = self.add(Scope::EventContext, block.declared("context"), &mut scopes, block.line, defects);
        let payload = self.add(Scope::Payload, block.declared("fields"), &mut scopes, block.line, defects);
        let class = self.events.len() as u32;
        self.events.push(EventClass {
            name: block.text("name").map_or_else(|| format!("event {id}"), str::to_owned),
            id,
            log_level: block.number("loglevel").map(|level| level as i64),
            stream,
            context,
            payload,
            fixed: None,
            defect: defects.get(before).map(ToString::to_string),
        });
        self.streams[stream].events.push((id, class));
    }

    fn add(
        &mut self,
        scope: Scope,
        declared: Option<&Rc<Declared>>,
        scopes: &mut Scopes,
        line: u32,
        defects: &mut Vec<SyntaxError>,
    ) -> Option<NodeId> {
        match self.layouts.add(scope, declared?, scopes) {
            Ok(node) => Some(node),
            Err(what) => {
                defects.push(SyntaxError { line, what });
                None
            }
        }
    }

    fn clock_of(&self, nodes: Range<usize>) -> Option<u16> {
        self.layouts.nodes[nodes].iter().find_map(|node| node.uses?.clock)
    }
}

fn has_header(blocks: &Blocks) -> bool {
    blocks.trace.as_ref().is_some_and(|trace| trace.declared("packet.header").is_some())
}

fn clock(block: &Block) -> Clock {
    let number = |key| block.number(key).map(|number| number.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    Clock {
        name: block.text("name").unwrap_or_default().to_owned(),
        frequency: number("freq").filter(|&frequency| frequency > 0).unwrap_or(1_000_000_000) as u64,
        offset_s: number("offset_s").unwrap_or(0),
        offset_cycles: number("offset").unwrap_or(0),
    }
}

fn environment(block: &Block) -> Vec<(String, EnvironmentValue)> {
    let value = |setting: &Setting| match setting {
        Setting::Number(number) => EnvironmentValue::Number(*number as i64),
        Setting::Text(text) | Setting::Name(text) => EnvironmentValue::Text(text.clone()),
    };
    block.values.iter().map(|(key, setting)| (key.clone(), value(setting))).collect()
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|&letter| letter != '-').collect();
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let mut uuid = [0; 16];
    for (at, byte) in uuid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(uuid)
}
