package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weightfs/digest"
	"weightfs/format/tensor"
)

func TestSHA256SUMS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	tensors := []testTensor{{`back\slash.w`, "U8", []uint64{3}, pattern(3, 1)}, {"new\nline.w", "U8", []uint64{3}, pattern(3, 2)}}
	for i := range 300 {
		tensors = append(tensors, testTensor{fmt.Sprintf("layers.%d.w", i), "I16", []uint64{uint64(i)}, pattern(2*i, byte(i))})
	}
	writeSafetensors(t, path, nil, tensors...)
	c, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tree := NewFS(c.Root())
	text, err := iofs.ReadFile(tree, "SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		escaped := strings.HasPrefix(line, `\`)
		sum, name, ok := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), `\`), "  ")
		if escaped {
			name = strings.ReplaceAll(name, `\\`, `\`)
		}
		raw, err := iofs.ReadFile(tree, name)
		if !ok || err != nil || sum != fmt.Sprintf("%x", sha256.Sum256(raw)) {
			t.Errorf("line %q: %v", line, err)
		}
		names = append(names, name)
	}
	if len(names) != len(tensors) || names[0] != `raw/back\slash.w.raw` || names[1] != "raw/layers/0.w.raw" || names[300] != "raw/layers/299.w.raw" {
		t.Errorf("%d lines: %q …", len(names), names[:2])
	}
	pieces(t, tree, "SHA256SUMS", text)
}

// pieces reads a file again in pieces of odd sizes at odd places.
func pieces(t *testing.T, tree iofs.FS, name string, want []byte) {
	t.Helper()
	f, err := tree.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, n := range []int{1, 63, 64, 65, 1000, len(want)} {
		for off := 0; off < len(want); off += 997 {
			got := make([]byte, n)
			m, err := f.(io.ReaderAt).ReadAt(got, int64(off))
			end := min(off+n, len(want))
			if !bytes.Equal(got[:m], want[off:end]) || (m < n) != (err == io.EOF) {
				t.Fatalf("%d bytes at %d: %d, %v", n, off, m, err)
			}
		}
	}
}

// TestSumsReadOnlyWhatTheyName: the first line does not wait for the second tensor, which is too long
// to be read in any time.
func TestSumsReadOnlyWhatTheyName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	const huge = 1 << 42
	head := fmt.Sprintf(`{"a.w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b.w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, huge, huge)
	if err := os.WriteFile(path, append([]byte{byte(len(head)), 0, 0, 0, 0, 0, 0, 0}, head...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(8+len(head))+huge); err != nil {
		t.Skip(err) // a file system without sparse files
	}
	c, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := NewFS(c.Root()).Open("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("raw/a/w.raw")+67)
	n, err := f.(io.ReaderAt).ReadAt(line[:len(line)-1], 0)
	if want := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  raw/a.w.raw"; string(line[:n]) != want {
		t.Errorf("%q, %v, want %q", line[:n], err, want)
	}
}

func TestStats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	long := strings.Repeat("n", 2000)
	var many []uint64
	for range 500 {
		many = append(many, 1)
	}
	data := make([]byte, 0, 20)
	for _, x := range []float64{0, -2, 5, math.NaN(), math.Inf(1)} {
		data = append(data, f32bytes(x)...)
	}
	writeSafetensors(t, path, nil,
		testTensor{"a.w", "F32", []uint64{5}, data},
		testTensor{"empty", "F32", []uint64{0}, nil},
		testTensor{long, "U8", []uint64{3}, []byte{1, 2, 3}},
		testTensor{"deep", "U8", many, []byte{7}},
		testTensor{long + "2", "U8", many, []byte{7}},
		testTensor{"nothing", "F32", []uint64{1}, f32bytes(math.NaN())},
	)
	cache := filepath.Join(t.TempDir(), "cache")
	time.Sleep(40 * time.Millisecond) // a file that was just written is not kept
	for range 2 {
		c, err := Open(path, Options{DigestDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]map[string]any{}
		for i := range c.Len() {
			text, err := iofs.ReadFile(NewFS(c.Root()), "stats/"+c.Tensor(i).Path+".json")
			if err != nil {
				t.Fatal(err)
			}
			if len(text) != statsLen || text[statsLen-1] != '\n' {
				t.Errorf("%d bytes, %q", len(text), text)
			}
			object := map[string]any{}
			if err := json.Unmarshal(text, &object); err != nil {
				t.Errorf("%v in %s", err, text)
			}
			got[c.Tensor(i).Name] = object
		}
		c.Close()
		for name, want := range map[string]string{
			"a.w":      `map[dtype:F32 elements:5 max:5 mean:1 min:-2 name:a.w nan:1 neg_inf:0 pos_inf:1 sha256:%x shape:[5] std:2.943920288775949 zeros:1]`,
			"empty":    `map[dtype:F32 elements:0 max:<nil> mean:<nil> min:<nil> name:empty nan:0 neg_inf:0 pos_inf:0 sha256:%x shape:[0] std:<nil> zeros:0]`,
			long:       `map[dtype:U8 elements:3 max:3 mean:2 min:1 name:<nil> nan:0 neg_inf:0 pos_inf:0 sha256:%x shape:[3] std:0.816496580927726 zeros:0]`,
			"deep":     `map[dtype:U8 elements:1 max:7 mean:7 min:7 name:deep nan:0 neg_inf:0 pos_inf:0 sha256:%x shape:<nil> std:0 zeros:0]`,
			long + "2": `map[dtype:U8 elements:1 max:7 mean:7 min:7 name:<nil> nan:0 neg_inf:0 pos_inf:0 sha256:%x shape:<nil> std:0 zeros:0]`,
			"nothing":  `map[dtype:F32 elements:1 max:<nil> mean:<nil> min:<nil> name:nothing nan:1 neg_inf:0 pos_inf:0 sha256:%x shape:[1] std:<nil> zeros:0]`,
		} {
			i, _ := c.ByName(name)
			sum := sha256.Sum256(map[string][]byte{"a.w": data, long: {1, 2, 3}, "deep": {7}, long + "2": {7}, "nothing": f32bytes(math.NaN())}[name])
			if have := fmt.Sprint(got[name]); have != fmt.Sprintf(want, sum) {
				t.Errorf("tensor %d: %s, want %s", i, have, fmt.Sprintf(want, sum))
			}
		}
	}
	if list, _ := filepath.Glob(filepath.Join(cache, "*")); len(list) != 1 {
		t.Errorf("the cache holds %v", list)
	}
	if list, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(list) != 1 {
		t.Errorf("beside the model is %v", list)
	}
}

func f32bytes(x float64) []byte {
	bits := math.Float32bits(float32(x))
	return []byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)}
}

