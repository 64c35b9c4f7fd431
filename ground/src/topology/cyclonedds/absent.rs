//! Cyclone DDS in a program that was built without it. Its types have no values.

use std::sync::Arc;
use std::time::Duration;

use super::error::{DdsError, Token};
use crate::topology::message::Message;
use crate::topology::qos::{Listener, Qos, Reliability};

/// Has no value in this build.
pub enum Participant {}

/// Has no value in this build.
pub enum Reader {}

/// Has no value in this build.
pub enum Writer {}

/// Has no value in this build.
pub enum WaitSet {}

impl Participant {
    /// Fails in this build.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> Result<Arc<Self>, DdsError> {
        Err(DdsError::NotBuilt)
    }

    /// Cannot be called in this build.
    ///
    /// # Errors
    /// Never.
    pub fn reader(self: &Arc<Self>, _topic: &str, _qos: Qos) -> Result<Reader, DdsError> {
        match **self {}
    }

    /// Cannot be called in this build.
    ///
    /// # Errors
    /// Never.
    pub fn writer(self: &Arc<Self>, _topic: &str, _: Reliability, _readers: usize) -> Result<Writer, DdsError> {
        match **self {}
    }

    /// Cannot be called in this build.
    ///
    /// # Errors
    /// Never.
    pub fn wait_set(self: &Arc<Self>) -> Result<WaitSet, DdsError> {
        match **self {}
    }
}

impl Reader {
    /// Cannot be called in this build.
    pub fn take(&self) -> Option<Message> {
        match *self {}
    }

    /// Cannot be called in this build.
    pub fn listen(&self, _listener: Listener) {
        match *self {}
    }

    /// Cannot be called in this build.
    pub fn attach(&self, _wait_set: &WaitSet) {
        match *self {}
    }

    /// Cannot be called in this build.
    pub fn token(&self) -> Token {
        match *self {}
    }
}

impl Writer {
    /// Cannot be called in this build.
    pub fn write(&self, _message: &Message) {
        match *self {}
    }
}

impl WaitSet {
    /// Cannot be called in this build.
    pub fn wait(&self, _timeout: Option<Duration>) -> Vec<Token> {
        match *self {}
    }

    /// Cannot be called in this build.
    pub fn interrupt(&self) {
        match *self {}
    }
}
