//! Names of prompts and resources, while the files that declare them change.

use std::fs;

use toolcrib::manifest::lock::Kind;
use toolcrib::names::DeclaredName;

use crate::crib::Followed;

/// A manifest with a prompt and a resource that others may want, too.
const GUIDE: &str = "
toolcrib: 1
prompts:
  - name: review
    description: Review a change.
    messages: [{role: user, text: Review it.}]
resources:
  - {uri: 'notes://today', name: today, text: Nothing.}
";

impl Followed {
    /// The files that a name of either kind is offered from, and those that it is withheld from.
    fn told(&self, name: &str) -> (Vec<String>, Vec<String>) {
        let (mut offered, mut withheld) = (Vec::new(), Vec::new());
        for one in self.crib.declared_names().into_iter().filter(|one| one.name == name) {
            let file = one.source.unit.rsplit('/').next().unwrap().to_owned();
            if one.withheld.is_none() { offered.push(file) } else { withheld.push(file) }
        }
        (offered, withheld)
    }

    fn owned_by(&self, name: &str, file: &str, others: &[&str]) -> bool {
        self.told(name) == (vec![file.to_owned()], others.iter().map(ToString::to_string).collect())
    }
}

/// Whether both names of the guide are this file's, and others want them in vain.
fn is(file: &str, others: &'static [&str]) -> impl Fn(&Followed) -> bool {
    move |followed| {
        ["review", "notes://today"].iter().all(|name| followed.owned_by(name, file, others))
    }
}

#[test]
fn a_late_file_takes_neither_a_prompt_nor_a_resource_over_while_its_owner_lives() {
    let followed = Followed::with(&[("b.yaml", GUIDE)]);
    followed.save("a.yaml", GUIDE);
    followed.until("a newcomer that sorts first", is("b.yaml", &["a.yaml"]));
    let restart = |one: &DeclaredName| {
        one.after_restart.as_ref().is_some_and(|fresh| fresh.unit.ends_with("/a.yaml"))
    };
    let names = followed.crib.declared_names();
    assert_eq!(names.iter().filter(|one| restart(one)).count(), 2, "{names:?}");

    // Saved again, broken, renamed: the owner keeps what it has.
    followed.save("b.yaml", &GUIDE.replace("Review it.", "Review all of it."));
    followed.save("c.yaml", "toolcrib: 1\n");
    followed.until("read", |followed| followed.state("c.yaml").is_some());
    assert!(is("b.yaml", &["a.yaml"])(&followed));
    followed.save("b.yaml", "toolcrib: 1\nprompts: [");
    followed.until("broken", |followed| followed.state("b.yaml") == Some("stale"));
    assert!(is("b.yaml", &["a.yaml"])(&followed));
    fs::rename(followed.path("b.yaml"), followed.path("z.yaml")).unwrap();
    followed.until("renamed", is("z.yaml", &["a.yaml"]));

    // Gone, it leaves both to the other.
    fs::remove_file(followed.path("z.yaml")).unwrap();
    followed.until("gone", is("a.yaml", &[]));
    assert!(followed.crib.declared_names().iter().all(|one| one.after_restart.is_none()));
}

#[test]
fn files_that_exchange_their_names_keep_what_is_theirs() {
    let other = GUIDE.replace("review", "explain").replace("today", "yesterday");
    let followed = Followed::with(&[("a.yaml", GUIDE), ("b.yaml", &other)]);
    let aside = followed.outer.path().join("aside");
    fs::rename(followed.path("a.yaml"), &aside).unwrap();
    fs::rename(followed.path("b.yaml"), followed.path("a.yaml")).unwrap();
    fs::rename(&aside, followed.path("b.yaml")).unwrap();
    followed.until("exchanged", |followed| {
        followed.owned_by("review", "b.yaml", &[]) && followed.owned_by("explain", "a.yaml", &[])
    });
    let kinds = followed.crib.declared_names().into_iter().map(|one| one.kind);
    let expected = [Kind::Prompt, Kind::Resource, Kind::Prompt, Kind::Resource];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}
