"""Says where this Python is, what it has to read to start, and how it compiles the guard, which it is
given: a line each, with a word before it.

Run once per server, with -I and -S; the last lines are what a start without -S adds.
"""

import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER

guard = compile(sys.stdin.buffer.read(), "<guard>", "exec", dont_inherit=True, optimize=2)
print("guard", MAGIC_NUMBER.hex(), marshal.dumps(guard).hex())

print("version", ".".join(map(str, sys.version_info[:2])))
# A virtual environment is found by the path of its own link; elsewhere the file itself is meant.
program = sys.executable
print("program", os.path.realpath(program) if sys.prefix == sys.base_prefix else program)
print("read", os.path.realpath(program))
for path in [os.path.join(os.path.dirname(program), "../pyvenv.cfg"), *sys.path]:
    print("read", os.path.realpath(path))

# What its modules are linked against is known once they are loaded.
for name in "array binascii decimal hashlib math pyexpat random ssl unicodedata zlib".split():
    try:
        __import__(name)
    except ImportError:
        pass
with open("/proc/self/maps") as maps:
    libraries = {line.split(None, 5)[5].strip() for line in maps if ".so" in line}
for library in sorted({os.path.dirname(library) for library in libraries}):
    print("read", library)

import site

site.main()
for path in sys.path:
    print("site", os.path.realpath(path))
