//! What all connections share.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::HeaderMap;
use tokio::sync::{Semaphore, watch};

use crate::Page;
use crate::access::Token;
use crate::cache::Cache;
use crate::encoded::Encoded;
use crate::limits::Limits;
use crate::workers::Workers;

/// Random numbers of one server.
pub(crate) struct Secrets {
    /// Guards the data.
    pub token: Token,
    /// Is worth the token, once.
    pub ticket: Mutex<Option<Token>>,
    /// Part of each version that browsers keep: another server's tables are other tables.
    pub instance: Token,
}

impl Secrets {
    /// The token, for the ticket in a request's headers, which is worth nothing from then on.
    pub fn redeem(&self, headers: &HeaderMap) -> Option<&Token> {
        let mut ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        ticket.take_if(|ticket| ticket.admits(headers)).map(|_| &self.token)
    }
}

/// What all connections share.
pub(crate) struct Shared {
    pub limits: Limits,
    pub workers: Workers,
    pub viewers: Arc<Semaphore>,
    pub is_live: bool,
    pub page: CompressedPage,
    pub secrets: Secrets,
    pub cache: Cache,
    stopped: watch::Receiver<bool>,
}

/// The page, ready to be sent.
pub(crate) struct CompressedPage {
    pub html: Encoded,
    pub script: Encoded,
    pub style: Encoded,
}

impl CompressedPage {
    fn of(page: &Page) -> Self {
        let [html, script, style] =
            [page.html, page.script, page.style].map(|text| Encoded::compressed(text.as_bytes()));
        Self { html, script, style }
    }
}

impl Shared {
    pub fn new(
        page: &Page,
        secrets: Secrets,
        limits: Limits,
        workers: Workers,
        stopped: watch::Receiver<bool>,
        is_live: bool,
    ) -> Self {
        let viewers = Arc::new(Semaphore::new(limits.viewers));
        let cache = Cache::new(limits.kept_bytes);
        let page = CompressedPage::of(page);
        Self { limits, workers, viewers, is_live, page, secrets, cache, stopped }
    }

    /// Waits until the server must end.
    pub async fn stopped(&self) {
        // An error means that nobody is left who could stop it: it goes on.
        if self.stopped.clone().wait_for(|stopped| *stopped).await.is_err() {
            std::future::pending().await
        }
    }
}
