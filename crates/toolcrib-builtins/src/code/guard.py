"""Reads one piece of Python from standard input, checks it, and runs it.

The host starts this program in a jail and writes to it: the level, a line; the extra modules of that
level, a line, separated by blanks; then the code, to the end. The first line of standard error is the
answer to the check: `checked`, and what the code itself writes follows; or `refused` or `syntax`, and
the reasons follow. It is written before the code runs, so no code can forge it.

This check gives the good messages; the promise that nothing gets out is the jail's. Nothing here may
be the only thing that keeps code from a file, a process or a socket.

It runs at every call before the code does: hence no import that most code does without.
"""

import sys

# Modules warn whoever imports them, by the name of the importing module. The imports of the code are made
# by this program, and what Python says of them is of no use to the model: warnings for modules other than
# `__main__` are off by default.
__name__ = "<guard>"

# What the model's code may import, by full name. A name that this Python lacks is not there.
STRICT_MODULES = """
    __future__ abc array cmath collections collections.abc contextlib copy dataclasses decimal enum
    fractions functools itertools math numbers operator random statistics string textwrap typing
    unicodedata
""".split()
STANDARD_MODULES = STRICT_MODULES + """
    base64 binascii bisect calendar csv datetime difflib hashlib heapq hmac html html.entities
    html.parser json json.decoder json.encoder logging pprint quopri re time uu warnings
    xml.etree.ElementTree
""".split()

# What is not among the builtins, however it is used: called, passed on or given another name.
STANDARD_REFUSED = """
    __import__ breakpoint bytearray compile eval exec exit globals input locals memoryview open quit
    vars
""".split()
STRICT_REFUSED = STANDARD_REFUSED + """
    delattr dir getattr hasattr isinstance issubclass setattr type
""".split()

# Names with two underscores on either side that lead nowhere: may be read, called and defined.
HARMLESS = frozenset("""
    __abs__ __add__ __aenter__ __aexit__ __aiter__ __all__ __and__ __anext__ __annotations__
    __author__ __await__ __bool__ __bytes__ __call__ __cause__ __ceil__ __class_getitem__ __complex__
    __contains__ __context__ __debug__ __delitem__ __divmod__ __doc__ __enter__ __eq__ __exit__
    __float__ __floor__ __floordiv__ __format__ __future__ __ge__ __getitem__ __gt__ __hash__
    __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __index__ __init__
    __init_subclass__ __int__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __iter__ __itruediv__
    __ixor__ __le__ __len__ __length_hint__ __lshift__ __lt__ __matmul__ __members__ __missing__
    __mod__ __mul__ __name__ __ne__ __neg__ __new__ __next__ __notes__ __or__ __pos__ __post_init__
    __pow__ __qualname__ __radd__ __rand__ __rdivmod__ __repr__ __reversed__ __rfloordiv__
    __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __round__ __rpow__ __rrshift__ __rshift__
    __rsub__ __rtruediv__ __rxor__ __set_name__ __setattr__ __setitem__ __slots__ __str__ __sub__
    __truediv__ __trunc__ __version__ __xor__
""".split())
# Names that only a def may have: what a class says of itself, which nobody else calls by name.
DEFINABLE = HARMLESS | frozenset("""
    __copy__ __deepcopy__ __del__ __delattr__ __delete__ __dir__ __fspath__ __get__ __getattr__
    __getattribute__ __getstate__ __instancecheck__ __prepare__ __reduce__ __reduce_ex__ __set__
    __setstate__ __sizeof__ __subclasscheck__ __subclasshook__
""".split())
# Attributes that lead from a generator, a traceback or a frame to everything.
FRAMES = frozenset("""
    ag_await ag_code ag_frame cr_await cr_code cr_frame cr_origin f_back f_builtins f_code f_globals
    f_locals f_trace gi_code gi_frame gi_yieldfrom tb_frame tb_next
""".split())

CODE = "<code>"
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without its module
REASONS = 10  # more say nothing new

OWN = sys.modules["__main__"]  # kept, for the code's module takes its place


class Level:
    """What code of one level may do; `lenient` has none."""

    def __init__(self, name, extra):
        strict = name == "strict"
        self.name = name
        self.modules = frozenset(STRICT_MODULES if strict else STANDARD_MODULES)
        self.refused = frozenset(STRICT_REFUSED if strict else STANDARD_REFUSED)
        self.extra = extra

    def is_extra(self, module):
        """Whether the operator has allowed it, or what it is part of."""
        return any(module == name or module.startswith(name + ".") for name in self.extra)

    def allows(self, module):
        return module in self.modules or self.is_extra(module)


# --- Before it runs: the tree ---------------------------------------------------------------------


def is_dunder(name):
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def may_read(attribute):
    return attribute not in FRAMES and (not is_dunder(attribute) or attribute in HARMLESS)


