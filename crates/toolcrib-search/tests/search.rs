//! Questions as people ask them, and the tools that answer them: the ranking must keep them.

use toolcrib_search::{Document, Index, Parameter, Searchable};

/// Name, description, and a parameter with what it means.
const TOOLS: [(&str, &str, &str, &str); 28] = [
    (
        "archive_listing",
        "List what is in a tar or zip file without unpacking it.",
        "path",
        "The archive.",
    ),
    ("block_devices", "Show disks, partitions and where they are mounted.", "", ""),
    ("book_table", "Reserve a table at a restaurant.", "guests", "How many people come."),
    ("calculator", "Evaluate an arithmetic expression exactly.", "expression", "Such as 2 + 2."),
    ("cancelSubscription", "Cancel a subscription of a customer.", "customerId", "Whose it is."),
    (
        "certificate_expiry",
        "Tell when the TLS certificate of a host runs out.",
        "host",
        "The server.",
    ),
    (
        "convertCurrency",
        "Convert an amount from one currency to another.",
        "amount",
        "How much money.",
    ),
    ("create_ticket", "Open an issue in the tracker.", "title", "One line."),
    ("db_query", "Run a read-only SQL statement.", "sql", "The statement."),
    ("directory_size", "Sum up the size of a folder.", "path", "The folder."),
    ("disk_usage", "Show size, used and available space of all mounted file systems.", "", ""),
    ("fetch_page", "Download a web page as text.", "url", "Its address."),
    ("file_read", "Read a text file.", "path", "The file."),
    ("file_write", "Write a text file.", "content", "The new text."),
    ("getFlightStatus", "Tell whether a flight is on time.", "flightNumber", "Such as LH400."),
    (
        "get_route",
        "Compute the way by car or bicycle between two places.",
        "destination",
        "Where to go.",
    ),
    ("get_weather", "Tell the weather of the next days in a city.", "city", "The city."),
    ("git_log", "Show the latest commits of a repository.", "branch", "The branch."),
    ("image_generate", "Paint an image from a description.", "prompt", "What it shows."),
    ("listening_ports", "Show which programs listen on which ports.", "", ""),
    ("memory_usage", "Show how much memory is used.", "", ""),
    ("resolve_name", "Look up the addresses of a host name.", "name", "The host name."),
    ("send_email", "Send a message to somebody's mailbox.", "recipient", "The address."),
    ("service_state", "Tell whether a system service runs.", "unit", "The service."),
    ("tail_log", "Show the last lines of a log or another text file.", "lines", "How many."),
    ("top_processes", "Show the processes that need the most processor time.", "", ""),
    ("translate_text", "Translate a text into another language.", "language", "The language."),
    ("查询股票", "查询股票的当前价格", "代码", "股票代码"),
];

/// Questions, each with the tools that must be its first hits.
const QUESTIONS: [(&str, &[&str]); 24] = [
    ("How full are the disks?", &["disk_usage", "block_devices"]),
    ("what's the weather like in Paris tomorrow", &["get_weather"]),
    ("I need to know when our certificate expires", &["certificate_expiry"]),
    ("which process is eating all my CPU time?", &["top_processes"]),
    ("show me the end of the log", &["tail_log"]),
    ("size of a folder", &["directory_size"]),
    ("How large is this dir?", &["directory_size"]),
    ("mail the report to Ada", &["send_email"]),
    ("send an e-mail", &["send_email"]),
    ("is nginx running as a service", &["service_state"]),
    ("How do I get from Berlin to Potsdam by bike? I want the route.", &["get_route"]),
    ("convert 20 euros into another currency", &["convertCurrency"]),
    ("draw a picture of a cat", &["image_generate"]),
    ("open a bug for the crash", &["create_ticket"]),
    ("last commits on main of the repo", &["git_log"]),
    ("ask the database with sql", &["db_query"]),
    ("please cancel my subscriptions", &["cancelSubscription"]),
    ("flight status of LH400", &["getFlightStatus"]),
    ("FileRead", &["file_read"]),
    ("calc", &["calculator"]),
    ("download the website", &["fetch_page"]),
    ("股票价格是多少", &["查询股票"]),
    (
        "Translate the letter into French. Then book a table for two, and send an email to Bob.",
        &["translate_text", "book_table", "send_email"],
    ),
    (
        "Tell the IP addresses of example.org. After that show the ports somebody listens on.",
        &["resolve_name", "listening_ports"],
    ),
];

#[test]
fn the_answering_tool_comes_first() {
    let documents = TOOLS.map(|(name, description, parameter, meaning)| {
        let parameters = vec![Parameter { name: parameter, description: meaning }];
        Document::of(&Searchable { name, description, parameters, ..Searchable::default() })
    });
    let index = Index::of(&documents);
    for (question, expected) in QUESTIONS {
        let hits = index.search(question, expected.len());
        let mut found: Vec<&str> = hits.iter().map(|hit| TOOLS[hit.position].0).collect();
        let mut expected = expected.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{question}");
    }
}
