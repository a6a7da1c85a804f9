//! Wakings of a task by itself, kept out of the runtime.
//!
//! Whoever takes a piece of a request's body wakes the connection that it came over, which has room for
//! more now; and that is the task that is just being polled. The runtime would put it at the end of its
//! queue and wake another thread to take it from there, which costs an idle server more than the call.
//! Here such a task looks once more before it rests.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often a task looks before others get their turn.
const LOOKS: usize = 2;

/// Nobody has woken the future since it was polled.
const RESTING: u8 = 0;
/// It is being polled.
const POLLED: u8 = 1;
/// It has been woken.
const WOKEN: u8 = 2;

/// Between a future and the task that polls it.
#[derive(Debug)]
pub(crate) struct SelfWakes {
    state: Arc<State>,
    waker: Waker,
}

#[derive(Debug)]
struct State {
    now: AtomicU8,
    task: AtomicWaker,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Whoever polls it, or has been told to, will see that it was woken.
        if self.now.swap(WOKEN, Ordering::AcqRel) == RESTING {
            self.task.wake();
        }
    }
}

impl SelfWakes {
    pub(crate) fn new() -> Self {
        let state = Arc::new(State { now: AtomicU8::new(RESTING), task: AtomicWaker::new() });
        Self { waker: Arc::clone(&state).into(), state }
    }

    /// Waits for the end of a future, always the same one.
    pub(crate) async fn within<F: Future>(&self, mut future: Pin<&mut F>) -> F::Output {
        poll_fn(|cx| self.poll(future.as_mut(), cx)).await
    }

    fn poll<F: Future>(&self, mut future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let now = &self.state.now;
        self.state.task.register(cx.waker());
        let mut own = Context::from_waker(&self.waker);
        for _ in 0..LOOKS {
            now.swap(POLLED, Ordering::AcqRel);
            if let Poll::Ready(output) = future.as_mut().poll(&mut own) {
                return Poll::Ready(output);
            }
            let rest = now.compare_exchange(POLLED, RESTING, Ordering::AcqRel, Ordering::Acquire);
            if rest.is_ok() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Task {
        fn woken(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    /// Polls a future that wakes itself the first `times` times; says how often it was polled.
    fn polled(times: usize, task: &Arc<Task>) -> usize {
        let mut polls = 0;
        let future = poll_fn(|cx| {
            polls += 1;
            if polls <= times {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        let waker = Waker::from(Arc::clone(task));
        let between = SelfWakes::new();
        assert!(between.poll(pin!(future), &mut Context::from_waker(&waker)).is_pending());
        polls
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again_in_place() {
        let task = Arc::<Task>::default();
        assert_eq!((polled(0, &task), task.woken()), (1, 0));
        assert_eq!((polled(1, &task), task.woken()), (2, 0));
    }

    #[test]
    fn one_that_goes_on_doing_so_lets_others_have_their_turn() {
        let task = Arc::<Task>::default();
        assert_eq!((polled(usize::MAX, &task), task.woken()), (LOOKS, 1));
    }

    #[test]
    fn one_that_is_woken_from_elsewhere_wakes_its_task_once() {
        let task = Arc::<Task>::default();
        let waker = Waker::from(Arc::clone(&task));
        let mut cx = Context::from_waker(&waker);
        let given = Mutex::new(None);
        let mut future = pin!(poll_fn(|cx| {
            *given.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        let between = SelfWakes::new();
        for round in 1..=3 {
            assert!(between.poll(future.as_mut(), &mut cx).is_pending());
            let given = given.lock().unwrap().take().unwrap();
            assert_eq!(task.woken(), round - 1);
            given.wake_by_ref();
            given.wake();
            assert_eq!(task.woken(), round);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_waking_of_another_thread_is_lost() {
        let (ask, mut asked) = tokio::sync::mpsc::channel(1);
        let (answer, mut answers) = tokio::sync::mpsc::channel(1);
        let echo = tokio::spawn(async move {
            let between = SelfWakes::new();
            let echoing = async move {
                while let Some(number) = asked.recv().await {
                    answer.send(number).await.unwrap();
                }
            };
            between.within(pin!(echoing)).await;
        });
        for number in 0..10_000 {
            ask.send(number).await.unwrap();
            assert_eq!(answers.recv().await, Some(number));
        }
        drop(ask);
        echo.await.unwrap();
    }
}
