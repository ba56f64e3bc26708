package onnx

import (
	"math"
	"strconv"
	"strings"

	"weightfs/format/tensor"
)

// external places a tensor whose elements are in another file. Whether that file may be read, and
// whether it is long enough, is for who opens it to say.
func (p *parser) external(t *proto, info *tensor.Info, off int64) {
	fields := map[string]string{}
	for _, kv := range t.entries {
		value := kv.Value.(string)
		if _, ok := fields[kv.Key]; ok {
			p.fail(t.name, off, tensor.ErrMalformed, "external_data has the key %q twice", kv.Key)
		}
		fields[kv.Key] = value
		switch kv.Key {
		case "location":
			info.File = value
		case "offset":
			info.Extent.Off = p.decimal(t.name, off, kv.Key, value)
		case "length", "basepath": // the first below, the second unused since ONNX 1.2
		case "checksum":
			info.Extra = append(info.Extra[:1:1], tensor.KV{Key: "file_sha1", Value: value})
		default:
			p.warn("tensor %q: external_data has the unknown key %q", t.name, kv.Key)
		}
	}
	if info.File == "" || strings.ContainsRune(info.File, 0) {
		p.fail(t.name, off, tensor.ErrMalformed, "external_data has the location %q", info.File)
	}
	info.Extent.Len = -1
	length, ok := fields["length"]
	if !ok {
		return
	}
	info.Extent.Len = p.decimal(t.name, off, "length", length)
	switch {
	case info.Extent.Len != info.Bytes:
		p.fail(t.name, off, tensor.ErrMalformed, "external_data in %q has a length of %s bytes, but shape %v of %s takes %d", info.File, length, info.Shape, info.DType, info.Bytes)
	case info.Extent.Len > math.MaxInt64-info.Extent.Off:
		p.fail(t.name, off, tensor.ErrTooLarge, "external_data of %s bytes at %d", length, info.Extent.Off)
	}
}

// decimal reads a number of external_data: digits and nothing else.
func (p *parser) decimal(name string, off int64, key, s string) int64 {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		p.fail(name, off, tensor.ErrMalformed, "external_data has the %s %q, not a decimal number below 2^63", key, s)
		return 0
	}
	return int64(n)
}
