//! Any bytes as a manifest.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::load_manifest(data));
