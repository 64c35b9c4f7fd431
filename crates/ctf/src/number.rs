//! Kinds of numbers (CTF 1.8.3, section 4.1).

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte comes first.
    Little,
    /// The most significant byte comes first.
    Big,
}

/// An integer (section 4.1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerType {
    /// Size in bits, 1 to 64.
    pub bits: u8,
    /// Alignment in bits.
    pub align: u32,
    /// Whether it has a sign.
    pub signed: bool,
    /// Byte order.
    pub order: ByteOrder,
    /// The base in which to print it: 2, 8, 10 or 16.
    pub base: u8,
    /// Whether arrays of it are text.
    pub is_text: bool,
}

/// A floating-point number of 32 or 64 bits, as in IEEE 754 (section 4.1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatType {
    /// Whether it has 64 bits.
    pub is_double: bool,
    /// Alignment in bits.
    pub align: u32,
    /// Byte order.
    pub order: ByteOrder,
}
