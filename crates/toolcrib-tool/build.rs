//! Intentionally empty: `links` in Cargo.toml requires a build script.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
