//! Arguments that stream in pieces of one byte, with and without previews.

use tokio::runtime::Runtime;

use crate::scripted::{executor, run};
use crate::{ROUNDS, head, median, row};

/// Bytes of the short and of the long arguments.
const BYTES: [usize; 2] = [1 << 20, 2 << 20];

pub(crate) fn arguments(runtime: &Runtime) -> bool {
    let (plain, previewed) = (executor(false), executor(true));
    let (mut short, mut long, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let seconds = |executor, bytes| run(runtime, executor, 1, Some(bytes)).as_secs_f64();
        short.push(seconds(&plain, BYTES[0]));
        long.push(seconds(&plain, BYTES[1]));
        shown.push(seconds(&previewed, BYTES[1]));
    }
    let (short, long, shown) = (median(short), median(long), median(shown));
    head("Arguments in pieces of one byte");
    let is_linear = row("2 MiB beside 1 MiB", long / short, 2.2);
    let are_cheap = row("2 MiB with previews beside without", shown / long, 2.0);
    println!("| a piece, in ns | {:.0} | | |", short * 1e9 / f64::from(1 << 20));
    is_linear && are_cheap
}
