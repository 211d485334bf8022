#!/bin/sh
# Of the .deb and the .rpm. It starts and restarts nothing: a new version may need "ordered-dispatcher migrate up" first.
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
