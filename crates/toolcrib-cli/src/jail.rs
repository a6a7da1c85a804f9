//! The `toolcrib-jail` binary: started by `toolcrib` in the place of a program that is to be confined.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    toolcrib_sandbox::jail::main()
}
