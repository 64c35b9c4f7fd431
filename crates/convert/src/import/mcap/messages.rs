//! Message types with readings.

use super::cdr::Cdr;

/// A reading.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading<'a> {
    /// What is measured: a node, a sensor, a component.
    pub source: &'a str,
    /// Which of its figures.
    pub figure: &'a str,
    /// How readings were summed up, such as `average`; empty for a reading itself.
    pub of: &'static str,
    /// Its unit, as the message says.
    pub unit: &'a str,
    /// The number.
    pub number: f64,
    /// How the number becomes an integer, if its unit is not a time.
    pub scale: Scale,
}

/// The integers of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// They are whole.
    Whole,
    /// In thousandths.
    Thousandths,
}

impl Reading<'_> {
    /// ns of a unit of time.
    fn unit_ns(&self) -> Option<f64> {
        Some(match self.unit {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        })
    }

    /// In ns, in thousandths, or as it is. `None` if it is no number that fits.
    pub fn value(&self) -> Option<i64> {
        let scale = match self.scale {
            Scale::Whole => 1.0,
            Scale::Thousandths => self.unit_ns().unwrap_or(1e3),
        };
        let value = (self.number * scale).round();
        (value.is_finite() && value.abs() < i64::MAX as f64).then_some(value as i64)
    }

    /// The counter's name, with its unit.
    pub fn name(&self) -> String {
        let of = if self.of.is_empty() { String::new() } else { format!(" {}", self.of) };
        match (self.unit_ns(), self.unit) {
            _ if self.scale == Scale::Whole => format!("{}{of}", self.figure),
            (Some(_), _) => format!("{}{of}_ns", self.figure),
            (None, "") => format!("{}{of}, thousandths", self.figure),
            (None, unit) => format!("{}{of}, thousandths of {unit}", self.figure),
        }
    }
}

/// Reads a message to its end. `None` if it is not of this type.
pub(super) type Read = fn(&mut Cdr<'_>, &mut dyn FnMut(Reading<'_>)) -> Option<()>;

/// The reader of a type.
pub(super) fn of_type(name: &str) -> Option<Read> {
    match name {
        "statistics_msgs/msg/MetricsMessage" => Some(metrics),
        "diagnostic_msgs/msg/DiagnosticArray" => Some(diagnostics),
        _ => None,
    }
}

/// `StatisticDataType.msg`: the kinds of sums.
fn sum(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "average",
        2 => "minimum",
        3 => "maximum",
        4 => "standard deviation",
        5 => "samples",
        _ => return None,
    })
}

/// ```text
/// string measurement_source_name
/// string metrics_source
/// string unit
/// builtin_interfaces/Time window_start
/// builtin_interfaces/Time window_stop
/// StatisticDataPoint[] statistics      # uint8 data_type, float64 data
/// ```
fn metrics(cdr: &mut Cdr<'_>, add: &mut dyn FnMut(Reading<'_>)) -> Option<()> {
    let (source, figure, unit) = (cdr.text()?, cdr.text()?, cdr.text()?);
    cdr.skip_time()?;
    cdr.skip_time()?;
    for _ in 0..cdr.length(9)? {
        let (kind, number) = (cdr.byte()?, cdr.float()?);
        let Some(of) = sum(kind) else { continue };
        let scale = if of == "samples" { Scale::Whole } else { Scale::Thousandths };
        add(Reading { source, figure, of, unit, number, scale });
    }
    Some(())
}

/// ```text
/// std_msgs/Header header               # builtin_interfaces/Time stamp, string frame_id
/// DiagnosticStatus[] status            # byte level, string name, string message, string hardware_id, KeyValue[] values
/// ```
///
/// Values are texts: those that begin with a number are readings, and what follows it is the unit.
fn diagnostics(cdr: &mut Cdr<'_>, add: &mut dyn FnMut(Reading<'_>)) -> Option<()> {
    cdr.skip_time()?;
    cdr.text()?;
    for _ in 0..cdr.length(17)? {
        let (level, source) = (cdr.byte()?, cdr.text()?);
        let (_message, _hardware) = (cdr.text()?, cdr.text()?);
        let (number, scale) = (f64::from(level), Scale::Whole);
        add(Reading { source, figure: "level", of: "", unit: "", number, scale });
        for _ in 0..cdr.length(8)? {
            let (figure, value) = (cdr.text()?, cdr.text()?.trim());
            let in_number = |at: char| at.is_ascii_digit() || "+-.eE".contains(at);
            let end = value.find(|at| !in_number(at)).unwrap_or(value.len());
            if let Ok(number) = value[..end].parse() {
                let (unit, scale) = (value[end..].trim(), Scale::Thousandths);
                add(Reading { source, figure, of: "", unit, number, scale });
            }
        }
    }
    Some(())
}
