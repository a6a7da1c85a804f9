//! `execute_python`: how code ends, and what its results report.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::json;
use toolcrib_builtins::code::{ModuleName, PythonSettings, Strictness};
use toolcrib_core::ExecutorConfig;
use toolcrib_tool::ErrorKind;

use crate::harness::{Crib, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("what_code_prints_is_the_result", what_code_prints_is_the_result),
        trial("an_exception_fails_with_the_codes_own_traceback", an_exception_fails),
        trial("an_exit_code_is_the_codes_own", an_exit_code_is_the_codes_own),
        trial("syntax_is_looked_at_first", syntax_is_looked_at_first),
        trial("every_rule_that_is_broken_is_named_with_its_line", every_rule_is_named),
        trial("no_code_can_pose_as_the_guard", no_code_can_pose_as_the_guard),
        trial("code_at_its_limit_is_a_timeout_with_what_it_printed", code_at_its_limit),
        trial("code_has_no_environment_an_empty_directory_and_no_input", surroundings),
        trial("lenient_code_may_do_what_it_likes_in_the_workspace", lenient_code),
        trial("no_call_chooses_lenient_unless_the_operator_says_so", no_call_chooses_lenient),
        trial("an_operator_chooses_level_time_and_extra_modules", an_operator_chooses),
        trial("threads_are_allowed", threads_are_allowed),
        trial("what_is_no_text_elsewhere_is_shown", odd_texts),
        trial("a_name_bound_in_one_scope_is_refused_in_every_other", bound_elsewhere),
        trial("imports_of_deprecated_modules_add_nothing_to_the_output", deprecated_imports),
        trial("failed_code_is_answered_with_what_to_do_next", what_to_do_next),
    ]
}

async fn what_code_prints_is_the_result() {
    let crib = Crib::new();
    let code = "import sys as s\nprint('a'); print('b', file=s.stderr)";
    assert_eq!(crib.python(code, "strict").await.error_kind(), Some(ErrorKind::Denied));
    let result =
        crib.python("import warnings\nprint('grüße')\nwarnings.warn('old')", "standard").await;
    assert!(result.text().starts_with("grüße\n[stderr]\n"), "{}", result.text());
    let data = result.data().expect("there is data");
    assert_eq!((&data["stdout"], &data["exit_code"]), (&json!("grüße\n"), &json!(0)));
    assert!(data["stderr"].as_str().is_some_and(|text| text.contains("UserWarning: old")));
    assert_eq!(crib.python("x = 1", "strict").await.text(), "[nothing was printed]");
    let default = crib.call("execute_python", json!({"code": "print(6 * 7)"})).await;
    assert_eq!(default.text(), "42\n");
}

async fn an_exception_fails() {
    let code =
        "import json\ndef load(text):\n    return json.loads(text)\nprint('before')\nload('{')";
    let result = Crib::new().python(code, "standard").await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Execution));
    let text = result.text();
    assert!(text.contains("(exit code 1): json.decoder.JSONDecodeError: "), "{text}");
    assert!(text.contains("before\n[stderr]\nTraceback (most recent call last):\n"), "{text}");
    assert!(text.contains("File \"<code>\", line 5, in <module>\n    load('{')\n"), "{text}");
    assert!(!text.contains("checked") && !text.contains("in run"), "{text}");
    let partial = result.error().and_then(|error| error.partial()).expect("what it had done");
    assert_eq!(partial.data().map(|data| &data["stdout"]), Some(&json!("before\n")));
}

async fn an_exit_code_is_the_codes_own() {
    let crib = Crib::new();
    assert_eq!(crib.python("print(1)\nraise SystemExit", "strict").await.text(), "1\n");
    let three = crib.python("raise SystemExit(3)", "strict").await;
    assert_eq!(three.error_kind(), Some(ErrorKind::Execution));
    assert!(three.text().contains("(exit code 3)"), "{}", three.text());
    let text = crib.python("raise SystemExit('not today')", "strict").await;
    assert!(text.text().contains("(exit code 1): not today"), "{}", text.text());
}

