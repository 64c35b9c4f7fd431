//! A column of texts that many rows share, as Parquet stores it: each text once, and a number for each row.
//!
//! The Parquet library looks each cell's text up to number it. Here the numbers are known, and writing a cell costs a few bits
//! (Parquet's encodings `RLE_DICTIONARY` and `RLE`).

use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Largest dictionary. The texts of a larger one are hardly shared.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// Shortest run of equal numbers that is stored as one.
const SHORTEST_RUN: usize = 8;

/// The cells of a column: texts, and the number of each present cell's text.
pub(super) struct Cells<'a> {
    pub texts: &'a [ByteArray],
    pub numbers: &'a [u32],
    /// Of a column with empty cells: 1 for each cell with a text, 0 for each other one.
    pub levels: Option<&'a [i16]>,
}

impl Cells<'_> {
    /// Size of the texts in the file, before compression.
    pub fn dictionary_bytes(&self) -> usize {
        self.texts.iter().map(|text| 4 + text.len()).sum()
    }

    fn dictionary(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.dictionary_bytes());
        for text in self.texts {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.data());
        }
        bytes
    }

    fn data(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(levels) = self.levels {
            bytes.extend_from_slice(&[0; 4]);
            pack(levels, |level| level as u32, 1, &mut bytes);
            let length = (bytes.len() - 4) as u32;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
        }
        let bits = u32::BITS - (self.texts.len().saturating_sub(1) as u32).leading_zeros();
        bytes.push(bits as u8);
        pack(self.numbers, |number| number, bits, &mut bytes);
        bytes
    }

    /// Writes the next column of a group.
    pub fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        description: ColumnDescPtr,
        level: ZstdLevel,
    ) -> Result<()> {
        let rows = self.levels.map_or(self.numbers.len(), <[i16]>::len);
        let mut chunk = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut chunk);
        let (dictionary, bytes) = compressed(&self.dictionary(), level)?;
        let dictionary = pages.write_page(CompressedPage::new(
            Page::DictionaryPage {
                buf: dictionary,
                num_values: self.texts.len() as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            },
            bytes,
        ))?;
        let (data, bytes) = compressed(&self.data(), level)?;
        let data = pages.write_page(CompressedPage::new(
            Page::DataPage {
                buf: data,
                num_values: rows as u32,
                encoding: Encoding::RLE_DICTIONARY,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            bytes,
        ))?;
        let chunk = Bytes::from(chunk.into_inner()?);
        let count = |page_type, encoding| PageEncodingStats { page_type, encoding, count: 1 };
        let metadata = ColumnChunkMetaData::builder(description)
            .set_compression(Compression::ZSTD(level))
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(vec![
                count(PageType::DICTIONARY_PAGE, Encoding::PLAIN),
                count(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY),
            ])
            .set_total_compressed_size((dictionary.compressed_size + data.compressed_size) as i64)
            .set_total_uncompressed_size((dictionary.uncompressed_size + data.uncompressed_size) as i64)
            .set_num_values(rows as i64)
            .set_dictionary_page_offset(Some(dictionary.offset as i64))
            .set_data_page_offset(data.offset as i64)
            .build()?;
        let mut index = OffsetIndexBuilder::new();
        index.append_row_count(rows as i64);
        index.append_offset_and_size(data.offset as i64, data.compressed_size as i32);
        index.append_unencoded_byte_array_data_bytes(None);
        let close = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(index.build()),
        };
        group.append_column(&chunk, close)
    }
}

/// Compressed bytes, and how many they were.
fn compressed(bytes: &[u8], level: ZstdLevel) -> Result<(Bytes, usize)> {
    let packed = zstd::bulk::compress(bytes, level.compression_level());
    Ok((packed.map_err(|error| ParquetError::External(Box::new(error)))?.into(), bytes.len()))
}

