//! Every tool of a catalogue is exported to every provider, or refused with a reason.

use std::collections::{BTreeMap, BTreeSet};

use toolcrib_wire::{Target, export};

use crate::rules::check;
use crate::sample::{Row, catalogue, sample};

#[test]
fn every_row_is_exported_or_refused_with_a_reason() {
    let rows = catalogue();
    for &target in Target::ALL {
        let mut exported = 0;
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        let mut notes = 0;
        for row in &rows {
            let export = export([row.declaration()], target);
            notes += export.notes.len();
            assert_eq!(export.tools.len() + export.refused.len(), 1, "{target}: {}", row.name);
            assert_eq!(export.names.iter().count(), export.tools.len());
            for tool in &export.tools {
                check(tool, target);
                exported += 1;
            }
            for refusal in &export.refused {
                assert_eq!(refusal.tool, row.name);
                *refused.entry(refusal.reason.to_string()).or_default() += 1;
            }
        }
        println!("{target}: {exported} of {} exported, {notes} notes", rows.len());
        for (reason, count) in refused {
            println!("    {count} refused: {reason}");
        }
    }
}

#[test]
fn a_whole_catalogue_keeps_its_names_apart() {
    let rows = catalogue();
    let distinct: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    for &target in Target::ALL {
        let export = export(rows.iter().map(Row::declaration), target);
        let theirs: BTreeSet<&str> = export.names.iter().map(|(_, theirs)| theirs).collect();
        assert_eq!(theirs.len(), export.tools.len(), "{target}");
        let named: BTreeSet<&str> = export
            .refused
            .iter()
            .map(|refusal| refusal.tool.as_str())
            .chain(export.names.iter().map(|(own, _)| own))
            .collect();
        assert_eq!(named, distinct, "{target}");
        for (own, theirs) in export.names.iter() {
            assert_eq!(export.names.from_provider(theirs), Some(own));
        }
    }
}

#[test]
fn the_sample_covers_every_outcome() {
    let rows = sample();
    assert!(rows.len() >= 60);
    let refused = |target: Target| -> BTreeMap<String, String> {
        let export = export(rows.iter().map(Row::declaration), target);
        export.refused.into_iter().map(|one| (one.tool, one.reason.to_string())).collect()
    };
    // Schemas that do not describe objects are refused for all.
    let never = ["empty_enum", "outside_reference", "broken_reference", "root_array"];
    for &target in Target::ALL {
        let refused = refused(target);
        for name in never {
            assert!(refused.contains_key(name), "{target}: {name}");
        }
        assert!(!refused.contains_key("book_berth"), "{target}");
    }
    // Tools that only some providers cannot express are refused for those.
    assert!(refused(Target::OpenAiStrict).contains_key("zod_record"));
    assert!(!refused(Target::Gemini).contains_key("zod_record"));
    assert!(refused(Target::Gemini).contains_key("recursive"));
    assert!(!refused(Target::OpenAiStrict).contains_key("recursive"));
    assert!(refused(Target::Anthropic).contains_key("天气预报"));
    assert!(!refused(Target::OpenAiChat).contains_key("天气预报"));
    assert!(refused(Target::OpenAiStrict).contains_key("too_deep"));
    assert!(refused(Target::OpenAiStrict).contains_key("long_enum"));
}
