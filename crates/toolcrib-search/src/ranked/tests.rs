//! The promises of a search.

use proptest::prelude::*;

use super::*;

fn tool<'a>(name: &'a str, description: &'a str) -> Searchable<'a> {
    Searchable { name, description, ..Searchable::default() }
}

fn index(tools: &[Searchable<'_>]) -> Index {
    let documents: Vec<Document> = tools.iter().map(Document::of).collect();
    Index::of(&documents)
}

fn found<'a>(question: &str, tools: &[Searchable<'a>]) -> Vec<&'a str> {
    let hits = index(tools).search(question, usize::MAX);
    hits.iter().map(|hit| tools[hit.position].name).collect()
}

#[test]
fn a_name_weighs_more_than_a_description_and_a_rare_word_more_than_a_common_one() {
    let tools = [
        tool("list_files", "Show what is in a directory."),
        tool("ping", "Show whether a host answers."),
        tool("read_file", "Show a text."),
        tool("tail_log", "Show the last lines of a file."),
    ];
    assert_eq!(found("file", &tools).last(), Some(&"tail_log"));
    assert_eq!(found("show me a host", &tools)[0], "ping");
    assert_eq!(found("ReadFiles", &tools)[0], "read_file");
    assert!(found("", &tools).is_empty() && found("?!", &tools).is_empty());
}

#[test]
fn tags_titles_and_parameters_are_found_and_say_so() {
    let mut tools = [tool("a", "Nothing."), tool("b", "Nothing."), tool("c", "Nothing.")];
    tools[0].parameters = vec![Parameter { name: "timeZone", description: "Of the moon." }];
    tools[1].tags = vec!["zone"];
    tools[2].title = "Zones";
    assert_eq!(found("zones", &tools).len(), 3);
    let index = index(&tools);
    let why = |position| index.matches("zones", position)[0].field;
    assert_eq!([why(0), why(1), why(2)], [Field::Parameters, Field::Tags, Field::Title]);
    assert_eq!(index.matches("moons", 0)[0].field, Field::ParameterDescriptions);
    assert!(index.matches("moons", 1).is_empty());
}

#[test]
fn half_a_word_matches_as_a_prefix_if_nothing_else_matches() {
    let tools = [tool("list_directory", ""), tool("send_mail", "")];
    assert_eq!(found("direc", &tools), ["list_directory"]);
    assert!(found("di", &tools).is_empty());
}

#[test]
fn synonyms_find_and_weigh_less_than_the_word() {
    let tools = [tool("remove_folder", ""), tool("show_directory", "")];
    assert_eq!(found("directory", &tools), ["show_directory", "remove_folder"]);
}

#[test]
fn each_part_of_a_question_finds_its_tool() {
    let tools = [
        tool("cancel_order", "Cancel an order of a customer in the shop."),
        tool("customer_orders", "List orders of a customer in the shop, with prices."),
        tool("forecast", "Weather of the coming days."),
        tool("shop_prices", "List prices of the shop for a customer and an order."),
    ];
    let question = "Cancel the order of customer 7 of the shop. Then show the weather.";
    let best = &found(question, &tools)[..2];
    assert!(best.contains(&"forecast") && best.contains(&"cancel_order"), "{best:?}");
}

#[test]
fn small_talk_beside_a_question_does_not_push_its_answer_aside() {
    let tools = [
        tool("triangle_area", "Compute the area of a triangle with a base and a height."),
        tool("circle_area", "Compute the area of a circle."),
        tool("plan_school_garden", "Plan a garden of a school."),
        tool("project_status", "Status of the project."),
    ];
    let question = "I am busy with a project of my school. What is the area of a triangle with base \
                    10 and height 5?";
    assert_eq!(found(question, &tools)[0], "triangle_area");
    let index = index(&tools);
    let hits = index.search(question, 4);
    assert!(hits[1..].iter().all(|hit| hit.score < 0.9 * hits[0].score), "{hits:?}");
}

#[test]
fn descriptions_of_parameters_decide_between_similar_tools() {
    let mut tools = [tool("solve_a", "Solve an equation."), tool("solve_b", "Solve an equation.")];
    tools[0].parameters = vec![Parameter { name: "x", description: "Any real number." }];
    tools[1].parameters =
        vec![Parameter { name: "x", description: "The coefficient of the quadratic term." }];
    assert_eq!(found("solve an equation with its quadratic term", &tools)[0], "solve_b");
    // They outweigh one word of a description, as long as they are no longer than usual.
    tools[0].description = "Solve an equation of a number.";
    assert_eq!(found("solve for the number of the quadratic coefficient", &tools)[0], "solve_b");
}

