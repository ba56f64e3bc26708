#!/bin/sh
# Before the removal, but not before an upgrade: "remove" is dpkg's word, 0 is rpm's.
case $1 in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl stop 'weightfs@*.service' || true
	fi
	;;
esac
