package index

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

func build(t interface{ Fatal(...any) }, names ...string) *Index {
	x, err := Build([]Source{{Header: headerOf(names)}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func headerOf(names []string) *tensor.Header {
	h := &tensor.Header{}
	for i, n := range names {
		h.Tensors = append(h.Tensors, tensor.Info{Name: n, DType: tensor.F32, Shape: []uint64{uint64(i)}})
	}
	return h
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestNameBecomesPath(t *testing.T) {
	for name, want := range map[string]string{
		"m.x.weight":        "m/x.weight",
		"m.x.weight.absmax": "m/x/weight.absmax",
		"weight":            "weight",
		"a/b":               "a/b",
		"a.b/c.d.e":         "a/b/c/d.e",
		"":                  "%",
		".":                 "%2E",
		"..":                "%/%2E",
		"a..b":              "a/%2Eb",
		".sharded":          "%2Esharded",
		"/model/l.0/Out_0":  "%/model/l/0/Out_0",
		"a%2Fb":             "a%252Fb",
		"a\x00b":            "a%00b",
		"\xff":              "%FF",
		"\u0085":            "%C2%85",
		"café.w":            "café.w",
		"kernel:0":          "kernel:0",
		"a/":                "a/%",
	} {
		x := build(t, name)
		if got := x.Path(x.Records[0].Node); got != want {
			t.Errorf("%q: path %q, want %q", name, got, want)
		}
	}
}

func TestTwoNamesOnOnePathAreNumberedInFileOrder(t *testing.T) {
	x := build(t, "a.b.c", "a/b.c", "a/b.c~2", "a/b/c")
	want := []string{"a/b.c", "a/b.c~2", "a/b.c~2~2", "a/b/c"}
	for i, w := range want {
		if got := x.Path(x.Records[i].Node); got != w {
			t.Errorf("tensor %d: path %q, want %q", i, got, w)
		}
	}
}

// Sixteen names are one path, whose last part is as long as a part may be: the numbers take bytes of it.
func TestManyNamesOnOneLongPath(t *testing.T) {
	for _, stem := range []string{strings.Repeat("x", maxPart), strings.Repeat("é", maxPart/2), strings.Repeat("%", 100)} {
		var names []string
		for i := range 16 {
			name := "d"
			for bit := range 4 {
				name += string("./"[i>>bit&1]) + "d"
			}
			names = append(names, name+"/"+stem)
		}
		checkPaths(t, names)
	}
}

func TestDirectoriesAreInNaturalOrder(t *testing.T) {
	x := build(t, "l.10.w.x", "l.9.w.x", "l.2.w.x", "l.b.c.d", "l.01.w.x", "l.1.w.x", "l.b", "l.b-c")
	var got []string
	l, _ := x.Child(0, "l", false)
	for c := x.Nodes[l].First; c < x.Nodes[l].First+x.Nodes[l].Count; c++ {
		got = append(got, x.NodeName(c))
	}
	if s := strings.Join(got, " "); s != "01 1 2 9 10 b" {
		t.Errorf("order is %q", s)
	}
}

func TestTwoShardsWithOneTensorAreRefused(t *testing.T) {
	h := &tensor.Header{Tensors: []tensor.Info{{Name: "w", DType: tensor.U8}}}
	_, err := Build([]Source{{Header: h}, {Header: h, Shard: 1}})
	var dup *DuplicateError
	if !errors.As(err, &dup) || dup.Name != "w" || dup.Files != [2]uint32{0, 1} {
		t.Fatalf("got %v", err)
	}
}

func TestEveryNameHasOnePath(t *testing.T) {
	part := rapid.OneOf(
		rapid.StringMatching(`[a-c~.%/0-2]{0,6}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 5), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(235, 245), func(n int) string { return strings.Repeat("x", n) }),
		rapid.Map(rapid.IntRange(78, 84), func(n int) string { return strings.Repeat("é%", n) }),
		rapid.SampledFrom([]string{"a", "b", "a~2", "a~2~2", "..", "."}),
	)
	name := rapid.Map(rapid.SliceOfN(part, 1, 5), func(p []string) string { return strings.Join(p, ".") })
	rapid.Check(t, func(t *rapid.T) {
		checkPaths(t, rapid.SliceOfDistinct(name, rapid.ID).Draw(t, "names"))
	})
}

// FuzzNames takes a name a line.
func FuzzNames(f *testing.F) {
	f.Add("a.b.c\na/b.c\na/b.c~2\na/b/c\n\n.\n..\n%\n%2E\n/\xff\x00")
	f.Fuzz(func(t *testing.T, lines string) {
		names := strings.Split(lines, "\n")
		slices.Sort(names)
		names = slices.Compact(names)
		h := headerOf(names)
		before := allocated()
		if _, err := Build([]Source{{Header: h}}); err != nil {
			t.Fatal(err)
		}
		if n := allocated() - before; n > 64<<10+1024*uint64(len(lines)) {
			t.Errorf("%d bytes allocated for %d of names", n, len(lines))
		}
		checkPaths(t, names)
	})
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// checkPaths: every name has a path that is valid, no two share one, every tensor is found by its name,
// and mapping twice gives the same paths.
func checkPaths(t fataler, names []string) {
	x, again := build(t, names...), build(t, names...)
	seen := map[string]bool{}
	for i, n := range names {
		p := x.Path(x.Records[i].Node)
		if p != again.Path(again.Records[i].Node) {
			t.Fatalf("%q has two paths", n)
		}
		if seen[p] || !iofs.ValidPath(p) || p == "." {
			t.Fatalf("%q: path %q is taken or invalid", n, p)
		}
		seen[p] = true
		for _, part := range strings.Split(p, "/") {
			if len(part) > 243 || strings.ContainsRune(part, 0) || part[0] == '.' {
				t.Fatalf("%q: bad part %q of %d bytes", n, part, len(part))
			}
		}
		if got, ok := x.Tensor(n); !ok || got != uint32(i) {
			t.Fatalf("%q is not found by its name", n)
		}
	}
	for i := 1; i < len(x.Nodes); i++ {
		n := x.Nodes[i]
		if c, ok := x.Child(n.Parent, x.NodeName(uint32(i)), n.Leaf); !ok || c != uint32(i) {
			t.Fatalf("node %d (%q) is not found below its parent", i, x.NodeName(uint32(i)))
		}
		if n.Leaf == false && strings.Contains(x.NodeName(uint32(i)), ".") {
			t.Fatalf("directory %q holds a dot", x.NodeName(uint32(i)))
		}
	}
}

func TestEscapingIsInjective(t *testing.T) {
	long := strings.Repeat("y", 300)
	cut := escapePart(long)
	if len(cut) != maxPart || escapePart(cut) == cut {
		t.Fatalf("a name that looks cut (%q) could take the place of one that was", cut)
	}
}

func BenchmarkBuildMoE(b *testing.B) {
	h := &tensor.Header{}
	for l := 0; len(h.Tensors) < 200_000; l++ {
		for e := range 256 {
			for _, p := range []string{"gate", "up", "down"} {
				h.Tensors = append(h.Tensors, tensor.Info{
					Name:  fmt.Sprintf("model.language_model.layers.%d.mlp.experts.%d.%s_proj.weight", l, e, p),
					DType: tensor.BF16, Shape: []uint64{1, 2}, Bytes: 4,
				})
			}
		}
	}
	for b.Loop() {
		if _, err := Build([]Source{{Header: h}}); err != nil {
			b.Fatal(err)
		}
	}
}
