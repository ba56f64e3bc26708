package detect

import "encoding/binary"

// The fields of an ONNX ModelProto, and whether they hold bytes (else a number).
var modelFields = map[uint64]bool{1: false, 2: true, 3: true, 4: true, 5: false, 6: true, 7: true, 8: true, 14: true, 20: true, 25: true, 26: true}

const graphField = 7

// onnx walks over the fields of the outermost message: protobuf has no magic number. All must be
// those of a model, and there must be a graph.
func (f *file) onnx() bool {
	graph := false
	for off, n := int64(0), 0; off < f.size; n++ {
		b, err := f.read(off, 2*binary.MaxVarintLen64)
		tag, w := binary.Uvarint(b)
		bytes, ok := modelFields[tag>>3]
		if err != nil || w <= 0 || !ok || bytes && tag&7 != 2 || !bytes && tag&7 != 0 || n > 10_000 {
			return false
		}
		value, vw := binary.Uvarint(b[w:])
		if vw <= 0 {
			return false
		}
		off += int64(w + vw)
		graph = graph || tag>>3 == graphField
		switch {
		case !bytes:
		case value <= uint64(f.size-off):
			off += int64(value)
		default:
			return tag>>3 == graphField && n > 0 // cut off, which the parser tells
		}
	}
	return graph
}
