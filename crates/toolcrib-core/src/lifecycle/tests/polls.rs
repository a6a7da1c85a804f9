//! A tool that holds its thread is noticed.

use std::time::Duration;

use crate::lifecycle::PollWatch;

#[tokio::test]
async fn a_long_poll_is_counted_and_a_long_wait_is_not() {
    let watch = PollWatch::default();
    watch.watch("waits", tokio::time::sleep(Duration::from_millis(150))).await;
    assert_eq!(watch.long_polls(), 0);
    let answer = watch
        .watch("computes", async {
            std::thread::sleep(Duration::from_millis(120));
            42
        })
        .await;
    assert_eq!((answer, watch.long_polls()), (42, 1));
}
