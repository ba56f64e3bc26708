package detect

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"weightfs/format/tensor"
)

// zipOf is a zip archive of empty members.
func zipOf(names ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: name}); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// at is magic behind so many bytes.
func at(off int, fill, magic string) string { return strings.Repeat(fill, off) + magic }

// header is the first eight bytes of a safetensors file and its header.
func header(n uint64, text string) string {
	return string(binary.LittleEndian.AppendUint64(nil, n)) + text
}

func tarOf(name string) string {
	return name + at(257-len(name), "\x00", "ustar\x0000") + strings.Repeat("\x00", 240)
}

const legacyMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."

var kinds = []struct {
	name, file string
	want       Kind
}{
	{"safetensors", header(2, "{}"), SafeTensors},
	{"safetensors after white space", header(4, " \n{}"), SafeTensors},
	{"safetensors with a byte order mark", header(5, "\ufeff{}"), SafeTensors},
	{"safetensors of another JSON value", header(2, "[]"), SafeTensors},
	{"safetensors cut off in the header", header(1000, `{"a"`), SafeTensors},
	{"safetensors cut off behind the length", header(1000, ""), SafeTensors},
	{"safetensors cut off behind the brace", header(1000, "{"), SafeTensors},
	{"safetensors over the limit", header(100_000_001, "{}"), SafeTensors},
	{"safetensors with the length 2^63", header(1<<63, "{}"), SafeTensors},
	{"safetensors as long as a zip's magic", "PK\x03\x04\x00\x00\x00\x00" + `{"a":`, SafeTensors},
	{"safetensors that holds an HDF5 signature", header(2, "{}") + at(502, "x", "\x89HDF\r\n\x1a\n"), SafeTensors},
	{"GGUF", "GGUF\x03\x00\x00\x00", GGUF},
	{"GGUF, magic alone", "GGUF", GGUF},
	{"GGUF, magic reversed", "FUGG\x00\x00\x00\x03", GGUF},
	{"torch", zipOf("archive/data.pkl", "archive/version"), TorchZip},
	{"torch, other order and case", zipOf("a/version", "a/data/0", "a/DATA.PKL"), TorchZip},
	{"torch without a directory", zipOf("data.pkl"), TorchZip},
	{"torch cut off", zipOf("archive/data.pkl", "archive/version")[:60], TorchZip},
	{"TorchScript", zipOf("m/code/x.py", "m/constants.pkl"), TorchZip},
	{"torch.export", zipOf("m/byteorder", "m/archive_format"), TorchZip},
	{"torch legacy", "\x80\x02" + legacyMagic, TorchLegacy},
	{"torch legacy, protocol 4", "\x80\x04\x95\x0d\x00\x00\x00\x00\x00\x00\x00" + legacyMagic, TorchLegacy},
	{"torch legacy, protocol 0", "L119547037146038801333356L\n.", TorchLegacy},
	{"npy", "\x93NUMPY\x01\x00", NPY},
	{"npz", zipOf("a.npy"), NPZ},
	{"npz with another member in front", zipOf("readme.txt", "a.npy"), NPZ},
	{"npz cut off", zipOf("a.npy")[:40], NPZ},
	{"npz of nothing", zipOf(), NPZ},
	{"ONNX", "\x08\x09\x12\x01x\x3a\x02\x12\x00\x42\x02\x10\x15", ONNX},
	{"ONNX cut off in the graph", "\x08\x09\x3a\x80\x80\x01\x0a\x02", ONNX},
}

