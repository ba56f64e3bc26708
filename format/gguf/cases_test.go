package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/tensor"
)

const testdata = "../../testdata/gguf"

// A wantTensor is what cases.json says of a tensor.
type wantTensor struct {
	Name       string   `json:"name"`
	NameHex    *string  `json:"name_hex"`
	DType      string   `json:"dtype"`
	Shape      []uint64 `json:"shape"`
	NBytes     int64    `json:"nbytes"`
	NE         []uint64 `json:"ne"`
	SHA256     string   `json:"sha256"`
	OrigShape  []uint64 `json:"orig_shape"`
	StoredByte string   `json:"stored_byteorder"`
}

func (w wantTensor) rawName(t *testing.T) string {
	if w.NameHex == nil {
		return w.Name
	}
	raw, err := hex.DecodeString(*w.NameHex)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

type wantCase struct {
	Expect   string         `json:"expect"`
	About    []string       `json:"about"`
	Metadata map[string]any `json:"metadata"`
	Tensors  []wantTensor   `json:"tensors"`
}

func TestCases(t *testing.T) {
	for name, want := range readJSON[map[string]wantCase](t, "cases.json") {
		t.Run(name, func(t *testing.T) {
			file := readFile(t, name)
			h, err := Parse(bytes.NewReader(file), int64(len(file)))
			if err != nil {
				if want.Expect == "mount" {
					t.Fatal(err)
				}
				for _, word := range want.About {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%q does not mention %q", err, word)
					}
				}
				return
			}
			if want.Expect == "error" {
				t.Fatalf("accepted, should be refused for %q", want.About)
			}
			checkCase(t, file, h, want)
		})
	}
}

func checkCase(t *testing.T, file []byte, h *tensor.Header, want wantCase) {
	if len(h.Tolerable) > 0 || len(h.Warnings) > 0 {
		t.Errorf("faults %v, warnings %q", h.Tolerable, h.Warnings)
	}
	for key, value := range want.Metadata {
		if diff := cmp.Diff(value, rendered(t, h.Meta.Get(key))); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	if want.Expect == "mount" && len(h.Tensors) != len(want.Tensors) {
		t.Errorf("%d tensors, want %d", len(h.Tensors), len(want.Tensors))
	}
	for _, w := range want.Tensors {
		name := w.rawName(t)
		i := slices.IndexFunc(h.Tensors, func(info tensor.Info) bool { return info.Name == name })
		if i < 0 {
			t.Errorf("tensor %q is missing", name)
			continue
		}
		checkTensor(t, file, &h.Tensors[i], w)
	}
}

func checkTensor(t *testing.T, file []byte, got *tensor.Info, want wantTensor) {
	t.Helper()
	if got.DType.String() != want.DType || got.Bytes != want.NBytes || !slices.Equal(got.Shape, want.Shape) {
		t.Errorf("%q: got %v %v of %d bytes, want %s %v of %d", got.Name, got.DType, got.Shape, got.Bytes, want.DType, want.Shape, want.NBytes)
	}
	sum := sha256.Sum256(elements(file, got))
	if hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%q: other bytes at %+v", got.Name, got.Extent)
	}
	for key, value := range map[string]any{"ne": want.NE, "orig_shape": want.OrigShape, "stored_byteorder": want.StoredByte} {
		gotValue := got.Extra.Get(key)
		if gotValue == nil {
			gotValue = map[string]any{"stored_byteorder": "", "orig_shape": []uint64(nil)}[key]
		}
		if diff := cmp.Diff(value, gotValue); diff != "" {
			t.Errorf("%q: %s: %s", got.Name, key, diff)
		}
	}
}

// elements applies the extent and the swap.
func elements(file []byte, info *tensor.Info) []byte {
	p := slices.Clone(file[info.Extent.Off:][:info.Extent.Len])
	if info.Layout != nil && info.Layout.Swap {
		for word := range slices.Chunk(p, info.DType.Word()) {
			slices.Reverse(word)
		}
	}
	return p
}

// rendered is a value as a JSON reader has it.
func rendered(t *testing.T, value any) (out any) {
	t.Helper()
	if err := json.Unmarshal(tensor.AppendJSON(nil, value), &out); err != nil {
		t.Error(err)
	}
	return out
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(testdata, name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func readJSON[T any](t testing.TB, name string) (v T) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, name), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
