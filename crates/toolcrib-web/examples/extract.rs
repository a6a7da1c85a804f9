//! Prints the main content of HTML files, for comparisons with other extractors: `extract [--markdown] FILE…`. Each text
//! is followed by a line with a form feed.
#![expect(clippy::print_stdout, reason = "it prints texts")]

use toolcrib_web::extract_text;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let markdown = files.iter().any(|file| file == "--markdown");
    let url = "https://site.example/page".parse()?;
    for file in files.iter().filter(|file| !file.starts_with("--")) {
        let html = String::from_utf8_lossy(&std::fs::read(file)?).into_owned();
        println!("{}\n\u{c}", extract_text(&html, &url, markdown).text);
    }
    Ok(())
}
