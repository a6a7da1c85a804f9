//! Mistakes in the settings of providers and agents.

use crate::harness::crib::Crib;

#[test]
fn a_key_in_the_config_is_refused_at_its_place_and_not_repeated() {
    let crib = Crib::new(&[]);
    crib.config(
        "providers:\n  p:\n    kind: chat\n    base_url: https://example.com/v1\n    api_key: sk-this-is-the-key\n",
    );
    for command in [&["check"][..], &["run", "Hello."], &["list"]] {
        let run = crib.run(command);
        assert_eq!(run.code, Some(2), "{run:?}");
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains("config.yml:5:14"), "{told}");
        assert!(
            told.contains("expected the name of a secret, not its value: write `${secret.NAME}`")
        );
        assert!(!told.contains("sk-this"), "{told}");
    }
}

#[test]
fn providers_that_are_reached_unencrypted_beyond_private_networks_are_named() {
    let crib = Crib::new(&[]);
    let urls = [
        "http://models.example.com/v1",
        "http://8.8.8.8/v1",
        "http://[2001:db8::1]/v1",
        "https://models.example.com/v1",
        "http://127.0.0.1:9/v1",
        "http://[::1]:9/v1",
        "http://10.1.2.3:8000/v1",
        "http://localhost:8000/v1",
        "http://models:8000/v1",
        "http://models.lan/v1",
    ];
    let provider =
        |(at, url): (usize, &&str)| format!("  p{at}: {{kind: chat, base_url: '{url}'}}\n");
    let providers: String = urls.iter().enumerate().map(provider).collect();
    crib.config(&format!("providers:\n{providers}"));
    for command in ["check", "doctor"] {
        let run = crib.run(&[command]);
        let told = format!("{}{}", run.stdout, run.stderr);
        for (at, url) in urls.iter().enumerate() {
            let named = format!("`providers.p{at}.base_url` is `{url}`: the conversations go over");
            assert_eq!(told.contains(&named), at < 3, "{command}: {url}: {told}");
        }
    }
    let check = crib.run(&["check"]);
    assert!(format!("{check:?}").contains("warning[plain-credentials]"), "{check:?}");
}

#[test]
fn an_agent_that_would_start_itself_does_not_begin() {
    let crib = Crib::new(&[]);
    crib.config(
        "providers: {p: {kind: chat, base_url: 'http://127.0.0.1:9/v1'}}\n\
         agents: {a: {model: p/m, sub_agents: [b]}, b: {model: p/m, sub_agents: [a]}}\n",
    );
    let run = crib.run(&["run", "--agent", "a", "Hello."]);
    assert!(run.code == Some(2) && run.stderr.contains("would start itself"), "{run:?}");
}

#[test]
fn a_wrong_setting_of_a_provider_or_an_agent_is_told_at_its_place() {
    let provider = "providers: {p: {kind: chat, base_url: 'https://example.com/v1'}}\n";
    for (text, place, said) in [
        ("providers: {p: {kind: chat}}", "config.yml:1:", "base_url"),
        (
            "providers: {p: {kind: openai, base_url: 'https://a.example'}}",
            "config.yml:1:23",
            "write `chat`",
        ),
        ("providers: {p: {kind: chat, base_url: 'ftp://a.example'}}", "config.yml:1:39", "http"),
        (
            "providers: {p: {kind: chat, base_url: 'https://a.example?x=1'}}",
            "config.yml:1:39",
            "no query",
        ),
        ("agents: {a: {model: gpt}}", "config.yml:1:21", "PROVIDER/MODEL"),
        ("agents: {a: {modle: p/m}}", "config.yml:1:14", "`model`"),
        ("agent: {max_cost: 0}", "config.yml:1:19", "more than zero"),
        ("agent: {max_turns: 0}", "config.yml:1:20", "1"),
        ("sub_agent: {max_depth: 0}", "config.yml:1:24", "1"),
        ("agents: {a: {model: p/m, output_schema: {type: nonsense}}}", "config.yml:1:41", "/type"),
        (
            "agents: {a: {model: p/m, output_schema: {$ref: '#/$defs/b', $defs: {b: {}}}}}",
            "config.yml:1:41",
            "write what it refers to in its place",
        ),
        ("agents: {a: {model: p/m, max_turns: 5}}", "config.yml:1:26", "`budget.max_turns`"),
        (
            "agents: {a: {model: p/m, budget: {max_cost: $2}}}",
            "config.yml:1:45",
            "an amount in US dollars such as 2.50",
        ),
        ("agents: {a: {model: p/m, system: Hello.}}", "config.yml:1:26", "`instruction`"),
        ("agents: {a: {model: p/m, output_schema: [1]}}", "config.yml:1:41", "mapping"),
        (
            "agents: {a: {model: p/m, compaction: {at: 2}}}",
            "config.yml:1:43",
            "a share from 0.1 to 1",
        ),
    ] {
        let crib = Crib::new(&[]);
        crib.config(&format!("{text}\n"));
        let run = crib.run(&["check"]);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains(place) && told.contains(said), "{text}: {told}");
        assert_eq!(run.code, Some(2), "{text}: {told}");
    }
    for (text, place, said) in [
        ("agents: {a: {model: q/m}}", "config.yml:2:21", "`providers` declares no `q`"),
        ("agents: {a: {model: p/m, fallback: [q/m]}}", "config.yml:2:37", "no `q`"),
        ("agents: {a: {model: p/m, toolset: t}}", "config.yml:2:35", "no such toolset"),
        ("agents: {a: {model: p/m, compaction: {model: q/m}}}", "config.yml:2:46", "no `q`"),
        ("agents: {a: {model: p/m, sub_agents: [b]}}", "config.yml:2:39", "no such agent"),
        ("agents: {a: {model: p/m, sub_agents: [a]}}", "config.yml:2:39", "would start itself"),
        (
            "agents: {a: {model: p/m, sub_agents: [b]}, b: {model: p/m, sub_agents: [a]}}",
            "config.yml:2:73",
            "the agent `b` would start itself",
        ),
    ] {
        let crib = Crib::new(&[]);
        crib.config(&format!("{provider}{text}\n"));
        let run = crib.run(&["check"]);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains(place) && told.contains(said), "{text}: {told}");
        // `toolcrib run` refuses it, too.
        assert!(run.code == Some(1) && told.contains("error[refused-setting]"), "{text}: {told}");
    }
}

