//! The datagrams between clients and the region, little-endian.

use super::scene::ObjectUpdate;

/// The action of an avatar, sent by its client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentUpdate {
    /// The avatar.
    pub agent: u32,
    /// The step.
    pub step: u32,
    /// Radians.
    pub heading: f32,
    /// m/s.
    pub speed: f32,
}

impl AgentUpdate {
    /// Size of its datagram.
    pub const BYTES: usize = 16;

    /// Encodes it as a datagram.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let words = [self.agent, self.step, self.heading.to_bits(), self.speed.to_bits()];
        let mut bytes = [0; Self::BYTES];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// The datagram that acknowledges it.
    pub fn acknowledgement(&self) -> [u8; 4] {
        self.step.to_le_bytes()
    }

    /// Decodes a datagram. `None` if it is something else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let [agent, step, heading, speed] = words(bytes);
        Some(Self { agent, step, heading: f32::from_bits(heading), speed: f32::from_bits(speed) })
    }
}

/// Bytes of an object update in a datagram of them.
const UPDATE_BYTES: usize = 32;
const HEADER_BYTES: usize = 8;

/// Most object updates in a datagram.
pub const UPDATES_A_DATAGRAM: usize = 8;

/// Size of the largest datagram of object updates.
pub const LARGEST_DATAGRAM: usize = HEADER_BYTES + UPDATES_A_DATAGRAM * UPDATE_BYTES;

/// Encodes object updates: a sequence number, their number, then each. Leaves out those that do not fit.
pub fn encode_object_updates(sequence: u32, updates: &[ObjectUpdate], bytes: &mut Vec<u8>) {
    let updates = &updates[..updates.len().min(UPDATES_A_DATAGRAM)];
    bytes.clear();
    bytes.extend_from_slice(&sequence.to_le_bytes());
    bytes.extend_from_slice(&(updates.len() as u32).to_le_bytes());
    for update in updates {
        bytes.extend_from_slice(&update.local_id.to_le_bytes());
        let numbers = update.position.into_iter().chain([update.rotation]).chain(update.colour);
        numbers.for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    }
}

/// Decodes the object updates of a datagram. Leaves out truncated ones.
pub fn decode_object_updates(bytes: &[u8]) -> impl Iterator<Item = ObjectUpdate> + '_ {
    let updates = bytes.get(HEADER_BYTES..).unwrap_or_default().as_chunks::<UPDATE_BYTES>().0;
    updates.iter().map(|bytes| {
        let [local_id, x, y, z, rotation, red, green, blue] = words(bytes);
        let float = f32::from_bits;
        ObjectUpdate {
            local_id,
            position: [x, y, z].map(float),
            rotation: float(rotation),
            colour: [red, green, blue].map(float),
        }
    })
}

fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u32; WORDS] {
    std::array::from_fn(|i| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_survive_encoding() {
        let agent = AgentUpdate { agent: 7, step: 70_000, heading: -1.5, speed: 3.25 };
        assert_eq!(AgentUpdate::decode(&agent.encode()), Some(agent));
        let update =
            |local_id| ObjectUpdate { local_id, position: [1.0, 2.0, 3.0], rotation: 0.5, colour: [0.1, 0.2, 0.3] };
        let mut bytes = Vec::new();
        encode_object_updates(9, &[update(1), update(2)], &mut bytes);
        assert_eq!(decode_object_updates(&bytes).collect::<Vec<_>>(), [update(1), update(2)]);
        encode_object_updates(9, &[update(1); 9], &mut bytes);
        assert_eq!((bytes.len(), decode_object_updates(&bytes).count()), (LARGEST_DATAGRAM, 8));
    }

    #[test]
    fn other_datagrams_decode_to_nothing() {
        assert_eq!(AgentUpdate::decode(&[0; 15]), None);
        assert_eq!(decode_object_updates(&[1, 2, 3]).count(), 0);
        let agent = AgentUpdate { agent: 7, step: 70_000, heading: 0.0, speed: 0.0 };
        assert_eq!(decode_object_updates(&agent.acknowledgement()).count(), 0);
        assert_eq!(decode_object_updates(&[0; HEADER_BYTES + 33]).count(), 1);
    }
}
