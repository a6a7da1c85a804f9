//! Any bytes as a file, a source and a target of an edit.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::edit_text(data));
