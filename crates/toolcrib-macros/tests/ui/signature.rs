use toolcrib_macros::tool;
use toolcrib_tool::CallContext;

struct Args;
struct Host;

impl Host {
    /// Has a receiver.
    #[tool]
    fn method(&self) -> String {
        String::new()
    }
}

/// Is generic.
#[tool]
fn generic<T>(_args: T) -> String {
    String::new()
}

/// Takes too much.
#[tool]
fn too_many(_a: Args, _b: Args, _cx: &CallContext, _again: &CallContext) -> String {
    String::new()
}

/// Takes the context by value.
#[tool]
fn owned_context(_cx: CallContext) -> String {
    String::new()
}

/// Is unsafe.
#[tool]
unsafe fn dangerous() -> String {
    String::new()
}

/// Is foreign.
#[tool]
extern "C" fn foreign() -> String {
    String::new()
}

/// Returns nothing.
#[tool]
fn silent() {}

/// Has a name no provider accepts.
#[tool]
fn größe() -> String {
    String::new()
}

/// Is no fn.
#[tool]
struct NotAFn;

fn main() {}