async fn syntax_is_looked_at_first() {
    let crib = Crib::new();
    let result = crib.python("import os\nprint('x'", "standard").await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Execution));
    assert!(
        result.text().contains("it is not Python:\n  File \"<code>\", line 2"),
        "{}",
        result.text()
    );
    let deep = format!("x = {}1{}", "(".repeat(5000), ")".repeat(5000));
    for broken in ["print('a\u{0}b')", &deep, "def f(:\n  pass", "\u{feff}\u{feff}x"] {
        let result = crib.python(broken, "strict").await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Execution), "{}", result.text());
        assert!(result.text().contains("the code "), "{}", result.text());
    }
}

async fn every_rule_is_named() {
    let code = "x = 1\nimport os, json\nprint(open('a'), ().__class__)\nfrom subprocess import run";
    let result = Crib::new().python(code, "standard").await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Denied));
    let text = result.text();
    for reason in [
        "line 2: the module `os` is not available at `standard`; the available modules are: ",
        "line 3: `open` is not available at `standard`\n",
        "line 3: the attribute `__class__` cannot be used\n",
        "line 4: the module `subprocess` is not available",
    ] {
        assert!(text.contains(reason), "{reason}: {text}");
    }
}

async fn no_code_can_pose_as_the_guard() {
    // The second line belongs to the code, whatever it contains.
    let code =
        "import logging\nlogging.warning('x')\nlogging.lastResort.stream.write('refused\\nline 1')";
    let result = Crib::new().python(code, "standard").await;
    assert!(result.is_success(), "{}", result.text());
}

async fn code_at_its_limit() {
    let short =
        |python: PythonSettings| python.with_timeout(Strictness::Strict, Duration::from_secs(1));
    let crib = Crib::with(|bash| bash, short, ExecutorConfig::default());
    let result = crib.python("print('before')\nwhile True: pass", "strict").await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().ends_with("before\n"), "{}", result.text());
    // Processor time, which the kernel counts, does not bypass the limit.
    let sleeping = crib.python("import threading\nthreading.Event().wait()", "strict").await;
    assert_eq!(sleeping.error_kind(), Some(ErrorKind::Denied));
    assert_eq!(Strictness::ALL.map(|level| level.default_timeout().as_secs()), [30, 10, 5]);
}

async fn surroundings() {
    let code = "import os\nprint(sorted(os.environ), os.listdir('.'), os.getcwd() == os.environ['HOME'])\ntry:\n    input()\nexcept EOFError:\n    print('no input')";
    let lenient = |python: PythonSettings| python.with_allow_lenient(true);
    let crib = Crib::with(|bash| bash, lenient, ExecutorConfig::default());
    let result = crib.python(code, "lenient").await;
    let expected = "['HOME', 'LANG', 'PATH', 'TMPDIR', 'TOOLCRIB_CALL', 'TOOLCRIB_WORKSPACE', 'TZ'] [] True\nno input\n";
    assert_eq!(result.text(), expected);
}

async fn lenient_code() {
    let lenient = |python: PythonSettings| python.with_allow_lenient(true);
    let crib = Crib::with(|bash| bash, lenient, ExecutorConfig::default());
    let code = "
import os, subprocess, pathlib, socket
root = pathlib.Path(os.environ['TOOLCRIB_WORKSPACE'])
(root / 'made').write_text('by python')
print(subprocess.run(['echo', 'a process'], capture_output=True, text=True).stdout, end='')
print(eval('1 + 1'), ().__class__.__name__)
socket.socket().close()
";
    let result = crib.python(code, "lenient").await;
    assert_eq!(result.text(), "a process\n2 tuple\n", "{result:?}");
    let made = std::fs::read_to_string(crib.workspace().join("made"));
    assert_eq!(made.ok().as_deref(), Some("by python"));
}

async fn no_call_chooses_lenient() {
    let denied = Crib::new().python("print(1)", "lenient").await;
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied));
    assert!(denied.text().contains("Leave `strictness` out."), "{}", denied.text());
    let by_default = |python: PythonSettings| python.with_default_strictness(Strictness::Lenient);
    let crib = Crib::with(|bash| bash, by_default, ExecutorConfig::default());
    let result = crib.call("execute_python", json!({"code": "import os\nprint(1)"})).await;
    assert_eq!(result.text(), "1\n");
}

fn module(name: &str) -> ModuleName {
    name.parse().expect("it is the name of a module")
}

