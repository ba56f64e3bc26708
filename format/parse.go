package format

import (
	"weightfs/format/detect"
	"weightfs/format/gguf"
	"weightfs/format/numpy"
	"weightfs/format/onnx"
	"weightfs/format/safetensors"
	"weightfs/format/tensor"
	"weightfs/format/torch"
)

// parse recognises a shard by its content and has it parsed.
func parse(s *Shard) (*tensor.Header, error) {
	kind, err := detect.Detect(s.file, s.Size())
	if err != nil {
		return nil, err
	}
	switch kind {
	case detect.GGUF:
		return gguf.Parse(s.file, s.Size())
	case detect.TorchZip, detect.TorchLegacy:
		return torch.Parse(s.file, s.Size())
	case detect.NPY, detect.NPZ:
		return numpy.Parse(s.file, s.Size())
	case detect.ONNX:
		return onnx.Parse(s.file, s.Size())
	}
	return safetensors.Parse(s.file, s.Size())
}
