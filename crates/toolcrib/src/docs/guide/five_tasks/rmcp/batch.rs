async fn batch(router: &ToolRouter<Host>, calls: Vec<Call>) -> Vec<Result<Answer, Elapsed>> {
    let call = async |(params, context): Call| {
        let call = router.call(ToolCallContext::new(&Host, params, context));
        tokio::time::timeout(Duration::from_secs(5), call).await
    };
    // The limit is that of all tools together; a tool's own would be a semaphore in its closure.
    futures_util::stream::iter(calls).map(call).buffered(4).collect().await
}
