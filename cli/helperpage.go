//go:build linux

package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helperText = `This is weightfs as mount(8) calls it. The mount is read-only, and made when the command returns: the
server goes on in the background until umount(8) or weightfs umount. SOURCE is what weightfs(1) takes: a
checkpoint's file or directory, hf://org/name or ollama:name.`

const helperExamples = `  # mount -t weightfs /srv/models/llama /mnt/llama -o allow_other

In fstab(5), mounted at the first access; a space in a path is \040:

  /srv/models/llama  /mnt/llama  weightfs  allow_other,nofail,x-systemd.automount  0  0

weightfs and fuse.weightfs are the same as a type. To serve without root's rights, have mount.fuse3(8) make
the mount and start weightfs as another user. It is mount.fuse3 then that needs ro and default_permissions:

  weightfs#/srv/models/llama  /mnt/llama  fuse  ro,allow_other,default_permissions,drop_privileges,setuid=nobody  0  0`

// helperPage is mount.weightfs(8), with the flags of mount as options of -o.
func helperPage(mount *cobra.Command) []byte {
	p := newManPage("mount.weightfs", 8, "mount a machine-learning checkpoint, as mount(8) calls it")
	p.synopsis("mount -t weightfs [-o OPTIONS] SOURCE MOUNTPOINT", "mount.weightfs SOURCE MOUNTPOINT [-sfnv] [-o OPTIONS]")
	p.section("Description")
	p.text(helperText)
	p.section("Options")
	p.text("-s ignores options that are unknown, -f checks the options and does not mount, -v says when it is mounted. " +
		"Behind -o, names may have dashes for underscores, and a comma in a value is written \\, or in double quotes:")
	mount.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || lookupOption(mount.Flags(), f.Name) == nil || f.Name == "foreground" {
			return
		}
		value, usage := flagUsage(f)
		tag := bold(strings.ReplaceAll(f.Name, "-", "_"))
		if value != "" {
			tag += "=" + italic(value)
		}
		p.item(tag, usage)
	})
	p.WriteString(".PP\n")
	p.text("Without effect, since other programs act on them or since they are so anyway: rw, x-*, " +
		strings.ReplaceAll(strings.Join(ignored, ", "), "-", "_") + ".")
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if name != "rw" {
			p.item(bold(strings.ReplaceAll(name, "-", "_")), refused[name])
		}
	}
	p.section("Exit status")
	p.text("0 when it is mounted, 1 for wrong usage, 32 for any other failure, which is told in one line.")
	p.section("Examples")
	p.text(helperExamples)
	p.section("See also")
	p.text("weightfs(1), weightfs-mount(1), weightfs-umount(1), mount(8), fstab(5), systemd.automount(5)")
	return p.Bytes()
}
