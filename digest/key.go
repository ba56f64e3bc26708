package digest

import (
	"crypto/sha256"
	"encoding/binary"

	"weightfs/format/tensor"
)

// A key stands for all that a tensor's Result depends on within its file. Tensors that share their
// bytes, type and shape share a Result. It is cryptographic: a file that is made for it must not get
// one tensor the hash of another.
type key [16]byte

func keyOf(t *tensor.Info) key {
	b := make([]byte, 0, 256)
	b = append(b, t.DType.String()...)
	b = append(b, 0)
	b = appendInts(b, t.Extent.Off, t.Extent.Len, t.Bytes, int64(len(t.Shape)))
	for _, dim := range t.Shape {
		b = binary.LittleEndian.AppendUint64(b, dim)
	}
	if l := t.Layout; l != nil {
		b = appendInts(b, int64(l.Pack), l.Unpacked, l.Skip, int64(l.CRC32), bit(l.Swap), bit(l.Neg), bit(l.Conj))
		b = appendInts(b, l.Strides...)
	}
	sum := sha256.Sum256(b)
	return key(sum[:])
}

func appendInts(b []byte, list ...int64) []byte {
	for _, n := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func bit(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
