package compare

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weightfs/format"
	"weightfs/format/names"
)

// An entry is a tensor of a safetensors file that a test makes.
type entry struct {
	dtype string
	shape []uint64
	data  []byte
}

func f32s(values ...float64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	}
	return b
}

func bf16s(values ...float64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(float32(v))>>16))
	}
	return b
}

// model opens a safetensors file of the tensors.
func model(t testing.TB, tensors map[string]entry) *format.Checkpoint {
	t.Helper()
	var records []string
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		e := tensors[name]
		key, _ := json.Marshal(name)
		shape, _ := json.Marshal(e.shape)
		records = append(records, fmt.Sprintf(`%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, key, e.dtype, shape, len(data), len(data)+len(e.data)))
		data = append(data, e.data...)
	}
	header := "{" + strings.Join(records, ",") + "}"
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, append(append(file, header...), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path, format.Options{})
}

func open(t testing.TB, path string, opt format.Options) *format.Checkpoint {
	t.Helper()
	c, err := format.Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func diff(t testing.TB, a, b *format.Checkpoint) *Result {
	t.Helper()
	r, err := New(a, b, func(int) {}).Run()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text is a difference in a line.
func text(d Difference) string {
	name := func(s *Side) string {
		if s == nil {
			return "-"
		}
		return s.Name
	}
	out := fmt.Sprint(d.Kind, " ", name(d.A), " ", name(d.B))
	if d.DType() {
		out += fmt.Sprint(" ", d.A.DType, "->", d.B.DType)
	}
	if d.Shape() {
		out += fmt.Sprint(" ", d.A.Shape, "->", d.B.Shape)
	}
	if d.Permuted {
		out += " permuted"
	}
	if v := d.Values; v != nil {
		out += fmt.Sprintf(" %d(%d) %.3g %.3g %v", v.Differing, v.Special, v.MaxAbs, v.MaxRel, v.Within)
	}
	return out
}

func TestDifferences(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	vector := func(v ...float64) entry { return entry{"F32", []uint64{uint64(len(v))}, f32s(v...)} }
	a := map[string]entry{
		"added.not":      vector(1, 2),
		"bits":           vector(0, nan),
		"dtype.exact":    vector(1, 2, 3),
		"dtype.rounded":  vector(1.001, 2, 3),
		"int":            {"I8", []uint64{3}, []byte{1, 2, 0xff}},
		"int.wide":       {"I64", []uint64{1}, []byte{1, 0, 0, 0, 0, 0, 0, 0}},
		"int.and.float":  {"U8", []uint64{2}, []byte{1, 200}},
		"nan":            vector(nan, nan, 1, inf, -inf, inf),
		"old.name":       vector(7, 8, 9),
		"old.shape":      vector(7, 8, 9, 10),
		"removed":        vector(5, 6),
		"removed.empty":  vector(),
		"reshaped":       {"F32", []uint64{2, 3}, f32s(1, 2, 3, 4, 5, 6)},
		"same":           vector(1, 2, 3),
		"same.empty":     vector(),
		"size":           vector(1, 2, 3),
		"twins.a":        vector(3, 3),
		"twins.b":        vector(3, 3),
		"values":         vector(1, -2, 0, 100),
		"values.complex": {"C64", []uint64{1}, f32s(1, 2)},
	}
	b := maps.Clone(a)
	for name := range b {
		if strings.HasPrefix(name, "removed") || strings.HasPrefix(name, "old") || strings.HasPrefix(name, "twins") {
			delete(b, name)
		}
	}
	delete(b, "added.not")
	b["added.not"] = a["added.not"]
	b["added"] = vector(50, 60)
	b["bits"] = entry{"F32", []uint64{2}, append(f32s(math.Copysign(0, -1)), 1, 0, 0xc0, 0xff)}
	b["dtype.exact"] = entry{"BF16", []uint64{3}, bf16s(1, 2, 3)}
	b["dtype.rounded"] = entry{"BF16", []uint64{3}, bf16s(1.001, 2, 3)}
	b["int"] = entry{"I8", []uint64{3}, []byte{1, 2, 0xfd}}
	b["int.wide"] = entry{"I64", []uint64{1}, []byte{2, 0, 0, 0, 0, 0, 0, 0}}
	b["int.and.float"] = vector(1, 200)
	b["nan"] = vector(nan, 1, nan, inf, inf, 2)
	b["new.name"] = a["old.name"]
	b["new.shape"] = entry{"F32", []uint64{2, 2}, a["old.shape"].data}
	b["reshaped"] = entry{"F32", []uint64{3, 2}, a["reshaped"].data}
	b["size"] = vector(1, 2)
	b["twins.c"], b["twins.d"], b["twins.e"] = a["twins.a"], a["twins.a"], a["twins.a"]
	b["values"] = vector(1, -2, 0.5, 101)
	b["values.complex"] = entry{"C64", []uint64{1}, f32s(1, 4)}

	r := diff(t, model(t, a), model(t, b))
	var got []string
	for _, d := range r.Differences {
		got = append(got, text(d))
	}
	slices.Sort(got)
	want := []string{
		"added - added",
		"added - new.shape",
		"added - twins.e",
		"changed bits bits 0(0) 0 0 false",
		"changed dtype.exact dtype.exact F32->BF16 0(0) 0 0 true",
		"changed dtype.rounded dtype.rounded F32->BF16 1(0) 0.001 0.000999 true",
		"changed int int 1(0) 2 0.667 false",
		"changed int.and.float int.and.float U8->F32 0(0) 0 0 true",
		"changed int.wide int.wide 1(0) 1 0.5 false",
		"changed nan nan 4(4) 0 0 false",
		"changed reshaped reshaped [2 3]->[3 2] 0(0) 0 0 false",
		"changed size size [3]->[2]",
		"changed values values 2(0) 1 1 false",
		"changed values.complex values.complex 1(0) 2 0.5 false",
		"removed old.shape -",
		"removed removed -",
		"removed removed.empty -",
		"renamed old.name new.name",
		"renamed twins.a twins.c",
		"renamed twins.b twins.d",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Same != 3 { // added.not, same, same.empty
		t.Errorf("%d are the same", r.Same)
	}
}

func TestNothingDiffers(t *testing.T) {
	for _, name := range []string{"safetensors/all-dtypes.safetensors", "gguf/all-types.gguf", "compare/model-q4_0.gguf"} {
		path := filepath.Join("../testdata", name)
		copied := filepath.Join(t.TempDir(), filepath.Base(name))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, data, 0o600); err != nil {
			t.Fatal(err)
		}
		a := open(t, path, format.Options{})
		for _, b := range []*format.Checkpoint{open(t, path, format.Options{}), open(t, copied, format.Options{})} {
			if r := diff(t, a, b); len(r.Differences) > 0 || r.Same != a.Len() {
				t.Errorf("%s: %d same, %v", name, r.Same, r.Differences)
			}
		}
	}
}

// TestEveryByteCounts changes one byte anywhere, of tensors that take one step and several.
func TestEveryByteCounts(t *testing.T) {
	for _, n := range []int{1, 100, 4 * stepElems, 4*stepElems + 4, 9 * stepElems} {
		data := make([]byte, n)
		a := model(t, map[string]entry{"w": {"U8", []uint64{uint64(n)}, data}})
		for _, at := range []int{0, n / 2, n - 1} {
			data[at] = 3
			r := diff(t, a, model(t, map[string]entry{"w": {"U8", []uint64{uint64(n)}, data}}))
			data[at] = 0
			if len(r.Differences) != 1 || r.Differences[0].Values.MaxAbs != 3 || r.Differences[0].Values.Differing != 1 {
				t.Errorf("%d bytes, one at %d: %v", n, at, r.Differences)
			}
		}
	}
}

func TestRowsInAnotherOrder(t *testing.T) {
	const rows, row = 12, 40
	var values []float64
	for range rows * row {
		values = append(values, rand.NormFloat64())
	}
	order := rand.Perm(rows)
	var moved []float64
	for _, i := range order {
		moved = append(moved, values[i*row:(i+1)*row]...)
	}
	shape := []uint64{rows, row}
	for _, deep := range [][]uint64{shape, {rows, row / 4, 4}, {2, rows / 2, row}} {
		a := model(t, map[string]entry{"w": {"F32", shape, f32s(values...)}})
		b := model(t, map[string]entry{"w": {"F32", shape, f32s(moved...)}})
		if got := text(diff(t, a, b).Differences[0]); got != "changed w w permuted 0(0) 0 0 false" {
			t.Errorf("shape %v: %s", deep, got)
		}
	}
	moved[5]++
	a := model(t, map[string]entry{"w": {"F32", shape, f32s(values...)}})
	b := model(t, map[string]entry{"w": {"F32", shape, f32s(moved...)}})
	if d := diff(t, a, b).Differences[0]; d.Permuted {
		t.Error("rows with another value are taken for permuted")
	}
}

// TestGGUFOfSafetensors compares a model with what was made of it.
func TestGGUFOfSafetensors(t *testing.T) {
	rules, err := names.LoadRules("llama.cpp")
	if err != nil {
		t.Fatal(err)
	}
	a := open(t, "../testdata/compare/model.safetensors", format.Options{})
	for kind, most := range map[string]float64{"f32": 0, "f16": 1e-7, "q8_0": 0.001, "q4_0": 0.01} {
		b := open(t, "../testdata/compare/model-"+kind+".gguf", format.Options{Map: rules})
		r := diff(t, a, b)
		if r.Same != 0 || len(r.Differences) != 5 {
			t.Errorf("%s: %d same, %d differences", kind, r.Same, len(r.Differences))
		}
		for _, d := range r.Differences {
			permuted := strings.Contains(d.A.Name, "q_proj")
			if d.Kind != Changed || !d.DType() || d.Shape() || d.Permuted != permuted || !d.Values.Within || d.Values.MaxAbs > most {
				t.Errorf("%s: %s", kind, text(d))
			}
			if most > 0 && len(d.A.Shape) == 2 && d.Values.MaxAbs == 0 {
				t.Errorf("%s: quantised without loss: %s", kind, text(d))
			}
		}
	}
}

func TestAnotherModelIsNotWithinRounding(t *testing.T) {
	rules, _ := names.LoadRules("llama.cpp")
	other := map[string]entry{}
	var values []float64
	for range 64 * 256 {
		values = append(values, rand.NormFloat64()*0.02)
	}
	for _, name := range []string{"q_proj", "v_proj"} {
		other["model.layers.0.self_attn."+name+".weight"] = entry{"BF16", []uint64{64, 256}, bf16s(values...)}
	}
	for _, kind := range []string{"f16", "q8_0", "q4_0"} {
		r := diff(t, model(t, other), open(t, "../testdata/compare/model-"+kind+".gguf", format.Options{Map: rules}))
		for _, d := range r.Differences {
			if d.Kind == Changed && (d.Permuted || d.Values.Within) {
				t.Errorf("%s: %s", kind, text(d))
			}
		}
	}
}

func TestDuplicates(t *testing.T) {
	big := make([]byte, 40000)
	other := slices.Clone(big)
	other[30000] = 1 // not in the sample
	c := model(t, map[string]entry{
		"a": {"U8", []uint64{40000}, big}, "b": {"U8", []uint64{40000}, other}, "c": {"U8", []uint64{40000}, big},
		"d": {"U8", []uint64{3}, []byte{1, 2, 3}}, "e": {"U8", []uint64{3}, []byte{1, 2, 3}}, "f": {"I8", []uint64{3}, []byte{1, 2, 3}},
		"empty": {"U8", []uint64{0}, nil}, "empty2": {"U8", []uint64{0}, nil},
	})
	got, err := Duplicates(c, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, d := range got {
		var tensors []string
		for _, i := range d.Tensors {
			tensors = append(tensors, c.Tensor(i).Name)
		}
		list = append(list, fmt.Sprint(strings.Join(tensors, "="), " ", d.Copies))
	}
	if want := []string{"a=c 2", "d=e 2"}; !slices.Equal(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
}

// The message of a shard that changed after it was opened named the file twice.
func TestAFaultNamesTheFileOnce(t *testing.T) {
	a, b := model(t, map[string]entry{"x": {"F32", []uint64{2}, f32s(1, 2)}}), model(t, map[string]entry{"x": {"F32", []uint64{2}, f32s(1, 3)}})
	path := b.Shards[0].Path
	if err := os.Truncate(path, b.Shards[0].Size()-1); err != nil {
		t.Fatal(err)
	}
	_, err := New(a, b, func(int) {}).Run()
	if err == nil || !strings.Contains(err.Error(), `tensor "x"`) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("%v", err)
	}
}
