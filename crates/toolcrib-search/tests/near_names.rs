//! The promises of near names: typical mistakes are found, and unrelated names are not.

use proptest::prelude::*;
use toolcrib_search::{Fingerprints, MAX_QUERY, MAX_SUGGESTIONS, near_names, near_names_among};

/// The tools of a plausible server.
const TOOLS: [&str; 30] = [
    "archive_listing",
    "block_devices",
    "calculator",
    "certificate_expiry",
    "create_ticket",
    "directory_size",
    "disk_usage",
    "edit_file",
    "execute_python",
    "file_checksum",
    "get_issue",
    "git_log",
    "git_status",
    "http_check",
    "json_process",
    "large_files",
    "list_directory",
    "list_issues",
    "listening_ports",
    "memory_usage",
    "pod_logs",
    "read_file",
    "resolve_name",
    "search_log",
    "service_state",
    "system_uptime",
    "tail_log",
    "text_process",
    "top_processes",
    "write_file",
];

#[test]
fn the_intended_name_comes_first() {
    for (query, meant) in [
        // Mistyped.
        ("raed_file", "read_file"),
        ("read_fle", "read_file"),
        ("disc_usage", "disk_usage"),
        ("git_lgo", "git_log"),
        ("certficate_expirey", "certificate_expiry"),
        ("calcualtor", "calculator"),
        ("listning_ports", "listening_ports"),
        ("exceute_pyton", "execute_python"),
        ("http_chek", "http_check"),
        // Written in another case.
        ("ReadFile", "read_file"),
        ("readFile", "read_file"),
        ("read-file", "read_file"),
        ("READ_FILE", "read_file"),
        ("readfile", "read_file"),
        ("read file", "read_file"),
        (" read_file\n", "read_file"),
        ("jsonProcess", "json_process"),
        // Reordered.
        ("file_read", "read_file"),
        ("usage_disk", "disk_usage"),
        ("StatusGit", "git_status"),
        ("ports_listening", "listening_ports"),
        // With a namespace, or with extra words.
        ("mcp__server__read_file", "read_file"),
        ("mcp__some_longer_server_name__of_many_words__read_file", "read_file"),
        ("functions.read_file", "read_file"),
        ("default_api:read_file", "read_file"),
        ("tools/read_file", "read_file"),
        ("filesystem_read_file", "read_file"),
        ("read_file_tool", "read_file"),
        ("ReadFileTool", "read_file"),
        ("mcp__fs__readFile", "read_file"),
        ("mcp__fs__raed_file", "read_file"),
        ("read_text_file", "read_file"),
        ("get_disk_usage", "disk_usage"),
        // One of its words.
        ("disk", "disk_usage"),
        ("calculator_tool", "calculator"),
        ("certificate", "certificate_expiry"),
        ("uptime", "system_uptime"),
        ("checksum", "file_checksum"),
        ("memory", "memory_usage"),
    ] {
        let found = near_names(query, TOOLS);
        assert_eq!(found.first(), Some(&meant), "{query:?} gave {found:?}");
    }
}

#[test]
fn unrelated_names_are_not_suggested() {
    for query in [
        "send_mail",
        "weather",
        "book_flight",
        "translate",
        "kubectl",
        "get_user",
        "delete_branch",
        "sleep",
        "web_search_results",
        "rm",
        "git",  // three letters name no tool
        "file", // a word of more than three tools
        "xyzzy",
        "a",
        "_",
        "",
        "...",
    ] {
        assert_eq!(near_names(query, TOOLS), Vec::<&str>::new(), "{query:?}");
    }
}

#[test]
fn short_names_allow_at_most_one_typo() {
    assert_eq!(near_names("ids", ["id", "ip", "idea"]), ["id"]);
    assert!(near_names("q", ["x", "id"]).is_empty());
    assert!(near_names("df", ["du", "dd"]).is_empty());
}

#[test]
fn the_name_itself_is_never_suggested() {
    assert!(near_names("read_file", ["read_file"]).is_empty());
    assert_eq!(near_names("read_file", ["read_file", "read_files"]), ["read_files"]);
}

#[test]
fn one_typo_ranks_before_an_extra_word_and_that_before_two_typos() {
    let names = ["read_files", "read_life", "read", "file_read", "READ_FILE", "raed_fiel"];
    assert_eq!(near_names("read_file", names), ["READ_FILE", "file_read", "read_files"]);
    assert_eq!(near_names("read_file", ["raed_fiel", "read"]), ["read", "raed_fiel"]);
    assert_eq!(near_names("read_file", ["read", "raed_file"]), ["raed_file", "read"]);
}

