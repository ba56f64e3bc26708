# fstab.sh SBIN: mount(8) calls weightfs, in a mount namespace where SBIN, a copy of its directory of
# helpers with ours in it, lies over that directory. $WORK has model.safetensors and want, its tensor a.
set -eu

holds() { cmp "$1/raw/a.raw" "$WORK/want" && test ! -w "$1/raw/a.raw"; }
gone() {
	if grep " $1 " /proc/mounts; then
		exit 1
	fi
}

mount --bind "$1" "$(readlink -f /sbin)"
cd "$WORK"
mkdir plain space 'in a' other
cp model.safetensors 'in a/model.safetensors'
trap 'umount -l plain space other 2>/dev/null || :' EXIT

for type in fuse.weightfs weightfs; do
	mount -t $type "$WORK/model.safetensors" "$WORK/plain" -o rw,noatime,allow_other,views=raw:npy
	holds plain
	test ! -e plain/json
	grep -q "^$WORK/model.safetensors $WORK/plain fuse.weightfs ro,.*allow_other" /proc/mounts
	umount plain
	gone "$WORK/plain"
done

cat >fstab <<END
$WORK/model.safetensors $WORK/plain fuse.weightfs ro,allow_other,nofail,x-systemd.automount,x-systemd.idle-timeout=10min 0 0
$WORK/in\\040a/model.safetensors $WORK/space weightfs nofail,_netdev,comment=twice,umask=0277 0 0
$WORK/missing $WORK/other weightfs nofail 0 0
END
findmnt --verify --tab-file fstab >verify.log 2>&1 || { cat verify.log; exit 1; }
# One that cannot be mounted stops no other; mount(8) may say so (64) or heed nofail.
env -i PATH=/usr/bin:/bin mount -a -T fstab 2>error || test $? = 64
test "$(wc -l <error)" -le 1
holds plain
holds space
test "$(stat -c %a space/raw/a.raw)" = 400
sed -i '$d' fstab
env -i PATH=/usr/bin:/bin mount -a -T fstab # all are there
umount plain
umount space
gone "$WORK"

# What fails is told in one line, with the code of mount(8).
code=0
mount -t weightfs "$WORK/want" "$WORK/plain" 2>error || code=$?
test $code = 32
test "$(wc -l <error)" = 1
code=0
mount -t weightfs "$WORK/model.safetensors" "$WORK/plain" -o nonsense 2>error || code=$?
test $code = 1

# The mount is made as root, and served by somebody else.
test -x /sbin/mount.fuse || exit 0
echo "weightfs#$WORK/model.safetensors $WORK/other fuse ro,allow_other,default_permissions,drop_privileges,setuid=nobody 0 0" >fstab
mount -a -T fstab >/dev/null
holds other
! command -v pgrep >/dev/null || pgrep -u nobody -f "$WORK/model.safetensors" >/dev/null
umount other
gone "$WORK"
