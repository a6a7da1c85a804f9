//! The definitions of the tools of this crate.

use std::sync::Arc;

use serde_json::json;
use toolcrib_tool::{NativeTool, ToolDefinition, native_tools};
use toolcrib_web::{ImageSettings, SearchProvider, SearchProviderKind, WebSettings};

use crate::harness::Crib;

fn own() -> Vec<(&'static NativeTool, Arc<ToolDefinition>)> {
    let own = native_tools().into_iter().filter(|tool| tool.krate == toolcrib_web::CRATE);
    own.map(|tool| (tool, tool.entry().expect("a definition").definition)).collect()
}

#[test]
fn four_tools_are_linked_in_and_all_may_reach_the_world() {
    let found: Vec<_> = own().iter().map(|(tool, _)| tool.name).collect();
    assert_eq!(found, ["crawl_batch", "fetch_page", "image_generate", "web_search"]);
    for (tool, definition) in own() {
        let hints = definition.annotations();
        assert!(hints.open_world && (hints.read_only || !hints.destructive), "{}", tool.name);
        assert_eq!(hints.read_only, tool.name != "image_generate", "{}", tool.name);
        assert!(definition.timeout().is_some(), "{}", tool.name);
    }
}

#[test]
fn every_example_validates_and_every_argument_is_described() {
    for (tool, definition) in own() {
        let schema = definition.input_schema();
        let validator = jsonschema::validator_for(schema).expect("a schema");
        assert!(!validator.is_valid(&json!({"no_such_argument": 1})), "{}", tool.name);
        assert!(definition.input_examples().len() >= 3, "{}", tool.name);
        for example in definition.input_examples() {
            assert!(validator.is_valid(example), "{}: {example}", tool.name);
        }
        let properties = schema["properties"].as_object().expect("properties");
        for (name, property) in properties {
            assert!(property["description"].is_string(), "{}.{name}: {property}", tool.name);
        }
    }
}

#[test]
fn an_eleventh_url_does_not_fit_the_schema() {
    let tools = own();
    let (_, crawl) = &tools[0];
    let validator = jsonschema::validator_for(crawl.input_schema()).expect("a schema");
    let urls = |count| json!({"urls": vec!["https://example.com/"; count]});
    assert!(validator.is_valid(&urls(10)) && !validator.is_valid(&urls(11)));
    assert!(!validator.is_valid(&urls(0)));
}

#[tokio::test]
async fn tools_without_a_provider_are_not_offered() {
    let bare = Crib::new(WebSettings::default());
    let names = |crib: &Crib| -> Vec<String> {
        let turn = crib.executor.turn(crib.options("ada"));
        turn.definitions().iter().map(|one| one.name().to_owned()).collect()
    };
    assert_eq!(names(&bare), ["crawl_batch", "fetch_page"]);
    let mut settings = WebSettings::default();
    settings.search.push(SearchProvider::new(SearchProviderKind::DuckDuckGo));
    settings.images = Some(ImageSettings::new("https://api.example.com/v1", "paint"));
    let all = Crib::new(settings);
    assert_eq!(names(&all).len(), 4);
}