#[test]
fn an_index_with_other_weights_ranks_by_them() {
    let mut tools = [tool("disk", "Show a text."), tool("log", "Show a disk, and a disk.")];
    tools[1].parameters = vec![Parameter { name: "p", description: "Which disk." }];
    let documents = tools.each_ref().map(Document::of);
    assert_eq!(Index::of(&documents).search("disk", 1)[0].position, 0);
    let mut weights = Weights::default();
    weights.fields[Field::Name as usize].0 = 0.1;
    weights.covered_name = 0.0;
    let index = Index::with_weights(&documents, weights);
    assert_eq!(index.search("disk", 1)[0].position, 1);
}

#[test]
fn questions_in_chinese_find_tools_described_in_chinese() {
    let tools = [tool("a", "查询城市的天气预报"), tool("b", "发送电子邮件"), tool("c", "読み取り")];
    assert_eq!(found("明天北京天气怎么样？", &tools), ["a"]);
    assert_eq!(found("发邮件给他", &tools)[0], "b");
}

#[test]
fn stop_words_find_nothing_alone() {
    let tools = [tool("ping", "Find out whether the host is there."), tool("log", "Of the disk.")];
    assert_eq!(found("what is the disk", &tools), ["log"]);
    assert_eq!(found("is there", &tools), ["ping"]);
}

#[test]
fn excluded_documents_are_not_found_and_do_not_lower_the_rest() {
    let tools =
        [tool("disk_usage", "Disks."), tool("disk_usage_all", "Disks of all."), tool("x", "")];
    let index = index(&tools);
    let hits = index.search_among("disk usage", 10, |position| position == 1);
    assert_eq!(hits, [Hit { position: 1, score: 1.0 }]);
}

#[test]
fn an_empty_index_and_a_limit_of_none_find_nothing() {
    assert!(Index::of([]).search("disk", 10).is_empty());
    assert!(index(&[tool("disk", "")]).search("disk", 0).is_empty());
    assert!(Index::of([]).is_empty());
}

#[test]
fn a_hit_has_reasons_and_no_other_tool_has_any() {
    let tools = [tool("disk_usage", "Show used space."), tool("ping", "Show a host.")];
    let index = index(&tools);
    let why = index.matches("show space of the disks", 0);
    let words: Vec<&str> = why.iter().map(|found| found.word.as_str()).collect();
    assert_eq!(words, ["show", "space", "disks"]);
    assert!(index.matches("weather", 1).is_empty());
    assert!(index.matches("disk", 7).is_empty());
}

/// Texts of few words, so that many match.
fn texts() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "disk",
        "disks",
        "file",
        "folder",
        "the",
        "get",
        "mail",
        "查天气",
        "v2",
        "sendMail",
        ".",
        ", and ",
    ]);
    proptest::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The first hits of a long list equal those of a short one, whatever is filtered out, and each has its reasons.
    #[test]
    fn a_limit_and_a_filter_only_leave_out(
        tools in proptest::collection::vec((texts(), texts()), 0..200),
        question in texts(),
        limit in 0_usize..70,
        filter in 1_usize..4,
    ) {
        let tools: Vec<_> = tools.iter().map(|(name, text)| tool(name, text)).collect();
        let index = index(&tools);
        let allowed = |position: usize| position.is_multiple_of(filter);
        let all = index.search_among(&question, usize::MAX, allowed);
        prop_assert!(all.is_sorted_by(|one, other| one.order(other).is_lt()));
        prop_assert!(all.iter().all(|hit| allowed(hit.position) && hit.score > 0.0));
        prop_assert!(all.iter().all(|hit| hit.score <= 1.0));
        let few = index.search_among(&question, limit, allowed);
        prop_assert_eq!(&few[..], &all[..limit.min(all.len())]);
        for position in (0..tools.len()).filter(|at| allowed(*at)) {
            let is_hit = all.iter().any(|hit| hit.position == position);
            prop_assert!(!is_hit || !index.matches(&question, position).is_empty());
        }
    }

    #[test]
    fn any_text_can_be_searched_and_asked(text in any::<String>(), question in any::<String>()) {
        let index = index(&[tool(&text, &question)]);
        let hits = index.search(&question, 1);
        prop_assert_eq!(hits.is_empty(), index.matches(&question, 0).is_empty());
    }
}
