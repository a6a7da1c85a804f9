//! Finding a tool by its name, and nothing more.

use std::hint::black_box;
use std::time::Instant;

use hashbrown::HashMap;
use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
use toolcrib_testkit::search_tool::{self, Schemas};

use crate::order::Order;
use crate::{Contender, peer};

/// Names in the order of their visits.
struct Names {
    names: Vec<String>,
    order: Order,
}

impl Names {
    fn new(count: usize) -> Self {
        Self { names: (0..count).map(search_tool::name).collect(), order: Order::new(count) }
    }

    fn next(&mut self) -> &str {
        &self.names[self.order.next()]
    }
}

fn contender(
    name: &'static str,
    size: usize,
    mut finds: impl FnMut(&str) -> bool + 'static,
) -> Contender {
    let mut names = Names::new(size);
    Contender::new(name, move |times| {
        let start = Instant::now();
        for _ in 0..times {
            assert!(finds(black_box(names.next())), "every name is there");
        }
        start.elapsed()
    })
}

/// Lookup in a registry of `size` tools:
///
/// - `ours/registry`: the live snapshot is taken, asked, and let go again;
/// - `ours/turn`: the turn's pinned snapshot is asked;
/// - `rmcp`: `ToolRouter::get`;
/// - `rig`: `ToolSet::get` (with the feature `rig`);
/// - `limit`: one probe of a map with the fastest hash at hand, and nothing behind it.
pub fn contenders(size: usize) -> Vec<Contender> {
    let registry = Registry::new(search_tool::snapshot(size, Schemas::Shared));
    let snapshot = search_tool::snapshot(size, Schemas::Shared);
    let turn = Executor::new(Registry::new(snapshot), ExecutorConfig::default())
        .turn(TurnOptions::default());
    let router = peer::router::<peer::Server>(size, Schemas::Shared);
    let map: HashMap<String, usize> =
        (0..size).map(|number| (search_tool::name(number), number)).collect();
    #[cfg(feature = "rig")]
    let set = crate::rig::set(size, Schemas::Shared);
    vec![
        contender("ours/turn", size, move |name| turn.describe(name).is_some()),
        contender("ours/registry", size, move |name| registry.snapshot().get(name).is_some()),
        contender("rmcp", size, move |name| router.get(name).is_some()),
        #[cfg(feature = "rig")]
        contender("rig", size, move |name| set.get(name).is_some()),
        contender("limit", size, move |name| map.contains_key(name)),
    ]
}
