//! One connection: requests in, answers out.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_io_timeout::TimeoutStream;

use crate::access::{is_of_another_site, own_host};
use crate::answers::{self, Answer, content, secure, sentence};
use crate::encoded::Encoded;
use crate::live;
use crate::shared::Shared;
use crate::{Data, Refusal};

/// Longest name of a table.
const LONGEST_NAME: usize = 100;

/// Serves one connection until it ends, stalls, or the server is stopped.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, permit: OwnedSemaphorePermit) {
    // Answers are whole, so waiting for more to send only delays them.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(shared.limits.stalled_time));
    // A viewer's socket outlives the connection that it started as, and counts as one.
    let permit = Arc::new(permit);
    let service = service_fn(|request| {
        let (shared, permit) = (shared.clone(), permit.clone());
        async move { Ok::<_, Infallible>(answer(request, &shared, permit).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.head_time)
        .max_buf_size(shared.limits.head_bytes)
        .max_headers(shared.limits.headers)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // What the client did wrong is no concern of the server's user.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = shared.stopped() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn answer(request: Request<Incoming>, shared: &Arc<Shared>, permit: Arc<OwnedSemaphorePermit>) -> Answer {
    let host = own_host(request.headers()).map(str::to_owned);
    let mut answer = match &host {
        Ok(_) => route(request, shared, permit).await,
        Err(foreign) => sentence(StatusCode::FORBIDDEN, &foreign.to_string()),
    };
    secure(&mut answer, host.as_deref().ok());
    answer
}

async fn route(request: Request<Incoming>, shared: &Arc<Shared>, permit: Arc<OwnedSemaphorePermit>) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return sentence(StatusCode::METHOD_NOT_ALLOWED, "This server answers GET and HEAD only.");
    }
    if !request.body().is_end_stream() {
        return sentence(StatusCode::PAYLOAD_TOO_LARGE, "This server takes no content.");
    }
    if request.uri().authority().is_some() {
        return sentence(StatusCode::BAD_REQUEST, "This server is no proxy.");
    }
    let Shared { page, secrets, .. } = &**shared;
    let headers = request.headers();
    let fixed =
        |kind, text: &Encoded| content(headers, kind, text.for_client(headers), Some(secrets.instance.as_str()));
    match request.uri().path() {
        "/" => fixed(answers::HTML, &page.html),
        "/app.js" => fixed(answers::SCRIPT, &page.script),
        "/app.css" => fixed(answers::STYLE, &page.style),
        _ if is_of_another_site(headers) => sentence(StatusCode::FORBIDDEN, "The request comes from another page."),
        "/ticket" => match secrets.redeem(headers) {
            Some(token) => sentence(StatusCode::OK, token.as_str()),
            None => sentence(StatusCode::UNAUTHORIZED, USED_TICKET),
        },
        "/live" if !secrets.token.authorises_socket(headers) => without_token(),
        "/live" => live::upgrade(request, shared, permit),
        path => match path.strip_prefix("/data/") {
            Some(_) if !secrets.token.authorises(headers) => without_token(),
            Some(file) => match wanted(file) {
                Some(wanted) => data(&request, shared, file, wanted).await,
                None => absent(),
            },
            None => absent(),
        },
    }
}

const USED_TICKET: &str = "This address was opened before. Open the address that `stepscope view` printed.";

fn without_token() -> Answer {
    const TEXT: &str =
        "The token is missing, or it is not that of this server. Open the address that `stepscope view` printed last.";
    sentence(StatusCode::UNAUTHORIZED, TEXT)
}

fn absent() -> Answer {
    sentence(StatusCode::NOT_FOUND, "There is nothing at this address.")
}

/// What is asked of the data.
enum Wanted {
    Manifest,
    Verdict,
    Document,
    Table(String),
}

fn wanted(file: &str) -> Option<Wanted> {
    match file {
        "manifest.json" => Some(Wanted::Manifest),
        "verdict.json" => Some(Wanted::Verdict),
        "document.json" => Some(Wanted::Document),
        _ => file.strip_suffix(".parquet").filter(|name| is_name(name)).map(|name| Wanted::Table(name.to_owned())),
    }
}

impl Wanted {
    fn kind(&self) -> &'static str {
        match self {
            Wanted::Manifest | Wanted::Verdict | Wanted::Document => answers::JSON,
            Wanted::Table(_) => answers::PARQUET,
        }
    }

    fn made(&self, data: &dyn Data) -> Result<Encoded, Refusal> {
        match self {
            Wanted::Manifest => Ok(Encoded::compressed(&data.manifest()?)),
            Wanted::Verdict => Ok(Encoded::compressed(&data.verdict()?)),
            Wanted::Document => Ok(Encoded::compressed(&data.document()?)),
            Wanted::Table(name) => Ok(Encoded::of(data.table(name)?)),
        }
    }
}

/// The form of names: no part of one could mean another folder.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
    };
    name.len() <= LONGEST_NAME && name.split('/').all(is_part)
}

/// The file, which is made if it is not kept.
async fn data(request: &Request<Incoming>, shared: &Arc<Shared>, file: &str, wanted: Wanted) -> Answer {
    let kind = wanted.kind();
    let headers = request.headers();
    let version = (!shared.is_live).then(|| format!("{}-{file}", shared.secrets.instance.as_str()));
    let make = {
        let shared = shared.clone();
        let file = file.to_owned();
        async move {
            let made = shared.workers.ask(move |data| wanted.made(data));
            if shared.is_live { made.await } else { shared.cache.get(&file, made).await }
        }
    };
    // As a task of its own: a browser that gives up and asks again finds it done.
    let made = match tokio::spawn(make).await {
        Ok(Ok(made)) => made,
        // No error: the page asks for parts of the timeline in which nothing happened, and browsers report each 404.
        Ok(Err(Refusal::Absent)) => return sentence(StatusCode::NO_CONTENT, ""),
        Ok(Err(Refusal::Failed(why))) => return sentence(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(_) => return sentence(StatusCode::INTERNAL_SERVER_ERROR, "The server is ending."),
    };
    content(headers, kind, made.for_client(headers), version.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_way_out() {
        for name in ["0/samples", "12/lanes/3/17", "0/scope_names"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(LONGEST_NAME + 1);
        for name in ["", "/", "../x", "0/..", "0//x", "/etc", "..%2f", "%2e", "A", "0/x.y", "0\\x", &long] {
            assert!(!is_name(name), "{name}");
        }
    }
}
