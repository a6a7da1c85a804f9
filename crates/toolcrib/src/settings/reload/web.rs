//! Applies the settings of the web tools to a running crib.

use toolcrib_tool::ToolEntry;

use crate::Toolcrib;
use crate::settings::Config;

/// Whether the web tools depend on a key: pictures come from a provider.
fn is_about_web(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or(key);
    key == "builtins.enabled" || ["web", "images", "providers"].contains(&section)
}

impl Toolcrib {
    /// The web tools that a config offers.
    pub(super) fn web_entries(&self, config: &Config) -> Result<Vec<ToolEntry>, String> {
        let enabled = config.builtins.enabled.as_deref();
        let offered = self.offered_builtins();
        let made = offered.web.entries(&config.web_settings(), enabled, offered.native);
        let made = made.map_err(|error| error.to_string())?;
        match self.lock() {
            Some(lock) => lock.admit(made).map_err(|error| error.to_string()),
            None => Ok(made),
        }
    }

    /// Lets the web tools work with the settings of a config, and offers these of them, if a
    /// key that they depend on changed. Calls that run keep the settings they started with.
    pub(super) fn apply_web(
        &self,
        config: &Config,
        entries: Vec<ToolEntry>,
        changed: &[String],
    ) -> Result<(), String> {
        if !changed.iter().any(|key| is_about_web(key)) {
            return Ok(());
        }
        let registry = self.executor().registry();
        registry
            .replace_native(toolcrib_web::CRATE, entries)
            .map_err(|error| format!("web: {error}"))?;
        self.offered_builtins().web.service.replace(config.web_settings());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use toolcrib_runners::Secrets;
    use toolcrib_web as _;

    use super::*;

    fn config(text: &str) -> Config {
        toolcrib_manifest::decode("config.yml", text)
            .unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
    }

    #[test]
    fn web_tools_come_and_go_with_their_providers_and_open_turns_keep_theirs() {
        let texts = Arc::new(Mutex::new(String::new()));
        let crib = Toolcrib::builder()
            .settings(&config(""))
            .native_tools()
            .secrets(&Secrets::from_values([("key", "a-key-of-the-test")]))
            .unwrap()
            .build()
            .unwrap();
        let source = Arc::clone(&texts);
        crib.follow_config(&config(""), move || Ok(config(&source.lock().unwrap())));
        let offered = || {
            let turn = crib.turn();
            let has = |name: &str| turn.describe(name).is_some();
            [has("web_search"), has("image_generate"), has("fetch_page")]
        };
        assert_eq!(offered(), [false, false, true]);
        let open = crib.turn();
        let provider = "providers: {p: {kind: chat, base_url: 'http://127.0.0.1:1/v1'}}\n";
        for (text, expected) in [
            (
                "web: {search: [{kind: brave, api_key: '${secret.key}'}]}\n".to_owned(),
                [true, false, true],
            ),
            (format!("{provider}images: {{model: p/paint}}\n"), [false, true, true]),
            // A provider that is gone takes the pictures along.
            ("images: {model: p/paint}\n".to_owned(), [false, false, true]),
            (
                "builtins: {enabled: [web_search]}\nweb: {search: [{kind: duckduckgo}]}\n"
                    .to_owned(),
                [true, false, false],
            ),
            (String::new(), [false, false, true]),
        ] {
            text.clone_into(&mut texts.lock().unwrap());
            let report = crib.reload_config().unwrap().unwrap();
            assert!(report.needs_restart.is_empty(), "{text}: {report:?}");
            assert_eq!(offered(), expected, "{text}");
        }
        assert!(open.describe("web_search").is_none(), "a turn keeps its list");
        let settings = crib.offered_builtins().web.service.settings();
        assert!(settings.search.is_empty() && settings.images.is_none());
    }

    #[test]
    fn settings_of_the_web_tools_that_cannot_work_are_named() {
        for (text, part) in [
            ("web: {search: [{kind: searxng}]}\n", "has no address of its own"),
            ("web: {search: [{kind: tavily}]}\n", "needs an API key"),
            ("web: {search: [{kind: brave, api_key: plain-key}]}\n", "${secret.NAME}"),
            ("web: {search: [{kind: google}]}\n", "searxng"),
            ("web: {allow_private: [10.0.0.0]}\n", "10.20.0.0/16"),
            ("images: {model: paint}\n", "PROVIDER/MODEL"),
        ] {
            let problems = toolcrib_manifest::decode::<Config>("config.yml", text).unwrap_err();
            let said = format!("{problems:?}");
            assert!(said.contains(part) && !said.contains("plain-key\""), "{text}: {said}");
        }
        let config = config(
            "images: {model: p/paint}\nweb: {search: [{kind: brave, api_key: '${secret.lost}', url: 'http://search.example.com/'}]}\n",
        );
        let crib = Toolcrib::builder().settings(&config).build().unwrap();
        let found = crib.unmatched_names(&config);
        let keys: Vec<String> = found.iter().map(|one| one.path.join(".")).collect();
        assert_eq!(keys, ["images.model", "web.search.0.api_key", "web.search.0.url"], "{found:?}");
    }
}
