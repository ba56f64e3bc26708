package safetensors

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"weightfs/format/tensor"
)

const (
	metadataKey = "__metadata__"
	maxRank     = 1024 // far over what any library holds; a header could otherwise claim 50 million dimensions
	maxTold     = 100  // faults of one kind that are told one by one
	minRecord   = len(`"":{"dtype":"U8","shape":[],"data_offsets":[0,0]},`)
)

// A parser reads the one object of a header.
type parser struct {
	scanner
	dataOff int64 // where the byte buffer begins, to which data_offsets are relative
	size    int64 // of the file
	out     *tensor.Header

	names    nameList
	spans    []span
	shapes   []uint64 // what is left of the block that shapes are cut from
	dims     []uint64 // of the record being read
	metadata bool     // __metadata__ was seen
	unknown  int      // tensors of unknown type
}

// newParser sizes its slices by the opening braces, of which a record has one; no more than a
// header of that length can hold.
func newParser(text string, size int64) *parser {
	n := min(strings.Count(text, "{"), len(text)/minRecord+1)
	start := lengthSize + int64(len(text))
	return &parser{
		scanner: scanner{text: text},
		dataOff: start,
		size:    size,
		out:     &tensor.Header{Format: Format, Tensors: make([]tensor.Info, 0, n), DataStart: start},
		names:   nameList{maphash.MakeSeed(), make([]uint64, 0, n)},
		spans:   make([]span, 0, n),
		shapes:  make([]uint64, blockSize),
	}
}

// header reads all of the text.
func (p *parser) header() bool {
	if p.next() != '{' && strings.HasPrefix(p.text[p.pos:], "\ufeff") {
		return p.fail(p.pos, tensor.ErrMalformed, "invalid JSON in header: it begins with a byte order mark")
	}
	if !p.list('{', '}', p.member) {
		return false
	}
	if p.next() != 0 || p.pos < len(p.text) {
		return p.fail(p.pos, tensor.ErrMalformed, "invalid JSON in header: trailing characters after its object, the first is %#02x", p.text[p.pos])
	}
	if more := p.unknown - maxTold; more > 0 {
		p.out.Warnings = append(p.out.Warnings, fmt.Sprintf("%d more tensors of unknown dtype are left out", more))
	}
	return true
}

// member reads a tensor's record, or the metadata, with the key in front of it.
func (p *parser) member() bool {
	p.next()
	at := p.pos
	key, ok := p.key()
	if !ok {
		return false
	}
	if key == metadataKey {
		return p.readMetadata(at)
	}
	p.tensor = key
	p.names.add(key, at)
	rec := record{name: key, at: at}
	ok = p.record(&rec) && p.add(&rec)
	p.tensor = ""
	return ok
}

// readMetadata reads the value of __metadata__: null or an object of strings. Of two equal keys the
// last one stands, as in the reference.
func (p *parser) readMetadata(at int) bool {
	if p.metadata {
		return p.fail(at, tensor.ErrMalformed, "invalid header: duplicate field %s", metadataKey)
	}
	p.metadata = true
	if p.literal("null") {
		return true
	}
	if p.next() != '{' {
		return p.mismatch(metadataKey, "an object of strings")
	}
	index := map[string]int{}
	return p.list('{', '}', func() bool {
		key, ok := p.key()
		if !ok {
			return false
		}
		if p.next() != '"' {
			return p.mismatch(fmt.Sprintf("%s value of %q", metadataKey, abbreviate(key, 40)), "a string")
		}
		value, ok := p.str()
		if i, dup := index[key]; dup {
			p.out.Meta[i].Value = value
		} else {
			index[key] = len(p.out.Meta)
			p.out.Meta = append(p.out.Meta, tensor.KV{Key: key, Value: value})
		}
		return ok
	})
}

// add checks a record by itself and makes an Info of it.
func (p *parser) add(rec *record) bool {
	dt := dtypeOf(rec.dtype)
	if !p.checkSize(rec, dt) {
		return false
	}
	p.spans = append(p.spans, span{rec.begin, rec.end, rec.at})
	if !dt.Valid() {
		p.leaveOut(rec)
		return true
	}
	n := int64(rec.end - rec.begin)
	p.out.Tensors = append(p.out.Tensors, tensor.Info{
		Name:   rec.name,
		DType:  dt,
		Shape:  p.keepShape(rec.shape),
		Bytes:  n,
		Extent: tensor.Extent{Off: p.dataOff + int64(rec.begin), Len: n}, // cover proves that it fits
	})
	return true
}

// leaveOut warns of a tensor of unknown type: newer files have types that older readers lack, and
// the other tensors are none the worse for it.
func (p *parser) leaveOut(rec *record) {
	if p.unknown++; p.unknown > maxTold {
		return
	}
	p.out.Warnings = append(p.out.Warnings, fmt.Sprintf("tensor %q is left out: unknown dtype %q (shape %s, data_offsets [%d, %d])",
		abbreviate(rec.name, 256), abbreviate(rec.dtype, 40), shapeText(rec.shape), rec.begin, rec.end))
}

// checkSize compares the range with shape and type. The product of the shape is checked even where
// the type is unknown, and before a zero dimension could hide a product that wrapped.
func (p *parser) checkSize(rec *record, dt tensor.DType) bool {
	if rec.end < rec.begin {
		return p.fail(rec.at, tensor.ErrMalformed, "data_offsets [%d, %d] end before they begin", rec.begin, rec.end)
	}
	if _, err := tensor.Elements(rec.shape); err != nil {
		return p.fail(rec.at, tensor.ErrTooLarge, "overflow: the product of shape %s exceeds 64 bits", shapeText(rec.shape))
	}
	if !dt.Valid() {
		return true
	}
	size, err := dt.Size(rec.shape, false)
	switch {
	case errors.Is(err, tensor.ErrMalformed):
		return p.fail(rec.at, tensor.ErrMalformed, "shape %s of dtype %s is not a whole number of bytes", shapeText(rec.shape), dt)
	case err != nil:
		return p.fail(rec.at, tensor.ErrTooLarge, "overflow: shape %s of dtype %s exceeds 63 bits of bytes", shapeText(rec.shape), dt)
	case uint64(size) != rec.end-rec.begin:
		return p.fail(rec.at, tensor.ErrMalformed, "data_offsets [%d, %d] hold %d bytes, but shape %s of dtype %s takes %d",
			rec.begin, rec.end, rec.end-rec.begin, shapeText(rec.shape), dt, size)
	}
	return true
}

// shapeText renders a shape for a message, without most of its dimensions where it has very many.
func shapeText(shape []uint64) string {
	if n := len(shape); n > 16 {
		return fmt.Sprintf("%s… of %d dimensions", tensor.AppendShape(nil, shape[:16]), n)
	}
	return string(tensor.AppendShape(nil, shape))
}
