//! Reviews the tools of other MCP servers with the lock.

use toolcrib_manifest::lock::{Kind, LockMode, MismatchKind, apply_lock_to, digest_of};
use toolcrib_mcp::upstream::{OfferedTool, Review, Reviewed};
use toolcrib_tool::Source;

use super::{LockKeeper, log};

/// For a tool in the lock, the lock decides; for others, the pins do.
impl Review for LockKeeper {
    fn review(&self, source: &Source, tools: &[OfferedTool]) -> Vec<Reviewed> {
        if self.mode == LockMode::Off {
            return vec![Reviewed::Unknown(None); tools.len()];
        }
        let lock = match self.usable() {
            Ok(lock) => lock,
            Err(error) => {
                tracing::error!("{error}");
                return vec![Reviewed::Refused("the lock cannot be read".to_owned()); tools.len()];
            }
        };
        let lock = lock.as_deref();
        let judge = |tool: &OfferedTool| {
            let (name, digest) = (tool.name.as_str(), digest_of(&tool.says));
            let judged = apply_lock_to(Kind::Tool, name, source, Some(&digest), lock, self.mode);
            let Some(finding) = judged else {
                let has_it = lock.is_some_and(|lock| lock.get(Kind::Tool, name).is_some());
                return if has_it { Reviewed::Accepted } else { Reviewed::Unknown(None) };
            };
            log(&finding);
            let reason = finding.reason();
            match finding.verdict {
                _ if finding.blocked => Reviewed::Refused(reason),
                MismatchKind::Moved { .. } => Reviewed::Accepted,
                _ => Reviewed::Unknown(Some(reason)),
            }
        };
        tools.iter().map(judge).collect()
    }
}
