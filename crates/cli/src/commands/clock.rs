//! `stepscope clock`: the clocks of several machines.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use stepscope_lab::clock;
use stepscope_record::clock_exchange::{Server, measure};

use crate::arguments::duration;
use crate::failure::Failure;
use crate::output::{TableArguments, Target};
use crate::{interrupt, progress};

/// Compare the clocks of several machines, so that `merge` can align their captures: docs/several-machines.md.
#[derive(Debug, Args)]
pub struct Clock {
    #[command(subcommand)]
    command: ClockCommand,
}

#[derive(Debug, Subcommand)]
enum ClockCommand {
    Serve(Serve),
    Measure(Measure),
}

/// Answer requests for this machine's clock, by UDP, until Ctrl-C. Replies hold its time since the boot, its host name and the id of its
/// boot.
#[derive(Debug, Args)]
struct Serve {
    /// Address and port to answer on [default: port 4187 of all addresses].
    #[arg(value_name = "ADDRESS:PORT")]
    address: Option<SocketAddr>,
}

/// Measure the clock of another machine, on which `stepscope clock serve` runs: offset, drift and error.
#[derive(Debug, Args)]
struct Measure {
    /// The other machine.
    #[arg(value_name = "HOST[:PORT]")]
    peer: String,
    /// How long to measure. The drift needs some minutes.
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    duration: Duration,
    /// Also keep the exchanges in this file, for `stepscope merge --clocks`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: TableArguments,
}

impl Clock {
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            ClockCommand::Serve(serve) => serve.run(),
            ClockCommand::Measure(measure) => measure.run(),
        }
    }
}

impl Serve {
    fn run(self) -> Result<ExitCode, Failure> {
        let server = Server::bind(self.address)?;
        let address = server.address()?;
        let mut out = std::io::stdout();
        writeln!(out, "{address}").and_then(|()| out.flush()).map_err(Failure::writing("standard output"))?;
        eprintln!("answers for its clock; on the other machine: stepscope record --clock-of HOST ... (Ctrl-C ends it)");
        let answered = server.serve(&interrupt::flag())?;
        eprintln!("answered {answered} requests");
        Ok(ExitCode::SUCCESS)
    }
}

impl Measure {
    fn run(self) -> Result<ExitCode, Failure> {
        let interrupted = interrupt::flag();
        let measured = progress::of_step("measuring the clock", || measure(&self.peer, self.duration, &interrupted))?;
        if let Some(path) = &self.output {
            Target::File(path.clone()).write(|out| {
                serde_json::to_writer_pretty(&mut *out, &measured)?;
                writeln!(out).map_err(Failure::writing("the file"))
            })?;
        }
        self.table.print(vec![clock::table(&measured)])?;
        Ok(ExitCode::SUCCESS)
    }
}
