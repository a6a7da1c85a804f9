fn orders() -> ToolRouter<Host> {
    let tool = Tool::new("orders", "List the caller's orders.", schema_for_empty_input());
    let orders =
        |Extension(User(name)): Extension<User>| async move { format!("orders of {name}") };
    ToolRouter::new().with_route((tool, orders))
}

async fn call_as(user: User, mut context: RequestContext<RoleServer>) -> Answer {
    context.extensions.insert(user);
    let params = CallToolRequestParams::new("orders");
    orders().call(ToolCallContext::new(&Host, params, context)).await
}
