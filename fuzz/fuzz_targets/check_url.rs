//! Any bytes as a URL, and as a value in one.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::check_url(data));
