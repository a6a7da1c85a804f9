//! What programs do with their standard input: some run it, others are known to treat it as data or not to read it.
//! Of any other program nobody knows whether it runs what a value says there.

use super::{Read, base_name, begins};
use crate::manifest::program::argv::Word;
use crate::manifest::program::interpreters;
use crate::programs::{runs_its_arguments, runs_no_file};
use crate::words::Words;

/// Programs that start a shell which reads its commands on standard input, if they name no program.
pub(super) static START_SHELL: Words = Words::of(
    "chroot dbclient doas fakeroot firejail nsenter plink proot rlogin rsh runuser script setarch \
     ssh sudo unshare",
);

/// Programs that run commands on standard input whatever their arguments are.
pub(super) static RUN_INPUT: Words = Words::of(
    "emacs groovysh smbclient bpftrace dc debugfs ed ex ftp gdb lftp lldb m4 mongo mongosh nvim \
     red sftp telnet tftp tmux vi view vim",
);

/// Builtins of shells. `eval`, `.` and `source` are looked at elsewhere.
const BUILTINS: &str = "\
    . : [ [[ alias bg bind break builtin caller cd command compgen complete compopt continue coproc declare dirs \
    disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout \
    mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap \
    true type typeset ulimit umask unset";

/// Programs that every system has, or that handle texts and files.
const TEXTS_AND_FILES: &str = "\
    7z 7za 7zr ack ag age ar arp as asciidoc aspell atool awk awslocal b2sum b3sum base58 bat batcat bc binwalk \
    blkid boxes brotli bsdtar bunzip bunzip2 bzcat bzgrep bzip bzip2 chattr chgrp chpasswd circo cjpeg clear \
    cmark col colrm column cowsay cpio crc32 crudini csvcut csvformat csvgrep csvjoin csvjson csvlook csvsort \
    csvsql csvstat csvtool cut cwebp dasel datamash dd delta dialog diff3 diffstat djpeg dmesg dos2unix dot \
    elinks enca env envsubst espeak exa exiftool eza faketime fd fdfind fdisk fdp ffmpeg ffprobe figlet fmt fold \
    fuser fzf gawk getfacl getfattr getopt glow gpg gpgv graph-easy groff gron groupadd grpcurl gsed hd \
    hostnamectl html2text htmlq id identify ifconfig in2csv install iostat ispell iwconfig jc jless jo jp \
    jpegoptim jpegtran jsonlint kill killall last less link localectl locate logger lolcat look lp lpr lsattr \
    lscpu lsof lspci lsusb lvs lynx lz4 lz4cat lzip lzma lzop mail mailx man markdown mawk mbuffer md5 mdcat \
    miller minisign mlr more mount mountpoint msmtp mutt neato netstat newusers notify-send nroff numfmt optipng \
    pandoc passwd paste patch pbcopy pbzip2 pdfinfo pdftotext pgrep pigz pkill pngcrush pngquant pr ptx pup pv \
    pvs qpdf qrencode qsv readelf recode rename renice reset rhash ripgrep rot13 route s-nail sar say sed \
    sendmail setfacl sfdisk sfdp sha1 sha224sum sha256 sha384sum shasum size sops spell split sponge ss \
    ssconvert stty su-exec sum swapon sync sysctl tesseract textutil tidy timedatectl toilet tomlq top tput tree \
    troff truncate ts tsort twopi uconv ugrep umount uncompress unexpand units unix2dos unlink unzip unzstd \
    useradd usermod users uudecode uuencode vgs vmstat w w3m wall whereis which whiptail who wl-copy write xclip \
    xmessage xmllint xmlstarlet xq xsel xsv xxd xxhsum xzcat xzgrep yq zbarimg zenity zgrep zip zstd zstdcat";

/// Programs of the network, of services and of clouds.
const SERVICES: &str = "\
    ab acme.sh alertmanager amqp-publish amtool aptitude argocd aria2c aws axel az b2 borg bq btrfs busctl bzr \
    ceph certbot certtool cfssl cfssljson clamscan conftest consul coredumpctl cosign crane createdb createuser \
    crm cryptsetup curlie datadog-ci docker-credential-pass doctl drill dropdb dropuser duplicity eksctl etcdctl \
    exim fastfetch flux fluxctl fping fwupdmgr gcloud gh git-lfs gke glab gluster govc grype gsplit gsutil gtar \
    hcloud helm heroku hey host http https hurl ibmcloud incus ip6tables ip6tables-restore iperf iperf3 ipset \
    iptables iptables-restore iptables-save istioctl jira k3d k6 k9s kafka-console-producer \
    kafka-console-producer.sh kafkacat kcat keytool kind kinit klist kubeconform kubectx kubens kubeseal kubeval \
    kustomize ldapadd ldapdelete ldapmodify ldapsearch lftpget linkerd logcli loginctl loki lxc mc minikube \
    mongodump mongoexport mongoimport mongorestore mosquitto_pub mosquitto_sub mpv mtr mysqladmin mysqlcheck \
    mysqldump mysqlimport mysqlshow nats nawk nc ncat netcat newrelic nft nginx nmap nmcli nping nsc nsupdate \
    objcopy oci octant op opa openstack ovftool packer pass pcs pg_dump pg_dumpall pg_isready pg_restore pgbench \
    popeye promtool pscale rabbitmqadmin rabbitmqctl rados rbd rclone redis-benchmark resolvectl restic rsync \
    s3cmd s5cmd salt-key scaleway scp sentry-cli service skopeo slack snmpget snmpset snmpwalk snyk sox soxi \
    speedtest ssh-add ssh-copy-id ssh-keygen ssh-keyscan step stern stunnel syft systemd-analyze tailscale \
    tcpdump tcpreplay telegraf terraform tofu tracepath traceroute trivy tshark twine ufw unison vacuumdb \
    valkey-benchmark vault vegeta velero virsh websocat wg wget whois wrk wscat xh yara youtube-dl yt-dlp \
    zabbix_sender zfs zpool";

