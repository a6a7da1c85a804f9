//! Any bytes as a streamed chat completion.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::chat_stream(data));
