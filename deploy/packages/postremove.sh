#!/bin/sh
# Of the .deb and the .rpm. systemd forgets the unit. The configuration stays until dpkg --purge.
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
