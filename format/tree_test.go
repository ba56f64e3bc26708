package format

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// A testTensor goes into a safetensors file that the test makes.
type testTensor struct {
	name, dtype string
	shape       []uint64
	data        []byte
}

func writeSafetensors(t testing.TB, path string, meta map[string]string, tensors ...testTensor) {
	t.Helper()
	var head, data bytes.Buffer
	head.WriteString("{")
	if meta != nil {
		m, _ := json.Marshal(meta)
		fmt.Fprintf(&head, `"__metadata__":%s,`, m)
	}
	for i, x := range tensors {
		if i > 0 {
			head.WriteString(",")
		}
		name, _ := json.Marshal(x.name)
		shape, _ := json.Marshal(x.shape)
		if x.shape == nil {
			shape = []byte("[]")
		}
		fmt.Fprintf(&head, `%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, name, x.dtype, shape, data.Len(), data.Len()+len(x.data))
		data.Write(x.data)
	}
	head.WriteString("}")
	file := binary.LittleEndian.AppendUint64(nil, uint64(head.Len()))
	file = append(append(file, head.Bytes()...), data.Bytes()...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
}

// pattern is n bytes that differ from their neighbours.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + seed
	}
	return b
}

func sample(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "m", "model.safetensors")
	writeSafetensors(t, path, map[string]string{"note": "x"},
		testTensor{"model.layers.0.q.weight", "F32", []uint64{2, 3}, pattern(24, 1)},
		testTensor{"model.layers.10.q.weight", "BF16", []uint64{3}, pattern(6, 2)},
		testTensor{"model.layers.2.q.weight", "F16", []uint64{1, 2}, pattern(4, 3)},
		testTensor{"experts", "I16", []uint64{3, 2, 2}, pattern(24, 4)},
		testTensor{"experts.a.b", "U8", []uint64{1, 1, 5}, pattern(5, 5)},
		testTensor{"scalar", "F8_E4M3", nil, pattern(1, 6)},
		testTensor{"empty", "F64", []uint64{0, 4}, nil},
	)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "config.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func openTest(t testing.TB, path string, opt Options) *Checkpoint {
	t.Helper()
	c, err := Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func readNode(t testing.TB, c *Checkpoint, path string) []byte {
	t.Helper()
	b, err := iofs.ReadFile(NewFS(c.Root()), path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTreeIsAnFS(t *testing.T) {
	c := openTest(t, sample(t), Options{Views: []string{"raw", "json", "npy", "f32", "rows", "parts", "by-name", "assembled"}})
	err := fstest.TestFS(NewFS(c.Root()), "README.txt", "tensors.json", "metadata.json",
		"raw/model/layers/0/q.weight.raw", "raw/empty.raw", "json/scalar.json", "npy/experts.npy",
		"f32/model/layers/10/q.weight.npy", "rows/experts~2/2.npy", "rows/experts/a.b/0.npy",
		"parts/model/layers.safetensors", "parts/model/layers/10.safetensors", "by-name/experts.a.b",
		"assembled/model.safetensors", "assembled/config.json")
	if err != nil {
		t.Fatal(err)
	}
}

func TestRawIsTheBytesOfTheFile(t *testing.T) {
	c := openTest(t, sample(t), Options{})
	for path, want := range map[string][]byte{
		"raw/model/layers/0/q.weight.raw": pattern(24, 1), "raw/experts.raw": pattern(24, 4), "raw/empty.raw": {}, "raw/scalar.raw": pattern(1, 6),
	} {
		if got := readNode(t, c, path); !bytes.Equal(got, want) {
			t.Errorf("%s holds %x, want %x", path, got, want)
		}
	}
}

func TestRowsAreSlicesOfTheFirstDimension(t *testing.T) {
	c := openTest(t, sample(t), Options{})
	got := readNode(t, c, "rows/experts~2/1.npy")
	if !bytes.Contains(got[:128], []byte("'shape': (2, 2)")) || !bytes.Equal(got[len(got)-8:], pattern(24, 4)[8:16]) {
		t.Errorf("got %q", got)
	}
}

// numpy.load reads the header of an array through a buffer of st_blksize, and the kernel reads ahead four times
// that: with blocks of 1 MiB opening a model lazily read all of it.
func TestArraysHaveSmallBlocks(t *testing.T) {
	c := openTest(t, sample(t), Options{})
	for path, want := range map[string]int{
		"npy/experts.npy": 4096, "f32/model/layers/0/q.weight.npy": 4096, "rows/experts~2/1.npy": 4096, "SHA256SUMS": 4096,
		"raw/experts.raw": 0, "json/experts.json": 0, "parts/model/layers/0.safetensors": 0, "assembled/model.safetensors": 0,
	} {
		if n, err := Lookup(c.Root(), path); err != nil || n.Stat().Block != want {
			t.Errorf("%s: %d, want %d (%v)", path, n.Stat().Block, want, err)
		}
	}
}

func TestListingIsNatural(t *testing.T) {
	c := openTest(t, sample(t), Options{})
	n, err := Lookup(c.Root(), "raw/model/layers")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for l, i := n.(Dir).List(), 0; i < l.Len(); i++ {
		names = append(names, l.At(i).Name)
	}
	if s := strings.Join(names, " "); s != "0 2 10" {
		t.Errorf("order is %q", s)
	}
}

// Every node has the inode number that its directory lists, no two share one, and every file's size
// is exact before it is read.
// The links of files/ ran into the numbers of by-name/ where a set has more than 2000 files, and so would
// have led to tensors.
func TestInodesOfManyFiles(t *testing.T) {
	c := openTest(t, sample(t), Options{})
	for i := range 5000 {
		c.own = append(c.own, ownFile{fmt.Sprintf("model-%05d-of-05000.safetensors", i+1), "/nowhere"})
	}
	seen := map[uint64]string{}
	for _, view := range Views {
		l := c.viewRoot(view).List()
		for i := range l.Len() {
			e := l.At(i)
			if other, ok := seen[e.Ino]; ok {
				t.Fatalf("%s/%s and %s share inode number %d", view, e.Name, other, e.Ino)
			}
			seen[e.Ino] = view + "/" + e.Name
		}
	}
}

func TestInodesAndSizes(t *testing.T) {
	c := openTest(t, sample(t), Options{InoBase: 3 << 48})
	seen := map[uint64]string{}
	var walk func(d Dir, path string)
	walk = func(d Dir, path string) {
		l := d.List()
		for i := range l.Len() {
			e := l.At(i)
			at := path + "/" + e.Name
			n, err := d.Lookup(e.Name)
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			st := n.Stat()
			if st.Ino != e.Ino || st.Mode.Type() != e.Type || st.Nlink == 0 {
				t.Errorf("%s: listed as %d %v, is %d %v with %d links", at, e.Ino, e.Type, st.Ino, st.Mode, st.Nlink)
			}
			if st.Ino>>48 != 3 {
				t.Errorf("%s: inode number %#x is outside of the checkpoint's", at, st.Ino)
			}
			if other, ok := seen[st.Ino]; ok {
				t.Errorf("%s and %s share inode number %d", at, other, st.Ino)
			}
			seen[st.Ino] = at
			switch n := n.(type) {
			case Dir:
				walk(n, at)
			case File:
				content, err := n.Open()
				if err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				b, err := io.ReadAll(io.NewSectionReader(ContentReader{content}, 0, 1<<40))
				if err != nil || int64(len(b)) != st.Size {
					t.Errorf("%s: size %d, but %d bytes read (%v)", at, st.Size, len(b), err)
				}
			}
		}
	}
	walk(c.Root(), "")
	if len(seen) < 40 {
		t.Errorf("only %d nodes", len(seen))
	}
}

func TestTensorsJSONIsJSON(t *testing.T) {
	c := openTest(t, sample(t), Options{})
	var doc struct {
		Schema     int
		TotalBytes uint64 `json:"total_bytes"`
		Tensors    []map[string]any
		Warnings   []string
	}
	if err := json.Unmarshal(readNode(t, c, "tensors.json"), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != 1 || len(doc.Tensors) != 7 || doc.TotalBytes != 64 || doc.Warnings == nil {
		t.Errorf("got %+v", doc)
	}
}

func TestAssembledHoldsEveryTensorOnce(t *testing.T) {
	path := sample(t)
	c := openTest(t, path, Options{})
	file := filepath.Join(t.TempDir(), "again.safetensors")
	if err := os.WriteFile(file, readNode(t, c, "assembled/model.safetensors"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := openTest(t, file, Options{})
	if again.Len() != c.Len() {
		t.Fatalf("%d tensors, want %d", again.Len(), c.Len())
	}
	if got := again.Meta().Get("format"); got != "pt" {
		t.Errorf("format is %v", got)
	}
	for i := range c.Len() {
		a := c.Tensor(i)
		j, ok := again.ByName(a.Name)
		if !ok {
			t.Fatalf("%q is missing", a.Name)
		}
		b := again.Tensor(j)
		if a.DType != b.DType || fmt.Sprint(a.Shape) != fmt.Sprint(b.Shape) {
			t.Errorf("%q is %v %v, want %v %v", a.Name, b.DType, b.Shape, a.DType, a.Shape)
		}
		if w := int64(a.DType.Word()); w > 1 && b.Extent.Off%w != 0 {
			t.Errorf("%q lies at %d, which is not a multiple of %d", a.Name, b.Extent.Off, w)
		}
		x, y := readNode(t, c, "raw/"+a.Path+".raw"), readNode(t, again, "raw/"+b.Path+".raw")
		if !bytes.Equal(x, y) {
			t.Errorf("%q holds other bytes", a.Name)
		}
	}
}

func TestSidesOfTensorsSpanSegments(t *testing.T) {
	c := openTest(t, sample(t), Options{})
	whole := readNode(t, c, "assembled/model.safetensors")
	n, err := Lookup(c.Root(), "assembled/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	content, err := n.(File).Open()
	if err != nil {
		t.Fatal(err)
	}
	for off := range whole {
		got := make([]byte, min(9, len(whole)-off))
		if _, err := (ContentReader{content}).ReadAt(got, int64(off)); err != nil || !bytes.Equal(got, whole[off:off+len(got)]) {
			t.Fatalf("at %d: %q instead of %q (%v)", off, got, whole[off:off+len(got)], err)
		}
	}
}

func TestReplacedShardIsStale(t *testing.T) {
	path := sample(t)
	c := openTest(t, path, Options{})
	writeSafetensors(t, path+".new", nil, testTensor{"w", "U8", []uint64{1}, []byte{1}})
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFS(c.Root()).Open("raw/scalar.raw"); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("got %v", err)
	}
}

func TestTruncatedShardIsAnErrorAndNotOtherBytes(t *testing.T) {
	path := sample(t)
	c := openTest(t, path, Options{})
	f, err := NewFS(c.Root()).Open("raw/experts.raw")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); err == nil {
		t.Error("no error")
	}
}

// A directory of rows/ took the name of another tensor, whose slices were then nowhere.
func TestRowsKeepEveryTensor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	writeSafetensors(t, path, nil,
		testTensor{"x", "U8", []uint64{2, 1, 1}, []byte("Aa")},
		testTensor{"x.y.w", "U8", []uint64{2, 1, 1}, []byte("Bb")},
		testTensor{"x~2", "U8", []uint64{2, 1, 1}, []byte("Cc")},
	)
	c := openTest(t, path, Options{})
	for dir, want := range map[string]string{"x~3": "A", "x~2": "C", "x/y.w": "B"} {
		if got := readNode(t, c, "rows/"+dir+"/0.npy"); string(got[len(got)-1:]) != want {
			t.Errorf("rows/%s holds %q, want %s", dir, got[len(got)-1:], want)
		}
	}
	n, err := Lookup(c.Root(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for l, i := n.(Dir).List(), 0; i < l.Len(); i++ {
		if name := l.At(i).Name; seen[name] {
			t.Errorf("%s is there twice", name)
		} else {
			seen[name] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("entries: %v", seen)
	}
}