def check(tree, level):
    """The reasons why this code is not run, with their lines, in the order of the lines."""
    nodes = list(walk(tree))
    # A name that the code binds is not the builtin in that scope. In a scope where it still would be the
    # builtin, the code finds no such name when it runs.
    own = {name for node in nodes for name in bound(node)}
    # What a class matches by position is read like an attribute.
    fine = {id(name) for node in nodes for name in positions(node)}
    reasons = {}
    for node in nodes:
        if id(node) in fine:
            continue
        for reason in reasons_of(node, level, own):
            reasons.setdefault(reason, getattr(node, "lineno", 1))
    return sorted((line, reason) for reason, line in reasons.items())


def walk(tree):
    """Every node, without recursion: code may be nested deeper than this program may go."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            for child in value if type(value) is list else (value,):
                if hasattr(child, "_fields"):
                    waiting.append(child)


def positions(node):
    """The name in `__match_args__ = ("x", "y")`, where these may be read."""
    if type(node).__name__ == "Assign" and type(node.value).__name__ == "Tuple":
        values = [getattr(item, "value", None) for item in node.value.elts]
        if all(type(value) is str and may_read(value) for value in values):
            for target in node.targets:
                if getattr(target, "id", None) == "__match_args__":
                    yield target


def bound(node):
    kind = type(node).__name__
    if kind == "Name":
        return () if type(node.ctx).__name__ == "Load" else (node.id,)
    if kind == "alias":
        return (node.asname or node.name,)
    return identifiers(node) if kind not in ("Attribute", "keyword", "MatchClass") else ()


def identifiers(node):
    """The names in a node, whatever kind of node it is: kinds that are new to Python, too."""
    for field in node._fields:
        value = getattr(node, field, None)
        for item in value if type(value) is list else (value,):
            if type(item) is str and field not in ("kind", "type_comment"):
                yield item


def reasons_of(node, level, own):
    kind = type(node).__name__
    if kind == "Import":
        for alias in node.names:
            yield from import_reasons(alias.name, alias.name, level)
    elif kind == "ImportFrom":
        if node.level:
            yield "there are no modules beside this code: nothing can be imported with a leading dot"
            return
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield from import_reasons(node.module, whole, level)
            if alias.name.startswith("_") and not level.is_extra(node.module):
                yield f"`{alias.name}` of `{node.module}` is its own affair and cannot be imported"
    elif kind == "alias":
        if node.asname and is_dunder(node.asname) and node.asname not in HARMLESS:
            yield f"nothing can be given the name `{node.asname}`"
    elif kind == "Constant":
        if type(node.value) is str:
            yield from format_reasons(node.value)
    elif kind == "Name":
        if node.id in level.refused and node.id not in own:
            yield f"`{node.id}` is not available at `{level.name}`"
        elif is_dunder(node.id) and node.id not in HARMLESS:
            yield f"the name `{node.id}` cannot be used"
    elif kind in ("Attribute", "MatchClass"):
        for name in identifiers(node):
            if not may_read(name):
                yield f"the attribute `{name}` cannot be used"
    elif kind in ("FunctionDef", "AsyncFunctionDef"):
        if is_dunder(node.name) and node.name not in DEFINABLE:
            yield f"nothing can be given the name `{node.name}`"
    elif kind != "keyword":
        for name in identifiers(node):
            if is_dunder(name) and name not in HARMLESS:
                yield f"nothing can be given the name `{name}`"


def import_reasons(module, whole, level):
    """`from a import b` may mean the module `a.b`, which may be allowed where `a` is not."""
    if not level.allows(module) and not level.allows(whole):
        known = ", ".join(sorted(level.modules | set(level.extra)))
        yield f"the module `{module}` is not available at `{level.name}`; the available modules are: {known}"


def format_reasons(text):
    """`"{0.__class__}".format(x)` reads attributes, too."""
    for field in text.split("{")[1:]:
        path = field.split("}")[0].split(":")[0].split("!")[0]
        for step in path.replace("[", ".").split(".")[1:]:
            if not may_read(step):
                yield f"the attribute `{step}` cannot be used in a format"


# --- While it runs: what the code finds ---------------------------------------------------------


def builtins_for(level):
    import builtins

    known = {
        name: value
        for name, value in vars(builtins).items()
        if name not in level.refused and not name.startswith("_")
    }
    if "type" in level.refused:
        known["type"] = type_in_dataclasses(level)
    # Statements use these by name.
    known["__build_class__"] = builtins.__build_class__
    known["__import__"] = importer(level)
    known["__debug__"] = True
    for name in ("getattr", "setattr", "delattr", "hasattr"):
        if name in known:
            known[name] = by_checked_name(known[name])
    return known


def type_in_dataclasses(level):
    """`type` for the methods that `dataclasses` generates in a class of the code, and for nothing else.

    Generated code has a file name of its own, which code of a level without `exec` cannot have.
    """

    def type_of(target):
        if sys._getframe(1).f_code.co_filename != "<string>":
            raise NameError(f"`type` is not available at `{level.name}`")
        return type(target)

    return type_of


def checked_name(name):
    # A subclass of str could be one name here and another where it is used.
    if type(name) is not str:
        raise TypeError("attribute name must be string")
    for step in name.split("."):
        if not may_read(step):
            raise AttributeError(f"the attribute `{step}` cannot be used")


def by_checked_name(function):
    def checked(target, name, *rest):
        checked_name(name)
        return function(target, name, *rest)

    return checked


def by_checked_names(function):
    def checked(*names):
        for name in names:
            checked_name(name)
        return function(*names)

    return checked


def importer(level):
    """`import` as the code sees it: allowed modules, and of these what is public.

    The modules themselves import with Python's own, and so may whatever they like.
    """
    shown = {}
    module_type = type(sys)

    def public(module):
        name = module.__name__
        if level.is_extra(name):
            return module
        if name in shown:
            return shown[name]
        face = shown[name] = module_type(name, module.__doc__)
        for key, value in vars(module).items():
            if key.startswith("_") and key not in ("__all__", "__version__"):
                continue
            if isinstance(value, module_type):
                if not level.allows(value.__name__):
                    continue
                value = public(value)
            setattr(face, key, value)
        if name == "operator":
            face.attrgetter = by_checked_names(module.attrgetter)
            face.methodcaller = lambda name, *args, **kwargs: (
                checked_name(name) or module.methodcaller(name, *args, **kwargs)
            )
        return face

    def import_(name, globals=None, locals=None, fromlist=(), depth=0):
        # Python's own C code imports what it needs in the name of its caller, with a list. An
        # import statement has a tuple or nothing.
        if type(fromlist) is list:
            return __import__(name, globals, locals, fromlist, depth)
        if not fromlist:
            return import_whole(name)
        # A package that is not allowed itself has nothing to show but modules of it that are.
        if level.allows(name):
            __import__(name)
            found = public(sys.modules[name])
        else:
            found = module_type(name)
        for part in fromlist:
            whole = f"{name}.{part}"
            if part != "*" and level.allows(whole) and not hasattr(found, part):
                try:
                    __import__(whole)
                except ModuleNotFoundError:
                    continue
                setattr(found, part, public(sys.modules[whole]))
        if not vars(found).keys() - {"__name__", "__doc__", "__package__", "__loader__", "__spec__"}:
            raise ImportError(f"the module `{name}` is not available at `{level.name}`")
        return found

    def import_whole(name):
        """`import a.b.c` gives `a`, on which there is `b`, on which there is `c`."""
        if not level.allows(name):
            raise ImportError(f"the module `{name}` is not available at `{level.name}`")
        __import__(name)
        path = name.split(".")
        for end in range(1, len(path) + 1):
            part = ".".join(path[:end])
            if level.allows(part):
                face = public(sys.modules[part])
            else:
                face = shown.setdefault(part, module_type(part))
            if end == 1:
                first = face
            else:
                setattr(outer, path[end - 1], face)
            outer = face
        return first

    return import_


# --- From beginning to end -----------------------------------------------------------------------


def main():
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    name, extra, code = sys.stdin.buffer.read().decode("utf-8").split("\n", 2)
    level = None if name == "lenient" else Level(name, extra.split())

    # Nothing may come before the answer, no warning about the code's syntax either.
    stderr, sys.stderr = sys.stderr, None
    try:
        tree = compile(code, CODE, "exec", ONLY_AST, True)
        reasons = check(tree, level) if level else ()
        program = compile(tree, CODE, "exec", 0, True) if not reasons else None
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        sys.stderr = stderr
        if not isinstance(error, (SyntaxError, ValueError)):
            error = SyntaxError("the code is nested too deeply")
        print("syntax", file=stderr)
        show(error.with_traceback(None), code)
        sys.exit(1)
    sys.stderr = stderr
    if reasons:
        print("refused", file=stderr)
        for line, reason in reasons[:REASONS]:
            print(f"line {line}: {reason}", file=stderr)
        sys.exit(1)
    print("checked", file=stderr, flush=True)
    sys.exit(run(program, code, level))


def run(program, code, level):
    """The code's exit code."""
    module = type(sys)("__main__")
    if level:
        module.__builtins__ = builtins_for(level)
    # Classes of the code look for their module by this name.
    sys.modules["__main__"] = module
    try:
        exec(program, vars(module))
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        show(error, code)
        return 1
    return 0


def show(error, code):
    """Prints the failure as Python would, without the frames of this program."""
    try:
        import linecache
        import traceback

        linecache.cache[CODE] = (len(code), None, code.splitlines(True), CODE)
        without_own_frames(error)
        traceback.print_exception(type(error), error, error.__traceback__)
    except BaseException:
        # Memory is up, or the code has broken what printing needs.
        print(type(error).__name__, file=sys.__stderr__)


def without_own_frames(error):
    waiting, seen = [error], set()
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        frames, frame = [], error.__traceback__
        while frame:
            if frame.tb_frame.f_globals is not vars(OWN):
                frames.append(frame)
            frame = frame.tb_next
        for frame, following in zip(frames, frames[1:] + [None]):
            frame.tb_next = following
        error.__traceback__ = frames[0] if frames else None
        waiting += [error.__cause__, error.__context__, *getattr(error, "exceptions", ())]


main()
