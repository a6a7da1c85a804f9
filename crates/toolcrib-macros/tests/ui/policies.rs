use toolcrib_macros::tool;

/// Cached, and changes things.
#[tool(cache)]
fn cached() -> String {
    String::new()
}

/// Tried again, and not idempotent.
#[tool(retry = 2)]
fn retried() -> String {
    String::new()
}

/// A rate in no known time.
#[tool(rate = "30/week")]
fn weekly() -> String {
    String::new()
}

/// A session's second call would not run.
#[tool(dedupe = "session", read_only)]
fn deduped_in_a_session() -> String {
    String::new()
}

/// A word that is none.
#[tool(dedupe = "always")]
fn deduped() -> String {
    String::new()
}

/// None could run.
#[tool(max_concurrent = 0)]
fn none() -> String {
    String::new()
}

fn main() {}
