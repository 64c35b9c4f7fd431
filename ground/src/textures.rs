//! Textures: JPEG files, and the pixels that they are decoded to.

use std::sync::Arc;

use zune_jpeg::JpegDecoder;

use crate::account::{self, Counter, Timed};

/// Edge of every texture, in pixels.
const EDGE: u16 = 1024;

/// An image's pixels, 3 bytes each, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pixels: Vec<u8>,
}

impl Image {
    /// The mean brightness, 0 to 255, of `samples` pixels spread over the image.
    pub fn brightness(&self, samples: usize) -> f64 {
        let stride = (self.pixels.len() / 3 / samples.max(1)).max(1) * 3;
        let (mut sum, mut count) = (0_u64, 0_u64);
        for pixel in self.pixels.chunks_exact(3).step_by(stride / 3) {
            sum += pixel.iter().map(|&channel| u64::from(channel)).sum::<u64>();
            count += 3;
        }
        sum as f64 / count.max(1) as f64
    }
}

/// The texture file of this name: a noisy pattern that the name determines.
///
/// Worlds are self-contained, so their textures are generated when they are loaded.
pub fn texture_file(name: &str) -> Arc<[u8]> {
    let seed = name.bytes().fold(7_u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let edge = u32::from(EDGE);
    let wave = |x: u32, y: u32| {
        let (x, y) = (x as f32 / edge as f32, y as f32 / edge as f32);
        let turns = (seed % 9 + 3) as f32;
        let noise = (x.to_bits() ^ y.to_bits().rotate_left(seed % 32)).wrapping_mul(0x9e37_79b9) >> 27;
        ((x * turns).sin() * (y * turns * 1.7).cos() * 90.0 + 128.0) as u8 ^ noise as u8
    };
    let channels = |at: u32| [wave(at % edge, at / edge), wave(at / edge, at % edge), wave(at % 97 * 5, at / edge)];
    let pixels: Vec<u8> = (0..edge * edge).flat_map(channels).collect();
    let mut file = Vec::new();
    let encoded = jpeg_encoder::Encoder::new(&mut file, 85).encode(&pixels, EDGE, EDGE, jpeg_encoder::ColorType::Rgb);
    encoded.expect("an image of this size can be encoded to memory");
    file.into()
}

/// Name of [`decode_texture`] in accounts.
const DECODE_TEXTURE: &str = "ground::textures::decode_texture";

/// Number and CPU time of decoded textures so far.
pub fn decoding() -> Timed {
    account::timed(DECODE_TEXTURE)
}

/// Decodes a texture file.
#[inline(never)]
pub fn decode_texture(file: &[u8]) -> Image {
    stepscope_marks::scope!("decode_texture");
    let _timed = account::scope_of_long_call(DECODE_TEXTURE);
    account::count(Counter::Decodes);
    let mut decoder = JpegDecoder::new(std::io::Cursor::new(file));
    Image { pixels: decoder.decode().expect("texture files are made by this program") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_texture_is_decoded_to_its_pixels() {
        let image = decode_texture(&texture_file("buoy_0.jpg"));
        assert_eq!(image.pixels.len(), 1024 * 1024 * 3);
        let brightness = image.brightness(1000);
        assert!((64.0..192.0).contains(&brightness), "{brightness}");
    }

    #[test]
    fn files_of_different_names_differ_and_of_one_name_are_equal() {
        assert_eq!(texture_file("a"), texture_file("a"));
        assert_ne!(texture_file("a"), texture_file("b"));
    }
}
