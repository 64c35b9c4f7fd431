//! Every address, and every refusal.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stepscope_serve::{Data, Limits, Refusal, ServeError, Server};

use crate::{PAGE, Served};

const MANIFEST: &str = r#"{"title":"two tables"}"#;

/// Counts how often tables are made.
#[derive(Default)]
struct Tables {
    made: AtomicUsize,
}

impl Data for Tables {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        Ok(MANIFEST.into())
    }

    fn document(&self) -> Result<Vec<u8>, Refusal> {
        Ok(b"{}".to_vec())
    }

    fn table(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        self.made.fetch_add(1, Ordering::Relaxed);
        match name {
            "0/samples" => Ok(b"PAR1 samples".to_vec()),
            "0/lanes/3/17" => Ok(vec![7; 5 << 20]),
            "0/damaged" => Err(Refusal::Failed("samples.parquet: damaged.".to_owned())),
            "0/defect" => panic!("index out of bounds"),
            _ => Err(Refusal::Absent),
        }
    }
}

fn served() -> (Served, Arc<Tables>) {
    let tables = Arc::new(Tables::default());
    (Served::start(Limits::default(), tables.clone()), tables)
}

#[test]
fn the_page_and_all_tables_are_served() {
    let (served, _) = served();
    assert_eq!(served.get("/").body(), PAGE.html.as_bytes());
    assert_eq!(served.get("/?token=x").status(), 200);
    assert_eq!(served.get("/app.js").body(), PAGE.script.as_bytes());
    assert_eq!(served.get("/app.css").body(), PAGE.style.as_bytes());
    assert_eq!(served.get("/data/manifest.json").body(), MANIFEST.as_bytes());
    assert_eq!(served.get("/data/document.json").body(), b"{}");
    assert_eq!(served.get("/data/verdict.json").status(), 204);
    assert_eq!(served.get("/data/0/samples.parquet").body(), b"PAR1 samples");
    assert_eq!(served.get("/data/0/lanes/3/17.parquet").body().len(), 5 << 20);
    let absent = served.get("/data/0/waits.parquet");
    assert_eq!((absent.status(), absent.body().len()), (204, 0));
    let nothing = served.get("/nothing");
    assert_eq!((nothing.status(), nothing.header("content-type").as_deref()), (404, Some("text/plain; charset=utf-8")));
}

#[test]
fn the_page_needs_no_token_and_data_do() {
    let (served, tables) = served();
    let host = served.host();
    let without = |path| served.ask(path, &[("Host", &host)]).status();
    assert_eq!([without("/"), without("/app.js"), without("/app.css")], [200; 3]);
    for path in [
        "/data/manifest.json",
        "/data/verdict.json",
        "/data/document.json",
        "/data/0/samples.parquet",
        "/data/0/nothing.parquet",
        "/live",
    ] {
        assert_eq!(without(path), 401, "{path}");
        let wrong = "Bearer 00000000000000000000000000000000";
        assert_eq!(served.ask(path, &[("Host", &host), ("Authorization", wrong)]).status(), 401, "{path}");
    }
    // The token in the address is for the page: requests for data that carry it there are not answered.
    assert_eq!(without(&format!("/data/manifest.json?token={}", served.token)), 401);
    assert_eq!(tables.made.load(Ordering::Relaxed), 0);
}

#[test]
fn a_ticket_is_worth_the_token_once() {
    let (served, _) = served();
    let host = served.host();
    let redeem =
        |ticket: &str| served.ask("/ticket", &[("Host", &host), ("Authorization", &format!("Ticket {ticket}"))]);
    assert_ne!(served.ticket, served.token);
    assert_eq!(redeem("0").status(), 401);
    assert_eq!(served.ask("/ticket", &[("Host", &host)]).status(), 401);
    let bearer = format!("Bearer {}", served.ticket);
    assert_eq!(served.ask("/data/manifest.json", &[("Host", &host), ("Authorization", &bearer)]).status(), 401);

    let answer = redeem(&served.ticket);
    assert_eq!((answer.status(), answer.body()), (200, format!("{}\n", served.token).as_bytes()));
    assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"));
    assert_eq!(redeem(&served.ticket).status(), 401, "only once");
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let (served, tables) = served();
    let (port, bearer) = (served.port, format!("Bearer {}", served.token));
    for path in ["/", "/app.js", "/data/manifest.json", "/data/0/samples.parquet", "/live"] {
        for host in
            ["evil.example".to_owned(), format!("evil.example:{port}"), format!("127.0.0.1.evil.example:{port}")]
        {
            assert_eq!(served.ask(path, &[("Host", &host), ("Authorization", &bearer)]).status(), 403, "{host} {path}");
        }
        assert_eq!(served.ask(path, &[("Authorization", &bearer)]).status(), 403, "no host {path}");
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1", &format!("https://127.0.0.1:{port}")] {
            assert_eq!(served.get_with(path, &[("Origin", origin)]).status(), 403, "{origin} {path}");
        }
    }
    assert_eq!(served.get_with("/data/manifest.json", &[("Sec-Fetch-Site", "cross-site")]).status(), 403);
    assert_eq!(served.get_with("/data/manifest.json", &[("Sec-Fetch-Site", "same-site")]).status(), 403);
    assert_eq!(tables.made.load(Ordering::Relaxed), 0);

    let origin = format!("http://127.0.0.1:{port}");
    assert_eq!(
        served.get_with("/data/manifest.json", &[("Origin", &origin), ("Sec-Fetch-Site", "same-origin")]).status(),
        200
    );
    // ssh forwards another port to ours.
    assert_eq!(
        served.ask("/data/manifest.json", &[("Host", "localhost:8080"), ("Authorization", &bearer)]).status(),
        200
    );
    assert_eq!(served.get_with("/", &[("Sec-Fetch-Site", "cross-site")]).status(), 200, "a link leads to the page");
}

