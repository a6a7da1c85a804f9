#!/bin/sh
# Shows how a text file begins and ends. Arguments: how many lines of each, the file.
set -eu

lines=$1
file=$2

if [ ! -r "$file" ]; then
    echo "cannot read $file" >&2 # the model is told why a call has failed
    exit 1
fi
echo "first $lines:"
head -n "$lines" -- "$file"
echo "last $lines:"
tail -n "$lines" -- "$file"
