//go:build linux

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"weightfs/format"
)

// mountWords say who calls: a person, or mount(8) with what stands in fstab.
type mountWords struct {
	system bool // mount(8): it adds rw, dev and suid
	sloppy bool // an unknown option is ignored (-s of mount(8))
}

// ignored are the options that other programs act on, or that are so anyway.
var ignored = []string{
	"ro", "defaults", "dev", "nodev", "suid", "nosuid", "exec", "noexec", "default-permissions",
	"atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime",
	"sync", "async", "dirsync", "nosymfollow", "silent", "loud", "iversion", "noiversion", "mand", "nomand",
	"auto", "noauto", "user", "nouser", "users", "nousers", "owner", "noowner", "group", "nogroup", "nofail", "-netdev", "comment",
}

// refused are options that people know from elsewhere, with the reason.
var refused = map[string]string{
	"rw":           "the mount is always read-only",
	"auto-unmount": "not supported: when the server dies, the next mount at the same place clears what is left",
	"allow-root":   "not supported (allow_other is)",
	"remount":      "not supported (unmount and mount again)",
}

// apply sets the flags that stand in -o as options.
func (f *mountFlags) apply(flags *pflag.FlagSet, words mountWords) error {
	for _, list := range f.options {
		for _, option := range splitOptions(list) {
			if err := applyOption(flags, option, words); err != nil {
				return err
			}
		}
	}
	if f.wait < 0 || f.grace < 0 {
		return usageError("--wait and --grace cannot be negative")
	}
	return nil
}

// applyOption takes dashes and underscores for the same.
func applyOption(flags *pflag.FlagSet, option string, words mountWords) error {
	given, value, hasValue := strings.Cut(option, "=")
	name := strings.ReplaceAll(given, "_", "-")
	if slices.Contains(ignored, name) || strings.HasPrefix(strings.ToLower(name), "x-") || name == "rw" && words.system {
		return nil
	}
	if reason, ok := refused[name]; ok {
		return usageError("-o %s: %s", given, reason)
	}
	f := lookupOption(flags, name)
	switch {
	case f == nil && words.sloppy:
		return nil
	case f == nil && slices.Contains(format.Views, given):
		return usageError("-o %s: unknown option: it is a view, and a comma ends an option (colons stand between views: views=raw:npy)", given)
	case f == nil:
		return usageError("-o %s: unknown option: %s", given, didYouMean(given, optionNames(flags), "see weightfs mount --help"))
	case !hasValue && f.NoOptDefVal == "":
		return usageError("-o %s: a value is missing (%s=…)", given, given)
	case !hasValue:
		value = f.NoOptDefVal
	}
	if err := flags.Set(f.Name, value); err != nil {
		return usageError("-o %s: %v", option, f.Value.Set(value))
	}
	return nil
}

// notOptions are flags that are none of the mount.
var notOptions = []string{"options", "help", "version", "json", "quiet"}

func lookupOption(flags *pflag.FlagSet, name string) *pflag.Flag {
	f := flags.Lookup(name)
	if len(name) == 1 {
		f = flags.ShorthandLookup(name)
	}
	if f == nil || slices.Contains(notOptions, f.Name) {
		return nil
	}
	return f
}

// optionNames are all options as fstab has them, with underscores.
func optionNames(flags *pflag.FlagSet) []string {
	names := slices.Clone(ignored)
	flags.VisitAll(func(f *pflag.Flag) {
		if lookupOption(flags, f.Name) != nil {
			names = append(names, f.Name)
		}
	})
	for i, name := range names {
		names[i] = strings.ReplaceAll(name, "-", "_")
	}
	return names
}

// splitOptions cuts a list at its commas. As in fstab and fuse(8), a comma belongs to a value in
// double quotes or behind a backslash.
func splitOptions(list string) []string {
	var out []string
	var word strings.Builder
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\' && i+1 < len(list) && strings.IndexByte(`,\"`, list[i+1]) >= 0:
			i++
			word.WriteByte(list[i])
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			out = append(out, word.String())
			word.Reset()
		default:
			word.WriteByte(c)
		}
	}
	out = append(out, word.String())
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}
