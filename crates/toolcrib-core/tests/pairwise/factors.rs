//! The dimensions of a row: the stages of the pipeline and their options.

use std::fmt;

use toolcrib_testkit::{combination, dimension};

dimension! {
    /// When the body of the tool finishes.
    Body {
        Ready = "ready body", Pending = "pending body", Blocking = "blocking body",
        Client = "client tool",
    }
}

dimension! {
    /// How the body ends.
    Ending {
        Succeeds = "succeeds", Fails = "fails", Recovers = "recovers", LeavesHalf = "leaves half",
        Panics = "panics", Hangs = "hangs", Asks = "asks a question",
        AsksInVain = "asks and is cancelled",
    }
}

dimension! {
    /// Who decides whether the call may run, and how.
    Consent {
        Free = "no consent", Approves = "approver approves", Denies = "approver denies", Remembers = "approver remembers", Resolved = "caller resolves",
        Decided = "another decides", Expires = "nobody decides", Withdrawn = "caller withdraws",
    }
}

dimension! {
    /// What whoever approves the call makes of its arguments.
    Edit {
        Nothing = "arguments kept", Fits = "arguments changed", Misfit = "changed to misfits",
        Forbidden = "changed to what a rule denies",
    }
}

dimension! {
    /// Which tools the client sees. The calls of a narrowed turn do not reach every tool of their client.
    Shown { Everything = "no toolset", Toolset = "toolset", Narrowed = "narrowed toolset" }
}

dimension! {
    /// How many servers share the store. With two, waiting calls continue in the one that did not accept them, and both
    /// try to resolve a call at the same time.
    Servers { One = "one server", Two = "two servers" }
}

dimension! {
    /// The context in which a waiting call continues.
    Resumed { AsMade = "resumed as made", InAnotherProject = "resumed in another project" }
}

dimension! {
    /// Whether the caller may approve calls.
    Rights { May = "may approve", MayNot = "may not approve" }
}

dimension! {
    /// Which earlier answers may be used for a call.
    Reuse {
        Nothing = "no reuse", Cache = "cache", Session = "session dedupe", Batch = "batch dedupe",
    }
}

dimension! {
    /// An equal call that is made at the same time.
    Twin { Alone = "no twin", SameBatch = "twin in the batch", Beside = "twin beside" }
}

dimension! {
    /// How the call is made.
    Door {
        Direct = "direct", Batch = "batch", Run = "run", Nested = "nested", Meta = "tool_call",
    }
}

dimension! {
    /// Where the body comes from.
    Instance { Shared = "shared instance", PerUse = "instance per use" }
}

dimension! {
    /// Whether other calls of a batch run at the same time.
    Barrier { Parallel = "parallel", Barrier = "barrier" }
}

dimension! {
    /// How many calls of the tool may run at once. Of a crowded slot, another identity has a running call
    /// and a queue of further ones.
    Slots { Unlimited = "no slots", Contended = "contended slot", Crowded = "slot crowded by eve" }
}

dimension! {
    /// How many calls of the tool may start.
    Rate {
        Unlimited = "no rate", Enough = "rate enough", Exhausted = "rate exhausted",
        TakenByAnother = "rate taken by zoe",
    }
}

dimension! {
    /// Whose calls of the tool reached its time limit three times before.
    Breaker { Closed = "breaker closed", Open = "breaker open", OpenForOther = "breaker open for bob" }
}

dimension! {
    /// Whether the tool has a wind-down period.
    WindDown { Nothing = "no wind-down", Some = "wind-down" }
}

dimension! {
    /// Whether a failed call is retried.
    Retry { Never = "no retry", Once = "retry" }
}

dimension! {
    /// What ends the call early, while it waits or while its body runs.
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
        Revoked = "client revoked", Hidden = "tool hidden", Restarted = "restarted",
        Stopped = "stopped and started",
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
    /// Whether the host injects a parameter.
    Injected { Nothing = "nothing injected", Project = "project injected" }
}

dimension! {
    /// The middleware around every call.
    Middleware { Nothing = "no middleware", Passes = "middleware passes", Tags = "middleware tags" }
}

dimension! {
    /// Whether the blocking pool has a free thread.
    Pool { Free = "free pool", Full = "full pool" }
}

dimension! {
    /// The arguments that the model sends.
    Sent { Right = "right arguments", Coerced = "coerced arguments", Wrong = "many wrong arguments" }
}

dimension! {
    /// What the body uses of its context.
    Looks { Nothing = "looks at nothing", Session = "looks at its session" }
}

dimension! {
    /// Who watches the first calls while they run.
    Watcher {
        Nobody = "nobody watches", Reads = "watched", Leaves = "watcher leaves",
    }
}

/// A value for each dimension, and the same with open dimensions.
macro_rules! row {
    ($($field:ident: $type:ident),* $(,)?) => {
        combination! {
            /// One combination of options.
            Row { $($field: $type),* }
        }

        /// A row in which some dimensions are open.
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
    body: Body, ending: Ending, consent: Consent, edit: Edit, shown: Shown, servers: Servers,
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
