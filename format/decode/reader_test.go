package decode

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

const chunks = 2*chunk + chunk/2

// tensorOf makes a tensor of about n elements, with its float32 bytes.
func tensorOf(d tensor.DType, n int64) (src, want []byte, elems int64) {
	unit, size := d.Block()
	blocks := n / unit
	src = make([]byte, blocks*size)
	rng := rand.New(rand.NewPCG(1, uint64(d)))
	for i := range src {
		src[i] = byte(rng.Uint32N(120)) // no NaN, whose bits may differ
	}
	return src, decodeAll(d, src), blocks * unit
}

func TestReaderWhole(t *testing.T) {
	for _, d := range supported() {
		src, want, elems := tensorOf(d, 768)
		r := Reader(d, elems, bytes.NewReader(src))
		if err := iotest.TestReader(io.NewSectionReader(r, 0, int64(len(want))), want); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
}

func TestReaderAnywhere(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F8_E4M3, tensor.Q4_K, tensor.NVFP4} {
		src, want, elems := tensorOf(d, chunks)
		r := Reader(d, elems, bytes.NewReader(src))
		rapid.Check(t, func(t *rapid.T) {
			off := rapid.IntRange(0, len(want)+8).Draw(t, "off")
			n := rapid.IntRange(0, len(want)+8).Draw(t, "n")
			shift := rapid.IntRange(0, 3).Draw(t, "shift")
			p := make([]byte, shift+n)[shift:]
			got, err := r.ReadAt(p, int64(off))
			rest := want[min(off, len(want)):]
			if got != min(n, len(rest)) || !bytes.Equal(p[:got], rest[:got]) {
				t.Fatalf("%v: wrong bytes, %d of them", d, got)
			}
			if (err == io.EOF) != (got < n || off >= len(want)) || err != nil && err != io.EOF {
				t.Fatalf("%v: %d of %d bytes with error %v", d, got, n, err)
			}
		})
	}
}

func TestReaderFaults(t *testing.T) {
	src, _, elems := tensorOf(tensor.Q6_K, chunks)
	p := make([]byte, 4*elems)
	short := Reader(tensor.Q6_K, elems, bytes.NewReader(src[:len(src)-1]))
	if n, err := short.ReadAt(p, 0); err != io.ErrUnexpectedEOF || n == 0 || n == len(p) {
		t.Errorf("a short source gives %d bytes and %v", n, err)
	}
	if n, err := short.ReadAt(p[:4], 4*elems-4); n != 0 || err != io.ErrUnexpectedEOF {
		t.Errorf("the missing block gives %d bytes and %v", n, err)
	}
	broken := errors.New("broken")
	failing := Reader(tensor.Q6_K, elems, failingReader{broken})
	if n, err := failing.ReadAt(p, 0); n != 0 || err != broken {
		t.Errorf("a failing source gives %d bytes and %v", n, err)
	}
	if _, err := short.ReadAt(p, -1); err == nil || err == io.EOF {
		t.Errorf("a negative offset gives %v", err)
	}
	empty := Reader(tensor.Q6_K, 0, bytes.NewReader(nil))
	if n, err := empty.ReadAt(p, 0); n != 0 || err != io.EOF {
		t.Errorf("an empty tensor gives %d bytes and %v", n, err)
	}
}

type failingReader struct{ err error }

func (r failingReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

func TestReaderConcurrent(t *testing.T) {
	src, want, elems := tensorOf(tensor.Q5_K, chunks)
	r := Reader(tensor.Q5_K, elems, bytes.NewReader(src))
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			p := make([]byte, 10001)
			for off := 13 * i; off < len(want); off += 10007 {
				n, err := r.ReadAt(p, int64(off))
				if err != nil && err != io.EOF || !bytes.Equal(p[:n], want[off:off+n]) {
					t.Errorf("offset %d: %d bytes, %v", off, n, err)
				}
			}
		})
	}
	group.Wait()
}

// A view is read behind the header of an .npy, so blocks never begin at the reader's pages.
func BenchmarkReader(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.Q8_0, tensor.Q4_K, tensor.Q6_K} {
		src, want, elems := tensorOf(d, chunks)
		r := Reader(d, elems, bytes.NewReader(src))
		p := make([]byte, len(want)-128)
		b.Run(d.String(), func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if n, _ := r.ReadAt(p, 128); n != len(p) {
					b.Fatal(n)
				}
			}
		})
	}
}
