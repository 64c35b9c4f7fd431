//! Checks as JUnit XML, which every service of continuous integration reads.
//!
//! There is no specification, but a form that all services read: `testsuites` of `testsuite`s of `testcase`s. A case that did
//! not pass holds a `failure`, an `error` or `skipped` (<https://github.com/testmoapp/junitxml>). Text is escaped, also
//! characters that XML cannot carry.

use std::io::{self, Write};

use crate::embed::markup;

/// Checks that belong together, e.g. those of one scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suite {
    /// Name of the suite.
    pub name: String,
    /// The checks, in order.
    pub cases: Vec<Case>,
    /// Notes on all checks; may be empty.
    pub notes: Vec<String>,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name of the check.
    pub name: String,
    /// Its result.
    pub result: CaseResult,
    /// The measured values as text; may be empty.
    pub output: String,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// It passed.
    Passed,
    /// It failed, for this reason.
    Failed(String),
    /// Inconclusive; counts as a failure.
    Error(String),
    /// Inconclusive; counts as no failure.
    Skipped(String),
}

/// Writes suites as one document.
///
/// # Errors
/// Those of writing to `out`.
pub fn write(name: &str, suites: &[Suite], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    let all = Counts::of(suites.iter().flat_map(|suite| &suite.cases));
    writeln!(out, "<testsuites name=\"{}\"{}>", markup(name), all.attributes())?;
    for suite in suites {
        let counts = Counts::of(&suite.cases);
        writeln!(out, "  <testsuite name=\"{}\"{}>", markup(&suite.name), counts.attributes())?;
        for case in &suite.cases {
            write_case(&suite.name, case, out)?;
        }
        if !suite.notes.is_empty() {
            let notes: Vec<_> = suite.notes.iter().map(|note| markup(note)).collect();
            writeln!(out, "    <system-out>{}</system-out>", notes.join("\n"))?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn write_case(suite: &str, case: &Case, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "    <testcase name=\"{}\" classname=\"{}\">", markup(&case.name), markup(suite))?;
    let element = |name: &str, reason: &str| format!("      <{name} message=\"{}\"/>", markup(reason));
    match &case.result {
        CaseResult::Passed => {}
        CaseResult::Failed(reason) => writeln!(out, "{}", element("failure", reason))?,
        CaseResult::Error(reason) => writeln!(out, "{}", element("error", reason))?,
        CaseResult::Skipped(reason) => writeln!(out, "{}", element("skipped", reason))?,
    }
    if !case.output.is_empty() {
        writeln!(out, "      <system-out>{}</system-out>", markup(&case.output))?;
    }
    writeln!(out, "    </testcase>")
}

#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Counts {
    fn of<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Self {
        let mut counts = Self::default();
        for case in cases {
            counts.tests += 1;
            match case.result {
                CaseResult::Passed => {}
                CaseResult::Failed(_) => counts.failures += 1,
                CaseResult::Error(_) => counts.errors += 1,
                CaseResult::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn attributes(&self) -> String {
        let Self { tests, failures, errors, skipped } = self;
        format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_its_outcome_and_suites_count_outcomes() {
        let case = |name: &str, result| Case { name: name.into(), result, output: String::new() };
        let cases = vec![
            case("rtf -3%", CaseResult::Passed),
            case("p99 +5%", CaseResult::Failed("12 ms → 14 ms".into())),
            case("function a<b>", CaseResult::Skipped("\"few\" runs".into())),
            Case { output: "a & b\u{1}".into(), ..case("rss", CaseResult::Error("unknown".into())) },
        ];
        let mut out = Vec::new();
        write(
            "gate",
            &[Suite { name: "shapes/steady".into(), cases, notes: vec!["<few>".into(), "runs".into()] }],
            &mut out,
        )
        .unwrap();
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"gate\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">
  <testsuite name=\"shapes/steady\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">
    <testcase name=\"rtf -3%\" classname=\"shapes/steady\">
    </testcase>
    <testcase name=\"p99 +5%\" classname=\"shapes/steady\">
      <failure message=\"12 ms → 14 ms\"/>
    </testcase>
    <testcase name=\"function a&lt;b&gt;\" classname=\"shapes/steady\">
      <skipped message=\"&quot;few&quot; runs\"/>
    </testcase>
    <testcase name=\"rss\" classname=\"shapes/steady\">
      <error message=\"unknown\"/>
      <system-out>a &amp; b\\u{1}</system-out>
    </testcase>
    <system-out>&lt;few&gt;
runs</system-out>
  </testsuite>
</testsuites>
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
