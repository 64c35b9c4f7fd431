//! Pseudo-random numbers that are the same in every run, and hashes of the simulated state.

/// SplitMix64 (Steele, Lea and Flood, 2014): the state walks by a constant, the output is the state mixed.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: mixed(seed) }
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.state)
    }

    /// The next number from 0 up to 1.
    pub fn next_unit(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The finaliser of SplitMix64: each bit of the result depends on every bit of the number.
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// A hash of numbers in order.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateHash(u64);

impl StateHash {
    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        self.0 = mixed(self.0.rotate_left(17) ^ number);
    }

    /// Adds the bits of numbers.
    pub fn add_all(&mut self, numbers: impl IntoIterator<Item = f32>) {
        numbers.into_iter().for_each(|number| self.add(u64::from(number.to_bits())));
    }

    /// The hash.
    pub fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.next_bits())
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        let mut random = Random::new(3);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.next_unit())));
    }

    #[test]
    fn a_hash_depends_on_the_order() {
        let hash = |numbers: [f32; 2]| {
            let mut hash = StateHash::default();
            hash.add_all(numbers);
            hash.get()
        };
        assert_eq!(hash([1.0, 2.0]), hash([1.0, 2.0]));
        assert_ne!(hash([1.0, 2.0]), hash([2.0, 1.0]));
    }
}
