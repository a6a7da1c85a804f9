//! Lists in pages, with cursors that stay valid when the list changes.
//!
//! A cursor contains the key of the last entry of its page, and lists are sorted by that key. The
//! next page starts after that key, whatever was added or removed in the meantime: no entry that
//! stayed is repeated or skipped.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{ErrorData, PaginatedRequestParams};

/// The prefix of every cursor before it is encoded.
const MARK: &str = "after:";

/// A page of a list: its entries, and the cursor of the next page, if there is one.
#[derive(Debug, PartialEq)]
pub(crate) struct Page<'a, T> {
    pub(crate) entries: &'a [T],
    pub(crate) next: Option<String>,
}

/// The requested page. `list` is sorted by `name`; `size` is the maximum number of entries, 0 for
/// all; `what` is the list's name for people.
pub(crate) fn page<'a, T>(
    list: &'a [T],
    name: impl Fn(&T) -> &str,
    request: Option<&PaginatedRequestParams>,
    size: usize,
    what: &str,
) -> Result<Page<'a, T>, ErrorData> {
    let cursor = request.and_then(|request| request.cursor.as_deref());
    let begin = match cursor {
        None => 0,
        Some(cursor) => {
            let after = read(cursor).ok_or_else(|| foreign(what))?;
            list.partition_point(|entry| name(entry) <= after.as_str())
        }
    };
    let rest = &list[begin..];
    let entries = if size == 0 { rest } else { &rest[..size.min(rest.len())] };
    let next = match entries.last() {
        Some(ending) if entries.len() < rest.len() => Some(written(name(ending))),
        _ => None,
    };
    Ok(Page { entries, next })
}

fn written(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{MARK}{name}"))
}

fn read(cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(MARK).map(str::to_owned)
}

fn foreign(what: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!(
            "this cursor does not belong to this server's list of {what}: omit `cursor` to start over"
        ),
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cursor: Option<String>) -> PaginatedRequestParams {
        PaginatedRequestParams::default().with_cursor(cursor)
    }

    fn names(
        list: &[String],
        size: usize,
        cursor: Option<String>,
    ) -> (Vec<String>, Option<String>) {
        let page = page(list, String::as_str, Some(&at(cursor)), size, "things").unwrap();
        (page.entries.to_vec(), page.next)
    }

    fn list(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn pages_together_form_the_list() {
        let all = list("a b c d e");
        for size in 0..7 {
            let (mut seen, mut next) = names(&all, size, None);
            while next.is_some() {
                let (more, then) = names(&all, size, next);
                assert!(!more.is_empty());
                seen.extend(more);
                next = then;
            }
            assert_eq!(seen, all, "{size}");
        }
        assert_eq!(names(&[], 3, None), (Vec::new(), None));
    }

    #[test]
    fn a_cursor_stays_valid_when_the_list_changes() {
        let (_, next) = names(&list("a b c d"), 2, None);
        // The entry it names was removed, and others were added.
        let (rest, end) = names(&list("aa bb c d e"), 9, next.clone());
        assert_eq!((rest, end), (list("bb c d e"), None));
        assert_eq!(names(&list("a"), 9, next).0, list(""));
    }

    #[test]
    fn an_invalid_cursor_is_refused() {
        for cursor in ["", "x", "2", "YQ", "%%", &URL_SAFE_NO_PAD.encode([0xff])] {
            let request = at(Some(cursor.to_owned()));
            let refused =
                page(&list("a"), String::as_str, Some(&request), 1, "things").unwrap_err();
            assert_eq!(refused.code.0, -32602, "{cursor:?}");
        }
    }
}
