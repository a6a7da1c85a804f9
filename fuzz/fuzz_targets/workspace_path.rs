//! Any bytes as a path in a project with links.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::workspace_path(data));
