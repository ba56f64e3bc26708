package elements

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"weightfs/format/tensor"
)

// changeOf is what turns the stored elements into the shown ones, in place: the byte order first,
// then the sign. It is nil when nothing is to be done.
func changeOf(d tensor.DType, l *tensor.Layout) (func([]byte), error) {
	var steps []func([]byte)
	if l.Swap && d.Word() != 1 {
		swap := swapper(d.Word())
		if swap == nil {
			return nil, fmt.Errorf("%w: byte order of %s", tensor.ErrUnsupported, d)
		}
		steps = append(steps, swap)
	}
	if l.Neg {
		negate := negater(d)
		if negate == nil {
			return nil, fmt.Errorf("%w: negated %s", tensor.ErrUnsupported, d)
		}
		steps = append(steps, negate)
	}
	if l.Conj {
		if d.Kind() != tensor.Complex {
			return nil, fmt.Errorf("%w: conjugated %s", tensor.ErrUnsupported, d)
		}
		size := 2 * d.Word() // the imaginary part is the second
		steps = append(steps, func(p []byte) { flipSigns(p, size) })
	}
	if len(steps) == 0 {
		return nil, nil
	}
	return func(p []byte) {
		for _, step := range steps {
			step(p)
		}
	}, nil
}

// swapper reverses every word bytes.
func swapper(word int) func([]byte) {
	le := binary.LittleEndian
	switch word {
	case 2:
		return func(p []byte) {
			for i := 0; i+2 <= len(p); i += 2 {
				le.PutUint16(p[i:], bits.ReverseBytes16(le.Uint16(p[i:])))
			}
		}
	case 4:
		return func(p []byte) {
			for i := 0; i+4 <= len(p); i += 4 {
				le.PutUint32(p[i:], bits.ReverseBytes32(le.Uint32(p[i:])))
			}
		}
	case 8:
		return func(p []byte) {
			for i := 0; i+8 <= len(p); i += 8 {
				le.PutUint64(p[i:], bits.ReverseBytes64(le.Uint64(p[i:])))
			}
		}
	}
	return nil
}

// negater negates every element; nil for a type that has no negatives of its own.
func negater(d tensor.DType) func([]byte) {
	word := d.Word()
	switch d.Kind() {
	case tensor.Complex:
		return func(p []byte) { flipSigns(p, word) }
	case tensor.Int, tensor.Uint:
		if !d.Packed() {
			return func(p []byte) { negateInts(p, word) }
		}
	case tensor.Float:
		switch d {
		case tensor.F8_E8M0, tensor.F6_E2M3, tensor.F6_E3M2:
		case tensor.F4:
			return func(p []byte) { flipBits(p, 0x88) }
		case tensor.F8_E4M3FNUZ, tensor.F8_E5M2FNUZ:
			return negateUnsignedZero
		default:
			return func(p []byte) { flipSigns(p, word) }
		}
	}
	return nil
}

// flipSigns flips the sign of the float at the end of every size bytes.
func flipSigns(p []byte, size int) {
	for i := size - 1; i < len(p); i += size {
		p[i] ^= 0x80
	}
}

func flipBits(p []byte, mask byte) {
	for i := range p {
		p[i] ^= mask
	}
}

// negateUnsignedZero leaves zero and NaN, which the FNUZ types spell with the sign bit alone.
func negateUnsignedZero(p []byte) {
	for i, b := range p {
		if b&0x7f != 0 {
			p[i] = b ^ 0x80
		}
	}
}

// negateInts is the two's complement of every little-endian word.
func negateInts(p []byte, word int) {
	for w := range slices.Chunk(p, word) {
		carry := byte(1)
		for i, b := range w {
			w[i] = ^b + carry
			if b != 0 {
				carry = 0
			}
		}
	}
}
