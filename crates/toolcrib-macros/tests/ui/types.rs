use toolcrib_macros::tool;

struct NotAResult;

/// Returns something unknown.
#[tool]
fn wrong_result() -> NotAResult {
    NotAResult
}

/// Returns a type without a name.
#[tool]
fn nameless() -> impl Into<String> {
    ""
}

fn main() {}
