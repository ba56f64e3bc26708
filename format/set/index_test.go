package set

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

func TestIndexKeepsItsOrder(t *testing.T) {
	got, err := parseIndex([]byte(`{"x": [1, "]}\"", {"a":true}],"n" :-1.5e3 , "weight_map":{"b":"x/y", "a" :"z","\u00e9\"":"./z"} ,"other":{"weight_map":[{}]},"n":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Weight{{"b", "x/y"}, {"a", "z"}, {`é"`, "z"}}, got.Weights); diff != "" {
		t.Error(diff)
	}
}

func TestIndexFaults(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		off  int64
		is   error
		says string
	}{
		"empty":             {``, 0, tensor.ErrTruncated, "an empty file"},
		"cut":               {`{"weight_map":{"a":"b"`, 22, tensor.ErrTruncated, "ends"},
		"cut in a string":   {`{"weight_map":{"a":"b`, 21, tensor.ErrTruncated, "ends"},
		"cut at the end":    {`{"weight_map":{"a":"b"}`, 23, tensor.ErrTruncated, "ends"},
		"no comma":          {`{"weight_map":{"a":"b" "c":"d"}}`, 23, tensor.ErrMalformed, "invalid character"},
		"no value":          {`{"weight_map":{"a":}}`, 19, tensor.ErrMalformed, "invalid character"},
		"no key":            {`{"weight_map":{1:"b"}}`, 15, tensor.ErrMalformed, "invalid character"},
		"array":             {` [1]`, 1, tensor.ErrMalformed, "an array"},
		"number":            {`12`, 0, tensor.ErrMalformed, "a number"},
		"map is an array":   {`{"weight_map":[]}`, 14, tensor.ErrMalformed, "an array"},
		"map is null":       {`{"weight_map":null}`, 14, tensor.ErrMalformed, "null"},
		"file is an array":  {`{"weight_map":{"a": ["b"]}}`, 20, tensor.ErrMalformed, "an array"},
		"file is an object": {`{"weight_map":{"a":{}}}`, 19, tensor.ErrMalformed, "an object"},
		"file is a boolean": {`{"weight_map":{"a":true}}`, 19, tensor.ErrMalformed, "a boolean"},
		"file is null":      {`{"weight_map":{"a":null}}`, 19, tensor.ErrMalformed, "null"},
		"no map":            {`{"metadata":{}}`, -1, tensor.ErrMalformed, "no weight_map"},
		"empty map":         {`{"weight_map":{}}`, -1, tensor.ErrMalformed, "weight_map is empty"},
		"two maps":          {`{"weight_map":{"a":"b"},"weight_map":{"a":"c"}}`, 37, tensor.ErrMalformed, "twice"},
		"tensor twice":      {`{"weight_map":{"a":"b","a":"c"}}`, 27, tensor.ErrMalformed, `"a": weight_map has it twice`},
		"same by escape":    {`{"weight_map":{"a":"b","\u0061":"c"}}`, 32, tensor.ErrMalformed, `"a": weight_map has it twice`},
		"bad UTF-8":         {"{\"weight_map\":{\"a\xff\":\"b\"}}", 17, tensor.ErrMalformed, "UTF-8"},
		"byte order mark":   {"\ufeff{\"weight_map\":{\"a\":\"b\"}}", 0, tensor.ErrMalformed, "byte order mark of UTF-8"},
		"UTF-16":            {"\xff\xfe{\x00", 0, tensor.ErrMalformed, "byte order mark of UTF-16"},
		"more behind":       {`{"weight_map":{"a":"b"}} {}`, 25, tensor.ErrMalformed, "after top-level"},
		"unsafe":            {`{"weight_map":{"a":"../b"}}`, 19, tensor.ErrUnsafe, `"../b"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseIndex([]byte(c.in))
			fault, ok := errors.AsType[*tensor.FormatError](err)
			if !ok || got != nil {
				t.Fatalf("%v, %v", got, err)
			}
			if fault.Off != c.off || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("offset %d, want %d: %v", fault.Off, c.off, err)
			}
		})
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	deep := `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `,"weight_map":{"a":"b"}}`
	if _, err := parseIndex([]byte(deep)); !errors.Is(err, tensor.ErrMalformed) {
		t.Error(err)
	}
}

// "model.data/" is no way to name a file; cleaned it would be one.
func TestLocalRefusesDirectories(t *testing.T) {
	for _, name := range []string{"model.data/", "dir/model.data//", "./"} {
		if clean, err := Local(name); err == nil {
			t.Errorf("%q became %q", name, clean)
		}
	}
}

func TestLocalStaysInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOf(rapid.SampledFrom([]rune("a./\\\x00é-"))).Draw(t, "name")
		clean, err := Local(name)
		if err != nil {
			return
		}
		if !filepath.IsLocal(clean) || strings.Contains("/"+name+"/", "/../") {
			t.Fatalf("%q became %q", name, clean)
		}
		if again, err := Local(clean); err != nil || again != clean {
			t.Fatalf("%q became %q, %v", clean, again, err)
		}
	})
}

func TestNumberedNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 12).Draw(t, "total")
		width := rapid.IntRange(1, 5).Draw(t, "width")
		var names []string
		for i := 1; i <= total; i++ {
			names = append(names, fmt.Sprintf("m.fp16-%0*d-of-%0*d.safetensors", width, i, width, total))
		}
		given := rapid.Permutation(names).Draw(t, "order")
		given = given[:rapid.IntRange(1, total).Draw(t, "there")]
		sets, rest := group(given)
		if len(sets) != 1 || len(rest) != 0 {
			t.Fatalf("%d sets, rest %q", len(sets), rest)
		}
		if sets[0].complete() != (len(given) == total) {
			t.Fatal("complete?")
		}
		if width >= 2 || total < 10 { // else a lone "10" does not tell that 1 is written "1"
			if diff := cmp.Diff(names, sets[0].files()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestNotNumbered(t *testing.T) {
	for _, name := range []string{"a-00003-of-00002.gguf", "a-1-of-99999999.gguf", "a-00001-of-00000.gguf", "a-00001-of-00002.txt",
		"a-of-2.gguf", "-00001-of-00002.gguf", "layers-22.safetensors", "model.ckpt.data-00000-of-00001", "consolidated.safetensors"} {
		if p, ok := parsePart(name); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":1.5},"weight_map":{"a":"b"}}`))
	f.Add([]byte(`{"weight_map":{"a":"x/../y","b":1}}`))
	f.Add([]byte("{\"weight_map\":{\"\\ud800\":\"\xff\"}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := parseIndex(data)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10+200*uint64(len(data)) {
			t.Errorf("%d bytes allocated for an index of %d", n, len(data))
		}
		if (err == nil) == (got == nil) {
			t.Fatalf("%v and %v", got, err)
		}
		if fault, ok := errors.AsType[*tensor.FormatError](err); err != nil && (!ok || fault.Off > int64(len(data))) {
			t.Fatalf("%T %v", err, err)
		}
		for _, w := range weights(got) {
			if !filepath.IsLocal(w.File) {
				t.Fatalf("%q", w.File)
			}
		}
		again, _ := parseIndex(data)
		if !slices.Equal(weights(got), weights(again)) {
			t.Fatal("read twice, and not the same")
		}
	})
}

func weights(m *WeightMap) []Weight {
	if m == nil {
		return nil
	}
	return m.Weights
}

func BenchmarkParseIndex(b *testing.B) {
	var buf bytes.Buffer
	buf.WriteString(`{"weight_map":{`)
	for i := range 200_000 {
		if i > 0 {
			buf.WriteByte(',')
		}
		fmt.Fprintf(&buf, "\n    \"model.layers.%d.mlp.experts.%d.gate_proj.weight\": \"model-%05d-of-00163.safetensors\"", i/1000, i, i/1300)
	}
	buf.WriteString("}}")
	b.SetBytes(int64(buf.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseIndex(buf.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
