//! What there is of Cyclone DDS in a program that was built without: nothing can be made, so that nothing need be done.

use std::sync::Arc;
use std::time::Duration;

use super::error::{DdsError, Token};
use crate::topology::message::Message;
use crate::topology::qos::{Listener, Qos, Reliability};

/// There is none.
pub enum Participant {}

/// There is none.
pub enum Reader {}

/// There is none.
pub enum Writer {}

/// There is none.
pub enum WaitSet {}

impl Participant {
    /// There is none.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> Result<Arc<Self>, DdsError> {
        Err(DdsError::NotBuilt)
    }

    /// There is none.
    ///
    /// # Errors
    /// Never.
    pub fn reader(self: &Arc<Self>, _topic: &str, _qos: Qos) -> Result<Reader, DdsError> {
        match **self {}
    }

    /// There is none.
    ///
    /// # Errors
    /// Never.
    pub fn writer(self: &Arc<Self>, _topic: &str, _: Reliability, _readers: usize) -> Result<Writer, DdsError> {
        match **self {}
    }

    /// There is none.
    ///
    /// # Errors
    /// Never.
    pub fn wait_set(self: &Arc<Self>) -> Result<WaitSet, DdsError> {
        match **self {}
    }
}

impl Reader {
    /// There is none.
    pub fn take(&self) -> Option<Message> {
        match *self {}
    }

    /// There is none.
    pub fn listen(&self, _listener: Listener) {
        match *self {}
    }

    /// There is none.
    pub fn attach(&self, _wait_set: &WaitSet) {
        match *self {}
    }

    /// There is none.
    pub fn token(&self) -> Token {
        match *self {}
    }
}

impl Writer {
    /// There is none.
    pub fn write(&self, _message: &Message) {
        match *self {}
    }
}

impl WaitSet {
    /// There is none.
    pub fn wait(&self, _timeout: Option<Duration>) -> Vec<Token> {
        match *self {}
    }

    /// There is none.
    pub fn interrupt(&self) {
        match *self {}
    }
}
