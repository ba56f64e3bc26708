package detect

import (
	"encoding/binary"
	"path"
	"strings"

	"weightfs/format/zipfile"
)

// zip tells torch's archives and NumPy's from others. The first record does in nearly all files, and
// where the directory at the end is missing nothing else can.
func (f *file) zip() (Kind, error) {
	kind := kindOf(f.firstRecord())
	if kind == TorchZip && f.severalArchives() {
		return 0, known{what: "several PyTorch archives in one file, as a .distcp of a distributed checkpoint (DCP) is", hint: fromDCP}.fault()
	}
	if kind != 0 {
		return kind, nil
	}
	members, err := zipfile.Directory(f.r, f.size, zipfile.Kind{Entry: "member"})
	if err != nil {
		return 0, err
	}
	if len(members) == 0 {
		return NPZ, nil // np.savez of nothing
	}
	names := make(map[string]bool, len(members))
	for _, m := range members {
		names[m.Name] = true
		if k := kindOf(m.Name); kind == 0 || k == TorchZip {
			kind = k
		}
	}
	if names["model.weights.h5"] || names["config.json"] && names["metadata.json"] {
		return 0, known{what: "a Keras archive (.keras, HDF5 inside a zip)", hint: resave}.fault()
	}
	if kind != 0 {
		return kind, nil
	}
	return 0, known{what: "a zip archive of neither PyTorch nor NumPy, which begins with " + excerpt(members[0].Name), hint: unpackWith("unzip"), packed: true}.fault()
}

// kindOf is the kind of an archive that has a record of that name, 0 where the name does not tell.
// Whether torch.save, TorchScript or torch.export wrote it is the parser's to say.
func kindOf(name string) Kind {
	switch base := strings.ToLower(path.Base(name)); {
	case base == "data.pkl", base == "constants.pkl", base == "archive_format", base == "serialized_exported_program.json":
		return TorchZip
	case strings.HasSuffix(name, ".npy"):
		return NPZ
	}
	return 0
}

// firstRecord is the name in the local header at the beginning.
func (f *file) firstRecord() string {
	const fixed = 30
	if len(f.head) < fixed || !f.has("PK\x03\x04") {
		return ""
	}
	end := fixed + int(binary.LittleEndian.Uint16(f.head[26:]))
	if end > len(f.head) {
		return ""
	}
	return string(f.head[fixed:end])
}

// severalArchives compares where the directory at the end says it lies with where it does.
func (f *file) severalArchives() bool {
	const endRecord, zip64Records, unknown = 22, 56 + 20, 1<<32 - 1
	b, err := f.read(f.size-endRecord, endRecord)
	if f.size < endRecord || err != nil || string(b[:4]) != "PK\x05\x06" {
		return false
	}
	length, off := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:])
	return off != unknown && int64(off)+int64(length)+zip64Records < f.size-endRecord
}
