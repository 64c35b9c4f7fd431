//! Responses: their headers, and what may be kept by the browser.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};

use crate::encoded::Encoded;

pub(crate) type Answer = Response<Full<Bytes>>;

/// Formats that this server gives.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(crate) const STYLE: &str = "text/css; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
pub(crate) const PARQUET: &str = "application/vnd.apache.parquet";
const SENTENCE: &str = "text/plain; charset=utf-8";

/// An answer of one sentence, or an empty one.
pub(crate) fn sentence(status: StatusCode, text: &str) -> Answer {
    let body = if text.is_empty() { Bytes::new() } else { Bytes::from(format!("{text}\n")) };
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(SENTENCE));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    answer
}

/// An answer that the browser may keep as long as this server says that it is the same. Without a `version` it keeps none.
pub(crate) fn content(request: &HeaderMap, kind: &'static str, made: Encoded, version: Option<&str>) -> Answer {
    let mut answer = Response::new(Full::default());
    let headers = answer.headers_mut();
    match version.and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok()) {
        None => drop(headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"))),
        Some(tag) => {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
            let is_kept = request.get(IF_NONE_MATCH) == Some(&tag);
            headers.insert(ETAG, tag);
            if is_kept {
                *answer.status_mut() = StatusCode::NOT_MODIFIED;
                return answer;
            }
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if made.is_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    *answer.body_mut() = Full::new(made.bytes);
    answer
}

/// What keeps other pages from using the answer, and the page from using anything else. `host` is where the page may open its WebSocket:
/// older browsers do not count it as `'self'`.
pub(crate) fn secure(answer: &mut Answer, host: Option<&str>) {
    let socket = host.map_or_else(String::new, |host| format!(" ws://{host}"));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; worker-src blob:; connect-src 'self'{socket}; \
         img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = answer.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    let fixed = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
