#!/bin/sh
# After the files are there: the user of the service, and what this machine can enforce.
set -e
if [ "$1" = configure ]; then
    if ! getent passwd toolcrib >/dev/null; then
        adduser --system --group --quiet --home /var/lib/toolcrib --no-create-home \
            --gecos "toolcrib server" toolcrib
    fi
    # Tokens and the like may be in it.
    if ! dpkg-statoverride --list /etc/toolcrib/config.yml >/dev/null 2>&1; then
        chown root:toolcrib /etc/toolcrib/config.yml
        chmod 0640 /etc/toolcrib/config.yml
    fi
    if command -v apparmor_parser >/dev/null && [ -e /sys/kernel/security/apparmor/profiles ] &&
        [ -e /etc/apparmor.d/abi/4.0 ]; then
        apparmor_parser --replace --write-cache /etc/apparmor.d/toolcrib-jail || true
    fi
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload || true
        # Not enabled and not started: that is for the operator. One that runs gets the new program.
        if [ -n "$2" ]; then
            deb-systemd-invoke try-restart toolcrib.service || true
        fi
    fi
fi
exit 0
