//! Who owns a name: the layer decides, then the order of registration, and nothing else.

use std::sync::Arc;

use proptest::prelude::*;
use toolcrib_core::{Registration, RegistryBuilder};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};

fn entry(layer: Layer, unit: &str, name: &str) -> ToolEntry {
    let definition =
        ToolDefinition::builder(name).description("A tool for a test.").build().expect("valid");
    let body = tool_fn(|_: serde_json::Value, _| async { "x" });
    ToolEntry::new(definition, Arc::new(body), Source::new(layer, unit))
}

#[test]
fn a_late_registration_never_takes_a_name_over() {
    let mut builder = RegistryBuilder::new();
    assert_eq!(builder.register(entry(Layer::Manifest, "a.yaml", "x")), Registration::Registered);
    let late = builder.register(entry(Layer::Manifest, "b.yaml", "x"));
    assert_eq!(late, Registration::Shadowed { by: Source::new(Layer::Manifest, "a.yaml") });
    let snapshot = builder.build();
    assert_eq!(snapshot.get("x").expect("owned").source.unit, "a.yaml");
    assert_eq!(snapshot.conflicts()[0].loser.source.unit, "b.yaml");
    assert_eq!(snapshot.conflicts()[0].winner.unit, "a.yaml");
}

#[test]
fn a_higher_layer_owns_the_name_whenever_it_registers() {
    let mut builder = RegistryBuilder::new();
    for layer in [Layer::Upstream, Layer::Manifest, Layer::Native, Layer::Host] {
        assert_eq!(builder.register(entry(layer, layer.as_str(), "x")), Registration::Registered);
    }
    let snapshot = builder.build();
    assert_eq!(snapshot.get("x").expect("owned").source.layer, Layer::Host);
    assert_eq!(snapshot.conflicts().len(), 3);
}

#[test]
fn definitions_are_sorted_by_name_and_empty_is_empty() {
    let mut builder = RegistryBuilder::new();
    for name in ["b", "a-b", "a", "a_b", "B"] {
        assert_eq!(builder.register(entry(Layer::Host, "t", name)), Registration::Registered);
    }
    let snapshot = builder.build();
    let names: Vec<_> = snapshot.definitions().iter().map(|d| d.name()).collect();
    assert_eq!(names, ["B", "a", "a-b", "a_b", "b"]);
    assert!(RegistryBuilder::new().build().definitions().is_empty());
}

fn layers() -> impl Strategy<Value = Layer> {
    prop::sample::select(vec![Layer::Host, Layer::Native, Layer::Manifest, Layer::Upstream])
}

proptest! {
    #[test]
    fn the_first_of_the_highest_layer_owns_each_name(
        registrations in prop::collection::vec((layers(), 0..6usize), 0..40),
    ) {
        let mut builder = RegistryBuilder::new();
        for (position, (layer, name)) in registrations.iter().enumerate() {
            let _ = builder.register(entry(*layer, &position.to_string(), &format!("t{name}")));
        }
        let snapshot = builder.build();
        for name in 0..6 {
            // The naive implementation: searches for the lowest pair of layer and position.
            let owner = registrations
                .iter()
                .enumerate()
                .filter(|(_, (_, other))| *other == name)
                .min_by_key(|(position, (layer, _))| (*layer, *position))
                .map(|(position, _)| position.to_string());
            let found = snapshot.get(&format!("t{name}")).map(|entry| entry.source.unit.clone());
            prop_assert_eq!(found, owner);
        }
        prop_assert_eq!(snapshot.entries().len() + snapshot.conflicts().len(), registrations.len());
    }
}
