//! Any bytes as operations on a registry.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::registry_operations(data));
