//go:build linux

package faults

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weightfs/format"
)

// A checkpoint is a model in two files, a and b, each with the same three tensors and one that only
// keeps them apart from the header.
type checkpoint struct {
	dir  string
	a, b string // paths of the files
}

const (
	bigBytes  = 3 << 20
	padBytes  = 64 << 10
	cubeBytes = 4 * 64 * 1024
)

var tensors = []struct{ name, dtype, shape string }{
	{"pad", "U8", fmt.Sprintf("[%d]", padBytes)},
	{"big", "F32", fmt.Sprintf("[%d, 1024]", bigBytes/4096)},
	{"half", "BF16", fmt.Sprintf("[%d, 512]", bigBytes/4/1024)},
	{"cube", "F32", fmt.Sprintf("[%d, 64, 64]", cubeBytes/64/64/4)},
}

var sizes = []int{padBytes, bigBytes, bigBytes / 4, cubeBytes}

// padAt is where the padding lies in a file.
const padAt = 4096

// shard is a safetensors file of the tensors. Bytes of two versions differ at every offset.
func shard(prefix string, version byte) []byte {
	var entries []string
	at := 0
	for i, t := range tensors {
		entries = append(entries, fmt.Sprintf(`"%s.m.%s": {"dtype": "%s", "shape": %s, "data_offsets": [%d, %d]}`,
			prefix, t.name, t.dtype, t.shape, at, at+sizes[i]))
		at += sizes[i]
	}
	header := "{" + strings.Join(entries, ",") + "}"
	header += strings.Repeat(" ", padAt-8-len(header))
	data := make([]byte, at)
	rand.NewChaCha8([32]byte{prefix[0]}).Read(data)
	for i := range data {
		data[i] ^= version
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

func newCheckpoint(t testing.TB, dir string) *checkpoint {
	t.Helper()
	c := &checkpoint{dir, filepath.Join(dir, "model-00001-of-00002.safetensors"), filepath.Join(dir, "model-00002-of-00002.safetensors")}
	must(t, os.WriteFile(c.a, shard("a", 0), 0o644))
	must(t, os.WriteFile(c.b, shard("b", 0), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}\n"), 0o644))
	return c
}

// place is where a tensor of a shard lies in its file.
func place(name string) (begin, end int) {
	end = padAt
	for i, t := range tensors {
		begin, end = end, end+sizes[i]
		if strings.HasSuffix(name, "."+t.name) {
			return begin, end
		}
	}
	return 0, 0
}

// views are the files of every view that show tensors of one shard, or of both.
func views(prefix string) []string {
	var list []string
	for _, p := range []string{"raw/%s/m.big.raw", "raw/%s/m.half.raw", "npy/%s/m.big.npy", "f32/%s/m.half.npy", "rows/%s/m.cube/1.npy", "json/%s/m.big.json", "stats/%s/m.big.json", "parts/%s.safetensors"} {
		list = append(list, fmt.Sprintf(p, prefix))
	}
	return list
}

var spanning = []string{"assembled/model.safetensors", "SHA256SUMS"}

// contents reads files of a checkpoint's tree without a mount.
func contents(t testing.TB, source string, paths ...string) map[string][]byte {
	t.Helper()
	c, err := format.Open(source, format.Options{})
	must(t, err)
	defer c.Close()
	want := map[string][]byte{}
	for _, path := range paths {
		n, err := format.Follow(c.Root(), path)
		must(t, err)
		content, err := n.(format.File).Open()
		must(t, err)
		want[path], err = io.ReadAll(io.NewSectionReader(format.ContentReader{Content: content}, 0, content.Size()))
		must(t, err)
	}
	return want
}

// rewrite changes bytes of a file in place from an offset on.
func rewrite(path string, with []byte, from int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.NewOffsetWriter(f, from), strings.NewReader(string(with[from:])))
	return err
}

// replace puts another file in a file's place.
func replace(path string, with []byte) error {
	if err := os.WriteFile(path+".new", with, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
