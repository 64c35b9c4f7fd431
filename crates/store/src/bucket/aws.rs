//! The AWS CLI, which also reaches other servers by `AWS_ENDPOINT_URL`.

use std::path::Path;
use std::process::Command;

use super::Client;

/// `aws s3`.
pub(super) struct Aws;

fn s3(arguments: &[&str]) -> Command {
    let mut command = Command::new("aws");
    command.arg("s3").args(arguments);
    command
}

/// Excludes all, then includes the patterns: the last match counts.
fn only<'a>(command: &mut Command, patterns: impl Iterator<Item = &'a str>) {
    command.args(["--exclude", "*"]);
    patterns.for_each(|pattern| {
        command.args(["--include", pattern]);
    });
}

impl Client for Aws {
    fn program(&self) -> &'static str {
        "aws"
    }

    fn put_folder(&self, folder: &Path, url: &str, except: &[&str]) -> Command {
        let mut command = s3(&["cp", "--recursive", "--only-show-errors"]);
        command.arg(folder).arg(format!("{url}/"));
        except.iter().for_each(|pattern| {
            command.args(["--exclude", pattern]);
        });
        command
    }

    fn put_file(&self, file: &Path, url: &str) -> Command {
        let mut command = s3(&["cp", "--only-show-errors"]);
        command.arg(file).arg(url);
        command
    }

    fn mirror(&self, url: &str, folder: &Path, patterns: &[String]) -> Command {
        let mut command = s3(&["sync", "--delete", "--size-only", "--only-show-errors", &format!("{url}/")]);
        command.arg(folder);
        only(&mut command, patterns.iter().map(String::as_str));
        command
    }

    fn remove(&self, url: &str, patterns: &[&str]) -> Command {
        let mut command = s3(&["rm", "--recursive", "--only-show-errors", &format!("{url}/")]);
        only(&mut command, patterns.iter().copied());
        command
    }

    fn list(&self, url: &str) -> Command {
        s3(&["ls", "--recursive", &format!("{url}/")])
    }

    fn listed(&self, line: &str, url: &str) -> Option<(String, u64)> {
        // `2026-11-25 17:34:46       1234 PATH/IN/BUCKET`
        let rest = line.get(19..)?.trim_start();
        let (bytes, key) = rest.split_once(' ')?;
        let (_, prefix) = url.strip_prefix(super::SCHEME)?.split_once('/').unwrap_or(("", ""));
        let path = key.strip_prefix(prefix)?.trim_start_matches('/');
        Some((path.to_owned(), bytes.parse().ok()?))
    }

    fn is_empty(&self, stderr: &str) -> bool {
        // `aws s3 ls` of an address without files fails and prints nothing.
        stderr.trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_list_gives_the_path_below_the_address() {
        let line = "2026-11-25 17:34:46       1234 lab/store/runs/run=a b/part.parquet";
        let expected = Some(("run=a b/part.parquet".to_owned(), 1234));
        assert_eq!(Aws.listed(line, "s3://bucket/lab/store/runs"), expected);
        assert_eq!(Aws.listed("", "s3://bucket"), None);
    }
}
