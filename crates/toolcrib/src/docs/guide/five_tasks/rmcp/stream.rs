fn copies() -> ToolRouter<Host> {
    let tool = Tool::new("copy", "Copy something.", schema_for_empty_input());
    let copy = |meta: RequestMetaObject, client: Peer<RoleServer>| async move {
        if let Some(token) = meta.get_progress_token() {
            let half = ProgressNotificationParam::new(token, 0.5).with_total(1.0);
            client.notify_progress(half).await.ok();
        }
        "all of it".to_owned()
    };
    ToolRouter::new().with_route((tool, copy))
}
// The client implements `ClientHandler::on_progress`, and ties each notification to its call.
