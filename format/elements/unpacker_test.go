package elements

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"weightfs/format/tensor"
)

func tempFile(t testing.TB, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func deflate(t testing.TB, p []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, 6)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(p)
	w.Close()
	return b.Bytes()
}

func newStore(t testing.TB, limit int64) *Unpacker {
	u := NewUnpacker(t.TempDir(), limit)
	t.Cleanup(func() { u.Close() })
	return u
}

// countingSource counts how often its first byte is read.
type countingSource struct {
	io.ReaderAt
	starts atomic.Int32
	fail   atomic.Bool
}

func (c *countingSource) ReadAt(p []byte, off int64) (int, error) {
	if c.fail.Load() {
		return 0, syscall.EIO
	}
	if off == 0 {
		c.starts.Add(1)
	}
	return c.ReaderAt.ReadAt(p, off)
}

// deflated is a 4096-byte tensor behind a header of 10 bytes, both deflated.
func deflated(t testing.TB) (packed, want []byte, info *tensor.Info) {
	want = bytes.Repeat([]byte("0123456789abcdef"), 256)
	packed = deflate(t, append([]byte("the header"), want...))
	return packed, want, &tensor.Info{
		DType: tensor.U8, Shape: []uint64{4096}, Bytes: 4096, Extent: tensor.Extent{Len: int64(len(packed))},
		Layout: &tensor.Layout{Pack: tensor.Deflate, Unpacked: 4106, Skip: 10},
	}
}

func TestUnpackOnce(t *testing.T) {
	packed, want, info := deflated(t)
	src, store := &countingSource{ReaderAt: bytes.NewReader(packed)}, newStore(t, 4106)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			r, err := Reader(src, info, store)
			if err != nil {
				t.Error(err)
				return
			}
			p := make([]byte, len(want))
			if n, err := r.ReadAt(p, 0); n != len(p) || err != nil || !bytes.Equal(p, want) {
				t.Error(n, err)
			}
		})
	}
	wg.Wait()
	if n := src.starts.Load(); n != 1 {
		t.Errorf("unpacked %d times", n)
	}
	if names, err := os.ReadDir(store.dir); err != nil || len(names) != 0 {
		t.Errorf("the file has a name: %v, %v", names, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	r, _ := Reader(src, info, store)
	if _, err := r.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestUnpackAndChange(t *testing.T) {
	stored := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	packed := deflate(t, stored)
	info := &tensor.Info{
		DType: tensor.U16, Shape: []uint64{2, 3}, Bytes: 12, Extent: tensor.Extent{Len: int64(len(packed))},
		Layout: &tensor.Layout{Pack: tensor.Deflate, Unpacked: 12, Strides: []int64{1, 2}, Swap: true, CRC32: crc32.ChecksumIEEE(stored)},
	}
	r, err := Reader(bytes.NewReader(packed), info, newStore(t, 100))
	if err != nil {
		t.Fatal(err)
	}
	checkRead(t, r, []byte{1, 0, 5, 4, 9, 8, 3, 2, 7, 6, 11, 10}, 0, 12)
	checkRead(t, r, []byte{1, 0, 5, 4, 9, 8, 3, 2, 7, 6, 11, 10}, 3, 7)
}

func TestUnpackVarints(t *testing.T) {
	values := []int64{0, 1, -1, 300, -129, 1 << 33}
	var packed []byte
	for _, v := range values {
		packed = binary.AppendUvarint(packed, uint64(v))
	}
	store, src := newStore(t, 1<<10), bytes.NewReader(packed)
	for _, tt := range []struct {
		d    tensor.DType
		want []byte
	}{
		{tensor.I8, []byte{0, 1, 0xff, 0x2c, 0x7f, 0}},
		{tensor.F16, []byte{0, 0, 1, 0, 0xff, 0xff, 0x2c, 1, 0x7f, 0xff, 0, 0}},
		{tensor.I32, []byte{0, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x2c, 1, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}},
	} {
		n := int64(len(tt.want))
		r, err := Reader(src, &tensor.Info{
			DType: tt.d, Shape: []uint64{6}, Bytes: n, Extent: tensor.Extent{Len: int64(len(packed))},
			Layout: &tensor.Layout{Pack: tensor.Varint, Unpacked: n},
		}, store)
		if err != nil {
			t.Fatal(err)
		}
		checkRead(t, r, tt.want, 0, len(tt.want))
	}
}

// Values that protobuf does not pack stand behind a key each.
func TestUnpackFields(t *testing.T) {
	varints, floats := []byte{8 << 3, 1, 8 << 3, 0xac, 2}, []byte{9<<3 | 5, 1, 2, 3, 4, 9<<3 | 5, 5, 6, 7, 8}
	longKey := append(binary.AppendUvarint(nil, 100<<3|1), 1, 2, 3, 4, 5, 6, 7, 8)
	for _, tt := range []struct {
		d            tensor.DType
		stored, want []byte
		err          error
	}{
		{tensor.I16, varints, []byte{1, 0, 0x2c, 1}, nil},
		{tensor.I64, varints, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0x2c, 1, 0, 0, 0, 0, 0, 0}, nil},
		{tensor.C64, floats, []byte{1, 2, 3, 4, 5, 6, 7, 8}, nil},
		{tensor.F64, longKey, []byte{1, 2, 3, 4, 5, 6, 7, 8}, nil},
		{tensor.F32, floats[:9], make([]byte, 8), io.ErrUnexpectedEOF},
		{tensor.F32, floats[:6], make([]byte, 8), io.ErrUnexpectedEOF},
		{tensor.I16, varints[:4], make([]byte, 4), io.ErrUnexpectedEOF},
		{tensor.F32, floats, make([]byte, 4), tensor.ErrMalformed},
		{tensor.U8, []byte{8<<3 | 2, 1, 0}, make([]byte, 1), tensor.ErrMalformed},
	} {
		n := int64(len(tt.want))
		info := &tensor.Info{
			DType: tt.d, Bytes: n, Extent: tensor.Extent{Len: int64(len(tt.stored))}, Layout: &tensor.Layout{Pack: tensor.Fields, Unpacked: n},
		}
		r, err := Reader(bytes.NewReader(tt.stored), info, newStore(t, 1<<10))
		if err != nil {
			t.Fatal(err)
		}
		if tt.err == nil {
			checkRead(t, r, tt.want, 0, len(tt.want))
		} else if _, err := r.ReadAt(make([]byte, n), 0); !errors.Is(err, tt.err) {
			t.Errorf("%x of %v: %v, not %v", tt.stored, tt.d, err, tt.err)
		}
	}
}

func TestUnpackManyVarints(t *testing.T) {
	var packed, want []byte
	for i := range 300_000 {
		packed = binary.AppendUvarint(packed, uint64(i*i))
		want = binary.LittleEndian.AppendUint32(want, uint32(i*i))
	}
	r, err := Reader(bytes.NewReader(packed), &tensor.Info{
		DType: tensor.U32, Shape: []uint64{300_000}, Bytes: 1_200_000, Extent: tensor.Extent{Len: int64(len(packed))},
		Layout: &tensor.Layout{Pack: tensor.Varint, Unpacked: 1_200_000},
	}, newStore(t, 1_200_000))
	if err != nil {
		t.Fatal(err)
	}
	checkRead(t, r, want, 0, len(want))
}

func TestUnpackRefuses(t *testing.T) {
	packed, _, good := deflated(t)
	tests := []struct {
		name   string
		change func(*tensor.Info)
		source []byte
		want   error
		say    string
	}{
		{"fewer bytes", func(i *tensor.Info) { i.Layout.Unpacked++ }, packed, io.ErrUnexpectedEOF, "declared 4107"},
		{"more bytes", func(i *tensor.Info) { i.Layout.Unpacked--; i.Bytes-- }, packed, tensor.ErrMalformed, "more bytes"},
		{"cut short", func(i *tensor.Info) { i.Extent.Len -= 3 }, packed, io.ErrUnexpectedEOF, "offset 0"},
		{"file cut short", func(i *tensor.Info) {}, packed[:len(packed)-3], io.ErrUnexpectedEOF, "offset 0"},
		{"other checksum", func(i *tensor.Info) { i.Layout.CRC32 = 5 }, packed, tensor.ErrMalformed, "checksum"},
		{"no varints", func(i *tensor.Info) { i.Layout.Pack = tensor.Varint }, bytes.Repeat([]byte{0xff}, 64), nil, "overflow"},
		{"unknown packing", func(i *tensor.Info) { i.Layout.Pack = 99 }, packed, tensor.ErrUnsupported, "99"},
		{"over the limit", func(i *tensor.Info) { i.Layout.Unpacked = 1 << 40 }, packed, tensor.ErrTooLarge, "at most 10000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			info, layout := *good, *good.Layout
			info.Layout = &layout
			tt.change(&info)
			store := newStore(t, 10_000)
			r, err := Reader(bytes.NewReader(tt.source), &info, store)
			if err != nil {
				t.Fatal(err)
			}
			n, err := r.ReadAt(make([]byte, 8), 0)
			if n != 0 || err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("%d, %v", n, err)
			}
			if store.used != 0 || len(store.ranges) != 0 {
				t.Errorf("%d bytes stay in use", store.used)
			}
		})
	}
}

