//! Any bytes as the body of a request to the served APIs.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::served_request(data));
