//! Any bytes as a streamed response.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::responses_stream(data));
