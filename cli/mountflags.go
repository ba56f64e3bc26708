//go:build linux

package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weightfs/format"
	"weightfs/fs"
	"weightfs/metrics"
)

// mountFlags are the flags of `mount`. Each Value reads what it prints: the server is started with
// them spelled out.
type mountFlags struct {
	manyFlags
	logFlags
	fs         fs.Options
	foreground bool
	nonempty   bool
	wait       time.Duration
	grace      time.Duration
	options    []string

	metricsAddr listenAddr
	noSandbox   bool
}

func (f *mountFlags) add(c *cobra.Command) {
	f.openFlags.add(c)
	f.logFlags.add(c)
	fl := c.Flags()
	fl.SortFlags = false
	fl.BoolVarP(&f.foreground, "foreground", "f", false, "stay in the foreground")
	fl.StringArrayVarP(&f.options, "options", "o", nil, "mount `options`, with commas between them")
	f.addMany(fl)
	fl.Var((*viewList)(&f.opt.Views), "views", "the views to show, with commas or colons between them (all: "+strings.Join(format.Views, ",")+")")
	fl.Var(asF32{&f.opt.AsF32}, "as-safetensors", "write types that safetensors lacks into assembled/ and parts/ as f32, not as bytes")
	fl.BoolVar(&f.nonempty, "nonempty", false, "mount over a directory that is not empty, or over a mount of something else")
	fl.BoolVar(&f.fs.AllowOther, "allow-other", false, "let other users in, as far as the permissions allow")
	fl.Var(number{&f.fs.UID, 10}, "uid", "owner of everything, instead of the checkpoint's")
	fl.Var(number{&f.fs.GID, 10}, "gid", "group of everything, instead of the checkpoint's")
	fl.Var(number{&f.fs.Umask, 8}, "umask", "permissions to take away from r--r--r-- and r-xr-xr-x, octal, instead of the checkpoint's")
	fl.Var((*byteSize)(&f.fs.ReadAhead), "readahead", "bytes that the kernel reads ahead, such as 512K or 8M (root only; default 2M)")
	fl.BoolVar(&f.fs.DropBehind, "drop-behind", false, "let the kernel forget the checkpoint's own pages once it has those of the mount: for a model larger than half the memory")
	fl.BoolVar(&f.fs.XAttr, "xattr", false, "show extended attributes: user.tensor.name, dtype, shape, file, offset")
	fl.StringVar(&f.fs.FsName, "fsname", "", "what df and findmnt show as the source")
	fl.DurationVar(&f.wait, "wait", 20*time.Second, "how long to wait until the tree can be read; 0 waits for ever")
	fl.Var(&f.metricsAddr, "metrics-addr", "serve Prometheus metrics and /healthz at this TCP address (127.0.0.1:9464) or unix socket (unix:PATH)")
	fl.BoolVar(&f.noSandbox, "no-sandbox", false, "leave the server all that its user can do: it may open other files than the checkpoint's and the cache's")
	fl.DurationVar(&f.grace, "grace", 10*time.Second, "how long files that are open may still be read when the server is told to end")
}

// listenAddr is where the metrics are served; empty for nowhere.
type listenAddr string

func (a *listenAddr) Type() string   { return "address" }
func (a *listenAddr) String() string { return string(*a) }

func (a *listenAddr) Set(s string) error {
	if s != "" {
		if err := metrics.CheckAddr(s); err != nil {
			return err
		}
	}
	*a = listenAddr(s)
	return nil
}

// viewList is a list of views.
type viewList []string

func (l *viewList) Type() string   { return "list" }
func (l *viewList) String() string { return strings.Join(*l, ":") }

// Set takes colons as well, since commas end an option of -o.
func (l *viewList) Set(s string) error {
	var list []string
	for _, name := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ':' }) {
		name = strings.TrimSpace(name)
		if !slices.Contains(format.Views, name) {
			return fmt.Errorf("unknown view %q: %s", name, didYouMean(name, format.Views, "there are "+strings.Join(format.Views, ", ")))
		}
		list = append(list, name)
	}
	if len(list) == 0 {
		return fmt.Errorf("no view (there are %s)", strings.Join(format.Views, ", "))
	}
	*l = list
	return nil
}

// number is an id or a mask that may be unset.
type number struct {
	value **uint32
	base  int
}

func (n number) Type() string { return map[int]string{8: "octal", 10: "number"}[n.base] }

func (n number) String() string {
	if n.value == nil || *n.value == nil {
		return ""
	}
	return strconv.FormatUint(uint64(**n.value), n.base)
}

func (n number) Set(s string) error {
	v, err := strconv.ParseUint(s, n.base, 32)
	if most := n.most(); err != nil || v > most {
		return fmt.Errorf("not %s from 0 to %s", map[int]string{8: "an octal number", 10: "a number"}[n.base], strconv.FormatUint(most, n.base))
	}
	u := uint32(v)
	*n.value = &u
	return nil
}

// most leaves out the id -1, with which chown(2) means nobody.
func (n number) most() uint64 {
	if n.base == 8 {
		return 0o777
	}
	return 1<<32 - 2
}

// byteSize is a number of bytes with a binary unit, as dd(1) writes them.
type byteSize int

const maxReadAhead = 1 << 30

func (b *byteSize) Type() string { return "size" }

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.Itoa(int(*b))
}

func (b *byteSize) Set(s string) error {
	digits := strings.TrimRight(s, "KMGiBkmgb")
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s[len(digits):]), "B"), "I")]
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || !ok {
		return fmt.Errorf("not a size (such as 512K or 8M)")
	}
	if n <<= shift; n < 4096 || n > maxReadAhead {
		return fmt.Errorf("not between 4K and 1G")
	}
	*b = byteSize(n)
	return nil
}
