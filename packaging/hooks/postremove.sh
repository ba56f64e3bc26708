#!/bin/sh
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
# dpkg's word; what is there can be computed again.
if [ "$1" = purge ]; then
	rm -rf /var/cache/weightfs
fi
