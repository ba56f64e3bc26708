package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/tensor"
)

// raw is a storage of the float32 numbers 0, 1, 2, …
func raw(n int) string {
	var b []byte
	for i := range n {
		b, _ = binary.Append(b, binary.LittleEndian, float32(i))
	}
	return string(b)
}

func mustParse(t testing.TB, file []byte) *tensor.Header {
	t.Helper()
	h, err := parse(file)
	checkHeader(t, file, h, err)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// read gives the float32 elements of every tensor, as text.
func readFloats(t testing.TB, file []byte, h *tensor.Header) map[string]string {
	t.Helper()
	got := make(map[string]string)
	for i := range h.Tensors {
		b := elementsOf(t, file, &h.Tensors[i])
		floats := make([]float32, len(b)/4)
		binary.Decode(b, binary.LittleEndian, floats)
		got[h.Tensors[i].Name] = fmt.Sprint(floats)
	}
	return got
}

// TestFound are checkpoints that torch reads, or would if it knew the classes.
func TestFound(t *testing.T) {
	s := stored("FloatStorage", "0", 8)
	data := member{name: "m/data/0", data: raw(8)}
	view := func(offset int64) string { return tensorOf(s, offset, numbers(2, 2), numbers(1, 2)) }
	legacyPart := tuple(str("storage"), global("torch.FloatStorage"), str("7"), str("cpu"), number(8), tuple(str("9"), number(4), number(3))) + "Q"
	module := tuple(str("module"), global("my.Net"), str("net.py"), str("class Net")) + "Q"
	for _, test := range []struct {
		name    string
		file    []byte
		want    map[string]string
		warning string
	}{
		{"other case of names", archiveOf(t, pkl(dict(str("w"), view(0))), member{name: "m/DATA/0", data: raw(8)}, member{name: "m/Byteorder", data: "little", change: func(h *zip.FileHeader) { h.Name = "m/x" }}),
			map[string]string{"w": "[0 2 1 3]"}, ""},
		{"two views of a deflated record", archiveOf(t, pkl(dict(str("a"), view(1), str("b"), floats("0", 8))), member{name: "m/data/0", data: raw(8), method: zip.Deflate}),
			map[string]string{"a": "[1 3 2 4]", "b": "[0 1 2 3 4 5 6 7]"}, ""},
		{"all records deflated, with directories", zipOf(t, member{name: "m/"}, member{name: "m/data/"}, member{name: "m/data.pkl", data: pkl(dict(str("a"), view(1))), method: zip.Deflate},
			member{name: "m/version", data: "3\n", method: zip.Deflate}, member{name: "m/data/0", data: raw(8), method: zip.Deflate}), map[string]string{"a": "[1 3 2 4]"}, ""},
		{"version in .data", zipOf(t, member{name: "m/data.pkl", data: pkl(dict(str("a"), view(1)))}, member{name: "m/.data/version", data: "1"}, data), map[string]string{"a": "[1 3 2 4]"}, ""},
		{"bytes behind the pickle", archiveOf(t, pkl(view(0))+"more", data), map[string]string{"": "[0 2 1 3]"}, "4 bytes"},
		{"records that nothing names", archiveOf(t, pkl(view(0)), data, member{name: "m/data/1", data: "x"}, member{name: "other/x", method: 99}), map[string]string{"": "[0 2 1 3]"}, ""},
		{"bytes behind the archive", append(archiveOf(t, pkl(view(0)), data), make([]byte, 1000)...), map[string]string{"": "[0 2 1 3]"}, ""},
		{"nothing at an offset beyond the end", archiveOf(t, pkl(tensorOf(s, 99, numbers(0, 2), numbers(2, 1))), data), map[string]string{"": "[]"}, ""},
		{"size as a list and a torch.Size", archiveOf(t, pkl(tensorOf(s, 6, call("torch.Size", numbers(2)), "]"+number(1)+"a")), data), map[string]string{"": "[6 7]"}, ""},
		{"storage by itself", archiveOf(t, pkl(dict(str("s"), s)), data), map[string]string{"s": "[0 1 2 3 4 5 6 7]"}, ""},
		{"key that is an int", archiveOf(t, pkl(tensorOf(tuple(str("storage"), global("torch.FloatStorage"), "K\x00", str("cpu"), number(8))+"Q", 6, numbers(2), numbers(1))), data), map[string]string{"": "[6 7]"}, ""},
		{"storage class of a device", archiveOf(t, pkl(tensorOf(stored("cuda.FloatStorage", "0", 8), 6, numbers(2), numbers(1))), data), map[string]string{"": "[6 7]"}, ""},
		{"unknown storage class", archiveOf(t, pkl(dict(str("new"), tensorOf(stored("TinyStorage", "0", 8), 0, numbers(2), numbers(1)), str("w"), view(0))), data), map[string]string{"w": "[0 2 1 3]"}, `"new"`},
		{"unknown dtype", archiveOf(t, pkl(dict(str("new"), call("torch._utils._rebuild_tensor_v3", stored("storage.UntypedStorage", "0", 32), number(0), numbers(1), numbers(1), falseHooks, global("torch.float3")), str("w"), view(0))), data), map[string]string{"w": "[0 2 1 3]"}, "float3"},
		{"strided view of packed elements", archiveOf(t, pkl(dict(str("new"), call("torch._utils._rebuild_tensor_v3", stored("storage.UntypedStorage", "0", 32), number(0), numbers(2), numbers(2), falseHooks, global("torch.float4_e2m1fn_x2")), str("w"), view(0))), data), map[string]string{"w": "[0 2 1 3]"}, "strided"},
		{"NumPy array of a device", archiveOf(t, pkl(dict(str("x"), call("torch._utils._rebuild_device_tensor_from_numpy", "N", "N", "N", "\x89"), str("w"), view(0))), data), map[string]string{"w": "[0 2 1 3]"}, `"x"`},
		{"tensor of a device", archiveOf(t, pkl(dict(str("w"), call("torch._utils._rebuild_device_tensor_from_cpu_tensor", view(0), "N", "N", "\x89"))), data), map[string]string{"w": "[0 2 1 3]"}, ""},
		{"two ways to one path", archiveOf(t, pkl(dict(str("a.b"), view(0), str("a"), dict(str("b"), view(1)), str("a.b~2"), view(2))), data),
			map[string]string{"a.b": "[0 2 1 3]", "a.b~2": "[1 3 2 4]", "a.b~2~2": "[2 4 3 5]"}, `"a.b~2"`},
		{"int and str of one spelling", archiveOf(t, pkl(dict("K\x00", view(0), str("0"), view(1))), data), map[string]string{"0": "[0 2 1 3]", "0~2": "[1 3 2 4]"}, `"0~2"`},
		{"a list twice", archiveOf(t, pkl(dict(str("a"), "]q\x00"+view(0)+"a", str("b"), "h\x00")), data), map[string]string{"a.0": "[0 2 1 3]", "b.0": "[0 2 1 3]"}, ""},
		{"tensor of the first versions", archiveOf(t, pkl(global("torch.FloatTensor")+")R"+tuple(s, number(1), numbers(2), numbers(2))+"b"), data), map[string]string{"": "[1 3]"}, ""},
		{"variable of the first versions", archiveOf(t, pkl(call("torch.autograd.variable.Variable", view(0))+tuple("\x89", "\x89", "N")+"b"), data), map[string]string{"": "[0 2 1 3]"}, ""},
		{"object with slots", archiveOf(t, pkl(global("my.Slots")+")\x81"+tuple("N", dict(str("x"), view(0)))+"b"), data), map[string]string{"x": "[0 2 1 3]"}, ""},
		{"object with a state of its own", archiveOf(t, pkl(global("my.Own")+")\x81"+tuple(view(0), "N", "N")+"b"), data), map[string]string{"state.0": "[0 2 1 3]"}, ""},
		{"list subclass", archiveOf(t, pkl(global("my.List")+")\x81("+view(0)+view(1)+"e"), data), map[string]string{"0": "[0 2 1 3]", "1": "[1 3 2 4]"}, ""},
		{"named tuple", archiveOf(t, pkl(dict(str("p"), global("my.Pair")+tuple(view(0), view(1))+"\x81")), data), map[string]string{"p.0": "[0 2 1 3]", "p.1": "[1 3 2 4]"}, ""},
		{"nothing but numbers", archiveOf(t, pkl(dict(str("lr"), "K\x01"))), map[string]string{}, ""},
		{"part of a legacy storage", legacyOf(tensorOf(legacyPart, 1, numbers(2), numbers(1)), "7", raw(8)), map[string]string{"": "[5 6]"}, ""},
		{"part of a legacy storage by itself", legacyOf(dict(str("p"), legacyPart), "7", raw(8)), map[string]string{"p": "[4 5 6]"}, ""},
		{"module of the legacy format", legacyOf(module+")\x81"+dict(str("_parameters"), dict(str("w"), legacyFloats("7", 2)), str("_buffers"), "}", str("_modules"), "}")+"b", "7", raw(2)), map[string]string{"w": "[0 1]"}, ""},
		{"bytes behind a legacy file", append(legacyOf(dict(str("w"), legacyFloats("7", 2)), "7", raw(2)), "more"...), map[string]string{"w": "[0 1]"}, "4 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := mustParse(t, test.file)
			if diff := cmp.Diff(test.want, readFloats(t, test.file, h)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if all := strings.Join(h.Warnings, "\n"); !strings.Contains(all, test.warning) || test.warning == "" && all != "" {
				t.Errorf("warnings %q, want %q", all, test.warning)
			}
		})
	}
}

// TestExpanded shows four tebibytes made of one element.
func TestExpanded(t *testing.T) {
	h := mustParse(t, archiveOf(t, pkl(tensorOf(stored("FloatStorage", "0", 1), 0, numbers(1<<40), numbers(0))), member{name: "m/data/0", data: raw(1)}))
	if got := h.Tensors[0]; got.Bytes != 4<<40 || got.Extent.Len != 4 {
		t.Errorf("got %+v", got)
	}
}

// TestSharedRecord gives tensors of one deflated record the same extent.
func TestSharedRecord(t *testing.T) {
	s := stored("FloatStorage", "0", 8)
	h := mustParse(t, archiveOf(t, pkl(tuple(tensorOf(s, 0, numbers(2), numbers(1)), tensorOf(s, 5, numbers(2), numbers(1)))), member{name: "m/data/0", data: raw(8), method: zip.Deflate}))
	a, b := h.Tensors[0], h.Tensors[1]
	if a.Extent != b.Extent || a.Layout.Skip != 0 || b.Layout.Skip != 20 || b.Layout.Unpacked != 32 || b.Layout.Strides != nil {
		t.Errorf("got %+v %+v, %+v %+v", a.Extent, a.Layout, b.Extent, b.Layout)
	}
}

// TestBombs are pickles with more paths, or longer ones, than anybody can name.
func TestBombs(t *testing.T) {
	w := floats("0", 2)
	doubled := func(value string, times int) string {
		return value + strings.Repeat("2\x86", times)
	}
	deep := func(value string, n int) string {
		return strings.Repeat("]", n) + value + strings.Repeat("a", n)
	}
	cycle := "]q\x00" + w + "ah\x00a]h\x00ah\x00aq\x01ah\x01a"
	for _, test := range []struct {
		name, pickle string
		tensors      int
		about        string
	}{
		{"paths to tensors", doubled(w, 40), 0, "limit"},
		{"paths to nothing", doubled("]Na", 40), 0, "limit"},
		{"sixteen paths", doubled(w, 4), 16, ""},
		{"cycles", cycle, 1, ""},
		{"deep lists with a tensor", deep(w, 1000), 1, ""},
		{"deep lists", deep("N", 100000), 0, ""},
		{"deeper lists", deep("N", 1<<20-1), 0, "limit"},
		{"a name of 200 kB", deep(w, 100000), 0, "limit"},
		{"a key of 200 kB", dict(str(strings.Repeat("x", 200000)), "N"), 0, ""},
		{"many paths through a key of a mebibyte", "]" + dict(str(strings.Repeat("x", 1<<20)), "]") + "q\x00a(" + strings.Repeat("h\x00", 2000) + "e", 0, "limit"},
		{"doubled names", doubled(dict(str(strings.Repeat("x", 50000)), w), 14), 0, "limit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := parse(archiveOf(t, pkl(test.pickle), member{name: "m/data/0", data: raw(2)}))
			if test.about != "" {
				if err == nil {
					t.Fatalf("%d tensors", len(h.Tensors))
				}
				checkMessage(t, err, []string{test.about})
			} else if err != nil || len(h.Tensors) != test.tensors {
				t.Errorf("got %v, want %d tensors", err, test.tensors)
			}
		})
	}
}

