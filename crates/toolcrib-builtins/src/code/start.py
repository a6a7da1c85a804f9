import sys, marshal, _frozen_importlib_external as python
magic, length = sys.stdin.buffer.readline().split()
if magic.decode() != python.MAGIC_NUMBER.hex():
    sys.exit("this is another Python than before")
exec(marshal.loads(sys.stdin.buffer.read(int(length))))
