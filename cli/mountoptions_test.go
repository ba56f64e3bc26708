//go:build linux

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"
)

func TestSplitOptions(t *testing.T) {
	for _, tt := range []struct {
		list string
		want []string
	}{
		{"", []string{}},
		{",,", []string{}},
		{"ro", []string{"ro"}},
		{"ro,umask=027,", []string{"ro", "umask=027"}},
		{`fsname=a\,b,ro`, []string{"fsname=a,b", "ro"}},
		{`views="raw,npy",ro`, []string{"views=raw,npy", "ro"}},
		{`fsname="a\"b"`, []string{`fsname=a"b`}},
		{`fsname=a\\,ro`, []string{`fsname=a\`, "ro"}},
		{`fsname=a\b`, []string{`fsname=a\b`}},
		{`fsname="a,b`, []string{"fsname=a,b"}},
		{`a\`, []string{`a\`}},
	} {
		if diff := cmp.Diff(tt.want, splitOptions(tt.list)); diff != "" {
			t.Errorf("%s: %s", tt.list, diff)
		}
	}
}

// Whatever a value holds, it can be written.
func TestSplitOptionsEscaped(t *testing.T) {
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`, `"`, `\"`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a,"\\=]{1,8}`), 1, 5).Draw(t, "words")
		escaped := make([]string, len(words))
		for i, w := range words {
			escaped[i] = escape.Replace(w)
		}
		if diff := cmp.Diff(words, splitOptions(strings.Join(escaped, ","))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func mountFlagSet() (*mountFlags, *pflag.FlagSet) {
	f, c := &mountFlags{}, &cobra.Command{}
	f.add(c)
	return f, c.Flags()
}

func TestApplyOptions(t *testing.T) {
	person, system, sloppy := mountWords{}, mountWords{system: true}, mountWords{system: true, sloppy: true}
	for _, tt := range []struct {
		options string
		words   mountWords
		err     string // part of it
	}{
		{"", person, ""},
		{"ro,nosuid,nodev,noexec,noatime,defaults,x-a=b,X-c,comment=d,default_permissions", person, ""},
		{"rw", person, "-o rw: the mount is always read-only"},
		{"rw,dev,suid,exec,_netdev,nofail,user,noauto", system, ""},
		{"nonsense", person, "-o nonsense: unknown option: see"},
		{"nonsense", system, "unknown option"},
		{"nonsense,alow_other", sloppy, ""},
		{"allow-othr", person, `did you mean "allow_other"?`},
		{"read_ahead=1M", person, `did you mean "readahead"?`},
		{"allow_root", system, "not supported"},
		{"auto_unmount", sloppy, "not supported"},
		{"umask", sloppy, "-o umask: a value is missing (umask=…)"},
		{"umask=8", sloppy, "-o umask=8: not an octal number from 0 to 777"},
		{"allow_other=perhaps", person, "-o allow_other=perhaps: "},
		{"wait=20", person, "-o wait=20: "},
		{"wait=-1s", person, "--wait and --grace cannot be negative"},
		{"json", person, "unknown option"},
		{"quiet", person, "unknown option"},
		{"help", person, "unknown option"},
		{"o=ro", person, "unknown option"},
		{"f,v", person, ""},
		{"=x", person, "-o : unknown option"},
	} {
		f, flags := mountFlagSet()
		f.options = []string{tt.options}
		err := f.apply(flags, tt.words)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || codeOf(err) != exitUsage) {
			t.Errorf("%s: %v, want %q", tt.options, err, tt.err)
		}
	}
}

// A server that is started with the flags spelled out has the same flags.
func TestServerArgs(t *testing.T) {
	m := &mounting{app: &app{quiet: true}, source: "-source", dir: "/mnt/a b"}
	c := &cobra.Command{}
	m.add(c)
	if err := c.ParseFlags([]string{"-v", "--lenient", "--log-file", "a b", "--views", "npy,raw"}); err != nil {
		t.Fatal(err)
	}
	m.options = []string{"allow_other,uid=5,gid=0,umask=027", "readahead=8M,as_safetensors=f32", `fsname=x\,y,wait=1m,grace=0s,xattr`, "log_format=json,log_level=warn"}
	if err := m.apply(c.Flags(), mountWords{}); err != nil {
		t.Fatal(err)
	}
	args := m.serverArgs(c.Flags())
	if diff := cmp.Diff([]string{"weightfs", "mount", "--quiet"}, args[:3]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"--", "-source", "/mnt/a b"}, args[len(args)-3:]); diff != "" {
		t.Error(diff)
	}
	got, flags := mountFlagSet()
	if err := flags.Parse(args[3:]); err != nil {
		t.Fatal(err)
	}
	want := m.mountFlags
	if got.wait != time.Minute || *got.fs.Umask != 0o027 || got.fs.ReadAhead != 8<<20 || got.fs.FsName != "x,y" || *got.fs.GID != 0 || !got.opt.AsF32 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(flagValues(c.Flags()), flagValues(flags)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.opt.Views, got.opt.Views); diff != "" {
		t.Error(diff)
	}
}

func flagValues(flags *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "options" {
			values[f.Name] = f.Value.String()
		}
	})
	return values
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int{
		"4096": 4096, "4K": 4096, "512k": 512 << 10, "2M": 2 << 20, "2MB": 2 << 20, "2MiB": 2 << 20, "1G": 1 << 30, "1g": 1 << 30,
		"": 0, "0": 0, "4095": 0, "2G": 0, "-1": 0, "1T": 0, "2M2": 0, "M": 0, "2MM": 0, "2 M": 0, "9999999999999": 0, "2047G": 0,
	} {
		var b byteSize
		if err := b.Set(text); (err == nil) != (want > 0) || int(b) != want {
			t.Errorf("%q: %d, %v, want %d", text, b, err, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		base int
		text string
		want string // empty: refused
	}{
		{10, "0", "0"}, {10, "1000", "1000"}, {10, "4294967294", "4294967294"}, {10, "4294967295", ""}, {10, "-1", ""}, {10, "root", ""}, {10, "", ""},
		{8, "27", "27"}, {8, "0027", "27"}, {8, "777", "777"}, {8, "1000", ""}, {8, "8", ""}, {8, "0o27", ""},
	} {
		var v *uint32
		n := number{&v, tt.base}
		if err := n.Set(tt.text); (err == nil) != (tt.want != "") || n.String() != tt.want {
			t.Errorf("%q to base %d: %q, %v, want %q", tt.text, tt.base, n, err, tt.want)
		}
	}
}
