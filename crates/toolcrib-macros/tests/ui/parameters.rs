use std::sync::Arc;
use toolcrib_macros::tool;

struct Database;

/// Takes a service by value.
#[tool]
fn owned_service(#[service] _db: Database) -> String {
    String::new()
}

/// Changes state that calls share.
#[tool]
fn mutable_state(#[state] _count: &mut u32) -> String {
    String::new()
}

/// Names a state.
#[tool]
fn named_state(#[state("count")] _count: &u32) -> String {
    String::new()
}

/// Takes a value of no name.
#[tool]
fn nameless_value(#[context] _user: String) -> String {
    String::new()
}

/// Takes one parameter from two places.
#[tool]
fn torn(#[service] #[context("user")] _user: Arc<String>) -> String {
    String::new()
}

fn main() {}
