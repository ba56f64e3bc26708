package detect

import (
	"bytes"

	"weightfs/format/tensor"
)

// A known is something that weightfs knows and does not read.
type known struct {
	what   string // with its article
	hint   string
	packed bool // a file that may be read once it is unpacked
	broken bool // no format, but what stands in the place of a file that is lost
}

func (k known) fault() *tensor.FormatError {
	e := &tensor.FormatError{Off: -1, Err: tensor.ErrUnsupported, Msg: "this is " + k.what, Hint: k.hint}
	if k.packed {
		e.Err = ErrPacked
	}
	if !k.broken {
		e.Msg += "; weightfs cannot read it yet"
	}
	return e
}

// A signature is the bytes that give a format away.
type signature struct {
	off        int
	magic      string
	what, hint string
}

const (
	toGGUF    = "llama.cpp's convert_llama_ggml_to_gguf.py makes a GGUF file of it"
	resave    = "load it with the library that wrote it and save it as safetensors"
	fetchIt   = "download the file again"
	fromDCP   = "python -m torch.distributed.checkpoint.format_utils dcp_to_torch DIR FILE makes one file of its directory"
	saveState = "load it in PyTorch and save its state_dict()"
)

// The four magic numbers of ggml are little-endian, so the letters stand reversed.
var signatures = []signature{
	{0, "lmgg", "a ggml file (before GGUF, not versioned)", toGGUF},
	{0, "fmgg", "a ggmf file (ggml before GGUF)", toGGUF},
	{0, "tjgg", "a ggjt file (ggml before GGUF)", toGGUF},
	{0, "algg", "a ggla file (a LoRA adapter of ggml before GGUF)", toGGUF},
	{0, "PYTORCH1", "an archive of the PyTorch 1.0 preview (PYTORCH1)", "no released PyTorch reads it either"},
	{0, "SAFT", "a file with the magic SAFT, which is no format of any library (safetensors has no magic)", ""},
	{0, "\x0c\xdb\x3a\x2a", "the manifest of an OCDBT database, as Orbax checkpoints have", resave},
	{0, "\x12\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "an MXNet parameter file", resave},
	{4, "TFL3", "a TensorFlow Lite model", ""},
	{4, "ET1", "an ExecuTorch program (.pte)", saveState},
	{0, "MZqFpD", "a llamafile", "unzip the GGUF file out of it"},
}

// foreign recognises other formats by their signature.
func (f *file) foreign() *known {
	for i := range signatures {
		if s := &signatures[i]; f.hasAt(s.off, s.magic) {
			return &known{what: s.what, hint: s.hint}
		}
	}
	if f.hasAt(257, "ustar") {
		return f.tar()
	}
	return f.packed()
}

// tar tells torch's first format from other archives by the first member.
func (f *file) tar() *known {
	name, _, _ := bytes.Cut(f.head[:100], []byte{0})
	switch string(name) {
	case "storages", "tensors", "pickle":
		return &known{what: "a tar checkpoint of PyTorch 0.1", hint: "load it with a PyTorch before 2.6 and save it again"}
	}
	return &known{what: "a tar archive, which begins with " + excerpt(string(name)), hint: unpackWith("tar -xf"), packed: true}
}

// pickle recognises what is not torch's. Its tensors could be anything that a class chose to write.
func (f *file) pickle() *known {
	if len(f.head) < 3 || f.head[0] != 0x80 || f.head[1] < 2 || f.head[1] > 5 {
		return nil
	}
	return &known{what: "a Python pickle that torch.save did not write", hint: "unpickling runs code: only if you trust it, load it in Python and save the arrays"}
}

// hdf5 looks at 0, 512, 1024 and so on, doubling: a user block may stand in front of the signature.
func (f *file) hdf5() *known {
	const magic = "\x89HDF\r\n\x1a\n"
	for off := int64(0); off <= f.size-int64(len(magic)); off = max(512, 2*off) {
		if b, err := f.read(off, len(magic)); err == nil && string(b) == magic {
			return &known{what: "an HDF5 file (a Keras or Matlab .h5)", hint: resave}
		}
	}
	return nil
}