/// Programs of developers, and those whose first argument names an author's own code.
const DEVELOPMENT: &str = "\
    actionlint addr2line alembic ansible ansible-galaxy ansible-inventory ansible-lint ansible-playbook \
    ansible-vault ant apk apt apt-cache apt-get autoflake bandit bazel bindgen biome black brew buf bun bundle \
    c++ c++filt cabal cargo cbindgen cc ccache celery checkstyle clang clang++ clang-format cloc cmake codespell \
    composer conan conda coverage csslint ctags ctest dart debconf-set-selections delv deno djlint dnf dotnet \
    dpkg dpkg-query elm eslint flake flake8 flask g++ gcc gcov gem git gitleaks gmake go gofmt goimports \
    golangci-lint google-java-format gradle hadolint hg hlint isort jar java javac jest jshint just ktlint lcov \
    ld lefthook llvm-cov luacheck make markdownlint maven meson mix mocha mvn mypy ninja nixfmt nm npm npx nuget \
    objdump pacman perltidy php-cs-fixer phpcs phpstan pip pip-audit pipenv pipx pm2 pnpm poetry pre-commit \
    prettier protoc pycodestyle pyflakes pylint pyright pytest rpm rspec rubocop ruff rustc rustfmt rustup sass \
    sbt scalafmt semgrep shellcheck shfmt snap sqlfluff sqlformat standard strip stylelint svn swiftformat taplo \
    terraform-docs terragrunt tflint tokei tox tsc twig uv vale vitest vulture wasm-opt yamlfmt yamllint yapf \
    yarn yum zypper";

/// Programs that start what a container, an image or a cluster names, with the commands that do.
const START_OTHERS: [(&[&str], &[&str]); 2] = [
    (
        &["docker", "podman", "nerdctl", "docker-compose", "podman-compose", "crictl", "ctr"],
        &["run", "start", "attach", "create", "exec"],
    ),
    (&["kubectl", "oc"], &["run", "attach", "debug", "exec", "plugin"]),
];

/// Folders in which a program's name says which program it is.
const OF_SYSTEM: [&str; 6] =
    ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"];

/// A program of which nobody knows what it does with what it reads on standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::manifest) struct UnknownReader {
    name: String,
    /// Whether it is known to start programs or to run texts in other ways.
    pub(in crate::manifest) runs_things: bool,
}

impl UnknownReader {
    /// What is said about it, and what to do.
    pub(in crate::manifest) fn said(&self) -> (String, String) {
        let Self { name, runs_things } = self;
        let why = if *runs_things {
            "it has ways to run things, and is not known to treat its input as data"
        } else {
            "it is not known here, so make sure that it treats its input as data"
        };
        let help = "pass the value as an argument; or, if the input is data there, say so: `unsafe_argv: the input \
                    is only read as text`";
        (format!("`{name}` gets a value on standard input: {why}"), help.to_owned())
    }
}

/// The program of an argument vector that reads its standard input, if nobody knows what it does with it. A program
/// that the author names by its path is the author's own.
pub(in crate::manifest) fn unknown_reader(
    words: &[Word<'_>],
    read: &Read<'_>,
) -> Option<UnknownReader> {
    let (at, name) = *read.started.last()?;
    let is_of_system = OF_SYSTEM
        .iter()
        .any(|folder| name.strip_prefix(folder).is_some_and(|rest| !rest.contains('/')));
    let is_own = name.contains('/') && !is_of_system;
    // What `xargs` reads becomes arguments.
    let is_handed_on = read.started.iter().any(|(_, name)| base_name(name) == "xargs");
    if is_own || is_handed_on || name.contains('\u{fffc}') || interpreters::is_interpreter(name) {
        return None;
    }
    let plain = base_name(name);
    let arguments = words.get(at + 1..).unwrap_or_default();
    let has = |option: &str| arguments.iter().any(|word| word.literal() == Some(option));
    if let Some((_, commands)) = START_OTHERS.iter().find(|(names, _)| names.contains(&plain)) {
        let is_named = arguments.iter().any(|word| begins(word).starts_with("--entrypoint"));
        let starts = commands.iter().any(|command| has(command)) && !is_named;
        return starts.then(|| UnknownReader { name: plain.to_owned(), runs_things: true });
    }
    let is_command = |word: &Word<'_>| !begins(word).starts_with('-');
    if plain == "openssl" && arguments.first().is_some_and(is_command)
        || plain == "redis-cli" && has("-x")
    {
        return None;
    }
    let remote = read.remote.first().and_then(|at| words.get(*at)).map(begins);
    let name = match remote {
        // A program of another machine.
        Some(line) => line.split([' ', ';', '|', '&']).next().unwrap_or_default(),
        None => plain,
    };
    let is_own = remote.is_some() && name.contains('/');
    (!is_data(base_name(name)) && !is_own).then(|| UnknownReader {
        name: name.to_owned(),
        runs_things: super::find(name).is_some() || runs_its_arguments(name),
    })
}

fn is_data(program: &str) -> bool {
    program.is_empty()
        || runs_no_file(program)
        || super::find(program).is_some_and(|known| known.complete)
        || [BUILTINS, TEXTS_AND_FILES, SERVICES, DEVELOPMENT]
            .iter()
            .any(|list| list.split_ascii_whitespace().any(|name| name == program))
}
