//! The web tools against servers on loopback.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod crawling;
mod definitions;
mod extraction;
mod harness;
mod joints;
mod pages;
mod pictures;
mod searching;
