//! Where a file of a run lies: the keys of partitions, and their values in paths.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The keys of partitions below a table, in the order of the folders.
pub const KEYS: [&str; 6] = ["project", "scenario", "phase", "variant", "date", "machine"];

/// The key of a run's folder.
pub const RUN_KEY: &str = "run";

/// The key of the folder of one repetition's capture.
pub const REPETITION: &str = "repetition";

/// Name of the table whose folders hold whole captures.
pub const CAPTURE_TABLE: &str = "capture";

/// The partition that a capture belongs to: a value for each of [`KEYS`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the project.
    pub project: String,
    /// The scenario.
    pub scenario: String,
    /// `loading` or `steady`; `whole` for a capture without phases.
    pub phase: String,
    /// The variant; `base` without variants.
    pub variant: String,
    /// Day of the start in UTC: `2026-11-25`.
    pub date: String,
    /// Host name.
    pub machine: String,
}

impl Cell {
    /// Its values, in the order of [`KEYS`].
    pub fn values(&self) -> [&str; 6] {
        [&self.project, &self.scenario, &self.phase, &self.variant, &self.date, &self.machine].map(String::as_str)
    }

    /// Its folder in a run, for this table.
    pub fn folder(&self, table: &str) -> String {
        let keys = KEYS.iter().zip(self.values());
        keys.fold(format!("table={}", encode(table)), |path, (key, value)| format!("{path}/{key}={}", encode(value)))
    }

    /// Its file of a table, from the run's folder.
    pub fn file(&self, table: &str) -> String {
        format!("{}/part.parquet", self.folder(table))
    }

    /// The folder of a capture of this cell, from the run's folder.
    pub fn capture_folder(&self, repetition: u32) -> String {
        format!("{}/{REPETITION}={repetition}", self.folder(CAPTURE_TABLE))
    }
}

/// A value as it stands in a path: every byte that is not a plain letter, digit, `.`, `_` or `-` as `%XX`, as Hive and Spark
/// write them. A leading dot, which hides files, is written so too; an empty value is Hive's null.
pub fn encode(value: &str) -> String {
    if value.is_empty() {
        return "__HIVE_DEFAULT_PARTITION__".to_owned();
    }
    let mut text = String::new();
    for (index, byte) in value.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || (byte == b'.' && index > 0);
        match is_plain {
            true => text.push(char::from(byte)),
            false => write!(text, "%{byte:02X}").expect("a string takes all text"),
        }
    }
    text
}

/// The value of a part of a path that [`encode`] wrote. Text that it did not write stays as it is.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut value, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                value.push(byte);
                at += 3;
            }
            None => {
                value.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_any_letters_stay_within_one_part_of_a_path() {
        for value in ["shapes", "a/b", "..", ".hidden", "50 %", "größe", "a=b", "x:y", "-"] {
            let text = encode(value);
            assert!(!text.contains(['/', ' ', ':', '=']) && !text.starts_with('.'), "{text}");
            assert_eq!(decode(&text), value);
        }
        assert_eq!(encode("a/b %"), "a%2Fb%20%25");
        assert_eq!(decode("%zz%4"), "%zz%4");
    }

    #[test]
    fn a_cell_has_one_folder_per_key() {
        let cell = Cell {
            project: "my sim".into(),
            scenario: "shapes".into(),
            phase: "steady".into(),
            variant: "base".into(),
            date: "2026-11-25".into(),
            machine: "lab1".into(),
        };
        let keys = "project=my%20sim/scenario=shapes/phase=steady/variant=base/date=2026-11-25/machine=lab1";
        assert_eq!(cell.file("hotspots"), format!("table=hotspots/{keys}/part.parquet"));
        assert_eq!(cell.capture_folder(2), format!("table=capture/{keys}/repetition=2"));
    }
}