func TestDetect(t *testing.T) {
	for _, tt := range kinds {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := Detect(strings.NewReader(tt.file), int64(len(tt.file))); got != tt.want || err != nil {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

const lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 4976698672\n"

var refusals = []struct {
	name, file string
	about      []string
}{
	{"empty", "", []string{"empty file"}},
	{"Git LFS", lfs, []string{"Git LFS pointer", "4976698672 bytes", "4.6 GiB", "git lfs pull"}},
	{"git-annex", "/annex/objects/SHA256E-s1\n", []string{"git-annex", "git annex get"}},
	{"DVC", "outs:\n- md5: 00\n", []string{"DVC", "dvc pull"}},
	{"HTML", "<!DOCTYPE html>\n<html>", []string{"HTML page", "download"}},
	{"HTML in other letters, after a byte order mark", "\ufeff\n <HTML lang=en>", []string{"HTML page"}},
	{"XML", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", []string{"XML", "download"}},
	{"JSON error", `{"error":"Repository not found"}`, []string{"JSON", "Repository not found", "failed download"}},
	{"JSON", " [1, 2]", []string{"JSON document"}},
	{"index", `{"metadata": {}, "weight_map": {"a": "b"}}`, []string{"index", ".index.json"}},
	{"symbolic link as a file", "../../blobs/0123", []string{"../../blobs/0123", "symbolic link"}},
	{"text", "Entry not found", []string{"text", "Entry not found"}},
	{"long text that is cut inside a character", strings.Repeat("é", 4000), []string{"text"}},
	{"white space", "\n\n", []string{"white space"}},
	{"text too small", "1234567", []string{"7 bytes", "too small", "header"}},
	{"too small", "\x01\x02", []string{"2 bytes", "too small", "header"}},
	{"zeros", strings.Repeat("\x00", 10_000), []string{"10000 bytes that are zeros"}},
	{"zeros in front", strings.Repeat("\x00", 5000) + "x", []string{"5000 zeros", "of 5001 bytes"}},
	{"eight zeros", strings.Repeat("\x00", 8), []string{"zeros", "header is empty"}},
	{"HDF5", "\x89HDF\r\n\x1a\n", []string{"HDF5"}},
	{"HDF5 behind a user block", at(2048, "M", "\x89HDF\r\n\x1a\n"), []string{"HDF5"}},
	{"HDF5 behind zeros", at(1<<20, "\x00", "\x89HDF\r\n\x1a\n"), []string{"HDF5"}},
	{"Keras", zipOf("metadata.json", "config.json", "model.weights.h5"), []string{"Keras"}},
	{"DCP", zipOf("archive/data.pkl", "archive/data/0") + zipOf("archive/data.pkl", "archive/data/0"), []string{"DCP", "dcp_to_torch"}},
	{"another zip", zipOf("a/b.txt"), []string{"zip archive", "a/b.txt", "unpack it first: unzip"}},
	{"zip without its end", zipOf("a/b.txt")[:40], []string{"truncated", "central directory"}},
	{"zip behind other bytes", "\x01\x02\x03\x04" + zipOf("a"), []string{"zip", "in front"}},
	{"pickle", "\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00}.", []string{"pickle", "torch.save"}},
	{"tar of torch 0.1", tarOf("storages"), []string{"tar", "PyTorch 0.1"}},
	{"tar", tarOf("model_config.yaml"), []string{"tar archive", "model_config.yaml", "unpack it first: tar -xf"}},
	{"PYTORCH1", "PYTORCH1\x00", []string{"PYTORCH1"}},
	{"ggml", "lmgg\x00\x7d\x00\x00", []string{"ggml", "GGUF"}},
	{"ggjt", "tjgg\x03\x00\x00\x00", []string{"ggjt", "GGUF"}},
	{"ggmf", "fmgg\x01\x00\x00\x00", []string{"ggmf"}},
	{"ggla", "algg\x01\x00\x00\x00", []string{"ggla", "LoRA"}},
	{"SAFT", "SAFT\x01\x00\x00\x00", []string{"SAFT"}},
	{"gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00", []string{"gzip", "unpack it first: gunzip -k, or tar -xf if it is a .tar.gz"}},
	{"zstd", "\x28\xb5\x2f\xfd\x04\x00\x00\x00", []string{"zstd", "unzstd"}},
	{"xz", "\xfd7zXZ\x00\x00\x04", []string{"xz", "unxz -k"}},
	{"TensorFlow Lite", "\x1c\x00\x00\x00TFL3", []string{"TensorFlow Lite"}},
	{"ExecuTorch", "\x1c\x00\x00\x00ET12", []string{"ExecuTorch"}},
	{"MXNet", header(0x112, strings.Repeat("\x00", 8)) + "\x01", []string{"MXNet"}},
	{"TensorFlow bundle", "\x00\x00\x01" + strings.Repeat("\x00", 50) + "\x57\xfb\x80\x8b\x24\x75\x47\xdb", []string{"TensorFlow"}},
	{"SavedModel", "\x08\x01\x12\x10\x0a\x0e\x12\x0c" + strings.Repeat("\x0a\x00", 6), []string{"SavedModel"}},
	{"OCDBT", "\x0c\xdb\x3a\x2a\x00\x00\x00\x00", []string{"Orbax"}},
	{"Flax", "\x81\xa6params\x82\xa5dense\x81\xa6kernel\xc7\x10\x01", []string{"Flax", "msgpack"}},
	{"bad magic", "GGUX\x03\x00\x00\x00\xff\xff", []string{"unknown", "magic", "GGUX", "header"}},
}

func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			kind, err := Detect(strings.NewReader(tt.file), int64(len(tt.file)))
			checkRefusal(t, kind, err, tt.about)
		})
	}
}

