//! The dimensions of a row: the stations of the pipeline and their options.

use std::fmt;

use toolcrib_testkit::{combination, dimension};

dimension! {
    /// When the body of the tool is done.
    Body {
        Ready = "ready body", Pending = "pending body", Blocking = "blocking body",
        Client = "client tool",
    }
}

dimension! {
    /// What the body does in the end.
    Ending {
        Succeeds = "succeeds", Fails = "fails", Recovers = "recovers", LeavesHalf = "leaves half",
        Panics = "panics", Hangs = "hangs", Asks = "asks a question",
    }
}

dimension! {
    /// Who decides whether the call may run, and how.
    Consent {
        Free = "no consent", Approves = "approver approves", Changes = "approver changes",
        Denies = "approver denies", Remembers = "approver remembers", Resolved = "caller resolves",
        Decided = "another decides", Expires = "nobody decides",
    }
}

dimension! {
    /// How many servers share the store. With two, calls that wait go on in the one that did not take
    /// them, and both try to resolve a call at the same time.
    Servers { One = "one server", Two = "two servers" }
}

dimension! {
    /// In which context a call that waits goes on.
    Resumed { AsMade = "resumed as made", InAnotherProject = "resumed in another project" }
}

dimension! {
    /// Whether the caller may approve calls.
    Rights { May = "may approve", MayNot = "may not approve" }
}

dimension! {
    /// Which earlier answers may stand for a call.
    Reuse {
        Nothing = "no reuse", Cache = "cache", Session = "session dedupe", Batch = "batch dedupe",
    }
}

dimension! {
    /// The same call, made at the same time.
    Twin { Alone = "no twin", SameBatch = "twin in the batch", Beside = "twin beside" }
}

dimension! {
    /// How the call comes in.
    Door {
        Direct = "direct", Batch = "batch", Run = "run", Nested = "nested", Meta = "tool_call",
    }
}

dimension! {
    /// Where the body comes from.
    Instance { Shared = "shared instance", PerUse = "instance per use" }
}

dimension! {
    /// Whether other calls of a batch run beside the call.
    Barrier { Parallel = "parallel", Barrier = "barrier" }
}

dimension! {
    /// How many calls of the tool run at once.
    Slots { Unlimited = "no slots", Contended = "contended slot" }
}

dimension! {
    /// How many calls of the tool may start.
    Rate {
        Unlimited = "no rate", Enough = "rate enough", Exhausted = "rate exhausted",
        TakenByAnother = "rate taken by zoe",
    }
}

dimension! {
    /// Whose calls of the tool ran into its time limit three times before.
    Breaker { Closed = "breaker closed", Open = "breaker open", OpenForOther = "breaker open for bob" }
}

dimension! {
    /// Whether the tool gets time to wind down.
    WindDown { Nothing = "no wind-down", Some = "wind-down" }
}

dimension! {
    /// Whether a failed call is tried again.
    Retry { Never = "no retry", Once = "retry" }
}

dimension! {
    /// What ends the call early, while it waits for something or while its body runs.
    Interruption {
        Nothing = "uninterrupted",
        CancelWaiting = "cancelled while waiting", CancelRunning = "cancelled while running",
        DropWaiting = "dropped while waiting", DropRunning = "dropped while running",
        ShutdownWaiting = "shutdown while waiting", ShutdownRunning = "shutdown while running",
        DeadlineWaiting = "deadline while waiting", DeadlineRunning = "deadline while running",
    }
}

dimension! {
    /// How much the tool returns.
    Output { Short = "short output", Long = "long output", LargeData = "large data" }
}

dimension! {
    /// Where a secret is in the output.
    Secret { Nowhere = "no secret", Inside = "secret", AtCut = "secret at the cut" }
}

dimension! {
    /// What changes while the call waits or, if it does not wait, after it.
    Meanwhile {
        Nothing = "no change", Reloaded = "reloaded", Changed = "definition changed",
        Constrained = "constraint added", Blocked = "trust withdrawn", Removed = "tool removed",
        Revoked = "client revoked", Restarted = "restarted",
    }
}

dimension! {
    /// Who makes the same call afterwards.
    Second {
        Nobody = "nobody else", OtherUser = "another user", OtherProject = "another project",
        OtherSession = "another session", OtherTrace = "another trace",
    }
}

dimension! {
    /// Whether the host fills in a parameter.
    Injected { Nothing = "nothing injected", Project = "project injected" }
}

dimension! {
    /// What stands around every call.
    Middleware { Nothing = "no middleware", Passes = "middleware passes", Tags = "middleware tags" }
}

dimension! {
    /// Whether the blocking pool has a free thread.
    Pool { Free = "free pool", Full = "full pool" }
}

dimension! {
    /// What the model sends.
    Sent { Right = "right arguments", Coerced = "coerced arguments", Wrong = "many wrong arguments" }
}

dimension! {
    /// What the body asks its context for.
    Looks { Nothing = "looks at nothing", Session = "looks at its session" }
}

dimension! {
    /// Who watches the first calls while they run.
    Watcher {
        Nobody = "nobody watches", Reads = "watched", Leaves = "watcher leaves",
    }
}

/// A value for each dimension, and the same with open ones.
macro_rules! row {
    ($($field:ident: $type:ident),* $(,)?) => {
        combination! {
            /// One combination of options.
            Row { $($field: $type),* }
        }

        /// A row some of whose dimensions are open.
        #[allow(dead_code, reason = "no rule is about some of them")]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Part { $(pub(crate) $field: Option<$type>),* }

        impl Part {
            pub(crate) fn of(values: &[Option<usize>]) -> Self {
                let mut values = values.iter();
                Self { $($field: values.next().copied().flatten().map(|value| $type::ALL[value])),* }
            }
        }
    };
}

row! {
    body: Body, ending: Ending, consent: Consent, servers: Servers,
    resumed: Resumed, rights: Rights, reuse: Reuse, twin: Twin,
    door: Door, instance: Instance, barrier: Barrier, slots: Slots, rate: Rate, breaker: Breaker,
    wind_down: WindDown, retry: Retry, interruption: Interruption, output: Output, secret: Secret,
    meanwhile: Meanwhile, second: Second, injected: Injected, middleware: Middleware, pool: Pool,
    looks: Looks, sent: Sent, watcher: Watcher,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.special_names().collect();
        f.write_str(if names.is_empty() { "plain" } else { "" })?;
        f.write_str(&names.join(", "))
    }
}
