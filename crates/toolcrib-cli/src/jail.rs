//! The `toolcrib-jail` binary, which `toolcrib` starts to confine a program.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    toolcrib_sandbox::jail::main()
}
