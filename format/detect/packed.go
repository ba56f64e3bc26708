package detect

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"weightfs/format/tensor"
)

// ErrPacked is the reason under the fault of an archive or a compressed file.
var ErrPacked = fmt.Errorf("packed: %w", tensor.ErrUnsupported)

// A packing is a way to pack one file.
type packing struct {
	magic, ext, what string
	unpack           string // the command
}

var packings = []packing{
	{"\x1f\x8b", ".gz", "a gzip-compressed file", "gunzip -k"},
	{"\x28\xb5\x2f\xfd", ".zst", "a zstd-compressed file", "unzstd"},
	{"\xfd7zXZ\x00", ".xz", "an xz-compressed file", "unxz -k"},
	{"\x04\x22\x4d\x18", ".lz4", "an LZ4-compressed file", "unlz4"},
	{"BZh91AY&SY", ".bz2", "a bzip2-compressed file", "bunzip2 -k"},
}

// archives have many files, by their extensions.
var archives = map[string]string{
	".tar": "tar -xf", ".tgz": "tar -xf", ".txz": "tar -xf", ".tbz2": "tar -xf", ".tzst": "tar -xf",
	".zip": "unzip", ".7z": "7z x", ".rar": "unrar x",
}

func (f *file) packed() *known {
	for _, p := range packings {
		if f.has(p.magic) {
			return &known{what: p.what, hint: unpackWith(p.unpack) + ", or tar -xf if it is a .tar" + p.ext, packed: true}
		}
	}
	switch {
	case f.has("7z\xbc\xaf\x27\x1c"):
		return &known{what: "a 7z archive", hint: unpackWith(archives[".7z"]), packed: true}
	case f.has("Rar!\x1a\x07"):
		return &known{what: "a RAR archive", hint: unpackWith(archives[".rar"]), packed: true}
	}
	return nil
}

func unpackWith(command string) string { return "unpack it first: " + command }

// Unpacker is the command that unpacks a file, by its name; empty for what is not packed.
func Unpacker(name string) string {
	name = strings.ToLower(name)
	ext := path.Ext(name)
	if command := archives[ext]; command != "" {
		return command
	}
	i := slices.IndexFunc(packings, func(p packing) bool { return p.ext == ext })
	switch {
	case i < 0:
		return ""
	case strings.HasSuffix(name, ".tar"+ext):
		return archives[".tar"]
	}
	return packings[i].unpack
}
