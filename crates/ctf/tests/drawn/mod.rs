//! Traces drawn in the tests: metadata as text, packets as numbers.

/// Writes bits as a tracer does.
pub struct Bits {
    pub bytes: Vec<u8>,
    bit: usize,
    big: bool,
}

impl Bits {
    pub fn new(big: bool) -> Self {
        Self { bytes: Vec::new(), bit: 0, big }
    }

    pub fn align(&mut self, bits: usize) -> &mut Self {
        self.bit = self.bit.next_multiple_of(bits);
        self.bytes.resize(self.bit.div_ceil(8), 0);
        self
    }

    /// A number of `bits`, aligned to bytes if its size is in bytes.
    pub fn put(&mut self, bits: usize, value: u64) -> &mut Self {
        if bits.is_multiple_of(8) {
            self.align(8);
        }
        for at in 0..bits {
            let of_value = if self.big { bits - 1 - at } else { at };
            self.bytes.resize((self.bit + 1).div_ceil(8), 0);
            let of_byte = if self.big { 7 - self.bit % 8 } else { self.bit % 8 };
            self.bytes[self.bit / 8] |= ((value >> of_value & 1) as u8) << of_byte;
            self.bit += 1;
        }
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.align(8);
        text.bytes().chain([0]).for_each(|byte| _ = self.put(8, byte.into()));
        self
    }

    pub fn bits(&self) -> u64 {
        self.bit as u64
    }
}

/// Metadata with all kinds of fields, in the manner of LTTng.
pub fn metadata(big: bool) -> String {
    METADATA.replace("ORDER", if big { "be" } else { "le" })
}

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 3; align = 1; signed = true; } := int3_t;
trace {
    major = 1; minor = 8; byte_order = ORDER;
    packet.header := struct { uint32_t magic; uint32_t stream_id; uint64_t stream_instance_id; };
};
env { hostname = "box"; domain = "ust"; tracer_major = 2; };
clock { name = "monotonic"; freq = 1000000000; offset = 1000000000000000000; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := uint27_clock_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_t;
struct event_header_compact {
    enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
    variant <id> {
        struct { uint27_clock_t timestamp; } compact;
        struct { uint32_t id; uint64_clock_t timestamp; } extended;
    } v;
} align(8);
stream {
    id = 0;
    event.header := struct event_header_compact;
    packet.context := struct {
        uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t packet_seq_num; unsigned long events_discarded; uint32_t cpu_id;
    };
    event.context := struct { integer { size = 32; align = 8; signed = true; } _vpid; };
};
event { name = "p:all"; id = 3; stream_id = 0; loglevel = 13;
    fields := struct {
        int3_t _small; uint5_t _rest;
        floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _f;
        floating_point { exp_dig = 11; mant_dig = 53; align = 8; } _d;
        integer { size = 8; align = 8; encoding = UTF8; } _name[6];
        uint8_t __n_length; uint32_t _n[ __n_length ];
        string _s;
        struct { } _none;
        enum : uint8_t { "a" = 1, "b", "c" = 10 ... 20 } _e;
        variant <_e> { string a; struct { uint8_t x; string y; } b; uint8_t c; } _v;
        struct { uint8_t x; string y; } _pairs[2];
        uint8_t _grid[2][3];
        integer { size = 16; align = 8; byte_order = be; base = 16; } _net;
    };
};
event { name = "p:empty"; id = 70; stream_id = 0; fields := struct { }; };
"#;

/// A packet of the stream: number, counter of discarded events, times, and its events.
pub fn packet(big: bool, number: u64, discarded: u64, begin: u64, events: &[Drawn]) -> Vec<u8> {
    let build = |content: u64, size: u64| {
        let mut bits = Bits::new(big);
        bits.put(32, 0xc1fc_1fc1).put(32, 0).put(64, 9);
        bits.put(64, begin)
            .put(64, events.iter().map(Drawn::time).max().unwrap_or(begin))
            .put(64, content)
            .put(64, size);
        bits.put(64, number).put(64, discarded).put(32, 2);
        events.iter().for_each(|event| event.put(&mut bits));
        bits
    };
    let content = build(0, 0).bits();
    let size = (content + 200).next_multiple_of(8);
    let mut bytes = build(content, size).bytes;
    bytes.resize(size as usize / 8, 0);
    bytes
}

/// An event at a time.
pub enum Drawn {
    All(u64),
    Empty(u64),
}

impl Drawn {
    fn time(&self) -> u64 {
        let (Drawn::All(time) | Drawn::Empty(time)) = self;
        *time
    }

    fn put(&self, bits: &mut Bits) {
        bits.align(8);
        match self {
            Drawn::All(time) => {
                bits.put(5, 3).put(27, time & 0x7ff_ffff).put(32, 4711);
                bits.put(3, 0b110).put(5, 17);
                bits.put(32, 1.5_f32.to_bits().into()).put(64, (-0.25_f64).to_bits());
                "main\0x".bytes().for_each(|byte| _ = bits.put(8, byte.into()));
                bits.put(8, 3).put(32, 7).put(32, 8).put(32, 9);
                bits.text("text").put(8, 2).put(8, 5).text("five");
                bits.put(8, 1).text("one").put(8, 2).text("two");
                (1..=6).for_each(|at| _ = bits.put(8, at));
                bits.put(16, if bits.big { 0x1234 } else { 0x3412 });
            }
            Drawn::Empty(time) => {
                bits.put(5, 31).put(32, 70).put(64, *time).put(32, 4711);
            }
        }
    }
}
