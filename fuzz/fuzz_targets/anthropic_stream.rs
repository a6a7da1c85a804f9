//! Any bytes as a streamed message of Anthropic.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::anthropic_stream(data));
