//! Tools that run programs, on a machine that cannot confine them.

use toolcrib_sandbox::jail::set_helper;
use toolcrib_tool::native_tools;
// The tools register themselves.
use toolcrib_builtins as _;

#[test]
fn without_a_helper_tools_that_run_programs_are_unavailable_and_say_so() {
    // Other test programs of the workspace are built with a hook that lets them act as the jail's helper.
    assert!(set_helper("/nonexistent/toolcrib-jail"));
    for name in ["bash", "execute_python"] {
        let tool = native_tools().into_iter().find(|tool| tool.name == name).expect("it is linked");
        let entry = tool.entry().expect("the definition is right");
        let reason = entry.unavailable_reason().unwrap_or_default();
        assert!(reason.contains("toolcrib-jail"), "{name}: {reason}");
    }
}