func TestUnpackRetries(t *testing.T) {
	packed, want, info := deflated(t)
	src := &countingSource{ReaderAt: bytes.NewReader(packed)}
	src.fail.Store(true)
	r, err := Reader(src, info, newStore(t, 10_000))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, 8), 0); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	src.fail.Store(false)
	checkRead(t, r, want, 0, len(want))
}

// A cache directory that cannot be made is no reason to fail while there is another; a system
// without a directory for temporary files says what it tried.
func TestUnpackFallsBackToTheTemporaryDirectory(t *testing.T) {
	packed, want, info := deflated(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store := NewUnpacker(filepath.Join(file, "cache"), 10_000)
	t.Cleanup(func() { store.Close() })
	r, err := Reader(bytes.NewReader(packed), info, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(file, "tmp"))
	if _, err := r.ReadAt(make([]byte, 8), 0); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	checkRead(t, r, want, 0, len(want))
}

func TestUnpackMakesItsDirectory(t *testing.T) {
	packed, want, info := deflated(t)
	store := NewUnpacker(filepath.Join(t.TempDir(), "a", "b"), 10_000)
	t.Cleanup(func() { store.Close() })
	r, err := Reader(bytes.NewReader(packed), info, store)
	if err != nil {
		t.Fatal(err)
	}
	checkRead(t, r, want, 0, len(want))
	if _, err := os.Stat(store.dir); err != nil {
		t.Error(err)
	}
}

func TestUnpackFullDisk(t *testing.T) {
	packed, _, info := deflated(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	key := packedRange{src: bytes.NewReader(packed), extent: info.Extent, pack: tensor.Deflate, width: 1, unpacked: 4106}
	if err := unpackTo(full, key); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}
