//! Fits a result's text to what the model can take: the beginning and the end stay, the middle
//! goes, and a marker says how much.

use std::borrow::Cow;

use toolcrib_tool::{Content, ToolOutput};

/// Cuts the text parts of an output to `budget` characters in all, shared max-min fairly.
/// Returns whether anything was cut.
pub(crate) fn fit(output: ToolOutput, budget: usize) -> (ToolOutput, bool) {
    // Bytes bound characters from above: most outputs need no counting at all.
    let bytes: usize = output.content().iter().map(|part| text_of(part).len()).sum();
    if bytes <= budget {
        return (output, false);
    }
    let sizes: Vec<usize> =
        output.content().iter().map(|part| text_of(part).chars().count()).collect();
    if sizes.iter().sum::<usize>() <= budget {
        return (output, false);
    }
    let shares = fair_shares(&sizes, budget);
    let content = output
        .content()
        .iter()
        .zip(shares)
        .map(|(part, share)| match part {
            Content::Text(text) => Content::Text(cut(text, share).into_owned()),
            other => other.clone(),
        })
        .collect();
    (output.replace_content(content), true)
}

fn text_of(part: &Content) -> &str {
    match part {
        Content::Text(text) => text,
        _ => "",
    }
}

/// Splits a budget so that nobody gets more than it needs and no two that need more get different
/// amounts by more than one (max-min fairness).
pub(crate) fn fair_shares(needs: &[usize], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_unstable_by_key(|&index| needs[index]);
    let mut shares = vec![0; needs.len()];
    let mut left = budget;
    for (done, &index) in order.iter().enumerate() {
        let waiting = needs.len() - done;
        shares[index] = needs[index].min(left / waiting);
        left -= shares[index];
    }
    shares
}

/// Keeps the first 70 % and the last 30 % of `budget` characters, with a marker between them that
/// states the sizes. Characters are code points and are never split. The marker comes on top.
pub(crate) fn cut(text: &str, budget: usize) -> Cow<'_, str> {
    let total = text.chars().count();
    if total <= budget {
        return Cow::Borrowed(text);
    }
    let head = budget * 7 / 10;
    let tail = budget - head;
    let head_end = byte_index(text, head);
    let tail_start = byte_index(text, total - tail);
    Cow::Owned(format!(
        "{}\n[… {} of {total} characters left out …]\n{}",
        &text[..head_end],
        total - budget,
        &text[tail_start..]
    ))
}

fn byte_index(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_is_left_alone() {
        let (output, truncated) = fit(ToolOutput::from("short"), 10);
        assert_eq!((output.text().as_ref(), truncated), ("short", false));
    }

    #[test]
    fn head_and_tail_stay_and_the_marker_states_the_sizes() {
        let text = "0123456789".repeat(10);
        assert_eq!(cut(&text, 10), "0123456\n[… 90 of 100 characters left out …]\n789");
    }

    #[test]
    fn parts_share_the_budget_so_that_small_ones_stay_whole() {
        assert_eq!(fair_shares(&[5, 100, 100], 65), [5, 30, 30]);
        let output = ToolOutput::from("small").with_content("x".repeat(1000));
        let (output, truncated) = fit(output, 105);
        assert!(truncated);
        assert_eq!(output.content()[0], Content::text("small"));
    }

    proptest! {
        #[test]
        fn cutting_never_splits_a_character(text in "\\PC{0,200}", budget in 0usize..200) {
            let cut = cut(&text, budget);
            let kept: String = cut.chars().filter(|_| true).collect();
            prop_assert_eq!(kept.as_str(), cut.as_ref());
            if text.chars().count() <= budget {
                prop_assert_eq!(cut.as_ref(), text.as_str());
            } else {
                let head: String = text.chars().take(budget * 7 / 10).collect();
                prop_assert!(cut.starts_with(&head));
            }
        }

        #[test]
        fn shares_never_exceed_budget_or_need(needs in prop::collection::vec(0usize..50, 0..8), budget in 0usize..200) {
            let shares = fair_shares(&needs, budget);
            let given: usize = shares.iter().sum();
            prop_assert!(given <= budget);
            prop_assert!(shares.iter().zip(&needs).all(|(share, need)| share <= need));
            // Nothing is left over while somebody waits.
            let unmet: usize = needs.iter().zip(&shares).map(|(need, share)| need - share).sum();
            prop_assert!(unmet == 0 || budget == given);
        }
    }
}
