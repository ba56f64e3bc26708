package torch

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/tensor"
)

const testdata = "../../testdata/torch"

// A want is what PyTorch says of one tensor.
type want struct {
	DType  string   `json:"dtype"`
	Shape  []uint64 `json:"shape"`
	Bytes  int64    `json:"nbytes"`
	SHA256 string   `json:"sha256"`
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func parse(b []byte) (*tensor.Header, error) { return Parse(bytes.NewReader(b), int64(len(b))) }

// shown lists the tensors of a header as their elements really are.
func shown(t testing.TB, file []byte, h *tensor.Header) map[string]want {
	t.Helper()
	got := make(map[string]want)
	for i := range h.Tensors {
		info := &h.Tensors[i]
		if _, ok := got[info.Name]; ok {
			t.Errorf("two tensors are called %q", info.Name)
		}
		elements := elementsOf(t, file, info)
		sum := sha256.Sum256(elements)
		got[info.Name] = want{info.DType.String(), info.Shape, info.Bytes, hex.EncodeToString(sum[:])}
		if info.Bytes != int64(len(elements)) {
			t.Errorf("%q: %d bytes of elements, header says %d", info.Name, len(elements), info.Bytes)
		}
	}
	return got
}

// elementsOf is the plainest way to follow a layout, one element after the other.
func elementsOf(t testing.TB, file []byte, info *tensor.Info) []byte {
	t.Helper()
	data := file[info.Extent.Off : info.Extent.Off+info.Extent.Len]
	l := info.Layout
	if l == nil {
		return data
	}
	if l.Pack == tensor.Deflate {
		all, err := io.ReadAll(flate.NewReader(bytes.NewReader(data)))
		if err != nil || int64(len(all)) != l.Unpacked {
			t.Fatalf("%q: inflated to %d bytes of %d: %v", info.Name, len(all), l.Unpacked, err)
		}
		data = all[l.Skip:]
	}
	if l.Strides == nil {
		return changed(bytes.Clone(data[:info.Bytes]), info)
	}
	_, size := info.DType.Block()
	var out []byte
	n, _ := tensor.Elements(info.Shape)
	for i := range n {
		at, rest := int64(0), i
		for d := len(info.Shape) - 1; d >= 0; d-- {
			at += int64(rest%info.Shape[d]) * l.Strides[d]
			rest /= info.Shape[d]
		}
		out = append(out, data[at*size:(at+1)*size]...)
	}
	return changed(out, info)
}

// changed swaps, negates and conjugates in place; only floats are ever negated here.
func changed(b []byte, info *tensor.Info) []byte {
	word := info.DType.Word()
	for i := 0; i+word <= len(b) && word > 0; i += word {
		if info.Layout.Swap {
			slices.Reverse(b[i : i+word])
		}
		imaginary := info.DType.Kind() == tensor.Complex && i/word%2 == 1
		if info.Layout.Neg != (info.Layout.Conj && imaginary) {
			b[i+word-1] ^= 0x80
		}
	}
	return b
}

// TestMadeByTorch compares files of several versions of PyTorch with what it said of them.
func TestMadeByTorch(t *testing.T) {
	lists, err := filepath.Glob(filepath.Join(testdata, "[0-9]*", "expected.json"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("no expected.json: %v", err)
	}
	for _, list := range lists {
		var files map[string]struct {
			Tensors map[string]want `json:"tensors"`
			Without []string        `json:"without"`
		}
		readJSON(t, list, &files)
		for name, expected := range files {
			path := filepath.Join(filepath.Dir(list), name)
			t.Run(filepath.Base(filepath.Dir(path))+"/"+name, func(t *testing.T) {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				h, err := parse(b)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(expected.Tensors, shown(t, b, h)); diff != "" {
					t.Errorf("(-PyTorch +weightfs)\n%s", diff)
				}
				for _, tensor := range expected.Without {
					if !strings.Contains(strings.Join(h.Warnings, "\n"), `"`+tensor+`"`) {
						t.Errorf("no warning names %q: %q", tensor, h.Warnings)
					}
				}
			})
		}
	}
}

// TestCases are hand-made files, each with something that readers have got wrong.
func TestCases(t *testing.T) {
	var files map[string]struct {
		Expect  string          `json:"expect"`
		About   []string        `json:"about"`
		Tensors map[string]want `json:"tensors"`
	}
	readJSON(t, filepath.Join(testdata, "cases", "expected.json"), &files)
	for name, expected := range files {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(testdata, "cases", name))
			if err != nil {
				t.Fatal(err)
			}
			h, err := parse(b)
			switch {
			case err != nil && expected.Expect == "mount", err == nil && expected.Expect == "error":
				t.Fatalf("expected %s, got error %v", expected.Expect, err)
			case err != nil:
				checkMessage(t, err, expected.About)
				return
			}
			if diff := cmp.Diff(expected.Tensors, shown(t, b, h)); diff != "" {
				t.Errorf("(-expected +got)\n%s", diff)
			}
		})
	}
}

func checkMessage(t *testing.T, err error, words []string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(word)) {
			t.Errorf("the message does not mention %q: %v", word, err)
		}
	}
	fault, ok := errors.AsType[*tensor.FormatError](err)
	if !ok || fault.Err == nil {
		t.Errorf("%v is no FormatError with a reason", err)
	}
}
