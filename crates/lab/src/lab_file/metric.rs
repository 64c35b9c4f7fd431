//! `[metric.NAME]`: values that the program reports itself, in its output, a CSV file or a counter.

use std::path::PathBuf;

use stepscope_model::Better;

/// A metric of the user's own.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSettings {
    /// Key in the lab file: letters, digits, `_` and `-`.
    pub name: String,
    /// Where the program reports the values.
    pub source: MetricSource,
    /// Unit of the stored values; times are stored in `ns`.
    pub unit: String,
    /// Factor from reported to stored values.
    pub scale: f64,
    /// Which way it should go.
    pub better: Better,
}

/// Where a program reports the values of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricSource {
    /// Lines of the output: the value stands between these texts.
    Log {
        /// Text before the value.
        before: String,
        /// Text after the value.
        after: String,
    },
    /// A column of a CSV file with a header.
    Csv {
        /// The file.
        file: PathBuf,
        /// Header of the column.
        column: String,
    },
    /// A counter that the program marks.
    Counter(String),
}

impl MetricSettings {
    /// A metric with values in `unit`. Units of time are converted to nanoseconds.
    pub(super) fn new(name: &str, source: MetricSource, unit: Option<String>, better: Better) -> Self {
        let unit = unit.or_else(|| match &source {
            MetricSource::Log { after, .. } => {
                let word = after.split_whitespace().next()?;
                time_scale(word).map(|_| word.to_owned())
            }
            _ => None,
        });
        let unit = unit.unwrap_or_default();
        let (unit, scale) = match time_scale(&unit) {
            Some(scale) => ("ns".to_owned(), scale),
            None => (unit, 1.0),
        };
        Self { name: name.to_owned(), source, unit, scale, better }
    }

    /// The values in these lines of output, or rows of a CSV file below `header`.
    pub fn values(&self, text: &str, header: &str) -> Vec<f64> {
        let value = |line: &str| -> Option<f64> {
            match &self.source {
                MetricSource::Log { before, after } => {
                    let rest = line.split_once(before.as_str())?.1;
                    let value = if after.is_empty() {
                        rest.split_whitespace().next()?
                    } else {
                        rest.split_once(after.as_str())?.0
                    };
                    value.trim().parse().ok()
                }
                MetricSource::Csv { column, .. } => {
                    let index = header.split(',').position(|name| name.trim().trim_matches('"') == column)?;
                    line.split(',').nth(index)?.trim().trim_matches('"').parse().ok()
                }
                MetricSource::Counter(_) => None,
            }
        };
        let values = text.lines().filter_map(value).filter(|value| value.is_finite());
        values.map(|value| value * self.scale).collect()
    }
}

/// Nanoseconds in a unit of time.
fn time_scale(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" | "\u{b5}s" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_log_stands_where_the_pattern_says_and_times_are_nanoseconds() {
        let source = MetricSource::Log { before: "latency: ".into(), after: " ms".into() };
        let metric = MetricSettings::new("latency", source, None, Better::Lower);
        assert_eq!(metric.unit, "ns");
        let text = "start\n[info] latency: 1.5 ms\nlatency: soon ms\nlatency: 2 ms (late)\n";
        assert_eq!(metric.values(text, ""), [1_500_000.0, 2_000_000.0]);
    }

    #[test]
    fn a_column_of_a_csv_file_is_found_by_its_header() {
        let source = MetricSource::Csv { file: "out.csv".into(), column: "fps".into() };
        let metric = MetricSettings::new("fps", source, Some("1/s".into()), Better::Higher);
        assert_eq!(metric.values("1,59.5\n2,\n3,60\n", "frame, \"fps\""), [59.5, 60.0]);
    }
}
