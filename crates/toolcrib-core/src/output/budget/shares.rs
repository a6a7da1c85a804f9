//! Max-min fair shares of a budget.

/// Splits a budget with max-min fairness: no share exceeds its need, and shares that are smaller
/// than their need differ by at most one.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_needs_are_met_whole() {
        assert_eq!(fair_shares(&[5, 100, 100], 65), [5, 30, 30]);
    }

    proptest! {
        #[test]
        fn shares_never_exceed_budget_or_need(
            needs in prop::collection::vec(0usize..50, 0..8),
            budget in 0usize..200,
        ) {
            let shares = fair_shares(&needs, budget);
            let given: usize = shares.iter().sum();
            prop_assert!(given <= budget);
            prop_assert!(shares.iter().zip(&needs).all(|(share, need)| share <= need));
            // Nothing is left over while a need is unmet.
            let unmet: usize = needs.iter().zip(&shares).map(|(need, share)| need - share).sum();
            prop_assert!(unmet == 0 || budget == given);
            // An unmet need gets no less than any other share, except for one character.
            let most = shares.iter().copied().max().unwrap_or(0);
            for (share, need) in shares.iter().zip(&needs) {
                prop_assert!(share == need || share + 1 >= most);
            }
        }
    }
}
