package safetensors

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weightfs/format/tensor"
)

const testdata = "../../testdata/safetensors"

// More headers than the stored ones come from `make.py verdicts N SEED` beside the test data.
var verdictsFile = flag.String("verdicts", filepath.Join(testdata, "verdicts.json"), "headers with the reference's verdict")

// TestAgreesWithReference compares accepting and refusing, where the package comment does not say
// that the two differ.
func TestAgreesWithReference(t *testing.T) {
	var cases []struct {
		Header, Hex string
		Data        int
		Duplicate   bool    // two tensors have one name
		Reference   *string // its refusal
	}
	readJSON(t, *verdictsFile, &cases)
	for _, c := range cases {
		if c.Hex != "" {
			b, err := hex.DecodeString(c.Hex)
			if err != nil {
				t.Fatal(err)
			}
			c.Header = string(b)
		}
		h, err := parseBytes(file(c.Header, c.Data))
		refusal := refusal(h, err)
		stricter := c.Duplicate || strings.Contains(refusal, "dtype is an object")
		if (refusal == "") == (c.Reference == nil && !stricter) {
			continue
		}
		said := "accepts"
		if c.Reference != nil {
			said = *c.Reference
		}
		t.Errorf("header %q with %d bytes of data: %q, the reference says %q", c.Header, c.Data, refusal, said)
	}
}

// refusal is why the reference ought to refuse what Parse gave; empty where it ought to accept.
func refusal(h *tensor.Header, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(h.Tolerable) > 0:
		return h.Tolerable[0].Error()
	case len(h.Warnings) > 0:
		return h.Warnings[0]
	}
	return ""
}

// TestGolden compares whole listings with what the reference lists of the same file.
func TestGolden(t *testing.T) {
	for _, name := range []string{"all-dtypes.safetensors", "written-by-reference.safetensors"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(testdata, name))
			if err != nil {
				t.Fatal(err)
			}
			h, err := parseBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			var want golden
			readJSON(t, filepath.Join(testdata, name+".golden.json"), &want)
			if diff := cmp.Diff(want, listing(h, b)); diff != "" {
				t.Errorf("listing differs (-reference +got):\n%s", diff)
			}
		})
	}
}

type golden struct {
	Start    int64
	Metadata map[string]string
	Tensors  map[string]goldenTensor
}

type goldenTensor struct {
	DType string
	Shape []uint64
	Bytes string
}

func listing(h *tensor.Header, b []byte) golden {
	g := golden{h.DataStart, map[string]string{}, map[string]goldenTensor{}}
	for _, kv := range h.Meta {
		g.Metadata[kv.Key] = fmt.Sprint(kv.Value)
	}
	for _, i := range h.Tensors {
		g.Tensors[i.Name] = goldenTensor{i.DType.String(), i.Shape, hex.EncodeToString(b[i.Extent.Off:][:i.Extent.Len])}
	}
	return g
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}
