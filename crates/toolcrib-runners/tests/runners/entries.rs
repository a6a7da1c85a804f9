//! Many declarations at once: the same tools, in the same order, as one after another.

use std::fmt::Write as _;

use toolcrib_manifest::load_str;
use toolcrib_runners::{RunnerHost, entries, entry};

#[test]
fn the_tools_of_many_declarations_come_whole_and_in_their_order() {
    let mut text = "toolcrib: 1\ntools:\n".to_owned();
    for number in 0..333 {
        let program = if number % 7 == 0 { "no-such-program" } else { "echo" };
        writeln!(
            text,
            "  - {{name: t{number}, description: Number {number}., run: {{argv: [{program}]}}}}"
        )
        .unwrap();
    }
    let loaded = load_str("many.yaml", &text);
    assert_eq!(loaded.diagnostics, []);
    let all: Vec<_> = loaded.declarations.iter().collect();
    let host = RunnerHost::new("/");
    for count in [0, 1, 31, 32, 33, 64, 65, 333] {
        let made = entries(&all[..count], &host);
        assert_eq!(made.len(), count);
        for (made, declaration) in made.iter().zip(&all) {
            let alone = entry(declaration, &host);
            assert_eq!(made.name(), alone.name());
            assert_eq!(made.digest, alone.digest);
            assert_eq!(made.unavailable_reason(), alone.unavailable_reason());
        }
    }
}
