//! How a start handles the manifests that it finds.

use serde_json::json;

use crate::conversation::{Call, Revision, success};
use crate::crib::Crib;
use crate::installed;
use crate::python_sdk::converse;

const GOOD: &str = r#"toolcrib: 1
tools:
  - name: say
    description: Say a text.
    input:
      properties:
        text: {type: string}
      required: [text]
    run:
      argv: [printf, "%s", "${args.text}"]
"#;

/// `descripton` in line 4 from column 5 on.
const BROKEN: &str = r#"toolcrib: 1
tools:
  - name: broken
    descripton: Nobody reads this.
    run:
      argv: ["true"]
"#;

#[test]
fn a_broken_manifest_is_named_with_its_place_and_the_others_are_served() {
    let Some(clients) = installed::clients() else { return };
    let crib = Crib::empty();
    crib.add("10-broken.yaml", BROKEN);
    crib.add("20-good.yaml", GOOD);

    let hello = Call::new("say", json!({"text": "hello; $(id)"}));
    let (seen, stderr) = converse(clients, &crib.over_stdio(), Revision::Stateless, &[hello]);
    assert!(stderr.contains("10-broken.yaml:4:5"), "{stderr}");
    assert!(stderr.contains("descripton") && stderr.contains("description"), "{stderr}");
    assert!(!stderr.contains("20-good.yaml"), "{stderr}");

    let names = seen.tool_names();
    assert!(names.contains(&"say") && !names.contains(&"broken"), "{names:?}");
    assert_eq!(success(&seen.replies[0]), "hello; $(id)");
}

#[test]
fn a_manifest_dropped_into_the_directory_is_there_at_the_next_start() {
    let Some(clients) = installed::clients() else { return };
    let crib = Crib::empty();
    let (before, _) = converse(clients, &crib.over_stdio(), Revision::Stateless, &[]);
    assert!(!before.tool_names().contains(&"say"), "{before:?}");

    crib.add("say.yaml", GOOD);
    let hello = Call::new("say", json!({"text": "hello"}));
    let (after, _) = converse(clients, &crib.over_stdio(), Revision::Stateless, &[hello]);
    assert!(after.tool_names().contains(&"say"), "{after:?}");
    assert_eq!(success(&after.replies[0]), "hello");
}