func TestStatsOfAChangedFile(t *testing.T) {
	path := sample(t)
	c, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tree := NewFS(c.Root())
	f, err := tree.Open("stats/model/layers/0/q.weight.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); !errors.Is(err, ErrChanged) {
		t.Errorf("reading statistics: %v", err)
	}
	if _, err := iofs.ReadFile(tree, "SHA256SUMS"); !errors.Is(err, ErrStale) {
		t.Errorf("opening SHA256SUMS: %v", err)
	}
}

func TestStatsOfTypesThatAreNotDecoded(t *testing.T) {
	info := tensor.Info{Name: "x", DType: tensor.IQ4_KS, Shape: []uint64{1, 256}}
	text := string(renderStats(info, &digest.Result{Has: digest.Hash}))
	if !strings.Contains(text, `"nan": null,`) || !strings.Contains(text, `"min": null,`) || !strings.Contains(text, `"elements": 256,`) {
		t.Error(text)
	}
}

// TestStatsOfBigEndianBlocks: their bytes are as stored, so that no numbers can be made of them.
func TestStatsOfBigEndianBlocks(t *testing.T) {
	c, err := Open("../testdata/gguf/golden-be.gguf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	kinds := map[bool]int{}
	for i := range c.Len() {
		r, err := c.Digest(i, digest.Hash|digest.Stats)
		if err != nil {
			t.Fatal(err)
		}
		block := c.Tensor(i).DType.Kind() == tensor.Block
		if kinds[block]++; block == (r.Has&digest.Stats != 0) || block == c.HasValues(i) {
			t.Errorf("%s: has %d", c.Tensor(i).DType, r.Has)
		}
	}
	if len(kinds) != 2 {
		t.Error("not both kinds of types are in the file")
	}
}
