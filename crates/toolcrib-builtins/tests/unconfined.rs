//! The tools that run programs, where nothing can confine these.

use toolcrib_sandbox::jail::set_helper;
use toolcrib_tool::native_tools;
// The tools register themselves.
use toolcrib_builtins as _;

#[test]
fn without_a_helper_tools_that_run_programs_are_unavailable_and_say_so() {
    // Others of the workspace build with a hook that makes every test its own helper.
    assert!(set_helper("/nonexistent/toolcrib-jail"));
    for name in ["bash", "execute_python"] {
        let tool = native_tools().into_iter().find(|tool| tool.name == name).expect("it is linked");
        let entry = tool.entry().expect("the definition is right");
        let reason = entry.unavailable_reason().unwrap_or_default();
        assert!(reason.contains("toolcrib-jail"), "{name}: {reason}");
    }
}
