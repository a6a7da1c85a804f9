//! Constraints of manifest tools, from the caller's view.

use insta::assert_snapshot;

use crate::harness::crib::Crib;

const LOGS: &str = r#"
toolcrib: 1
tools:
  - name: pod_logs
    description: Read the last lines of one pod. Read-only.
    annotations: {read_only: true, open_world: false}
    input:
      properties:
        lines: {type: integer, default: 200}
        since: {type: string}
        until: {type: string}
    context:
      cluster: {from: ctx.cluster_name, required: false}
    constraints:
      - {rule: "args.lines <= 500 || has(ctx.cluster) && ctx.cluster == 'dev'", message: At most 500 lines outside dev.}
      - {rule: "!has(args.since) || has(args.until)", message: Give until together with since.}
    run: {argv: [echo, "${args.lines}", "${args.since}", "${args.until}"]}
    tests:
      - {name: too many, args: {lines: 501}, expect: {error: constraint}}
      - {name: many in dev, args: {lines: 501}, ctx: {cluster_name: dev}, expect: {argv_contains: ["501"]}}
"#;

#[test]
fn a_violated_rule_refuses_the_call_with_its_message() {
    let crib = Crib::new(&[("logs.yaml", LOGS)]);
    assert_eq!(crib.run(&["check", "--strict"]).code, Some(0));
    assert_eq!(crib.run(&["call", "pod_logs", "lines=500"]).stdout, "500\n");
    let refused = crib.run(&["call", "pod_logs", "lines=501"]);
    assert_eq!(refused.code, Some(1));
    assert_snapshot!(refused.stderr, @"
    Error executing pod_logs: At most 500 lines outside dev.
    Nothing was run. Correct the arguments and call again.
    ");
    let dev = crib.run(&["call", "pod_logs", "lines=501", "--ctx", "cluster_name=dev"]);
    assert_eq!(dev.stdout, "501\n");
    let both = crib.run(&["call", "pod_logs", "lines=501", "since=1h"]);
    assert_snapshot!(both.stderr, @"
    Error executing pod_logs: the call breaks 2 rules of this tool
    - At most 500 lines outside dev.
    - Give until together with since.
    Nothing was run. Correct the arguments and call again.
    ");
    let json = crib.run(&["call", "pod_logs", "lines=501", "--json"]).json();
    assert_eq!(json["error"]["kind"], "constraint");
}
