//! A viewer of a live recording: its WebSocket, from the handshake to the end.
//!
//! The server sends messages of rows as binary, and news of the connection as text:
//!
//! | text | means |
//! |---|---|
//! | `{"kind":"start","dropped":N}` | forget all rows: the messages that follow have everything. N messages were lost |
//! | `{"kind":"answer","id":N,"done":true,"text":"..."}` | what became of the command with this id |
//! | `{"kind":"alive","seconds":N}` | the connection holds. The next of these comes after N seconds |
//! | `{"kind":"end"}` | the recording ended |
//!
//! The viewer sends text: `{"id":N,"command":"save","seconds":10}`; see [`Command`](crate::Command).

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::access::SUBPROTOCOL;
use crate::answers::{Answer, sentence};
use crate::feed::{Command, Feed, Subscription, Update, Updates};
use crate::shared::Shared;
use crate::{Data, Refusal};

/// A viewer that answers none of this many pings is gone.
const PINGS: u32 = 3;

/// Commands of one viewer that wait. More are not read until one is done.
const WAITING_COMMANDS: usize = 4;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// News of the connection, beside the messages of rows.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum News {
    Start { dropped: u64 },
    Answer { id: u64, done: bool, text: String },
    Alive { seconds: f64 },
    End,
}

/// A viewer's message.
#[derive(Deserialize)]
struct Asked {
    id: u64,
    #[serde(flatten)]
    command: Command,
}

/// Answers the handshake, and serves the viewer from then on.
pub(crate) fn upgrade(
    mut request: Request<Incoming>,
    shared: &Arc<Shared>,
    permit: Arc<OwnedSemaphorePermit>,
) -> Answer {
    if !shared.is_live {
        return sentence(StatusCode::NOT_FOUND, "No recording is live here.");
    }
    let Ok(viewer) = shared.viewers.clone().try_acquire_owned() else {
        return sentence(StatusCode::SERVICE_UNAVAILABLE, "There are too many viewers. Close one of them.");
    };
    let Ok(mut answer) = create_response_with_body(&request, Full::default) else {
        return sentence(StatusCode::BAD_REQUEST, "This address is for WebSockets.");
    };
    answer.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(view(upgraded, shared.clone(), (permit, viewer)));
    answer
}

async fn view(upgraded: OnUpgrade, shared: Arc<Shared>, _permits: (Arc<OwnedSemaphorePermit>, OwnedSemaphorePermit)) {
    let Ok(upgraded) = upgraded.await else { return };
    let limit = Some(shared.limits.command_bytes);
    let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit).read_buffer_size(4 << 10);
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (answers, answered) = mpsc::unbounded_channel();
    let waiting = Arc::new(Semaphore::new(WAITING_COMMANDS));
    let mut viewer = Viewer { socket, shared: shared.clone(), answers, waiting, heard: Instant::now() };
    // An error means that the viewer left, or sent nonsense.
    let _ = viewer.serve(answered).await;
    let _ = tokio::time::timeout(Duration::from_secs(1), viewer.socket.close(None)).await;
}

/// One viewer.
struct Viewer {
    socket: Socket,
    shared: Arc<Shared>,
    answers: UnboundedSender<News>,
    waiting: Arc<Semaphore>,
    /// When it last sent anything.
    heard: Instant,
}

impl Viewer {
    async fn serve(&mut self, mut answered: mpsc::UnboundedReceiver<News>) -> Result<(), Error> {
        let shared = self.shared.clone();
        let mut updates = self.start(0).await?;
        let mut pings = interval(shared.limits.ping_time);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shared.stopped() => return Ok(()),
                update = updates.next() => match update {
                    Update::Message(message) => self.socket.send(Message::Binary(message)).await?,
                    Update::Dropped(dropped) => {
                        drop(updates);
                        updates = self.start(dropped).await?;
                    }
                    Update::Ended => return self.tell(&News::End).await,
                },
                Some(news) = answered.recv() => self.tell(&news).await?,
                message = self.socket.next() => match message {
                    Some(message) => self.hear(message?),
                    None => return Ok(()),
                },
                _ = pings.tick() => {
                    if self.heard.elapsed() > shared.limits.ping_time * PINGS {
                        return Ok(());
                    }
                    self.socket.send(Message::Ping(Default::default())).await?;
                    // Scripts do not see pings.
                    self.tell(&News::Alive { seconds: shared.limits.ping_time.as_secs_f64() }).await?;
                }
            }
        }
    }

    /// Sends everything so far, and gives the queue of what follows.
    async fn start(&mut self, dropped: u64) -> Result<Updates, Error> {
        let subscribe = |data: &dyn Data| Ok(feed(data)?.subscribe());
        let subscribed = self.shared.workers.ask(subscribe).await;
        let Ok(Subscription { so_far, updates }) = subscribed else { return Err(Error::ConnectionClosed) };
        self.tell(&News::Start { dropped }).await?;
        for message in so_far {
            self.socket.send(Message::Binary(message)).await?;
        }
        Ok(updates)
    }

    async fn tell(&mut self, news: &News) -> Result<(), Error> {
        let text = serde_json::to_string(news).expect("news are text and numbers");
        self.socket.send(Message::text(text)).await
    }

    fn hear(&mut self, message: Message) {
        self.heard = Instant::now();
        let Message::Text(text) = message else { return };
        let answers = self.answers.clone();
        let answer = move |id, done, text| drop(answers.send(News::Answer { id, done, text }));
        let Asked { id, command } = match serde_json::from_str(&text) {
            Ok(asked) => asked,
            Err(error) => return answer(0, false, format!("This is no command: {error}.")),
        };
        let Ok(place) = self.waiting.clone().try_acquire_owned() else {
            return answer(id, false, "Earlier commands are not done yet. Try again later.".to_owned());
        };
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let done = shared.workers.ask(move |data| feed(data)?.command(command).map_err(Refusal::Failed)).await;
            drop(place);
            match done {
                Ok(text) => answer(id, true, text),
                Err(refusal) => answer(id, false, refusal.to_string()),
            }
        });
    }
}

fn feed(data: &dyn Data) -> Result<&dyn Feed, Refusal> {
    data.feed().ok_or(Refusal::Absent)
}
