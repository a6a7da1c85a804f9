//! Any bytes as the arguments of a call.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::parse_arguments(data));
