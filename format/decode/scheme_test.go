package decode

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

// A schemeCase is what scripts/gen_decode_schemes.py wrote.
type schemeCase struct {
	Kind, Primary, Config string
	Companions            []string
	Tensors               map[string]struct {
		DType string
		Shape []uint64
		Data  []byte
	}
	Shape []uint64
	Want  []byte
}

func schemeCases(t testing.TB) (cases []schemeCase) {
	f, err := os.Open(filepath.Join("..", "..", "testdata", "decode", "schemes.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func (c schemeCase) find(name string) (tensor.Info, io.ReaderAt, bool) {
	t, ok := c.Tensors[name]
	return tensor.Info{Name: name, DType: dtypeNamed(t.DType), Shape: t.Shape, Bytes: int64(len(t.Data))}, bytes.NewReader(t.Data), ok
}

// dtypeNamed is 0 where there is none.
func dtypeNamed(name string) tensor.DType {
	for d := tensor.DType(1); d.Valid(); d++ {
		if d.String() == name {
			return d
		}
	}
	return 0
}

func (c schemeCase) scheme() (Scheme, bool) {
	t, _, _ := c.find(c.Primary)
	return SchemeOf(t, c.find, ParseConfig([]byte(c.Config)))
}

func (c schemeCase) reader(s Scheme) io.ReaderAt {
	var companions []io.ReaderAt
	for _, name := range s.Companions {
		companions = append(companions, bytes.NewReader(c.Tensors[name].Data))
	}
	return s.Reader(bytes.NewReader(c.Tensors[c.Primary].Data), companions)
}

func eachScheme(t *testing.T, test func(t *testing.T, c schemeCase, r io.ReaderAt)) {
	for i, c := range schemeCases(t) {
		t.Run(fmt.Sprint(i, c.Kind), func(t *testing.T) {
			s, ok := c.scheme()
			if !ok || s.Kind != c.Kind {
				t.Fatalf("recognised: %v as %q, want %q", ok, s.Kind, c.Kind)
			}
			if d := cmp.Diff(slices.Sorted(slices.Values(c.Companions)), slices.Sorted(slices.Values(s.Companions))); d != "" {
				t.Fatal("companions", d)
			}
			if !slices.Equal(s.Shape, c.Shape) {
				t.Fatalf("shape %v, want %v", s.Shape, c.Shape)
			}
			test(t, c, c.reader(s))
		})
	}
}

func TestSchemeGolden(t *testing.T) {
	eachScheme(t, func(t *testing.T, c schemeCase, r io.ReaderAt) {
		got := make([]byte, len(c.Want)+4)
		n, err := r.ReadAt(got, 0)
		if err != io.EOF {
			t.Fatal(err)
		}
		diff(t, tensor.Q4_0, got[:n], c.Want) // a block type: NaN may differ
	})
}

func TestSchemeAnywhere(t *testing.T) {
	eachScheme(t, func(t *testing.T, c schemeCase, r io.ReaderAt) {
		whole := make([]byte, len(c.Want))
		if n, _ := r.ReadAt(whole, 0); n != len(whole) {
			t.Fatal(n)
		}
		rapid.Check(t, func(t *rapid.T) {
			off := rapid.IntRange(0, len(whole)).Draw(t, "off")
			p := make([]byte, rapid.IntRange(0, len(whole)-off).Draw(t, "n"))
			if n, err := r.ReadAt(p, int64(off)); n != len(p) || !bytes.Equal(p, whole[off:off+n]) {
				t.Fatalf("%d of %d bytes at %d, %v", n, len(p), off, err)
			}
		})
	})
}

// Whichever tensor ends early, the read fails; a wrong number is never made up.
func TestSchemeTruncated(t *testing.T) {
	for i, c := range schemeCases(t) {
		s, _ := c.scheme()
		for at := range len(s.Companions) + 1 {
			var readers []io.ReaderAt
			for j, name := range append([]string{c.Primary}, s.Companions...) {
				data := c.Tensors[name].Data
				if j == at {
					data = data[:len(data)-1]
				}
				readers = append(readers, bytes.NewReader(data))
			}
			_, err := s.Reader(readers[0], readers[1:]).ReadAt(make([]byte, len(c.Want)), 0)
			if err != io.ErrUnexpectedEOF {
				t.Errorf("case %d (%s) with tensor %d cut short: %v", i, s.Kind, at, err)
			}
		}
	}
}

// A scheme is recognised by shapes: change any dimension and the tensor is named as needing scales,
// but not decoded.
func TestSchemeShapes(t *testing.T) {
	for i, c := range schemeCases(t) {
		for _, name := range append([]string{c.Primary}, c.Companions...) {
			for dim := range c.Tensors[name].Shape {
				info, _, _ := c.find(c.Primary)
				find := func(n string) (tensor.Info, io.ReaderAt, bool) {
					t, data, ok := c.find(n)
					if n == name {
						t.Shape = slices.Clone(t.Shape)
						t.Shape[dim] += 1 << 20
					}
					return t, data, ok
				}
				if name == c.Primary {
					info, _, _ = find(name)
				}
				_, kind, needs := NeedsScale(info, find)
				if !needs {
					t.Errorf("case %d (%s): not seen to need scales", i, c.Kind)
				}
				// What bitsandbytes packs is described beside the shapes, and may be longer.
				if s, ok := SchemeOf(info, find, ParseConfig([]byte(c.Config))); ok && kind != "bnb-4bit" && !anyShape(s, name, c.Primary) {
					t.Errorf("case %d (%s): decoded with dimension %d of %s wrong", i, c.Kind, dim, name)
				}
			}
		}
	}
}

// anyShape tells of what stays right with any shape: a weight with one scale, or with a scale a row or
// column, if only the other dimension grows.
func anyShape(s Scheme, changed, primary string) bool { return s.Kind == "fp8" && changed == primary }

func TestSchemeUnknown(t *testing.T) {
	for i, c := range schemeCases(t) {
		info, _, _ := c.find(c.Primary)
		none := func(string) (tensor.Info, io.ReaderAt, bool) { return tensor.Info{}, nil, false }
		if _, ok := SchemeOf(info, none, Config{}); ok {
			t.Errorf("case %d is decoded without its companions", i)
		}
		if _, _, ok := NeedsScale(info, none); ok {
			t.Errorf("case %d needs scales that are not there", i)
		}
		if _, ok := SchemeOf(info, c.find, Config{}); ok && c.Kind == "gptq" {
			t.Errorf("case %d is decoded without a configuration", i)
		}
	}
}

func TestNeedsScale(t *testing.T) {
	names := "a.qweight a.scales b.W_q b.scale c.weight c.SCB d.weight d.scales e.weight e.weight_scale"
	find := func(name string) (tensor.Info, io.ReaderAt, bool) {
		return tensor.Info{Name: name}, nil, slices.Contains(strings.Fields(names), name)
	}
	for _, c := range []struct {
		name      string
		d         tensor.DType
		companion string
		kind      string
	}{
		{"a.qweight", tensor.I32, "a.scales", "qweight"},
		{"b.W_q", tensor.U8, "b.scale", "hqq"},
		{"c.weight", tensor.I8, "c.SCB", "bnb-int8"},
		{"d.weight", tensor.U32, "d.scales", "mlx"},
		{"e.weight", tensor.F8_E5M2, "e.weight_scale", "scaled"},
		{"e.weight", tensor.BF16, "", ""},
		{"f.weight", tensor.F8_E4M3, "", ""},
	} {
		companion, kind, ok := NeedsScale(tensor.Info{Name: c.name, DType: c.d}, find)
		if companion != c.companion || kind != c.kind || ok != (c.kind != "") {
			t.Errorf("%s: %q, %q, %v", c.name, companion, kind, ok)
		}
	}
}

// A row of more elements than a chunk reads only the scales of its columns.
func TestWideRows(t *testing.T) {
	const cols = 3*chunk + 77
	w := bytes.Repeat([]byte{0x38}, 2*cols) // 1
	scales := make([]float32, (cols+127)/128)
	for i := range scales {
		scales[i] = float32(i)
	}
	c := schemeCase{Primary: "w"}
	find := func(name string) (tensor.Info, io.ReaderAt, bool) {
		return tensor.Info{DType: tensor.F32, Shape: []uint64{1, uint64(len(scales))}}, nil, name == "w_scale_inv"
	}
	s, ok := SchemeOf(tensor.Info{Name: c.Primary, DType: tensor.F8_E4M3, Shape: []uint64{2, cols}}, find, Config{})
	if !ok {
		t.Fatal("not recognised")
	}
	got := make([]byte, 4*2*cols)
	if n, err := s.Reader(bytes.NewReader(w), []io.ReaderAt{bytes.NewReader(floatBytes(scales))}).ReadAt(got, 0); n != len(got) {
		t.Fatal(n, err)
	}
	for i := range 2 * cols {
		if v := le.Uint32(got[4*i:]); v != le.Uint32(floatBytes(scales)[i%cols/128*4:]) {
			t.Fatalf("element %d is %#x", i, v)
		}
	}
}

func TestGPTQBadGroup(t *testing.T) {
	for _, c := range schemeCases(t) {
		if c.Kind != "gptq" {
			continue
		}
		le.PutUint32(c.Tensors["m.g_idx"].Data[40:], 4)
		s, _ := c.scheme()
		n, err := c.reader(s).ReadAt(make([]byte, len(c.Want)), 0)
		if err == nil || err == io.EOF || !strings.Contains(err.Error(), "group 4") {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

func BenchmarkScheme(b *testing.B) {
	seen := map[string]bool{}
	for _, c := range schemeCases(b) {
		s, _ := c.scheme()
		if seen[s.Kind] {
			continue
		}
		seen[s.Kind] = true
		r, p := c.reader(s), make([]byte, len(c.Want))
		b.Run(s.Kind, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				r.ReadAt(p, 0)
			}
		})
	}
}