// TestMeta compares the plain values of a training checkpoint.
func TestMeta(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testdata, "2.15", "training.pt"))
	if err != nil {
		t.Fatal(err)
	}
	got := string(tensor.AppendJSON(nil, mustParse(t, b).Meta))
	want := `{"epoch": 3, "lr": 0.00001, "best": "Infinity", "name": "lauf ü", "big": 1180591620717411303424, ` +
		`"negative": -1099511627776, "flags": [true, null], "optimizer": {"param_groups": [{"lr": 0.001, "betas": [0.9, 0.999], ` +
		`"eps": 1e-8, "weight_decay": 0, "amsgrad": false, "maximize": false, "foreach": null, "capturable": false, ` +
		`"differentiable": false, "fused": null, "decoupled_weight_decay": false, "params": [0, 1, 2, 3]}]}, ` +
		`"hyper_parameters": {"class": "__main__.Config", "width": 4, "dtype": "torch.float16", "device": "torch.device('cuda', 1)"}, ` +
		`"counts": {"a": 2, "b": 1}, "data": "b'\\x00\\xff'", "bytes": "b'ab'", "complex": "builtins.complex(1.0, 2.0)", ` +
		`"set": [1, 2], "size": "torch.Size((2, 3))"}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNumPyNumbers shows numbers that were never made Python's, and what is none as the call that makes it.
func TestNumPyNumbers(t *testing.T) {
	order := func(o string) string { return tuple("K\x03", str(o), "N") + "b" }
	scalar := func(code, after, data string) string {
		return call("numpy.core.multiarray.scalar", call("numpy.dtype", str(code), "\x89", "\x88")+after, "C"+string([]byte{byte(len(data))})+data)
	}
	for _, test := range []struct{ value, want string }{
		{scalar("f8", order("<"), "\x00\x00\x00\x00\x00\x00\xf8\x3f"), "1.5"},
		{scalar("f4", "", "\x00\x00\xc0\x3f"), "1.5"},
		{scalar("i8", "", "\xfe\xff\xff\xff\xff\xff\xff\xff"), "-2"},
		{scalar("i4", "", "\xfe\xff\xff\xff"), "-2"},
		{scalar("u8", "", "\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615"},
		{scalar("b1", "", "\x01"), "true"},
		{scalar("f8", order(">"), "\x3f\xf8\x00\x00\x00\x00\x00\x00"), `"numpy.core.multiarray.scalar(`},
		{scalar("f8", "", "\x00"), `"numpy.core.multiarray.scalar(`},
		{scalar("f2", "", "\x00\x3e"), `"numpy.core.multiarray.scalar(`},
		{call("numpy.core.multiarray._reconstruct", "N", "N", "N") + tuple("K\x01", tuple("K\x02"), call("numpy.dtype", str("f4")), "\x89", "C\x00") + "b",
			`"a NumPy array of f4, shape (2,)"`},
	} {
		got := string(tensor.AppendJSON(nil, mustParse(t, archiveOf(t, pkl(dict(str("v"), test.value)))).Meta))
		if !strings.HasPrefix(got, `{"v": `+test.want) {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// TestMetaBounded cuts what would be metadata of any size.
func TestMetaBounded(t *testing.T) {
	for name, value := range map[string]string{
		"long list":      "](" + strings.Repeat("K\x01", 200000) + "e",
		"doubled lists":  "]Na" + strings.Repeat("2\x86", 14),
		"one long str":   "]" + str(strings.Repeat("x", 900000)) + "a" + strings.Repeat("2\x86", 14),
		"deep lists":     strings.Repeat("]", 5000) + "N" + strings.Repeat("a", 5000),
		"cycle":          "]q\x00h\x00a",
		"stub of itself": "]q\x00cm\nf\nh\x00\x85Ra",
		"NumPy number":   call("numpy._core.multiarray.scalar", call("numpy.dtype", str("f8")), "C\x08\x00\x00\x00\x00\x00\x00\xe0\x3f"),
	} {
		t.Run(name, func(t *testing.T) {
			h := mustParse(t, archiveOf(t, pkl(dict(str("v"), value))))
			got := tensor.AppendJSON(nil, h.Meta)
			if len(got) > 8<<20 || len(got) < 5 {
				t.Errorf("metadata of %d bytes", len(got))
			}
			if name == "NumPy number" && !bytes.Contains(got, []byte("0.5")) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// BenchmarkParse opens an archive of 100,000 small tensors.
func BenchmarkParse(b *testing.B) {
	const n = 100000
	var pickle strings.Builder
	members := make([]member, n)
	for i := range n {
		key := fmt.Sprint(i)
		pickle.WriteString(str("model.layers."+key+".mlp.weight") + floats(key, 4))
		members[i] = member{name: "m/data/" + key, data: raw(4)}
	}
	file := bytes.NewReader(archiveOf(b, pkl(dict(pickle.String())), members...))
	b.ReportAllocs()
	for b.Loop() {
		if h, err := Parse(file, file.Size()); err != nil || len(h.Tensors) != n {
			b.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"cases/*.pt", "2.15/*.pt", "1.13/legacy-*.pt"} {
		files, err := filepath.Glob(filepath.Join(testdata, pattern))
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseBounded(t, b)
		checkHeader(t, b, h, err)
		again, err2 := parse(b)
		if fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("first %v, then %v", err, err2)
		}
		if h != nil && string(tensor.AppendJSON(nil, h.Meta)) != string(tensor.AppendJSON(nil, again.Meta)) {
			t.Fatal("two parses differ in their metadata")
		}
		if diff := cmp.Diff(h, again, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Extra" || p.Last().String() == ".Meta" }, cmp.Ignore())); diff != "" {
			t.Fatalf("two parses differ\n%s", diff)
		}
	})
}

// parseBounded: each path through a pickle, of which there may be maxShare for an opcode, takes little memory.
func parseBounded(t *testing.T, file []byte) (*tensor.Header, error) {
	t.Helper()
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}} // unlike runtime.MemStats it does not stop the program
	metrics.Read(s)
	before := s[0].Value.Uint64()
	h, err := parse(file)
	metrics.Read(s)
	if n := s[0].Value.Uint64() - before; n > 2<<10*uint64(minVisits+maxShare*len(file)) {
		t.Errorf("%d bytes allocated for a file of %d", n, len(file))
	}
	return h, err
}

// FuzzPickle puts a pickle into an archive that is otherwise sound, so that it reaches the walk.
func FuzzPickle(f *testing.F) {
	s := stored("FloatStorage", "0", 4)
	for _, seed := range []string{
		dict(str("w"), floats("0", 4)), tensorOf(s, 1, numbers(2, 1), numbers(2, 0)),
		call("torch._utils._rebuild_qtensor", s, number(0), numbers(1), numbers(1), tuple("N", "K\x01", "K\x02"), falseHooks),
		call("torch._utils._rebuild_sparse_tensor", str("torch.sparse_coo"), tuple(s, s, "N")),
		call("torch._tensor._rebuild_from_type_v2", global("torch._utils._rebuild_parameter"), "N", tuple(floats("0", 4), "N"), dict(str("a"), floats("0", 4))),
		global("m.C") + ")\x81" + dict(str("_parameters"), dict(str("w"), floats("0", 4)), str("_modules"), "}") + "b",
	} {
		f.Add([]byte(pkl(seed)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file := archiveOf(t, string(b), member{name: "m/data/0", data: fourFloats})
		h, err := parseBounded(t, file)
		checkHeader(t, file, h, err)
		if err == nil {
			for i := range h.Tensors {
				if info := &h.Tensors[i]; info.Bytes < 1<<20 {
					elementsOf(t, file, info)
				}
			}
		}
	})
}
