#!/bin/sh
# systemd is to know the unit.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