#[test]
fn a_flag_sets_a_part_of_a_named_entry_of_the_file() {
    let crib = Crib::new(&[]);
    crib.config(
        "providers: {p: {kind: chat, base_url: 'https://example.com/v1'}}\n\
         agents: {a: {model: p/m, instruction: Be brief.}}\n",
    );
    let set = ["--set", "agents.a.budget.max_turns=7", "--set", "providers.p.kind=anthropic"];
    let run = crib.run(&[&set[..], &["config", "show"]].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("max_turns: 7") && run.stdout.contains("Be brief."), "{run:?}");
    let wrong = crib.run(&["--set", "agents.b.budget.max_turns=7", "config", "show"]);
    assert!(wrong.stderr.contains("the key `model` is missing"), "{wrong:?}");
}

#[test]
fn an_agent_is_tried_with_a_script_in_place_of_the_models_of_it_and_its_sub_agents() {
    let crib = Crib::new(&[]);
    crib.config(
        "agents:\n  boss: {model: p/m, sub_agents: [helper], budget: {max_turns: 4}}\n  \
         helper: {model: p/m}\n  \
         judge:\n    model: p/m\n    output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}\n",
    );
    let script = r#"[
        {"call": "new_task", "arguments": {"agent_name": "helper", "task_name": "a", "input": "Add."}},
        {"call": "calculator", "arguments": {"expression": "6*7"}},
        {"text": "It is 42."},
        {"text": "The helper says 42."}
    ]"#;
    std::fs::write(crib.path().join("script.json"), script).expect("a script");
    let scripted = ["--model", "scripted:script.json"];
    let run = crib.run(&[&["run", "--agent", "boss"], &scripted[..], &["Add."]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "The helper says 42.\n"), "{run:?}");
    assert!(run.stderr.contains("calculator"), "{run:?}");

    let script = r#"[{"text": "Seven."}, {"call": "attempt_completion", "arguments": {"result": {"n": 7}}}]"#;
    std::fs::write(crib.path().join("script.json"), script).expect("a script");
    let run = crib.run(&[&["run", "--agent", "judge"], &scripted[..], &["Count."]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "{\"n\":7}\n"), "{run:?}");
}

#[test]
fn a_run_that_is_resumed_with_another_model_keeps_the_limits_of_its_agent() {
    let crib = Crib::new(&[]);
    crib.config(
        "toolsets: {few: {include: [{names: [json_process]}]}}\nagents: {boss: {model: p/m, toolset: few}}\n",
    );
    let write =
        |script: &str| std::fs::write(crib.path().join("s.json"), script).expect("a script");
    write(r#"[{"text": "Hello."}]"#);
    let scripted = ["--model", "scripted:s.json"];
    let run = crib.run(&[&["run", "--agent", "boss"], &scripted[..], &["Hello."]].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    write(
        r#"[{"text": "Hello."}, {"call": "calculator", "arguments": {"expression": "6*7"}}, {"text": "It is."}]"#,
    );
    let run = crib.run(&[&["run", "--resume", "last"], &scripted[..], &["Add."]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "It is.\n"), "{run:?}");
    assert!(run.stderr.contains("not_found"), "the toolset of its agent holds: {run:?}");
}
