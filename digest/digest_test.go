package digest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"weightfs/format/decode"
	"weightfs/format/tensor"
)

// golden is what NumPy makes of a tensor.
type golden struct {
	Title, DType        string
	Elements            uint64
	Data                []byte
	NaN, Zeros, Finite  uint64
	PosInf              uint64 `json:"pos_inf"`
	NegInf              uint64 `json:"neg_inf"`
	Min, Max, Mean, Std float64
	SHA256              string
}

func goldens(t testing.TB) (list []golden) {
	f, err := os.Open("../testdata/digest/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

func (g *golden) tensor(t testing.TB) *tensor.Info {
	d := tensor.DType(1)
	for d.String() != g.DType {
		if d++; !d.Valid() {
			t.Fatalf("no type %q", g.DType)
		}
	}
	return &tensor.Info{DType: d, Shape: []uint64{g.Elements}, Bytes: int64(len(g.Data))}
}

func TestGolden(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.DType+" "+g.Title, func(t *testing.T) {
			got, err := Sum(bytes.NewReader(g.Data), g.tensor(t), Hash|Stats)
			if err != nil {
				t.Fatal(err)
			}
			if sum := hex.EncodeToString(got.SHA256[:]); sum != g.SHA256 {
				t.Errorf("SHA-256 %s, want %s", sum, g.SHA256)
			}
			counts := [5]uint64{got.NaN, got.PosInf, got.NegInf, got.Zeros, got.Finite}
			if want := [5]uint64{g.NaN, g.PosInf, g.NegInf, g.Zeros, g.Finite}; counts != want {
				t.Errorf("NaN, Inf, -Inf, zeros, finite: %v, want %v", counts, want)
			}
			if got.Min != g.Min || got.Max != g.Max {
				t.Errorf("from %v to %v, want %v to %v", got.Min, got.Max, g.Min, g.Max)
			}
			wide := max(math.Abs(g.Min), math.Abs(g.Max))
			near(t, "mean", got.Mean, g.Mean, 1e-14*wide)
			near(t, "std", got.Std, g.Std, 1e-12*g.Std+1e-14*wide)
		})
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if d := math.Abs(got - want); d > within || d != d {
		t.Errorf("%s %v, want %v within %v", what, got, want, within)
	}
}

// TestAnyTensor compares with a plain loop over the values: of every type, of any length around the
// bounds of a chunk, for any number of cores.
func TestAnyTensor(t *testing.T) {
	var types []tensor.DType
	for d := tensor.DType(1); d.Valid(); d++ {
		types = append(types, d)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(types).Draw(t, "type")
		elems, size := d.Block()
		n := rapid.SampledFrom([]int64{0, 1, 2, 3, 100, 257, 1000, 5000, chunkSize/size + 1}).Draw(t, "blocks")
		data := make([]byte, n*size)
		rand.NewChaCha8([32]byte{byte(rapid.IntRange(0, 255).Draw(t, "seed"))}).Read(data)
		info := &tensor.Info{DType: d, Shape: []uint64{uint64(n * elems)}, Bytes: n * size}

		var results []Result
		for _, cores := range []int{1, 2, 4} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			r, err := Sum(bytes.NewReader(data), info, Hash|Stats)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		got := results[0]
		if !same(got, results[1]) || !same(got, results[2]) {
			t.Fatalf("%v with one core, %v with two, %v with four", got, results[1], results[2])
		}
		if got.SHA256 != sha256.Sum256(data) {
			t.Fatal("wrong SHA-256")
		}
		want := plainly(d, data, n*elems)
		if got.NaN != want.NaN || got.PosInf != want.PosInf || got.NegInf != want.NegInf || got.Zeros != want.Zeros || got.Finite != want.Finite {
			t.Fatalf("counted %+v, want %+v", got, want)
		}
		if got.Finite > 0 && (got.Min != want.Min || got.Max != want.Max) {
			t.Fatalf("from %v to %v, want %v to %v", got.Min, got.Max, want.Min, want.Max)
		}
	})
}

// same compares results bit for bit: NaN equals itself.
func same(a, b Result) bool {
	return bytes.Equal(appendRecord(nil, key{}, &a), appendRecord(nil, key{}, &b))
}

// plainly counts values one by one.
func plainly(d tensor.DType, data []byte, elems int64) (r Result) {
	if !Counts(d) {
		return r
	}
	values := make([]float64, elems*int64(decode.Parts(d)))
	decode.Values(d, values, data)
	r.Min, r.Max = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			r.NaN++
		case math.IsInf(v, 1):
			r.PosInf++
		case math.IsInf(v, -1):
			r.NegInf++
		default:
			r.Finite++
			r.Min, r.Max = min(r.Min, v), max(r.Max, v)
			if v == 0 {
				r.Zeros++
			}
		}
	}
	return r
}

func TestSourceEndsEarly(t *testing.T) {
	for _, size := range []int64{10, 3 * chunkSize, 9 * chunkSize} {
		info := &tensor.Info{DType: tensor.U8, Shape: []uint64{uint64(size)}, Bytes: size}
		_, err := Sum(bytes.NewReader(make([]byte, size-1)), info, Hash|Stats)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, one missing: %v", size, err)
		}
	}
}

func TestMomentsBeyondFloat64(t *testing.T) {
	data := make([]byte, 16)
	le.PutUint64(data, math.Float64bits(math.MaxFloat64))
	le.PutUint64(data[8:], math.Float64bits(-math.MaxFloat64))
	info := &tensor.Info{DType: tensor.F64, Shape: []uint64{2}, Bytes: 16}
	r, err := Sum(bytes.NewReader(data), info, Stats)
	if err != nil || r.Min != -math.MaxFloat64 || r.Max != math.MaxFloat64 || r.Finite != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func BenchmarkSum(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F8_E4M3, tensor.I64, tensor.Q8_0, tensor.Q4_0, tensor.Q4_K, tensor.Q6_K} {
		elems, size := d.Block()
		n := 16 << 20 / size
		data := make([]byte, n*size)
		switch d {
		case tensor.F32:
			for i := range n {
				le.PutUint32(data[4*i:], math.Float32bits(float32(rand.NormFloat64())))
			}
		case tensor.BF16:
			for i := range n {
				le.PutUint16(data[2*i:], uint16(math.Float32bits(float32(rand.NormFloat64()))>>16))
			}
		case tensor.F16:
			for i := range n {
				le.PutUint16(data[2*i:], 0x3000|uint16(rand.Uint32())&0x8fff)
			}
		default:
			for i := range data {
				data[i] = byte(rand.Uint32()) & 0xbf
			}
		}
		info := &tensor.Info{DType: d, Shape: []uint64{uint64(n * elems)}, Bytes: n * size}
		for name, parts := range map[string]Parts{"hash": Hash, "stats": Stats, "both": Hash | Stats} {
			b.Run(d.String()+"/"+name, func(b *testing.B) {
				b.SetBytes(n * size)
				for b.Loop() {
					if _, err := Sum(bytes.NewReader(data), info, parts); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
