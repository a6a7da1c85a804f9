//! Any text as what is asked for, and as the tools it is asked of.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::find_tools(data));
