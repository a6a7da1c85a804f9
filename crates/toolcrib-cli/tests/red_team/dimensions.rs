//! The dimensions of an attack: who attacks, through which surface, in which layout, with which tool, for which goal.

use toolcrib_testkit::{combination, dimension};

dimension! {
    /// The rights of the attacking client.
    Right {
        Operator = "operator", Call = "call", CallApprove = "call+approve", Observe = "observe",
        WrongToken = "wrong token", NoToken = "no token", NoAuth = "no-auth",
        Local = "local", LocalCall = "local [call]",
    }
}

dimension! {
    /// How requests reach the program.
    Surface { Rest = "rest", Mcp = "mcp", Stdio = "stdio", Cli = "cli" }
}

dimension! {
    /// Where the workspace is: a folder of its own, or the folder of the config file.
    Layout { Folder = "workspace/", Dot = "." }
}

dimension! {
    /// Whether config, lock, audit log and state exist already.
    Files { Present = "present", Fresh = "fresh" }
}

dimension! {
    /// The user that the server runs as.
    User { Root = "root", Plain = "plain" }
}

dimension! {
    /// The misused tool.
    Tool {
        FileRead = "file_read", FileList = "file_list", FileSearch = "file_search",
        FileWrite = "file_write", FileAppend = "file_append", EditFile = "edit_file",
        FileDelete = "file_delete", FileMkdir = "file_mkdir",
        Bash = "bash", PythonStrict = "python_strict", PythonStandard = "python_standard",
        PythonLenient = "python_lenient",
        Command = "command", CommandNet = "command_net", CommandPure = "command_pure",
        Program = "program", Script = "script", Shell = "shell", Worker = "worker",
        Upstream = "upstream",
        GitStatus = "git_status", GitLog = "git_log", TailLog = "tail_log",
        SearchLog = "search_log", ArchiveListing = "archive_listing",
        DirectorySize = "directory_size", FileDetails = "file_details",
        LargeFiles = "large_files",
        Cwd = "cwd", Grant = "grant", Temporary = "temporary", Secret = "secret", Letter = "letter",
        ReadOutput = "read_output", Runs = "runs", CommandLine = "command_line",
        Reports = "reports",
    }
}

dimension! {
    /// The goal of the attacker.
    Goal {
        HomeKey = "home_key", HomeNote = "home_note", OperatorToken = "operator_token",
        StateFile = "state_file",
        WriteConfig = "write_config", WriteManifest = "write_manifest",
        WriteNewManifest = "write_new_manifest", WriteLock = "write_lock",
        WriteRecords = "write_records", WriteScript = "write_script",
        WriteProgram = "write_program",
        WriteServer = "write_server", WriteSecret = "write_secret",
        ChangeMetadata = "change_metadata", SetId = "set_id",
        UnixDatagram = "unix_datagram", UnixStream = "unix_stream",
        AbstractSocket = "abstract_socket", Loopback = "loopback",
        RunUnconfined = "run_unconfined", RunWhileEdited = "run_while_edited",
        OwnApproval = "own_approval",
        OthersHome = "others_home", KeptHome = "kept_home",
        OthersRun = "others_run", OthersSpill = "others_spill", OthersKey = "others_key",
        DeepScratch = "deep_scratch", ManyThreads = "many_threads",
        SlowTheServer = "slow_the_server", EndTheServer = "end_the_server",
        TakeMemory = "take_memory",
        CwdLink = "cwd_link", GrantLink = "grant_link", InterpreterLine = "interpreter_line",
        SecretAtCut = "secret_at_cut", RedactedAtCut = "redacted_at_cut",
        AcceptUnseen = "accept_unseen", LookRunsProgram = "look_runs_program",
    }
}

combination! {
    /// An attack under certain circumstances.
    Row {
        right: Right, surface: Surface, layout: Layout, files: Files, user: User, tool: Tool,
        goal: Goal,
    }
}

impl Row {
    /// The name of the attack, without the circumstances.
    pub(crate) fn attack(&self) -> String {
        format!("{}::{}", self.goal.name(), self.tool.name())
    }

    pub(crate) fn name(&self) -> String {
        let Self { right, surface, layout, files, user, .. } = self;
        let circumstances =
            [right.name(), surface.name(), layout.name(), files.name(), user.name()];
        format!("{} [{}]", self.attack(), circumstances.join(", "))
    }
}
