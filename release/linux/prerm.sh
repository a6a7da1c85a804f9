#!/bin/sh
# Before the files go.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop toolcrib.service || true
fi
exit 0