#[test]
fn no_path_leads_out_of_the_data() {
    let (served, tables) = served();
    let paths = [
        "/data/../../etc/passwd",
        "/data/..%2f..%2fetc%2fpasswd",
        "/data/%2e%2e/%2e%2e/etc/passwd.parquet",
        "/data/0/..%2fsamples.parquet",
        "/data/0/../samples.parquet",
        "/data/..\\samples.parquet",
        "/data//etc/passwd.parquet",
        "/data/0//samples.parquet",
        "/data/.parquet",
        "/data/",
        "/data",
        "/data/0/samples",
        "/data/0/samples.parquet/",
        "/data/0/SAMPLES.parquet",
        "/etc/passwd",
        "/app.js/..",
        "/../app.js",
        "/index.html",
    ];
    for path in paths {
        let status = served.get(path).status();
        assert!(matches!(status, 400 | 404), "{path}: {status}");
    }
    assert_eq!(tables.made.load(Ordering::Relaxed), 0, "no such name reaches the data");
    let long = format!("/data/{}.parquet", "a".repeat(3000));
    assert_eq!(served.get(&long).status(), 404);
}

#[test]
fn other_methods_contents_and_proxying_are_refused() {
    let (served, _) = served();
    let (host, token) = (served.host(), &served.token);
    let send = |first: &str, rest: &str| {
        served.send(
            format!("{first} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{rest}")
                .as_bytes(),
        )
    };
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"] {
        let answer = send(&format!("{method} /"), "\r\n");
        assert_eq!((answer.status(), answer.header("allow").as_deref()), (405, Some("GET, HEAD")), "{method}");
    }
    assert_eq!(send("GET /", "Content-Length: 3\r\n\r\nabc").status(), 413);
    assert_eq!(send("GET /", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").status(), 413);
    assert_eq!(send(&format!("GET http://{host}/"), "\r\n").status(), 400);
    assert_eq!(send(&format!("CONNECT {host}"), "\r\n").status(), 405);
    let head = send("HEAD /", "\r\n");
    assert_eq!((head.status(), head.body().len()), (200, 0));
}

#[test]
fn all_answers_have_the_headers_that_keep_others_out() {
    let (served, _) = served();
    for path in ["/", "/app.js", "/data/manifest.json", "/data/0/samples.parquet", "/nothing"] {
        let answer = served.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(policy.contains(&format!("connect-src 'self' ws://{};", served.host())), "{policy}");
        let expected = [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        for (name, value) in expected {
            assert_eq!(answer.header(name).as_deref(), Some(value), "{path}");
        }
        assert!(answer.header("access-control-allow-origin").is_none());
    }
}

#[test]
fn a_table_is_made_once_and_the_browser_may_keep_it() {
    let (served, tables) = served();
    let first = served.get("/data/0/samples.parquet");
    assert_eq!(first.header("cache-control").as_deref(), Some("private, no-cache"));
    let tag = first.header("etag").unwrap();
    served.get("/data/0/samples.parquet");
    let kept = served.get_with("/data/0/samples.parquet", &[("If-None-Match", &tag)]);
    assert_eq!((kept.status(), kept.body().len()), (304, 0));
    assert_eq!(tables.made.load(Ordering::Relaxed), 1);

    let other = self::served().0;
    let again = other.get_with("/data/0/samples.parquet", &[("If-None-Match", &tag)]);
    assert_eq!(again.status(), 200, "what another server gave is not valid here");
}

#[test]
fn text_is_compressed_for_those_who_take_it() {
    let (served, _) = served();
    let answer = served.get_with("/data/manifest.json", &[("Accept-Encoding", "gzip, br")]);
    assert_eq!(answer.header("content-encoding").as_deref(), Some("gzip"));
    assert_eq!(answer.body()[..2], [0x1f, 0x8b]);
    assert_eq!(served.get("/data/manifest.json").header("content-encoding"), None);
    assert_eq!(
        served.get_with("/app.js", &[("Accept-Encoding", "gzip")]).header("content-encoding").as_deref(),
        Some("gzip")
    );
}

#[test]
fn failures_are_answers_and_the_server_goes_on() {
    let (served, _) = served();
    let damaged = served.get("/data/0/damaged.parquet");
    assert_eq!((damaged.status(), damaged.body()), (500, &b"samples.parquet: damaged.\n"[..]));
    let defect = served.get("/data/0/defect.parquet");
    assert_eq!(defect.status(), 500);
    assert!(String::from_utf8_lossy(defect.body()).contains("defect of stepscope"));
    for _ in 0..5 {
        assert_eq!(served.get("/data/0/defect.parquet").status(), 500, "workers survive a panic");
    }
    assert_eq!(served.get("/data/0/samples.parquet").status(), 200);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = Server::bind(port).unwrap_err();
    assert!(matches!(error, ServeError::PortTaken(named) if named == port));
    assert!(error.to_string().contains("--port"));
}

#[test]
fn a_stopped_server_ends_also_with_open_connections() {
    let (mut served, _) = served();
    let idle = served.connect();
    assert_eq!(served.get("/").status(), 200);
    served.end().unwrap();
    assert!(std::net::TcpStream::connect(served.address()).is_err(), "nobody listens");
    drop(idle);
}
