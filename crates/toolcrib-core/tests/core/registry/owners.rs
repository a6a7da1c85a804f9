//! A registry in use: who keeps a name, who gets it, and how that is reported.

use std::sync::Arc;

use proptest::prelude::*;
use toolcrib_core::{
    Change, Mock, OnDuplicate, Registration, Registry, RegistryBuilder, RegistryError, SourceUnit,
};
use toolcrib_tool::{
    Arguments, Constraint, ContextValues, Layer, Source, ToolDefinition, ToolEntry, ToolError,
};

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::builder(name).description("A tool for a test.").build().expect("valid")
}

fn manifest(name: &str) -> SourceUnit {
    SourceUnit::new(Layer::Manifest, name)
}

fn entry(unit: &SourceUnit, name: &str) -> ToolEntry {
    Mock::tool(definition(name)).entry_of(unit)
}

fn replace(unit: &SourceUnit, names: &[&str]) -> Change {
    let entries = names.iter().map(|name| entry(unit, name)).collect();
    Change::Replace { unit: unit.clone(), entries }
}

fn owner(registry: &Registry, name: &str) -> Option<String> {
    registry.snapshot().get(name).map(|entry| entry.source.unit.clone())
}

fn empty() -> Registry {
    Registry::new(RegistryBuilder::new().build())
}

#[test]
fn a_newcomer_that_sorts_first_takes_nothing_over_until_a_restart() {
    let registry = empty();
    let (late, early) = (manifest("z.yaml"), manifest("a.yaml"));
    registry.apply([replace(&late, &["x"])]).expect("applied");
    registry.apply([replace(&early, &["x"])]).expect("applied");
    assert_eq!(owner(&registry, "x").as_deref(), Some("z.yaml"));

    let snapshot = registry.snapshot();
    assert_eq!(snapshot.conflicts()[0].loser.source.unit, "a.yaml");
    let differs = snapshot.would_differ();
    assert_eq!(differs[0].fresh.unit, "a.yaml");
    assert_eq!(differs[0].live.as_ref().map(|live| live.unit.as_str()), Some("z.yaml"));
}

#[test]
fn a_name_given_up_goes_to_the_first_of_the_same_layer_only() {
    let registry = empty();
    let (b, c) = (manifest("b.yaml"), manifest("c.yaml").rank(0));
    let other = manifest("a.yaml").rank(1);
    let upstream = SourceUnit::new(Layer::Upstream, "a");
    for unit in [&b, &upstream, &other, &c] {
        registry.apply([replace(unit, &["x"])]).expect("applied");
    }
    registry.apply([Change::Remove { unit: b }]).expect("applied");
    assert_eq!(owner(&registry, "x").as_deref(), Some("c.yaml"), "ranks come before names");
    registry.apply([Change::Remove { unit: c }, Change::Remove { unit: other }]).expect("applied");

    assert_eq!(owner(&registry, "x"), None);
    let snapshot = registry.snapshot();
    assert!(snapshot.definitions().is_empty());
    assert_eq!(snapshot.reserved()[0].name.as_str(), "x");
    assert!(snapshot.conflicts()[0].reserved);
    assert_eq!(snapshot.would_differ()[0].fresh.unit, "a");
    assert!(snapshot.conflicts()[0].to_string().contains("gave it up"));

    assert!(registry.release("x").expect("released"));
    assert_eq!(owner(&registry, "x").as_deref(), Some("a"));
    assert!(!registry.release("x").expect("nothing to do"));
}

#[test]
fn a_renamed_file_keeps_its_names_and_says_where_it_is() {
    let registry = empty();
    let (old, new, rival) = (manifest("old.yaml"), manifest("new.yaml"), manifest("a.yaml"));
    registry.apply([replace(&old, &["x"])]).expect("applied");
    registry.apply([replace(&rival, &["x"])]).expect("applied");
    let rename = Change::Rename { from: old.clone(), to: new.clone() };
    registry.apply([replace(&new, &["x", "y"]), rename]).expect("applied");
    assert_eq!(owner(&registry, "x").as_deref(), Some("new.yaml"));
    assert_eq!(owner(&registry, "y").as_deref(), Some("new.yaml"));
}

#[test]
fn linked_in_tools_are_part_of_no_change() {
    let registry = empty();
    for layer in [Layer::Native, Layer::Fallback] {
        let unit = SourceUnit::new(layer, "core");
        for change in [
            replace(&unit, &["x"]),
            Change::Remove { unit: unit.clone() },
            Change::Rename { from: unit.clone(), to: manifest("a") },
        ] {
            let refused = registry.apply([change]).expect_err("it is fixed");
            assert!(matches!(refused, RegistryError::Fixed { .. }), "{refused}");
        }
    }
    let other = entry(&manifest("b.yaml"), "x");
    let foreign = Change::Replace { unit: manifest("a.yaml"), entries: vec![other] };
    let refused = registry.apply([foreign]).expect_err("another unit's");
    assert!(refused.to_string().contains("manifest b.yaml"), "{refused}");
}

