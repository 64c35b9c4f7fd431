//! Readers of the exported formats that share nothing with their writers. Each gives what it read as folded stacks,
//! `thread;root;...;leaf` with the sum of their weights, so that formats can be compared with each other.

use std::collections::BTreeMap;
use std::io::Read;

use serde_json::Value;

/// Weight by folded stack.
pub type Folded = BTreeMap<String, u128>;

pub fn folded(text: &[u8]) -> Folded {
    let text = std::str::from_utf8(text).unwrap();
    let mut folded = Folded::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        *folded.entry(stack.to_owned()).or_default() += count.parse::<u128>().unwrap();
    }
    folded
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not an array: {value}"))
}

fn index(value: &Value) -> usize {
    value.as_u64().unwrap_or_else(|| panic!("not an index: {value}")) as usize
}

/// The profiles of speedscope's JSON whose name ends in `event`.
pub fn speedscope(document: &Value, event: &str) -> Folded {
    let frames = array(&document["shared"]["frames"]);
    let mut folded = Folded::new();
    for profile in array(&document["profiles"]) {
        let name = profile["name"].as_str().unwrap();
        let Some((thread, _)) = name.strip_suffix(event).and_then(|name| name.trim_end().rsplit_once(" (")) else {
            continue;
        };
        let (samples, weights) = (array(&profile["samples"]), array(&profile["weights"]));
        assert_eq!(samples.len(), weights.len());
        let mut total = 0;
        for (sample, weight) in samples.iter().zip(weights) {
            let names = array(sample).iter().map(|frame| frames[index(frame)]["name"].as_str().unwrap());
            let stack: Vec<&str> = std::iter::once(thread).chain(names).collect();
            let weight = u128::from(weight.as_u64().unwrap());
            *folded.entry(stack.join(";")).or_default() += weight;
            total += weight;
        }
        assert_eq!(u128::from(profile["endValue"].as_u64().unwrap()), total);
    }
    folded
}

/// The samples of a Firefox profile, with weights in ns if they are in ms.
pub fn firefox(document: &Value) -> Folded {
    let mut folded = Folded::new();
    for thread in array(&document["threads"]) {
        let strings = array(&thread["stringArray"]);
        let samples = &thread["samples"];
        for row in 0..index(&samples["length"]) {
            let mut names = Vec::new();
            let mut stack = &samples["stack"][row];
            while !stack.is_null() {
                let frame = index(&thread["stackTable"]["frame"][index(stack)]);
                let function = index(&thread["frameTable"]["func"][frame]);
                names.push(strings[index(&thread["funcTable"]["name"][function])].as_str().unwrap());
                stack = &thread["stackTable"]["prefix"][index(stack)];
            }
            names.push(thread["name"].as_str().unwrap());
            names.reverse();
            let weight = match (samples["weightType"].as_str().unwrap(), &samples["weight"]) {
                ("tracing-ms", weights) => (weights[row].as_f64().unwrap() * 1e6).round() as u128,
                (_, Value::Null) => 1,
                (_, weights) => u128::from(weights[row].as_u64().unwrap()),
            };
            *folded.entry(names.join(";")).or_default() += weight;
        }
        tables_are_whole(thread);
    }
    folded
}

/// Every column of a table has the table's length, and every index a row.
fn tables_are_whole(thread: &Value) {
    for table in ["samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"] {
        let length = index(&thread[table]["length"]);
        for (name, column) in thread[table].as_object().unwrap() {
            if let Some(column) = column.as_array() {
                assert_eq!(column.len(), length, "{table}.{name}");
            }
        }
    }
    for (row, prefix) in array(&thread["stackTable"]["prefix"]).iter().enumerate() {
        assert!(prefix.is_null() || index(prefix) < row, "stack {row} comes before its prefix");
    }
}

/// pprof's messages, as `profile.proto` declares them, for a decoder that knows nothing of our encoder.
pub mod pprof {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub duration_nanos: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub r#type: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub str: i64,
        #[prost(int64, tag = "3")]
        pub num: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(int64, tag = "6")]
        pub build_id: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }

    impl Profile {
        pub fn string(&self, index: i64) -> &str {
            &self.string_table[index as usize]
        }

        /// `name/unit` of each value.
        pub fn value_types(&self) -> Vec<String> {
            self.sample_type.iter().map(|of| format!("{}/{}", self.string(of.r#type), self.string(of.unit))).collect()
        }

        /// A location's functions with their lines, outermost first.
        pub fn functions(&self, location: &Location) -> Vec<(&str, i64)> {
            let function = |line: &Line| self.function.iter().find(|function| function.id == line.function_id).unwrap();
            location.line.iter().rev().map(|line| (self.string(function(line).name), line.line)).collect()
        }

        pub fn label(&self, sample: &Sample, key: &str) -> Option<String> {
            let label = sample.label.iter().find(|label| self.string(label.key) == key)?;
            Some(if label.num == 0 { self.string(label.str).to_owned() } else { label.num.to_string() })
        }
    }
}

pub fn pprof(packed: &[u8]) -> pprof::Profile {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    prost::Message::decode(&bytes[..]).unwrap()
}

/// The values of one type.
pub fn pprof_folded(profile: &pprof::Profile, value_type: &str) -> Folded {
    let column = profile.value_types().iter().position(|name| name == value_type).unwrap();
    let mut folded = Folded::new();
    for sample in &profile.sample {
        let mut names = vec![profile.label(sample, "thread").unwrap_or_default()];
        for id in sample.location_id.iter().rev() {
            let location = profile.location.iter().find(|location| location.id == *id).unwrap();
            names.extend(profile.functions(location).iter().map(|(name, _)| (*name).to_owned()));
        }
        *folded.entry(names.join(";")).or_default() += sample.value[column] as u128;
    }
    folded.retain(|_, weight| *weight > 0);
    folded
}
