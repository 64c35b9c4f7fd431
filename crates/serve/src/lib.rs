//! The app's server: gives one user's browser the page and the tables of what is viewed, and messages of a live recording.
//!
//! It listens on loopback alone. Other users and other pages of the browser can reach loopback too, so a random token guards all data, and
//! requests for another host or from another origin are refused. It reads no files: what [`Data`] gives is all that it serves.
//!
//! ```no_run
//! use stepscope_serve::{Data, Page, Refusal, Server};
//!
//! struct Empty;
//! impl Data for Empty {
//!     fn manifest(&self) -> Result<Vec<u8>, Refusal> {
//!         Ok(br#"{"version":1,"title":"nothing","captures":[],"live":false}"#.to_vec())
//!     }
//!     fn table(&self, _name: &str) -> Result<Vec<u8>, Refusal> {
//!         Err(Refusal::Absent)
//!     }
//! }
//!
//! let server = Server::bind(0)?;
//! println!("{}", server.url());
//! let stop = server.stop();
//! std::thread::spawn(move || stop.stop());
//! server.run(&Page { html: "<p>Hello", script: "", style: "" }, &Empty)?;
//! # Ok::<(), stepscope_serve::ServeError>(())
//! ```
//!
//! # Addresses
//!
//! | address | gives | token |
//! |---|---|---|
//! | `/` | the page | no |
//! | `/app.js`, `/app.css` | its script and style | no |
//! | `/data/manifest.json` | the manifest, as JSON | yes |
//! | `/data/verdict.json` | the first sections of the report, if they are there sooner than the rest; else 204 | yes |
//! | `/data/document.json` | the report, if the manifest is without it | yes |
//! | `/data/NAME.parquet` | the table NAME, e.g. `0/samples` or `0/lanes/3/17`; 204 without content if it has no rows | yes |
//! | `/ticket` | the token, once, for the ticket of [`Server::ticket_url`] | no |
//! | `/live` | a WebSocket with the messages of a live recording: see [`feed`] | yes |
//!
//! The token goes in the header `Authorization: Bearer TOKEN`. A WebSocket offers it as the subprotocol `token.TOKEN`, beside `stepscope`,
//! because browsers let a page set no header there.

mod access;
mod answers;
mod cache;
mod connection;
mod encoded;
pub mod feed;
mod limits;
mod live;
mod server;
mod shared;
mod workers;

pub use self::feed::{Command, Feed, Subscription, Updates, Viewers};
pub use self::limits::Limits;
pub use self::server::{ServeError, Server, Stop};

/// The page around the data: the same for all data.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The document, which asks for `app.js` and `app.css`.
    pub html: &'static str,
    /// Its script.
    pub script: &'static str,
    /// Its style.
    pub style: &'static str,
}

/// What a server gives to the page. Called from several threads at once; calls may take long.
pub trait Data: Sync {
    /// The manifest as JSON.
    ///
    /// # Errors
    /// If it cannot be made.
    fn manifest(&self) -> Result<Vec<u8>, Refusal>;

    /// The report, where it takes longer than the tables: the manifest has none of its sections then.
    ///
    /// # Errors
    /// If the manifest has all of it, or it cannot be made.
    fn document(&self) -> Result<Vec<u8>, Refusal> {
        Err(Refusal::Absent)
    }

    /// The report with its first sections only, where these are there sooner than the rest.
    ///
    /// # Errors
    /// If they are not, or they cannot be made.
    fn verdict(&self) -> Result<Vec<u8>, Refusal> {
        Err(Refusal::Absent)
    }

    /// A table as Parquet, by its name, e.g. `0/samples` or `0/lanes/3/17`. Names have lower-case ASCII letters, digits, `_`, `-` and `/` only.
    ///
    /// # Errors
    /// If there is no such table, or it cannot be made.
    fn table(&self, name: &str) -> Result<Vec<u8>, Refusal>;

    /// The messages of a recording that goes on. With a feed, manifest and tables change, so none of them is kept.
    fn feed(&self) -> Option<&dyn Feed> {
        None
    }
}

/// Why there is no table.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// No table has this name.
    #[error("There is no such table.")]
    Absent,
    /// It cannot be made. The sentence says why.
    #[error("{0}")]
    Failed(String),
}