#[test]
fn only_the_systems_own_tools_can_be_fallbacks_and_only_some_may_take_their_place() {
    let fallback = SourceUnit::new(Layer::Fallback, "system");
    let mut builder = RegistryBuilder::new().allow_override(["own.yaml:new_task"]);
    let Registration::Refused { reason } = builder.register(entry(&fallback, "calculator")) else {
        panic!("no fallback");
    };
    assert!(reason.contains("`attempt_completion` and `new_task`"), "{reason}");
    for name in ["attempt_completion", "new_task"] {
        assert_eq!(builder.register(entry(&fallback, name)), Registration::Registered);
    }
    let (own, odd) = (manifest("own.yaml"), manifest("odd.yaml"));
    builder.declare(&own, vec![entry(&own, "new_task")]).expect("declared");
    builder.declare(&odd, vec![entry(&odd, "attempt_completion")]).expect("declared");
    let snapshot = builder.build();
    assert_eq!(snapshot.get("new_task").expect("owned").source.unit, "own.yaml");
    assert_eq!(snapshot.get("attempt_completion").expect("owned").source.unit, "system");
    assert_eq!(snapshot.overridden().map(ToolEntry::name).collect::<Vec<_>>(), ["new_task"]);
    assert_eq!(snapshot.conflicts()[0].loser.source.unit, "odd.yaml");
    assert_eq!(snapshot.conflicts().len(), 1);
    assert_eq!(snapshot.definitions().len(), 2);

    // The host may always do so, even while the registry is in use, and can undo it.
    let registry = Registry::new(snapshot);
    let host = SourceUnit::new(Layer::Host, "app");
    let registered = registry.register(entry(&host, "attempt_completion")).expect("registered");
    assert_eq!(registered, Registration::Registered);
    assert_eq!(owner(&registry, "attempt_completion").as_deref(), Some("app"));
    let source = Source::new(Layer::Host, "app");
    assert!(registry.unregister(&source, "attempt_completion").expect("unregistered"));
    assert_eq!(owner(&registry, "attempt_completion").as_deref(), Some("system"));
    assert!(!registry.unregister(&source, "attempt_completion").expect("it is gone"));
}

#[test]
fn duplicates_can_be_an_error_that_names_all_of_them() {
    let (a, b) = (manifest("a.yaml"), manifest("b.yaml"));
    let mut builder = RegistryBuilder::new();
    builder.declare(&a, vec![entry(&a, "x"), entry(&a, "y")]).expect("declared");
    let registry = Registry::new(builder.build()).on_duplicate(OnDuplicate::Error);
    let before = registry.snapshot();
    assert!(OnDuplicate::Error.check(&before).is_ok());

    let error = registry.apply([replace(&b, &["x", "y", "z"])]).expect_err("two duplicates");
    let text = error.to_string();
    assert!(text.starts_with("2 tool names are declared twice"), "{text}");
    for part in ["`x` of manifest b.yaml", "`y` of manifest b.yaml", "belongs to manifest a.yaml"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(Arc::ptr_eq(&before, &registry.snapshot()), "nothing was applied");
}

#[test]
fn what_has_not_changed_is_not_reported_as_changed() {
    let registry = empty();
    let unit = manifest("a.yaml");
    let (x, y) = (entry(&unit, "x"), entry(&unit, "y"));
    let change = |entries: Vec<ToolEntry>| Change::Replace { unit: unit.clone(), entries };
    let added = registry.apply([change(vec![x.clone(), y.clone()])]).expect("applied");
    assert_eq!(added.added.len(), 2);
    assert!(registry.apply([change(vec![x.clone(), y])]).expect("applied").is_empty());
    let changed = registry.apply([change(vec![x, entry(&unit, "y")])]).expect("applied");
    assert_eq!(changed.changed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["y"]);
    assert!(changed.added.is_empty() && changed.removed.is_empty());
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let registry = empty();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let registry = &registry;
            scope.spawn(move || {
                for number in 0..25 {
                    let name = format!("t{thread}_{number}");
                    let unit = manifest(&name);
                    registry.apply([replace(&unit, &[&name])]).expect("applied");
                    registry.update(|snapshot| snapshot.refreshed([Arc::new(definition(&name))]));
                }
            });
        }
    });
    assert_eq!(registry.snapshot().entries().len(), 100);
}

#[test]
fn a_refreshed_definition_keeps_everything_else() {
    let registry = Registry::scratch().tool("x", |_, _| async { "x" }).build().expect("built");
    let other = ToolDefinition::builder("x").description("Otherwise.").build().expect("valid");
    let stranger = Arc::new(definition("stranger"));
    let snapshot = registry.update(|now| now.refreshed([Arc::new(other), stranger]));
    assert_eq!(snapshot.definitions().len(), 1);
    assert_eq!(snapshot.get("x").expect("owned").definition.description(), "Otherwise.");
    assert_eq!(snapshot.describe("x").expect("available").description(), "Otherwise.");
}

