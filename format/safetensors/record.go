package safetensors

import "weightfs/format/tensor"

// A record is what the header says of one tensor.
type record struct {
	name       string
	at         int // where its name stands in the text
	dtype      string
	shape      []uint64 // valid until the next record
	begin, end uint64
}

// record reads the value of a tensor's key: an object, or an array of the three values in this
// order, which serde takes for a struct as well.
func (p *parser) record(rec *record) bool {
	switch p.next() {
	case '{':
		return p.namedRecord(rec)
	case '[':
		return p.positionalRecord(rec)
	}
	return p.mismatch("the record of the tensor", "an object")
}

func (p *parser) namedRecord(rec *record) bool {
	var dtype, shape, offsets bool
	once := func(seen *bool, at int, name string) bool {
		if *seen {
			return p.fail(at, tensor.ErrMalformed, "invalid header: duplicate field %q", name)
		}
		*seen = true
		return true
	}
	ok := p.list('{', '}', func() bool {
		p.next()
		at := p.pos
		key, ok := p.key()
		if !ok {
			return false
		}
		switch key {
		case "dtype":
			return once(&dtype, at, key) && p.readDType(rec)
		case "shape":
			return once(&shape, at, key) && p.readShape(rec)
		case "data_offsets":
			return once(&offsets, at, key) && p.readOffsets(rec)
		}
		return p.skip(2)
	})
	switch {
	case !ok:
		return false
	case !dtype:
		return p.missing(rec, "dtype")
	case !shape:
		return p.missing(rec, "shape")
	case !offsets:
		return p.missing(rec, "data_offsets")
	}
	return true
}

func (p *parser) missing(rec *record, field string) bool {
	return p.fail(rec.at, tensor.ErrMalformed, "invalid header: missing field %q", field)
}

func (p *parser) positionalRecord(rec *record) bool {
	n := 0
	ok := p.list('[', ']', func() bool {
		n++
		switch n {
		case 1:
			return p.readDType(rec)
		case 2:
			return p.readShape(rec)
		case 3:
			return p.readOffsets(rec)
		}
		return p.fail(p.pos, tensor.ErrMalformed, "invalid header: a positional record of more than 3 values")
	})
	if ok && n < 3 {
		return p.fail(rec.at, tensor.ErrMalformed, "invalid header: a positional record of %d values, expected 3", n)
	}
	return ok
}

func (p *parser) readDType(rec *record) (ok bool) {
	if p.next() != '"' {
		return p.mismatch("dtype", "a string")
	}
	rec.dtype, ok = p.str()
	return ok
}

func (p *parser) readShape(rec *record) bool {
	if p.next() != '[' {
		return p.mismatch("shape", "an array")
	}
	p.dims = p.dims[:0]
	ok := p.list('[', ']', func() bool {
		dim, ok := p.uint("shape")
		if len(p.dims) == maxRank {
			return p.fail(p.pos, tensor.ErrTooLarge, "shape of more than %d dimensions", maxRank)
		}
		p.dims = append(p.dims, dim)
		return ok
	})
	rec.shape = p.dims
	return ok
}

func (p *parser) readOffsets(rec *record) bool {
	if p.next() != '[' {
		return p.mismatch("data_offsets", "an array")
	}
	at, n := p.pos, 0
	ok := p.list('[', ']', func() (ok bool) {
		n++
		switch n {
		case 1:
			rec.begin, ok = p.uint("data_offsets")
		case 2:
			rec.end, ok = p.uint("data_offsets")
		default:
			return p.fail(at, tensor.ErrMalformed, "invalid header: data_offsets of more than 2 numbers")
		}
		return ok
	})
	if ok && n < 2 {
		return p.fail(at, tensor.ErrMalformed, "invalid header: data_offsets of %d numbers, expected 2", n)
	}
	return ok
}

// dtypeOf knows exactly the reference's 22 names; weightfs' vocabulary has more. Zero is unknown.
func dtypeOf(name string) tensor.DType {
	switch name {
	case "BOOL":
		return tensor.BOOL
	case "F4":
		return tensor.F4
	case "F6_E2M3":
		return tensor.F6_E2M3
	case "F6_E3M2":
		return tensor.F6_E3M2
	case "U8":
		return tensor.U8
	case "I8":
		return tensor.I8
	case "F8_E5M2":
		return tensor.F8_E5M2
	case "F8_E4M3":
		return tensor.F8_E4M3
	case "F8_E8M0":
		return tensor.F8_E8M0
	case "F8_E4M3FNUZ":
		return tensor.F8_E4M3FNUZ
	case "F8_E5M2FNUZ":
		return tensor.F8_E5M2FNUZ
	case "I16":
		return tensor.I16
	case "U16":
		return tensor.U16
	case "F16":
		return tensor.F16
	case "BF16":
		return tensor.BF16
	case "I32":
		return tensor.I32
	case "U32":
		return tensor.U32
	case "F32":
		return tensor.F32
	case "C64":
		return tensor.C64
	case "F64":
		return tensor.F64
	case "I64":
		return tensor.I64
	case "U64":
		return tensor.U64
	}
	return 0
}

const blockSize = 1024 // dimensions that one allocation serves

// keepShape copies the dimensions out of the buffer that the next record reuses.
func (p *parser) keepShape(dims []uint64) []uint64 {
	n := len(dims)
	if n > len(p.shapes) {
		p.shapes = make([]uint64, max(blockSize, n))
	}
	kept := p.shapes[:n:n]
	p.shapes = p.shapes[n:]
	copy(kept, dims)
	return kept
}
