#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

fn router() -> ToolRouter<Host> {
    let tool = Tool::new("greet", "Greet somebody.", schema_for_type::<Greet>());
    let greet =
        |Parameters(args): Parameters<Greet>| async move { format!("Hello, {}!", args.name) };
    ToolRouter::new().with_route((tool, greet))
}
