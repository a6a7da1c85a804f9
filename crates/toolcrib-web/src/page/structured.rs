//! What a page says in a form for programs: its description, headings, tables and linked data.

use dom_query::{Document, NodeRef};
use serde_json::{Map, Value, json};
use url::Url;

use crate::untrusted::one_line;

const MAX_HEADINGS: usize = 200;
const MAX_TABLES: usize = 20;
const MAX_ROWS: usize = 200;
const MAX_CELLS: usize = 30;
const MAX_META: usize = 60;
/// Bytes of all tables, and of all linked data.
const MAX_BYTES: usize = 128 * 1024;

/// The structure of an HTML page. All parts are bounded; `omitted` names those that were longer.
pub(super) fn structure(document: &Document, url: &Url) -> Value {
    let mut omitted = Vec::new();
    let text = |selector: &str| {
        Some(one_line(&document.select_single(selector).text(), 300))
            .filter(|text| !text.is_empty())
    };
    let canonical = document.select("link[rel=canonical]").attr("href");
    let canonical = canonical.and_then(|href| url.join(&href).ok()).map(String::from);
    let headings = document.select("h1, h2, h3, h4, h5, h6");
    if headings.length() > MAX_HEADINGS {
        omitted.push("headings");
    }
    let heading = |node: &NodeRef<'_>| {
        let level = node.node_name()?.strip_prefix('h')?.parse::<u8>().ok()?;
        let text = one_line(&node.text(), 200);
        (!text.is_empty()).then(|| json!({"level": level, "text": text}))
    };
    let headings: Vec<Value> =
        headings.nodes().iter().take(MAX_HEADINGS).filter_map(heading).collect();
    let mut structure = json!({
        "title": text("title").or_else(|| text("h1")),
        "language": document.select("html").attr("lang").map(|lang| one_line(&lang, 40)),
        "canonical_url": canonical,
        "meta": meta(document),
        "headings": headings,
        "tables": tables(document, &mut omitted),
        "json_ld": json_ld(document, &mut omitted),
    });
    if !omitted.is_empty() {
        structure["omitted"] = json!(omitted);
    }
    structure
}

/// The `<meta>` elements with a name, the first of each.
fn meta(document: &Document) -> Value {
    let mut found = Map::new();
    for node in document.select("meta[content]").nodes() {
        let name =
            node.attr("name").or_else(|| node.attr("property")).or_else(|| node.attr("itemprop"));
        let (Some(name), Some(content)) = (name, node.attr("content")) else { continue };
        if found.len() < MAX_META {
            let name = one_line(&name, 80).to_lowercase();
            found.entry(name).or_insert_with(|| one_line(&content, 500).into());
        }
    }
    Value::Object(found)
}

/// Tables of data; tables that contain tables only arrange the page.
fn tables(document: &Document, omitted: &mut Vec<&'static str>) -> Vec<Value> {
    let (mut tables, mut bytes, mut is_cut) = (Vec::new(), 0, false);
    for table in document.select("table:not(:has(table))").nodes() {
        let mut rows = Vec::new();
        for row in table.descendants_it().filter(|node| node.has_name("tr")) {
            let cells =
                row.children_it(false).filter(|cell| cell.has_name("td") || cell.has_name("th"));
            let cells: Vec<String> =
                cells.take(MAX_CELLS).map(|cell| one_line(&cell.text(), 300)).collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            bytes += cells.iter().map(String::len).sum::<usize>() + 4 * cells.len();
            if rows.len() == MAX_ROWS || bytes > MAX_BYTES {
                is_cut = true;
                break;
            }
            rows.push(cells);
        }
        if rows.is_empty() {
            continue;
        }
        if tables.len() == MAX_TABLES {
            is_cut = true;
            break;
        }
        let caption = table.descendants_it().find(|node| node.has_name("caption"));
        let caption = caption.map(|node| one_line(&node.text(), 200));
        tables.push(json!({"caption": caption, "rows": rows}));
    }
    if is_cut {
        omitted.push("tables");
    }
    tables
}

fn json_ld(document: &Document, omitted: &mut Vec<&'static str>) -> Vec<Value> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for node in document.select("script[type='application/ld+json']").nodes() {
        let text = node.text();
        bytes += text.len();
        if bytes > MAX_BYTES {
            omitted.push("json_ld");
            break;
        }
        found.extend(serde_json::from_str::<Value>(text.trim()).ok());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_by_its_parts() {
        let html = r#"<html lang=de><head><title>Pegel</title><meta name=Description content="Stand">
            <meta property="og:type" content=article><link rel=canonical href="/pegel">
            <script type="application/ld+json">{"@type": "Dataset"}</script>
            <script type="application/ld+json">{broken</script></head>
            <h1>Pegel <b>heute</b></h1><h3></h3><table><tr><td><table><caption>Orte</caption>
            <tr><th>Ort<th>cm</tr><tr><td>Graz<td>120</tr><tr><td> <td></tr></table></table>"#;
        let found = structure(&Document::from(html), &Url::parse("https://a.example/x?y").unwrap());
        assert_eq!(
            found,
            json!({
                "title": "Pegel",
                "language": "de",
                "canonical_url": "https://a.example/pegel",
                "meta": {"description": "Stand", "og:type": "article"},
                "headings": [{"level": 1, "text": "Pegel heute"}],
                "tables": [{"caption": "Orte", "rows": [["Ort", "cm"], ["Graz", "120"]]}],
                "json_ld": [{"@type": "Dataset"}],
            })
        );
    }

    #[test]
    fn a_huge_page_has_a_bounded_structure() {
        let row = format!("<tr>{}</tr>", "<td>some cell of a table</td>".repeat(100));
        let html =
            format!("<table>{}</table>{}", row.repeat(1_000), "<h2>Chapter</h2>".repeat(5_000));
        let found = structure(&Document::from(html), &Url::parse("https://a.example/").unwrap());
        assert!(found.to_string().len() < 2 * MAX_BYTES);
        assert_eq!(found["omitted"], json!(["headings", "tables"]));
    }
}
