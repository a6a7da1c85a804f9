//! Programs that must work.

use libtest_mimic::Trial;
use serde_json::json;

use crate::corpus::{Entry, entries};
use crate::harness::{Crib, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what_people_write_works", what_people_write_works),
        trial("every_module_of_the_lists_can_be_imported", every_module_can_be_imported),
    ]
}

async fn what_people_write_works() {
    let programs = entries(include_str!("benign.txt"));
    assert!(programs.len() >= 35, "{}", programs.len());
    let crib = Crib::new();
    for Entry { word, name, text } in programs {
        let (code, prints) = text.split_once("--- prints\n").expect("it prints something");
        let levels: &[&str] =
            if word == "strict" { &["strict", "standard"] } else { &["standard"] };
        for level in levels {
            let result = crib.python(code, level).await;
            assert_eq!(result.text().trim_end(), prints.trim_end(), "{name} at {level}");
        }
    }
}

/// The list in the level's documentation.
const STRICT: &str = "__future__ abc array cmath collections collections.abc contextlib copy \
    dataclasses decimal enum fractions functools itertools math numbers operator random statistics \
    string textwrap typing unicodedata";
const STANDARD: &str = "base64 binascii bisect calendar csv datetime difflib hashlib heapq hmac html \
    html.entities html.parser json json.decoder json.encoder logging pprint quopri re time uu \
    warnings xml.etree.ElementTree";

async fn every_module_can_be_imported() {
    let crib = Crib::new();
    let mut missing = Vec::new();
    let strict = STRICT.split_whitespace().map(|module| (module, "strict"));
    let standard = STRICT.split_whitespace().chain(STANDARD.split_whitespace());
    for (module, level) in strict.chain(standard.map(|module| (module, "standard"))) {
        let code =
            format!("import {module}\nimport {module} as it\nfrom {module} import *\nprint(it)");
        let result = crib.python(&code, level).await;
        if !result.is_success() && result.text().contains("ModuleNotFoundError") {
            missing.push(module);
            continue;
        }
        assert!(result.text().contains(module), "{module} at {level}: {}", result.text());
    }
    // Python 3.13 has no `uu`; nothing else is ever missing.
    assert!(missing.is_empty() || missing == ["uu"], "{missing:?}");
    let arguments = json!({"code": "import os"});
    let refused = crib.call("execute_python", arguments).await.text().into_owned();
    for module in STANDARD.split_whitespace() {
        assert!(refused.contains(module), "{module} is not in the list that the model is told");
    }
}