#[test]
fn the_nearest_part_of_a_long_name_comes_first() {
    let names = ["list", "issues", "list_issues", "github_list_issues"];
    assert_eq!(
        near_names("mcp__github__list_issues", names),
        ["github_list_issues", "list_issues", "issues"]
    );
}

#[test]
fn a_word_in_many_names_suggests_none_of_them() {
    let three = ["disk_usage", "disk_free", "disk_health"];
    assert_eq!(near_names("disk", three), ["disk_free", "disk_usage", "disk_health"]);
    assert!(near_names("disk", three.into_iter().chain(["disk_image"])).is_empty());
}

#[test]
fn a_word_of_a_much_longer_name_does_not_suggest_it() {
    let names = ["get_current_weather_forecast_for_city", "city_weather"];
    assert_eq!(near_names("city", names), ["city_weather"]);
}

#[test]
fn a_name_with_another_word_among_the_same_ones_is_suggested_if_nothing_is_nearer() {
    let names = ["calculate_final_speed", "calculate_distance", "final_report", "send_mail"];
    for query in ["compute_final_speed", "computeFinalSpeed", "final_speed_estimate"] {
        assert_eq!(near_names(query, names), ["calculate_final_speed"], "{query}");
        let kept = Fingerprints::of(names);
        assert_eq!(near_names_among(query, &kept, |at| Some(names[at])), ["calculate_final_speed"]);
    }
    // A mistyped name is nearer.
    assert_eq!(near_names("compute_final_sped", ["compute_final_speed", names[0]]).len(), 1);
    // One word, short words, and words of many names suggest nothing.
    assert!(near_names("compute_speed", ["calculate_speed"]).is_empty());
    assert!(near_names("get_user_settings", ["get_user_profile"]).is_empty());
    let many: Vec<String> =
        (b'a'..=b'd').map(|it| format!("read{0}{0}_final_speed", char::from(it))).collect();
    assert!(near_names("write_final_speed", many.iter().map(String::as_str)).is_empty());
}

#[test]
fn property_names_beyond_ascii_are_found() {
    let properties = ["größe", "länge", "имя_файла"];
    assert_eq!(near_names("grösse", properties), ["größe"]);
    assert_eq!(near_names("größen", properties), ["größe"]);
    assert_eq!(near_names("имя_фаила", properties), ["имя_файла"]);
}

#[test]
fn a_query_longer_than_any_name_costs_nothing_and_finds_nothing() {
    let longest = "read_file".to_owned() + &"_".repeat(MAX_QUERY - 9);
    assert_eq!(near_names(&longest, TOOLS), ["read_file"]);
    assert!(near_names(&(longest + "_"), TOOLS).is_empty());
}

proptest! {
    #[test]
    fn the_order_of_the_candidates_does_not_matter(
        query in "[a-c_]{1,8}",
        (names, shuffled) in proptest::collection::vec("[a-c_]{1,8}", 0..20)
            .prop_flat_map(|names| (Just(names.clone()), Just(names).prop_shuffle())),
    ) {
        let found = near_names(&query, names.iter().map(String::as_str));
        prop_assert_eq!(&found, &near_names(&query, shuffled.iter().map(String::as_str)));
        prop_assert!(found.len() <= MAX_SUGGESTIONS);
        prop_assert!(!found.contains(&query.as_str()));
        let mut distinct = found.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), found.len());
    }

    #[test]
    fn any_two_texts_can_be_compared(query in any::<String>(), name in any::<String>()) {
        near_names(&query, [name.as_str()]);
    }

    #[test]
    fn one_typo_in_a_name_is_found(
        name in "[a-z]{3,8}_[a-z]{3,8}", at in 0_usize..6, slip in b'a'..=b'z',
    ) {
        let mut typed = name.clone().into_bytes();
        typed[at] = slip;
        let typed = String::from_utf8(typed).unwrap();
        let found = near_names(&typed, [name.as_str()]);
        prop_assert_eq!(found.is_empty(), typed == name);
    }

    #[test]
    fn stored_fingerprints_give_the_same_answer(
        query in "[a-cA-C_.]{1,12}", names in proptest::collection::vec("[a-cA-C_]{1,12}", 0..20),
    ) {
        let kept = Fingerprints::of(names.iter().map(String::as_str));
        let found = near_names_among(&query, &kept, |at| Some(names[at].as_str()));
        prop_assert_eq!(found, near_names(&query, names.iter().map(String::as_str)));
    }
}
