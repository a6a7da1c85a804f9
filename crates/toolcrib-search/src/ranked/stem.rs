//! Stemming: `files` and `file`, `booking` and `booked` count as one word.

/// Stems a word in place, with light rules for English. Words with other letters stay unchanged.
///
/// Only grammatical endings are removed (plurals, `-ing`, `-ed`, a silent `-e`). Endings that form another word
/// (`-ation`, `-ment`) stay: removing them was measured and found as many wrong tools as right ones.
pub(super) fn stem(word: &mut String) {
    let plain = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if !plain || word.len() < 4 {
        return;
    }
    singular(word);
    for ending in ["ing", "ed"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= 3
            && rest.bytes().any(|byte| b"aeiouy".contains(&byte))
        {
            let rest = rest.len();
            word.truncate(rest);
            undouble(word);
            break;
        }
    }
    if word.len() > 3 {
        if word.ends_with('e') {
            word.pop();
        }
        if word.len() > 3 && word.ends_with('y') {
            word.pop();
            word.push('i');
        }
    }
}

fn singular(word: &mut String) {
    let cut = if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
        0
    } else if ["sses", "xes", "ches", "shes", "zes"].iter().any(|ending| word.ends_with(ending)) {
        2
    } else {
        let plural =
            word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
        usize::from(plural)
    };
    word.truncate(word.len() - cut);
}

/// `planned` comes from `plan`, but `called` from `call`.
fn undouble(word: &mut String) {
    if let [.., one, other] = word.as_bytes()
        && one == other
        && word.len() >= 3
        && !b"lsz".contains(other)
    {
        word.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn forms_of_a_word_are_one() {
        for forms in [
            &["file", "files"][..],
            &["query", "queries"],
            &["box", "boxes"],
            &["search", "searches", "searching", "searched"],
            &["plan", "plans", "planned", "planning"],
            &["update", "updates", "updating", "updated"],
            &["call", "called", "calling"],
        ] {
            let stems: Vec<String> = forms
                .iter()
                .map(|form| {
                    let mut word = (*form).to_owned();
                    stem(&mut word);
                    word
                })
                .collect();
            assert!(stems.iter().all(|one| *one == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn apparent_endings_stay() {
        for word in ["status", "class", "ring", "red", "gas", "id", "sha256s", "größes", "analysis"]
        {
            let mut stemmed = word.to_owned();
            stem(&mut stemmed);
            assert_eq!(stemmed, word);
        }
    }
}