func checkRefusal(t *testing.T, kind Kind, err error, about []string) {
	t.Helper()
	e, ok := errors.AsType[*tensor.FormatError](err)
	if kind != 0 || !ok || e.Err == nil {
		t.Fatalf("got %v, %v, want a fault", kind, err)
	}
	for _, word := range about {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 500 {
		t.Errorf("%q is no clear line", err)
	}
}

func TestDirectory(t *testing.T) {
	tests := []struct{ names, about string }{
		{"_CHECKPOINT_METADATA default/", "Orbax"},
		{"manifest.ocdbt d/ ocdbt.process_0/", "Orbax"},
		{".metadata __0_0.distcp __1_0.distcp", "DCP"},
		{"__0_0.distcp", "without its .metadata"},
		{"saved_model.pb variables/ assets/", "SavedModel"},
		{"checkpoint model.ckpt.index model.ckpt.data-00000-of-00001", "TensorFlow checkpoint"},
		{"latest zero_to_fp32.py global_step100/", "DeepSpeed"},
		{"latest_checkpointed_iteration.txt iter_0000100/", "Megatron"},
		{"mp_rank_00/ mp_rank_01/", "Megatron"},
		{".zgroup a/", "Zarr"},
		{"config.json model.safetensors README.md", ""},
		{"", ""},
	}
	for _, tt := range tests {
		err := Directory(strings.Fields(tt.names))
		if tt.about == "" {
			if err != nil {
				t.Errorf("%q: %v", tt.names, err)
			}
			continue
		}
		checkRefusal(t, 0, err, []string{tt.about})
	}
}

// The test data of every format is recognised, under whatever name.
func TestTestdata(t *testing.T) {
	want := map[string]Kind{".safetensors": SafeTensors, ".gguf": GGUF, ".npy": NPY, ".npz": NPZ, ".onnx": ONNX}
	for ext, kind := range want {
		paths, err := filepath.Glob(filepath.Join("../../testdata", ext[1:], "*"+ext))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := Detect(bytes.NewReader(b), int64(len(b))); len(b) > 0 && got != kind {
				t.Errorf("%s: %v, %v", path, got, err)
			}
		}
	}
}

// A counter counts the bytes that are read.
type counter struct {
	io.ReaderAt
	n int64
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	c.n += int64(len(p))
	return c.ReaderAt.ReadAt(p, off)
}

// A big file that is nothing known costs little.
func TestReadsLittle(t *testing.T) {
	c := &counter{ReaderAt: endless{}}
	kind, err := Detect(c, 1<<40)
	checkRefusal(t, kind, err, []string{"unknown"})
	if c.n > 128<<10 {
		t.Errorf("read %d bytes", c.n)
	}
}

// endless is a file of 0xaa.
type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error) {
	for i := range p {
		p[i] = 0xaa
	}
	return len(p), nil
}

// A file that shrinks or fails while it is looked at is an error.
func TestReadFault(t *testing.T) {
	for _, tt := range kinds {
		kind, err := Detect(strings.NewReader(""), int64(len(tt.file)))
		checkRefusal(t, kind, err, []string{"reading", "truncated"})
	}
}

func FuzzDetect(f *testing.F) {
	for _, tt := range kinds {
		f.Add([]byte(tt.file))
	}
	for _, tt := range refusals {
		f.Add([]byte(tt.file[:min(len(tt.file), 3000)]))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		kind, err := Detect(bytes.NewReader(b), int64(len(b)))
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+64*uint64(len(b)) {
			t.Errorf("%d bytes allocated for a file of %d", n, len(b))
		}
		if (kind == 0) == (err == nil) {
			t.Errorf("%v, %v", kind, err)
		}
		if err != nil {
			checkRefusal(t, kind, err, nil)
		}
		if again, err2 := Detect(bytes.NewReader(b), int64(len(b))); again != kind || fmt.Sprint(err2) != fmt.Sprint(err) {
			t.Errorf("%v, %v, and then %v, %v", kind, err, again, err2)
		}
	})
}

// A file that is whole was called truncated, to be downloaded again.
func TestDetectCallsAWrongCountNoTruncation(t *testing.T) {
	file := []byte(zipOf("a/b.txt"))
	file[len(file)-12]++
	_, err := Detect(bytes.NewReader(file), int64(len(file)))
	if !errors.Is(err, tensor.ErrMalformed) || strings.Contains(err.Error(), "download") || !strings.Contains(err.Error(), "end record") {
		t.Error(err)
	}
}
