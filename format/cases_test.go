package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weightfs/format/set"
	"weightfs/format/tensor"
)

// A testCase is an input of testdata/cases with the right answer.
type testCase struct {
	Path     string
	Expect   string // mount, error, or either
	Error    struct{ About []string }
	Tensors  map[string]caseTensor
	Absent   []string
	Warn     []string
	Metadata map[string]any
}

type caseTensor struct {
	DType    string
	Shape    []uint64
	NBytes   int64
	SHA256   string
	NameHex  *string   `json:"name_hex"`
	NPYDescr *string   `json:"npy_descr"`
	NPYShape *[]uint64 `json:"npy_shape"`
}

func loadCases(t testing.TB) map[string]testCase {
	b, err := os.ReadFile("../testdata/cases/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Cases map[string]testCase }
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m.Cases
}

func TestCases(t *testing.T) {
	for name, want := range loadCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Open(filepath.Join("../testdata/cases", want.Path), Options{UnpackDir: t.TempDir()})
			if err != nil {
				checkRefusal(t, name, want, err)
				return
			}
			defer c.Close()
			if want.Expect == "error" {
				t.Fatal("opened, but should be refused")
			}
			checkOpened(t, want, c)
		})
	}
}

func checkRefusal(t *testing.T, name string, want testCase, err error) {
	if want.Expect == "mount" {
		t.Fatalf("refused: %v", err)
	}
	low := strings.ReplaceAll(strings.ToLower(err.Error()), strings.ToLower(name), "")
	for _, word := range want.Error.About {
		if !strings.Contains(low, strings.ToLower(word)) {
			t.Errorf("the message does not mention %q: %v", word, err)
		}
	}
	var fault *tensor.FormatError
	var incomplete *set.IncompleteError
	var none *set.NoneError
	var several *set.SeveralError
	if !errors.As(err, &fault) && !errors.As(err, &incomplete) && !errors.As(err, &none) && !errors.As(err, &several) {
		t.Errorf("%v is a %T", err, err)
	}
}

func checkOpened(t *testing.T, want testCase, c *Checkpoint) {
	said := strings.Join(c.Warnings, " ")
	told := want.Expect == "either" && mentions(said, want.Error.About)
	names := map[string]bool{}
	for name, w := range want.Tensors {
		if w.NameHex != nil {
			b, _ := hex.DecodeString(*w.NameHex)
			name = string(b)
		}
		names[name] = true
		i, ok := c.ByName(name)
		if !ok {
			if !told {
				t.Errorf("tensor %q is missing, and no warning says why: %q", name, said)
			}
			continue
		}
		checkTensor(t, c, c.Tensor(i), w)
	}
	for i := range c.Len() {
		if name := c.Tensor(i).Name; want.Expect == "mount" && !names[name] || slices.Contains(want.Absent, name) {
			t.Errorf("tensor %q should not be there", name)
		}
	}
	for _, word := range want.Warn {
		if !strings.Contains(said, word) {
			t.Errorf("no warning about %q: %q", word, said)
		}
	}
	for key := range want.Metadata {
		if !strings.Contains(string(c.renderMetadata()), key) {
			t.Errorf("metadata.json lacks %q", key)
		}
	}
}

func mentions(said string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(strings.ToLower(said), strings.ToLower(w)) {
			return false
		}
	}
	return true
}

func checkTensor(t *testing.T, c *Checkpoint, got Tensor, w caseTensor) {
	if got.DType.String() != w.DType || fmt.Sprint(got.Shape) != fmt.Sprint(w.Shape) || got.Bytes != w.NBytes {
		t.Errorf("%q is %v %v of %d bytes, right is %v %v of %d", got.Name, got.DType, got.Shape, got.Bytes, w.DType, w.Shape, w.NBytes)
	}
	tree := NewFS(c.Root())
	object, err := iofs.ReadFile(tree, "json/"+got.Path+".json")
	if err != nil {
		t.Error(err)
		return
	}
	checkKeysOnce(t, object)
	if w.SHA256 == "" {
		return
	}
	raw, err := iofs.ReadFile(tree, "raw/"+got.Path+".raw")
	if err != nil {
		t.Error(err)
		return
	}
	sum := sha256.Sum256(raw)
	if hex.EncodeToString(sum[:]) != w.SHA256 {
		t.Errorf("%q: raw holds other bytes", got.Name)
	}
	if w.NPYDescr == nil {
		return
	}
	npy, err := iofs.ReadFile(tree, "npy/"+got.Path+".npy")
	if err != nil {
		t.Error(err)
		return
	}
	shape := w.Shape
	if w.NPYShape != nil {
		shape = *w.NPYShape
	}
	if head := npyHeader(*w.NPYDescr, shape); !bytes.HasPrefix(npy, head) || !bytes.Equal(npy[len(head):], raw) {
		t.Errorf("%q: npy begins %q, right is %q", got.Name, npy[:min(len(npy), 128)], head)
	}
}

// checkKeysOnce wants one JSON object in which no key stands twice.
func checkKeysOnce(t *testing.T, text []byte) {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	seen, depth, isKey := map[string]bool{}, 0, false
	for {
		tok, err := d.Token()
		if err != nil {
			return
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
			isKey = depth == 1
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
		default:
			if key, ok := tok.(string); ok && depth == 1 && isKey {
				if seen[key] {
					t.Errorf("%q is there twice: %s", key, text)
				}
				seen[key], isKey = true, false
				continue
			}
		}
		isKey = depth == 1
	}
}
