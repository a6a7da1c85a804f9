#!/bin/sh
# After the files are gone. What was stored and the user stay until the package is purged.
set -e
if [ "$1" = remove ] || [ "$1" = purge ]; then
    if command -v apparmor_parser >/dev/null && [ -e /sys/kernel/security/apparmor/profiles ]; then
        echo -n toolcrib-jail >/sys/kernel/security/apparmor/.remove 2>/dev/null || true
    fi
fi
if [ "$1" = purge ]; then
    if command -v deb-systemd-helper >/dev/null; then
        deb-systemd-helper purge toolcrib.service >/dev/null || true
    fi
    rm -rf /var/lib/toolcrib
    if getent passwd toolcrib >/dev/null && command -v deluser >/dev/null; then
        deluser --quiet --system toolcrib || true
    fi
fi
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload || true
fi
exit 0
