//! Chat completions against the independent checker.

use proptest::prelude::*;
use toolcrib_testkit::served::{check_chunks, check_completion};
use toolcrib_tool::CallId;
use toolcrib_wire::api::ApiError;
use toolcrib_wire::chat::{ChatWriter, FinishReason};

use crate::scripts::usage;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_and_the_completion_are_what_the_specification_says(
        steps in prop::collection::vec((0..7_u8, 0..3_u8, "\\PC{0,6}"), 0..30),
        include_usage in any::<bool>(),
    ) {
        let mut writer = ChatWriter::new("chatcmpl_1", 7, "m", include_usage);
        let mut stream: Vec<String> = writer.begin();
        let mut has_calls = false;
        for (step, call, text) in steps {
            let id = CallId::new(format!("call_{call}"));
            stream.extend(match step {
                0 | 1 => writer.text(&text),
                2 => writer.reasoning(&text),
                3 => writer.refusal(&text),
                4 => { has_calls = true; writer.call(&id, "f") }
                5 => { has_calls = true; writer.custom_call(&id, "g") }
                _ => writer.call_arguments(&id, &text),
            });
        }
        let reason = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        let whole = writer.clone().into_completion(reason, Some(&usage()));
        stream.extend(writer.finish(reason, Some(&usage())));
        prop_assert!(writer.text("more").is_empty());
        let stream = stream.concat();
        let streamed = check_chunks(&stream, include_usage).map_err(TestCaseError::fail)?;
        let at_once = check_completion(&whole).map_err(TestCaseError::fail)?;
        prop_assert_eq!(streamed, at_once);
    }
}

#[test]
fn an_answer_that_fails_does_not_look_whole() {
    let mut writer = ChatWriter::new("chatcmpl_1", 7, "m", false);
    let mut stream = writer.text("Hel").concat();
    stream += &writer.fail(&ApiError::invalid("no")).concat();
    assert!(stream.ends_with("}\n\n") && stream.contains(r#""error":"#));
    assert!(check_chunks(&stream, false).is_err());
    assert!(writer.finish(FinishReason::Stop, None).is_empty());
}
