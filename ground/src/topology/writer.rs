//! Writers of a topic, which deliver to its readers.

use std::sync::Arc;

use super::cyclonedds;
use super::loopback::Loopback;
use super::message::Message;
use super::qos::{PassBy, Reliability};
use super::reader::{Reader, Readers};
use crate::account::{Counter, count};

/// A writer of a topic.
pub enum Writer {
    /// Passes messages by pointer: "IPC on".
    IntraProcess(Readers),
    /// Sends bytes over the loopback interface: "IPC off".
    Loopback(Arc<Loopback>, u32, Reliability),
    /// Passes bytes to Cyclone DDS, which delivers within the process without the network.
    Dds(cyclonedds::Writer),
}

impl Writer {
    /// Publishes a message.
    pub fn publish(&self, message: Message, pass_by: PassBy) {
        count(Counter::MessagesPublished);
        match self {
            Writer::IntraProcess(readers) => {
                let message = if pass_by == PassBy::SharedPtr { message.clone() } else { message };
                hand_over(readers, message);
            }
            Writer::Loopback(transport, topic, reliability) => transport.send(*topic, &message, *reliability),
            Writer::Dds(writer) => writer.write(&message),
        }
    }
}

/// Delivers one message to all readers that share it, and copies to the others. The last reader gets the original if no
/// reader shares.
fn hand_over(readers: &[Arc<Reader>], message: Message) {
    let message = Arc::new(message);
    let owns = |reader: &&Arc<Reader>| reader.pass_by == PassBy::UniquePtr;
    let mut copies = readers.iter().filter(owns).count();
    if copies == readers.len() {
        copies = copies.saturating_sub(1);
    }
    for reader in readers {
        if owns(&reader) && copies > 0 {
            copies -= 1;
            reader.deliver(Arc::new(Message::clone(&message)));
        } else {
            reader.deliver(message.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Header, Payload};
    use super::super::qos::History;
    use super::*;

    fn message(number: u64) -> Message {
        let header = Header { writer: 0, number, stamp_ns: 0, period_ns: 1 };
        Message { header, payload: Payload::Int64(number as i64) }
    }

    fn numbers(reader: &Reader) -> Vec<u64> {
        std::iter::from_fn(|| reader.take()).map(|message| message.header.number).collect()
    }

    #[test]
    fn a_history_keeps_the_last_messages_in_order() {
        let [few, all] =
            [History::KeepLast(3), History::KeepAll].map(|history| Reader::new(history, PassBy::SharedPtr));
        let writer = Writer::IntraProcess(vec![few.clone(), all.clone()]);
        (0..5).for_each(|number| writer.publish(message(number), PassBy::UniquePtr));
        assert!(few.is_ready(&[]));
        assert_eq!(numbers(&few), [2, 3, 4]);
        assert!(!few.is_ready(&[]));
        assert_eq!(numbers(&all), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn unique_messages_are_not_shared() {
        let reader = |pass_by| Reader::new(History::KeepAll, pass_by);
        let handed_over = |pass: &[PassBy]| {
            let readers: Vec<_> = pass.iter().map(|pass_by| reader(*pass_by)).collect();
            hand_over(&readers, message(1));
            let taken: Vec<_> = readers.iter().filter_map(|reader| reader.take()).collect();
            taken.iter().map(Arc::strong_count).collect::<Vec<_>>()
        };
        use PassBy::{SharedPtr, UniquePtr};
        assert_eq!(handed_over(&[SharedPtr, SharedPtr]), [2, 2]);
        assert_eq!(handed_over(&[UniquePtr, SharedPtr, UniquePtr, SharedPtr]), [1, 2, 1, 2]);
        assert_eq!(handed_over(&[UniquePtr, UniquePtr]), [1, 1]);
        assert_eq!(handed_over(&[UniquePtr]), [1]);
    }
}
