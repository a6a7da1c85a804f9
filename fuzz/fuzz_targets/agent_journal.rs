//! Any bytes as the journal of an agent's run, one row a line.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolcrib_testkit::fuzzing::agent_journal(data));
