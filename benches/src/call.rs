//! A call inside the process: from the text of its arguments to its result.
//!
//! Each side starts from the same three texts (an id, a name, 301 bytes of arguments) and
//! ends with a result that holds the path the tool was given. Ours validates against the schema;
//! the peers do not.

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use jsonschema::Validator;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::runtime::Runtime;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistrySnapshot, TurnOptions};
use toolcrib_testkit::search_tool::{
    self, ARGUMENTS, BorrowedSearchArguments, Schemas, SearchArguments,
};
use toolcrib_tool::ToolCall;

use crate::order::Order;
use crate::peer::{Connection, Server};
use crate::{Contender, SIZES, peer};

/// The id every call carries.
pub(crate) const CALL_ID: &str = "call_0123456789";

/// Calls of the peer that are made ready before the clock starts.
const PREPARED: u64 = 64;

/// Sizes of the registries, in tools. 100,000 compiled validators would need more than 4 GiB on our
/// side alone, so distinct schemas end at 10,000.
pub const fn sizes(schemas: Schemas) -> &'static [usize] {
    match schemas {
        Schemas::Shared => &SIZES,
        Schemas::Distinct => SIZES.split_at(SIZES.len() - 1).0,
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A validated call in a registry of `size` tools:
///
/// - `ours`: `Turn::call`, everything that the pipeline does;
/// - `ours/in-place`: the same, where the tool's own type borrows from the arguments;
/// - `rmcp`: the arguments parsed into rmcp's map, its context made, `ToolRouter::call`;
/// - `rig`: `ToolSet::execute` with its context made (with the feature `rig`);
/// - `rmcp/router-only`: `ToolRouter::call` alone, on arguments that are already parsed;
/// - `limit/value+validator`: parsed into a `serde_json::Value` and validated; no tool, no result;
/// - `limit/typed`: parsed into the tool's own type;
/// - `limit/borrowed`: parsed into a type that borrows from the text.
pub fn contenders(size: usize, schemas: Schemas) -> Vec<Contender> {
    let router = Rc::new(peer::router(size, schemas));
    let in_place = |number| search_tool::entry_in_place(number, schemas);
    vec![
        ours_with("ours", size, search_tool::snapshot(size, schemas)),
        ours_with("ours/in-place", size, search_tool::snapshot_of(size, in_place)),
        rmcp(Rc::clone(&router), size),
        #[cfg(feature = "rig")]
        rig(size, schemas),
        rmcp_router_only(router, size),
        value_and_validator(size, schemas),
        parse_only("limit/typed", |text| {
            serde_json::from_str::<SearchArguments>(text).is_ok_and(|args| args.recursive)
        }),
        parse_only("limit/borrowed", |text| {
            serde_json::from_str::<BorrowedSearchArguments<'_>>(text).is_ok_and(|a| a.recursive)
        }),
    ]
}

pub(crate) fn names(size: usize) -> (Vec<String>, Order) {
    ((0..size).map(search_tool::name).collect(), Order::new(size))
}

/// `Turn::call` of the tools of a snapshot, under a name.
pub(crate) fn ours_with(
    contender: &'static str,
    size: usize,
    snapshot: RegistrySnapshot,
) -> Contender {
    let registry = Registry::new(snapshot);
    let turn = Executor::new(registry, ExecutorConfig::default()).turn(TurnOptions::default());
    let runtime = runtime();
    let (names, mut order) = names(size);
    let mut run = move |times: u64| {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..times {
                let name = names[order.next()].as_str();
                let result = turn.call(ToolCall::new(CALL_ID, name, black_box(ARGUMENTS))).await;
                assert!(result.is_success(), "{}", result.text());
                black_box(result);
            }
            start.elapsed()
        })
    };
    // The first call of a tool compiles its schema: not what is measured here.
    run(size as u64);
    Contender::new(contender, run)
}

fn rmcp(router: Rc<ToolRouter<Server>>, size: usize) -> Contender {
    let runtime = runtime();
    let connection = Connection::open(&runtime);
    let (names, mut order) = names(size);
    let mut run = move |times: u64| {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..times {
                let name = names[order.next()].as_str();
                let arguments: JsonObject =
                    serde_json::from_str(black_box(ARGUMENTS)).expect("JSON");
                let call = connection.call(&Server, CALL_ID, name, arguments);
                assert!(peer::succeeded(black_box(router.call(call).await)));
            }
            start.elapsed()
        })
    };
    run(size as u64);
    Contender::new("rmcp", run)
}

#[cfg(feature = "rig")]
fn rig(size: usize, schemas: Schemas) -> Contender {
    let set = crate::rig::set(size, schemas);
    let runtime = runtime();
    let (names, mut order) = names(size);
    let mut run = move |times: u64| {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..times {
                assert!(crate::rig::call(&set, &names[order.next()]).await);
            }
            start.elapsed()
        })
    };
    run(size as u64);
    Contender::new("rig", run)
}

fn rmcp_router_only(router: Rc<ToolRouter<Server>>, size: usize) -> Contender {
    let runtime = runtime();
    let connection = Connection::open(&runtime);
    let arguments: JsonObject = serde_json::from_str(ARGUMENTS).expect("JSON");
    let (names, mut order) = names(size);
    Contender::new("rmcp/router-only", move |times| {
        let mut elapsed = Duration::ZERO;
        let mut left = times;
        while left > 0 {
            let count = left.min(PREPARED);
            left -= count;
            let calls: Vec<_> = (0..count)
                .map(|_| {
                    let name = names[order.next()].as_str();
                    connection.call(&Server, CALL_ID, name, arguments.clone())
                })
                .collect();
            elapsed += runtime.block_on(async {
                let start = Instant::now();
                for call in calls {
                    assert!(peer::succeeded(black_box(router.call(call).await)));
                }
                start.elapsed()
            });
        }
        elapsed
    })
}

fn value_and_validator(size: usize, schemas: Schemas) -> Contender {
    let compile = |number| {
        let schema = schemas.schema(number);
        Rc::new(jsonschema::options().offline().build(&schema).expect("a valid schema"))
    };
    let validators: Vec<Rc<Validator>> = match schemas {
        Schemas::Shared => vec![compile(0); size],
        Schemas::Distinct => (0..size).map(compile).collect(),
    };
    let mut order = Order::new(size);
    Contender::new("limit/value+validator", move |times| {
        let start = Instant::now();
        for _ in 0..times {
            let value: Value = serde_json::from_str(black_box(ARGUMENTS)).expect("JSON");
            assert!(validators[order.next()].is_valid(&value));
            black_box(value);
        }
        start.elapsed()
    })
}

fn parse_only(name: &'static str, mut parses: impl FnMut(&str) -> bool + 'static) -> Contender {
    Contender::new(name, move |times| {
        let start = Instant::now();
        for _ in 0..times {
            assert!(parses(black_box(ARGUMENTS)));
        }
        start.elapsed()
    })
}
