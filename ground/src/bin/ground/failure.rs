//! Why a subcommand fails.

use std::io;
use std::path::PathBuf;

use ground::server::LoadError;
use ground::topology::report::files::WriteError;
use ground::topology::schema::SchemaError;
use ground::topology::system::SystemError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("cannot create the world `{world}`: {source}")]
    World { world: String, source: io::Error },
    #[error("world `{0}` has no SDF description; use shapes, sensors or marina")]
    NoSdf(String),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("cannot run {path}: {source}")]
    Topology { path: PathBuf, source: SystemError },
    #[error("GROUND_EXECUTOR is `{0}`, which is no executor; use waitset, static or events")]
    Executor(String),
    #[error("cannot load {path} as tracetools of ROS 2 Jazzy or later: {source}")]
    Library { path: PathBuf, source: libloading::Error },
    #[error(transparent)]
    Report(#[from] WriteError),
    #[error("cannot write {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error("cannot write to standard output: {0}")]
    Write(io::Error),
    #[error("cannot connect to 127.0.0.1:{port}: {source}; start a simulator with `ground run --port {port}`")]
    Echo { port: u16, source: io::Error },
}
