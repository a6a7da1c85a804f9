use toolcrib_macros::tool;

#[tool]
fn undescribed() -> String {
    String::new()
}

fn main() {}
