package decode

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weightfs/format/tensor"
)

// supported lists the types that have a kernel.
func supported() (types []tensor.DType) {
	for d := tensor.DType(1); d.Valid(); d++ {
		if Supported(d) {
			types = append(types, d)
		}
	}
	return types
}

func floatBytes(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, f := range v {
		le.PutUint32(b[4*i:], math.Float32bits(f))
	}
	return b
}

// golden reads what scripts/gen_decode.py wrote: stored bytes, then their values.
func golden(t testing.TB, d tensor.DType) (src, want []byte) {
	f, err := os.Open(filepath.Join("..", "..", "testdata", "decode", d.String()+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	elems, size := d.Block()
	n := int64(len(data)) / (size + 4*elems) * size
	return data[:n], data[n:]
}

// diff compares float32 bytes. NaN need only be NaN where a product made it: its sign and payload
// are then the processor's.
func diff(t *testing.T, d tensor.DType, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v: %d bytes, want %d", d, len(got), len(want))
	}
	for i := 0; i < len(got); i += 4 {
		g, w := le.Uint32(got[i:]), le.Uint32(want[i:])
		if g == w || d.Kind() == tensor.Block && isNaN(g) && isNaN(w) {
			continue
		}
		t.Fatalf("%v: element %d is %#08x, want %#08x", d, i/4, g, w)
	}
}

func isNaN(bits uint32) bool { return bits&0x7fffffff > 0x7f800000 }

func decodeAll(d tensor.DType, src []byte) []byte {
	elems, size := d.Block()
	dst := make([]float32, int64(len(src))/size*elems)
	Floats(d, dst, src)
	return floatBytes(dst)
}

func TestGolden(t *testing.T) {
	for _, d := range supported() {
		if d == tensor.F32 {
			continue
		}
		src, want := golden(t, d)
		diff(t, d, decodeAll(d, src), want)
	}
}

// TestPeer decodes random blocks with gguf-py itself, where it is installed.
func TestPeer(t *testing.T) {
	python := cmp.Or(os.Getenv("WEIGHTFS_PYTHON"), "python3")
	if exec.Command(python, "-c", "import gguf, ml_dtypes").Run() != nil {
		t.Skip("no Python with gguf and ml_dtypes; name one in WEIGHTFS_PYTHON")
	}
	args := []string{filepath.Join("..", "..", "scripts", "gen_decode.py")}
	var stored []byte
	for _, d := range supported() {
		_, size := d.Block()
		args = append(args, fmt.Sprintf("%v=%d", d, 512*size))
		for range 512 * size {
			stored = append(stored, byte(rand.Uint32()))
		}
	}
	cmd := exec.Command(python, args...)
	cmd.Stdin = bytes.NewReader(stored)
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range supported() {
		elems, size := d.Block()
		diff(t, d, decodeAll(d, stored[:512*size]), want[:4*512*elems])
		stored, want = stored[512*size:], want[4*512*elems:]
	}
}

func BenchmarkFloats(b *testing.B) {
	const n = 1 << 20
	dst := make([]float32, n)
	for _, d := range supported() {
		elems, size := d.Block()
		src := make([]byte, n/elems*size)
		for i := range src {
			src[i] = byte(rand.Uint32N(64))
		}
		b.Run(d.String(), func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				Floats(d, dst, src)
			}
		})
	}
}
