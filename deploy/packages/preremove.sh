#!/bin/sh
# Of the .deb and the .rpm. dpkg calls it with "upgrade" and rpm with 1 if another version follows: the worker goes on.
set -e
case "$1" in
remove | 0)
	if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now ordered-dispatcher.service
	fi
	;;
esac
