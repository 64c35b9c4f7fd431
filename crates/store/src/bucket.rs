//! Buckets that speak S3, through a client that is installed.
//!
//! A client of our own would need TLS, signatures, credentials of many kinds, retries and multipart uploads: some 3 MB of program
//! and a minute of building. Machines that use buckets have a client that is configured for them. [`CLIENTS`] lists
//! the ones that are used; the first that is installed is taken.

mod aws;
mod rclone;

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::program::is_installed;

/// The start of the address of a bucket.
pub const SCHEME: &str = "s3://";

/// The clients, in the order in which they are tried.
pub static CLIENTS: &[&dyn Client] = &[&aws::Aws, &rclone::Rclone];

/// A client of S3: a program with commands to copy. Addresses are `s3://BUCKET/PATH`.
pub trait Client: Sync {
    /// Name of the program.
    fn program(&self) -> &'static str;
    /// Copies all files of a folder, except those that a pattern matches.
    fn put_folder(&self, folder: &Path, url: &str, except: &[&str]) -> Command;
    /// Copies one file.
    fn put_file(&self, file: &Path, url: &str) -> Command;
    /// Makes a folder the same as the part of the address that these patterns match, and removes other files of these
    /// patterns. Files that are there with the same size are not copied again.
    fn mirror(&self, url: &str, folder: &Path, patterns: &[String]) -> Command;
    /// Removes what the patterns match.
    fn remove(&self, url: &str, patterns: &[&str]) -> Command;
    /// Lists all files below an address.
    fn list(&self, url: &str) -> Command;
    /// Path and size of a line of the list, if it is of a file. `url` is the listed address.
    fn listed(&self, line: &str, url: &str) -> Option<(String, u64)>;
    /// Whether the answer to a list means that there is nothing.
    fn is_empty(&self, stderr: &str) -> bool;
}

/// A bucket cannot be reached, read or written.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// No client is installed.
    #[error(
        "{0}: no client for S3 is installed; install the AWS CLI (`pip install awscli`) or rclone (`apt-get install rclone`)"
    )]
    NoClient(String),
    /// The client could not be started.
    #[error("{program}: {source}")]
    Start {
        /// The client.
        program: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The client failed.
    #[error("{url}: {program} failed: {message}")]
    Failed {
        /// The address.
        url: String,
        /// The client.
        program: &'static str,
        /// The end of what it printed.
        message: String,
    },
}

/// A bucket, or a folder in one, and the client to reach it with.
#[derive(Clone)]
pub struct Bucket {
    url: String,
    client: &'static dyn Client,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("url", &self.url).field("client", &self.client.program()).finish()
    }
}

impl Bucket {
    /// The bucket at this address, with the first client that is installed.
    ///
    /// # Errors
    /// If there is no client.
    pub fn at(url: &str) -> Result<Self, BucketError> {
        let url = url.trim_end_matches('/').to_owned();
        let client = CLIENTS.iter().find(|client| is_installed(client.program()));
        match client {
            Some(client) => Ok(Self { url, client: *client }),
            None => Err(BucketError::NoClient(url)),
        }
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn below(&self, path: &str) -> String {
        if path.is_empty() { self.url.clone() } else { format!("{}/{path}", self.url) }
    }

    /// Copies a folder to this path.
    ///
    /// # Errors
    /// If the client fails. Some of the files may have arrived.
    pub fn put_folder(&self, folder: &Path, path: &str, except: &[&str]) -> Result<(), BucketError> {
        let url = self.below(path);
        self.run(&url, self.client.put_folder(folder, &url, except)).map(drop)
    }

    /// Copies a file to this path. It appears whole or not at all.
    ///
    /// # Errors
    /// If the client fails.
    pub fn put_file(&self, file: &Path, path: &str) -> Result<(), BucketError> {
        let url = self.below(path);
        self.run(&url, self.client.put_file(file, &url)).map(drop)
    }

    /// Makes `folder` the same as the part of the bucket that the patterns match.
    ///
    /// # Errors
    /// If the client fails.
    pub fn mirror(&self, folder: &Path, patterns: &[String]) -> Result<(), BucketError> {
        self.run(&self.url, self.client.mirror(&self.url, folder, patterns)).map(drop)
    }

    /// Removes files below a path.
    ///
    /// # Errors
    /// If the client fails.
    pub fn remove(&self, path: &str, patterns: &[&str]) -> Result<(), BucketError> {
        let url = self.below(path);
        self.run(&url, self.client.remove(&url, patterns)).map(drop)
    }

    /// Paths, from the store, and sizes of all files below a path.
    ///
    /// # Errors
    /// If the client fails.
    pub fn list(&self, path: &str) -> Result<Vec<(String, u64)>, BucketError> {
        let url = self.below(path);
        let text = self.run(&url, self.client.list(&url))?;
        Ok(text.lines().filter_map(|line| self.client.listed(line, &url)).collect())
    }

    /// Runs the client; gives what it printed.
    fn run(&self, url: &str, mut command: Command) -> Result<String, BucketError> {
        let program = self.client.program();
        let output = command.output().map_err(|source| BucketError::Start { program, source })?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || self.client.is_empty(&stderr) {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let end = lines[lines.len().saturating_sub(3)..].join("; ");
        let message = if end.is_empty() { output.status.to_string() } else { end };
        Err(BucketError::Failed { url: url.to_owned(), program, message })
    }
}
