//! Who may ask: the token, and what `Host` and `Origin` say of where a request comes from.

use std::fmt::{self, Write as _};

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN, SEC_WEBSOCKET_PROTOCOL};

/// The subprotocol of the WebSocket.
pub(crate) const SUBPROTOCOL: &str = "stepscope";

/// What a subprotocol that carries the token starts with.
const TOKEN_SUBPROTOCOL: &str = "token.";

/// Names of this machine's loopback. The port may differ from ours, because ssh forwards ports.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A secret of 128 random bits, which each server makes for itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Of the kernel's random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        let mut text = String::with_capacity(2 * bytes.len());
        bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("text can be written to"));
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the same time wherever the texts differ, so that time tells nothing of the token.
    fn is(&self, given: &[u8]) -> bool {
        let ours = self.0.as_bytes();
        let difference = ours.iter().zip(given).fold(0, |difference, (ours, given)| difference | (ours ^ given));
        given.len() == ours.len() && difference == 0
    }

    /// Whether the request's header `Authorization` has the token.
    pub fn authorises(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(AUTHORIZATION).map(|value| value.as_bytes()) else { return false };
        value.strip_prefix(b"Bearer ").is_some_and(|given| self.is(given))
    }

    /// Whether the request's header `Authorization` has this token as a ticket.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(AUTHORIZATION).map(|value| value.as_bytes()) else { return false };
        value.strip_prefix(b"Ticket ").is_some_and(|given| self.is(given))
    }

    /// Whether the subprotocols that a WebSocket offers have the token.
    pub fn authorises_socket(&self, headers: &HeaderMap) -> bool {
        let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
        offered
            .flat_map(|value| value.split(','))
            .any(|name| name.trim().strip_prefix(TOKEN_SUBPROTOCOL).is_some_and(|given| self.is(given.as_bytes())))
    }
}

/// Keeps the token out of logs.
impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(..)")
    }
}

/// Why a request comes from a place that may not ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    /// A name that somebody else may let point here (DNS rebinding).
    #[error(
        "Host is not this machine's loopback address. Open the address as `stepscope view` printed it, at 127.0.0.1 or localhost."
    )]
    Host,
    /// A page of somebody else asks.
    #[error("The request comes from another page.")]
    Origin,
}

/// The `Host` of a request that comes from our own page, or from a program such as curl.
pub(crate) fn own_host(headers: &HeaderMap) -> Result<&str, Foreign> {
    let mut hosts = headers.get_all(HOST).iter();
    let host =
        hosts.next().and_then(|value| value.to_str().ok()).filter(|host| is_loopback(host)).ok_or(Foreign::Host)?;
    if hosts.next().is_some() {
        return Err(Foreign::Host);
    }
    for origin in headers.get_all(ORIGIN) {
        if origin.as_bytes().strip_prefix(b"http://") != Some(host.as_bytes()) {
            return Err(Foreign::Origin);
        }
    }
    Ok(host)
}

/// Whether the browser says that another site's page asks. Links from elsewhere to the page itself are fine, requests for data are not.
pub(crate) fn is_of_another_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

fn is_loopback(host: &str) -> bool {
    LOOPBACK.iter().any(|name| match host.strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok() && !port.starts_with('+')),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_names_of_loopback_are_our_host() {
        for host in ["127.0.0.1:80", "localhost", "localhost:8080", "[::1]:9", "127.0.0.1"] {
            assert_eq!(own_host(&headers(&[("host", host)])), Ok(host));
        }
        let foreign = [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "127.0.0.1:",
            "127.0.0.1:+1",
            "127.0.0.1:99999",
        ];
        for host in foreign.into_iter().chain(["user@127.0.0.1", "", "0.0.0.0:80", "[::]:80", "2130706433"]) {
            assert_eq!(own_host(&headers(&[("host", host)])), Err(Foreign::Host), "{host}");
        }
        assert_eq!(own_host(&headers(&[])), Err(Foreign::Host));
        assert_eq!(own_host(&headers(&[("host", "localhost"), ("host", "localhost")])), Err(Foreign::Host));
    }

    #[test]
    fn an_origin_is_our_own_page_at_the_same_host_and_port() {
        let of = |origin| own_host(&headers(&[("host", "127.0.0.1:80"), ("origin", origin)])).map(str::to_owned);
        assert_eq!(of("http://127.0.0.1:80").as_deref(), Ok("127.0.0.1:80"));
        for origin in [
            "null",
            "http://127.0.0.1:81",
            "https://127.0.0.1:80",
            "http://localhost:80",
            "http://evil.example",
            "file://",
        ] {
            assert_eq!(of(origin), Err(Foreign::Origin), "{origin}");
        }
    }

    #[test]
    fn other_sites_are_reported_by_the_browser() {
        assert!(!is_of_another_site(&headers(&[])));
        assert!(!is_of_another_site(&headers(&[("sec-fetch-site", "same-origin")])));
        assert!(is_of_another_site(&headers(&[("sec-fetch-site", "cross-site")])));
        assert!(is_of_another_site(&headers(&[("sec-fetch-site", "same-site")])));
    }

    #[test]
    fn only_the_whole_token_authorises() {
        let token = Token("0123456789abcdef".to_owned());
        let by = |value: &str| token.authorises(&headers(&[("authorization", value)]));
        assert!(by("Bearer 0123456789abcdef"));
        let wrong = [
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
        ];
        wrong.iter().for_each(|value| assert!(!by(value), "{value}"));
        assert!(!token.authorises(&headers(&[])));

        let socket = |value: &str| token.authorises_socket(&headers(&[("sec-websocket-protocol", value)]));
        assert!(socket("stepscope, token.0123456789abcdef"));
        assert!(!socket("stepscope, token."));
        assert!(!socket("stepscope"));
    }

    #[test]
    fn tokens_are_random_and_not_printed() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.as_str().len(), 32);
        assert!(!format!("{one:?}").contains(one.as_str()));
    }
}
