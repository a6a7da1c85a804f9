//! Reading `/proc`.

use std::fs;
use std::io;
use std::ops::Range;
use std::str::SplitAsciiWhitespace;

/// The used fields of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Clock ticks since boot; together with the pid they identify a process for good.
    pub(crate) started: u64,
    /// Dead, but not reaped by its parent yet.
    pub(crate) zombie: bool,
}

/// All processes this process can see.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have ended by now.
        found.extend(process(pid));
    }
    Ok(found)
}

/// One process, if it exists.
pub(crate) fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// The environment a process was started with; empty if the process has ended or belongs to another
/// user.
pub(crate) fn environment(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// The number of processes and threads of a user, as far as they are visible.
pub(crate) fn tasks_of(user: u32) -> io::Result<u64> {
    let mut tasks = 0;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().filter(|name| name.parse::<i32>().is_ok()) else { continue };
        // This reads the status, not the owner of the folder, which is root for a process that is
        // closed to others.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if number(&status, "Uid:") == Some(u64::from(user)) {
            tasks += number(&status, "Threads:").unwrap_or(1);
        }
    }
    Ok(tasks)
}

/// The first number in the line with this prefix.
fn number(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The address range of the environment that the kernel shows of this process; `None` if it is
/// unknown.
pub(crate) fn own_environment() -> Option<Range<usize>> {
    let stat = fs::read("/proc/self/stat").ok()?;
    let mut fields = after_name(&stat)?.skip(47);
    let (first, end) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(first..end)
}

/// The fields of a line after the command's name, which may contain blanks and parentheses.
fn after_name(stat: &[u8]) -> Option<SplitAsciiWhitespace<'_>> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace())
}

fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let mut fields = after_name(stat)?;
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    let zombie = matches!(state, "Z" | "X" | "x");
    Some(Process { pid, parent, group, session, started, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_a_name_with_parentheses() {
        let line = b"42 (a ) (b) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1234 99 1\n";
        let process = parse(42, line).unwrap();
        assert_eq!(
            process,
            Process { pid: 42, parent: 7, group: 8, session: 9, started: 1234, zombie: false }
        );
    }

    #[test]
    fn processes_and_threads_of_a_user_are_counted() {
        let status = "Name:\tThreads: 9\nUid:\t1000\t0\t0\t0\nThreads:\t7\n";
        assert_eq!((number(status, "Uid:"), number(status, "Threads:")), (Some(1000), Some(7)));
        let own = rustix::process::getuid().as_raw();
        assert!(tasks_of(own).unwrap() >= 1);
        // No user has this number: it means "leave unchanged".
        assert_eq!(tasks_of(u32::MAX).unwrap(), 0);
    }

    #[test]
    fn this_process_is_found_with_its_parent() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = processes().unwrap().into_iter().find(|process| process.pid == own).unwrap();
        assert_eq!(found.parent, i32::try_from(std::os::unix::process::parent_id()).unwrap());
        assert!(!found.zombie);
    }
}
