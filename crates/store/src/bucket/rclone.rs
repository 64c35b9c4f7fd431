//! rclone, with a remote that takes its settings from the environment, as the AWS CLI does.

use std::env;
use std::path::Path;
use std::process::Command;

use super::Client;

/// `rclone`.
pub(super) struct Rclone;

/// `s3://BUCKET/PATH` as rclone writes it. The remote has no name, so it needs no configuration file.
fn remote(url: &str) -> String {
    format!(":s3:{}", url.strip_prefix(super::SCHEME).unwrap_or(url))
}

fn rclone(arguments: &[&str]) -> Command {
    let mut command = Command::new("rclone");
    command.args(arguments).args(["--s3-env-auth", "--s3-no-check-bucket"]);
    // By default, rclone needs minutes to give up a server that does not answer.
    command.args(["--retries", "2", "--low-level-retries", "3", "--contimeout", "10s"]);
    let endpoint = env::var("AWS_ENDPOINT_URL_S3").or_else(|_| env::var("AWS_ENDPOINT_URL"));
    match endpoint {
        Ok(endpoint) => command.args(["--s3-provider", "Other", "--s3-endpoint", &endpoint]),
        Err(_) => command.args(["--s3-provider", "AWS"]),
    };
    command
}

impl Client for Rclone {
    fn program(&self) -> &'static str {
        "rclone"
    }

    fn put_folder(&self, folder: &Path, url: &str, except: &[&str]) -> Command {
        let mut command = rclone(&["copy"]);
        command.arg(folder).arg(remote(url));
        except.iter().for_each(|pattern| {
            command.args(["--exclude", &deep(pattern)]);
        });
        command
    }

    fn put_file(&self, file: &Path, url: &str) -> Command {
        let mut command = rclone(&["copyto"]);
        command.arg(file).arg(remote(url));
        command
    }

    fn mirror(&self, url: &str, folder: &Path, patterns: &[String]) -> Command {
        let mut command = rclone(&["sync", "--size-only"]);
        command.arg(remote(url)).arg(folder);
        patterns.iter().for_each(|pattern| {
            command.args(["--include", &deep(pattern)]);
        });
        command
    }

    fn remove(&self, url: &str, patterns: &[&str]) -> Command {
        let mut command = rclone(&["delete", &remote(url)]);
        patterns.iter().for_each(|pattern| {
            command.args(["--include", &deep(pattern)]);
        });
        command
    }

    fn list(&self, url: &str) -> Command {
        rclone(&["lsf", "--recursive", "--files-only", "--format", "sp", "--separator", " ", &remote(url)])
    }

    fn listed(&self, line: &str, _: &str) -> Option<(String, u64)> {
        let (bytes, path) = line.split_once(' ')?;
        Some((path.to_owned(), bytes.parse().ok()?))
    }

    fn is_empty(&self, stderr: &str) -> bool {
        stderr.contains("directory not found")
    }
}

/// The AWS CLI's `*` matches slashes, which rclone writes as `**`.
fn deep(pattern: &str) -> String {
    format!("/{}", pattern.replace('*', "**"))
}
