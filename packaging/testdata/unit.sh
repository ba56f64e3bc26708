# unit.sh UNIT SOURCE MOUNTPOINT: a service manager of systemd runs the unit, in a mount namespace of its
# own. Exit code 77: it cannot be had here. $WEIGHTFS is the program, $WORK has model.safetensors.
set -eu

name=model-7b # a dash is part of the name
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /srv
mount -t tmpfs tmpfs /mnt
mkdir -p /run/systemd/system /run/user/0
export XDG_RUNTIME_DIR=/run/user/0 HOME=/run/home
units=$HOME/.config/systemd/user
source=$(eval echo "$2")/$name
mountpoint=$(eval echo "$3")/$name
mkdir -p "$units" "$source" "$HOME/.config/weightfs"
cp "$WORK/model.safetensors" "$source/"
sed "s#/usr/bin/weightfs#$WEIGHTFS#" "$1" >"$units/weightfs@.service"

SYSTEMD_LOG_TARGET=console /lib/systemd/systemd --user >"$WORK/systemd.log" 2>&1 &
manager=$!
trap 'kill $manager 2>/dev/null; wait $manager || :' EXIT
unit=weightfs@$name

# eventually COMMAND...: within five seconds
eventually() {
	for _ in $(seq 100); do
		if "$@"; then return; fi
		sleep 0.05
	done
	echo "not so: $*"
	systemctl --user status --no-pager "$unit" || :
	cat "$WORK/systemd.log"
	exit 1
}
up() { systemctl --user is-system-running >/dev/null 2>&1; }
alive() { cmp -s "$mountpoint/raw/a.raw" "$WORK/want"; }
dead() { ! grep -q " $mountpoint " /proc/mounts; }
crash() { systemctl --user kill --signal=KILL "$unit"; } # all its processes
restarts() { systemctl --user show -p NRestarts --value "$unit"; }
restarted() { [ "$(restarts)" -gt "$before" ]; }

for _ in $(seq 100); do
	if up; then break; fi
	sleep 0.05
done
up || exit 77

systemctl --user start "$unit" # Type=notify: returns when the tree can be read
alive
systemctl --user show -p StatusText --value "$unit" | grep -q '^1 tensor'

# What the user says in a file.
case $1 in
*/user/*)
	echo "OPTIONS=--views raw" >"$HOME/.config/weightfs/$name.conf"
	systemctl --user restart "$unit"
	alive
	test ! -e "$mountpoint/npy"
	;;
esac

# A crash: the next server clears away what is left.
before=$(restarts)
crash
eventually restarted
eventually alive
systemctl --user stop "$unit"
dead

# A crash without a restart leaves no dead mount.
mkdir -p "$units/weightfs@.service.d"
printf '[Service]\nRestart=no\n' >"$units/weightfs@.service.d/once.conf"
systemctl --user daemon-reload
systemctl --user start "$unit"
alive
crash
eventually dead
systemctl --user reset-failed "$unit"

# No checkpoint there: it is not tried again and again.
printf '[Service]\nRestart=on-failure\n' >"$units/weightfs@.service.d/once.conf"
systemctl --user daemon-reload
echo nothing >"$source/model.safetensors"
if systemctl --user start "$unit" 2>/dev/null; then exit 1; fi
test "$(restarts)" = 0
test "$(systemctl --user show -p ExecMainStatus --value "$unit")" = 12
