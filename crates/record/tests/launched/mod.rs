//! Launches and records programs, for several tests.

use std::time::Duration;

use stepscope_model::Capture;
use stepscope_record::launch::{Grace, Launch, Output};
use stepscope_record::{Options, RecordError, Recording, Until, finish};
use stepscope_symbolize::Symbolizer;

/// Records a program until its end.
pub fn record(test: &str, launch: Launch, options: &Options) -> Option<Capture> {
    let folder = tempfile::tempdir().unwrap();
    let (mut launched, recording) = match Recording::launch(launch.output(Output::Null), options, folder.path()) {
        Ok(started) => started,
        Err(RecordError::Refused { what, source }) => {
            println!("skipped: {test}: the kernel refuses to record {what}: {source}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    recording.wait(&Until { duration: Some(Duration::from_secs(60)), flag: None });
    launched.stop(&Grace::default()).unwrap();
    recording.stop().unwrap();
    let capture = finish(folder.path(), &mut Symbolizer::default()).unwrap();
    capture.check().unwrap();
    Some(capture)
}