#[test]
fn unavailable_tools_are_in_no_list_and_near_nothing() {
    let unit = manifest("a.yaml");
    let mut builder = RegistryBuilder::new();
    let entries =
        vec![entry(&unit, "read_file"), entry(&unit, "read_files").unavailable("no disk")];
    builder.declare(&unit, entries).expect("declared");
    let snapshot = builder.build();
    assert_eq!(snapshot.definitions().len(), 1);
    assert!(snapshot.describe("read_files").is_none() && snapshot.get("read_files").is_some());
    assert_eq!(snapshot.near("readfiles", |_| true), ["read_file"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The body makes the promises; see its own tests.
    #[test]
    fn any_operations_keep_the_promises(data in prop::collection::vec(any::<u8>(), 0..160)) {
        toolcrib_testkit::fuzzing::registry_operations(&data);
    }
}

#[test]
fn a_tool_that_was_not_accepted_gets_a_name_only_where_nobody_else_wants_it() {
    let (a, z) = (manifest("a.yaml"), manifest("z.yaml"));
    let upstream = SourceUnit::new(Layer::Upstream, "github");
    let declare = |entries: [(&SourceUnit, ToolEntry); 2]| {
        let mut builder = RegistryBuilder::new();
        for (unit, entry) in entries {
            builder.declare(unit, vec![entry]).expect("declared");
        }
        Registry::new(builder.build())
    };
    let blocked = |unit: &SourceUnit| entry(unit, "x").blocked("it is not in the lock");

    let registry = declare([(&a, blocked(&a)), (&upstream, entry(&upstream, "x"))]);
    assert_eq!(owner(&registry, "x").as_deref(), Some("github"), "whatever comes first otherwise");
    assert_eq!(registry.snapshot().conflicts()[0].loser.source.unit, "a.yaml");

    let registry = declare([(&a, blocked(&a)), (&z, blocked(&z))]);
    let snapshot = registry.snapshot();
    assert_eq!(owner(&registry, "x").as_deref(), Some("a.yaml"));
    assert!(snapshot.definitions().is_empty());
    let reason = snapshot.get("x").and_then(ToolEntry::unavailable_reason);
    assert_eq!(reason, Some("it is not in the lock"));

    // The owner keeps its name even if its next version is not accepted, so nobody else can get it
    // that way.
    let registry = declare([(&a, entry(&a, "x")), (&z, entry(&z, "x"))]);
    let next = vec![blocked(&a)];
    registry.apply([Change::Replace { unit: a.clone(), entries: next }]).expect("applied");
    assert_eq!(owner(&registry, "x").as_deref(), Some("a.yaml"));
    assert!(registry.snapshot().describe("x").is_none());
}

#[test]
fn what_was_not_accepted_takes_the_place_of_no_fallback() {
    let mut builder = RegistryBuilder::new().allow_override(["own.yaml:new_task"]);
    let system = Source::new(Layer::Fallback, "system");
    let fallback = ToolEntry { source: system, ..entry(&manifest("own.yaml"), "new_task") };
    assert_eq!(builder.register(fallback), Registration::Registered);
    let own = manifest("own.yaml");
    builder.declare(&own, vec![entry(&own, "new_task").blocked("no")]).expect("declared");
    let registry = Registry::new(builder.build());
    assert_eq!(owner(&registry, "new_task").as_deref(), Some("system"));
    registry.apply([replace(&own, &["new_task"])]).expect("applied");
    assert_eq!(owner(&registry, "new_task").as_deref(), Some("own.yaml"), "accepted, it may");
    let entries = vec![entry(&own, "new_task").blocked("no")];
    registry.apply([Change::Replace { unit: own, entries }]).expect("applied");
    assert_eq!(owner(&registry, "new_task").as_deref(), Some("system"));
}

/// A rule that rejects every entry.
#[derive(Debug)]
struct Never;

impl Constraint for Never {
    fn check(&self, _: &Arguments, _: &ContextValues) -> Result<(), ToolError> {
        Err(ToolError::invalid_args("never"))
    }
}

#[tokio::test]
async fn a_constraint_that_is_added_or_replaced_holds_from_then_on() {
    let unit = manifest("a.yaml");
    let declared = entry(&unit, "x");
    let replace =
        |entry: &ToolEntry| Change::Replace { unit: unit.clone(), entries: vec![entry.clone()] };
    let registry = Arc::new(Registry::new(RegistryBuilder::new().build()));
    registry.apply([replace(&declared)]).expect("applied");
    let same = registry.apply([replace(&declared)]).expect("applied");
    assert!(same.changed.is_empty(), "the same entry changes nothing");

    let constrained = declared.clone().with_constraint(Arc::new(Never));
    for next in [&constrained, &declared, &constrained] {
        let applied = registry.apply([replace(next)]).expect("applied");
        assert_eq!(applied.changed.len(), 1);
        let snapshot = registry.snapshot();
        let held = snapshot.get("x").expect("it is there");
        assert_eq!(held.constraint.is_some(), next.constraint.is_some());
    }
    let same = registry.apply([replace(&constrained)]).expect("applied");
    assert!(same.changed.is_empty(), "the same rule changes nothing");
    let other = declared.with_constraint(Arc::new(Never));
    assert_eq!(registry.apply([replace(&other)]).expect("applied").changed.len(), 1);
}
