//! [`SplitMix64`]: repeatable pseudorandom numbers.
//!
//! The same capture must give the same interval on every machine. So generators have fixed seeds, never the clock.

/// The generator of Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, 2014: 64 bits of state,
/// period 2^64, passes BigCrush.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator. Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number below `limit`, with a bias of less than `limit` / 2^64 (Lemire's multiplication).
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        assert!(limit > 0, "there is no number below 0");
        ((u128::from(self.next_u64()) * limit as u128) >> 64) as usize
    }

    /// Shuffles `items` uniformly (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's first outputs for seed 1234567.
    #[test]
    fn the_sequence_equals_the_reference() {
        let mut random = SplitMix64::new(1_234_567);
        let first: [u64; 3] = std::array::from_fn(|_| random.next_u64());
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_number_below_the_limit_occurs() {
        let mut random = SplitMix64::new(1);
        let mut seen = [0_u32; 5];
        (0..5_000).for_each(|_| seen[random.below(5)] += 1);
        assert!(seen.iter().all(|&count| (900..1_100).contains(&count)), "{seen:?}");
    }
}