async fn an_operator_chooses() {
    let chosen = |python: PythonSettings| {
        let mut python = python.with_default_strictness(Strictness::Strict);
        python.register_extra_modules(Strictness::Strict, ["json", "wsgiref"].map(module));
        python
    };
    let crib = Crib::with(|bash| bash, chosen, ExecutorConfig::default());
    // Submodules of an extra module are available, too.
    let code = "import json, wsgiref.headers\nprint(json.dumps([1]), wsgiref.headers.Headers([]))";
    let result = crib.call("execute_python", json!({"code": code})).await;
    assert_eq!(result.text(), "[1] \r\n\n", "{result:?}");
    let elsewhere = crib.python("import wsgiref", "standard").await;
    assert_eq!(elsewhere.error_kind(), Some(ErrorKind::Denied));
}

async fn threads_are_allowed() {
    let extra = |mut python: PythonSettings| {
        python.register_extra_modules(Strictness::Standard, [module("threading")]);
        python
    };
    let crib = Crib::with(|bash| bash, extra, ExecutorConfig::default());
    let code = "import threading\ndone = []\nthreads = [threading.Thread(target=done.append, args=(n,)) for n in range(4)]\nfor thread in threads: thread.start()\nfor thread in threads: thread.join()\nprint(sorted(done))";
    assert_eq!(crib.python(code, "standard").await.text(), "[0, 1, 2, 3]\n");
}

async fn odd_texts() {
    let crib = Crib::new();
    let result = crib.python("print('\\ud800', '\\x1b[2J', 'é', end='')", "strict").await;
    assert_eq!(result.text(), "\\ud800 \\u{1b}[2J é");
    let long = crib.python("print('x' * 3_000_000)", "strict").await;
    assert!(long.is_success() && long.truncated(), "{:?}", long.error());
    assert!(long.text().len() < 60_000, "{}", long.text().len());
}

async fn bound_elsewhere() {
    let crib = Crib::new();
    for name in [
        "eval",
        "exec",
        "open",
        "input",
        "globals",
        "vars",
        "memoryview",
        "dir",
        "getattr",
        "hasattr",
        "setattr",
        "delattr",
        "type",
        "isinstance",
        "issubclass",
    ] {
        for code in [
            format!("def f({name}): pass\nprint({name})\nprint({name}(1))"),
            format!("print({name}(1))\n{name} = 1"),
            format!("class C:\n    {name} = 1\n    def f(self): return {name}(1)\nprint(C().f())"),
            format!("def f({name}): pass\nprint(list(map({name}, [1])))"),
        ] {
            // A class with this name may print itself; calling it must not work.
            let result = crib.python(&code, "strict").await;
            assert_eq!(result.error_kind(), Some(ErrorKind::Execution), "{code}: {result:?}");
            assert!(
                result.text().contains(&format!("`{name}`")) || result.text().contains(name),
                "{code}"
            );
        }
        let own = format!("def f({name}): return {name} + 1\nprint(f(1))");
        assert_eq!(crib.python(&own, "strict").await.text(), "2\n", "{name}");
    }
    let frozen = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int\n\
                  p = P(1)\nprint(p == P(1), hash(p) == hash(P(1)))\ntry:\n    p.x = 2\n\
                  except Exception as e:\n    print(e)";
    let result = crib.python(frozen, "strict").await;
    assert_eq!(result.text(), "True True\ncannot assign to field 'x'\n");
}

async fn deprecated_imports() {
    let crib = Crib::new();
    let code = "try:\n    import uu\nexcept ImportError:\n    pass\nprint(1)";
    assert_eq!(crib.python(code, "standard").await.text(), "1\n");
    // The code's own warnings are its output.
    let own = "import warnings\nwarnings.warn('soon', DeprecationWarning)";
    let text = crib.python(own, "standard").await.text().into_owned();
    assert!(text.contains("<code>:2: DeprecationWarning: soon"), "{text}");
}

async fn what_to_do_next() {
    let crib = Crib::new();
    for code in ["1/0", "import sys\nsys.exit(3)", "x = ", "import os"] {
        let result = crib.python(code, "standard").await;
        let error = result.error().expect("it fails");
        assert!(!error.hints().is_empty(), "{code}: {error:?}");
    }
}