/// Numbers of `bits` each, as runs of equal ones and as groups of eight (Parquet's hybrid of RLE and bit packing).
fn pack<T: Copy + PartialEq>(cells: &[T], number: impl Fn(T) -> u32, bits: u32, bytes: &mut Vec<u8>) {
    // Cells before `packed` are written; those from there to `at` are in no long run.
    let (mut packed, mut at) = (0, 0);
    while let Some(&first) = cells.get(at) {
        let run = cells[at..].iter().take_while(|cell| **cell == first).count();
        // The last group before a run is filled from it.
        let filling = (8 - (at - packed) % 8) % 8;
        if run >= SHORTEST_RUN + filling {
            pack_groups(cells[packed..at + filling].iter().map(|cell| number(*cell)), bits, bytes);
            put_varint(((run - filling) as u64) << 1, bytes);
            bytes.extend_from_slice(&number(first).to_le_bytes()[..bits.div_ceil(8) as usize]);
            packed = at + run;
        }
        at += run;
    }
    pack_groups(cells[packed..].iter().map(|cell| number(*cell)), bits, bytes);
}

/// Numbers as groups of eight; the last group is filled with zeros.
fn pack_groups(numbers: impl ExactSizeIterator<Item = u32>, bits: u32, bytes: &mut Vec<u8>) {
    let count = numbers.len();
    if count == 0 {
        return;
    }
    let groups = count.div_ceil(8);
    put_varint((groups as u64) << 1 | 1, bytes);
    let (mut word, mut used) = (0_u64, 0);
    let zeros = std::iter::repeat_n(0, groups * 8 - count);
    for number in numbers.chain(zeros) {
        word |= u64::from(number) << used;
        used += bits;
        while used >= 8 {
            bytes.push(word as u8);
            word >>= 8;
            used -= 8;
        }
    }
}

fn put_varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(numbers: &[u32], bits: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack(numbers, |number| number, bits, &mut bytes);
        bytes
    }

    /// The numbers, as the specification reads them.
    fn unpacked(mut bytes: &[u8], bits: u32) -> Vec<u32> {
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            let (mut header, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let count = (header >> 1) as usize;
            if header & 1 == 0 {
                let width = bits.div_ceil(8) as usize;
                let mut value = [0; 4];
                value[..width].copy_from_slice(&bytes[..width]);
                numbers.extend(std::iter::repeat_n(u32::from_le_bytes(value), count));
                bytes = &bytes[width..];
            } else {
                for at in 0..count * 8 * bits as usize {
                    if at % bits as usize == 0 {
                        numbers.push(0);
                    }
                    let bit = u32::from(bytes[at / 8] >> (at % 8) & 1);
                    *numbers.last_mut().unwrap() |= bit << (at % bits as usize);
                }
                bytes = &bytes[count * bits as usize..];
            }
        }
        numbers
    }

    #[test]
    fn the_groups_of_the_specification_are_packed_from_the_least_bit() {
        // The example of Parquet's Encodings.md: 0 to 7 in 3 bits.
        assert_eq!(packed(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(packed(&[5; 100], 3), [0b1100_1000, 0b1, 5]);
        assert!(packed(&[], 3).is_empty());
    }

    #[test]
    fn numbers_in_runs_and_groups_are_read_back() {
        for bits in [1, 2, 5, 8, 9, 17, 31] {
            let mut numbers = Vec::new();
            let mut state = 1_u64;
            for _ in 0..200 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let number = (state >> 33) as u32 & ((1 << bits) - 1);
                let times = if state >> 62 == 0 { (state >> 40) as usize % 40 } else { 1 };
                numbers.extend(std::iter::repeat_n(number, times));
            }
            let mut read = unpacked(&packed(&numbers, bits), bits);
            assert!(read.len() < numbers.len() + 8 && read[numbers.len()..].iter().all(|&number| number == 0));
            read.truncate(numbers.len());
            assert_eq!(read, numbers, "{bits} bits");
        }
    }
}
