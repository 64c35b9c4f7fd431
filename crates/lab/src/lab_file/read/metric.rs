//! `[metric.NAME]`: where the program reports a value of its own.

use stepscope_model::Better;

use super::super::decode::{Field, Problems};
use super::super::metric::{MetricSettings, MetricSource};
use super::values::{Reader, check_name};

impl Reader {
    pub(super) fn metrics(&self, field: Option<Field>, problems: &mut Problems) -> Vec<MetricSettings> {
        let Some(mut all) = self.section(field, "metric", problems) else { return Vec::new() };
        let named = all.take_all();
        named.into_iter().filter_map(|(name, field)| self.metric(name, &field, problems)).collect()
    }

    fn metric(&self, name: &str, field: &Field, problems: &mut Problems) -> Option<MetricSettings> {
        const SOURCE: &str = r#"log = "latency: {value} ms", csv = "FILE" with column = "NAME", or counter = "NAME""#;
        check_name("metric", name, field.key_span.clone(), problems);
        let mut fields = field.table(problems, format!("[metric.{name}]"), &format!("a table with {SOURCE}"))?;
        let mut sources = Vec::new();
        if let Some(log) = fields.take("log")
            && let Some(pattern) = log.string(problems, r#"a text with {value}, e.g. "latency: {value} ms""#)
        {
            match pattern.split_once("{value}") {
                Some((before, after)) if !(before.is_empty() && after.is_empty()) => {
                    sources.push(MetricSource::Log { before: before.to_owned(), after: after.to_owned() });
                }
                _ => problems.add(log.span(), "`log` needs {value} and text beside it, e.g. \"latency: {value} ms\""),
            }
        }
        let column = fields.take("column").and_then(|field| field.string(problems, "the header of a column"));
        if let Some(csv) = fields.take("csv")
            && let Some(file) = csv.string(problems, "the path of a CSV file")
        {
            match column {
                Some(column) => sources.push(MetricSource::Csv { file: self.folder.join(file), column }),
                None => problems.add(csv.span(), "`csv` needs a `column`: the header of the column with the values"),
            }
        }
        if let Some(counter) = fields.take("counter").and_then(|field| field.string(problems, "the name of a counter"))
        {
            sources.push(MetricSource::Counter(counter));
        }
        let unit = fields.take("unit").and_then(|field| field.string(problems, r#"a unit, e.g. "ms""#));
        let better = fields.take("better").and_then(|field| {
            let text = field.string(problems, r#""lower" or "higher""#)?;
            match text.as_str() {
                "lower" => Some(Better::Lower),
                "higher" => Some(Better::Higher),
                _ => {
                    problems.add(field.span(), r#"`better` must be "lower" or "higher""#);
                    None
                }
            }
        });
        fields.finish(problems);
        if sources.len() != 1 {
            problems.add(field.key_span.clone(), format!("[metric.{name}] needs one source: {SOURCE}"));
        }
        Some(MetricSettings::new(name, sources.pop()?, unit, better.unwrap_or_default()))
    }
}
