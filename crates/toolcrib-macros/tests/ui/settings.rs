use toolcrib_macros::tool;

/// Misspelt.
#[tool(readonly)]
fn misspelt() -> String {
    String::new()
}

/// Unlike anything.
#[tool(colour = "blue")]
fn unlike() -> String {
    String::new()
}

/// Set twice.
#[tool(hidden, hidden = false)]
fn twice() -> String {
    String::new()
}

/// A bad name.
#[tool(name = "disk usage")]
fn bad_name() -> String {
    String::new()
}

/// A bad limit.
#[tool(timeout = "soon")]
fn bad_timeout() -> String {
    String::new()
}

/// No time at all.
#[tool(timeout = "0s")]
fn zero_timeout() -> String {
    String::new()
}

/// An example that is not JSON.
#[tool(examples("{a: 1}"))]
fn bad_example() -> String {
    String::new()
}

/// An example that is not an object.
#[tool(examples("[1]"))]
fn list_example() -> String {
    String::new()
}

/// Contradicts itself.
#[tool(read_only, destructive)]
fn contradiction() -> String {
    String::new()
}

fn main() {}
