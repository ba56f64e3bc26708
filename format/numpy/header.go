package numpy

import (
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"unicode/utf8"

	"weightfs/format/tensor"
)

const (
	magic = "\x93NUMPY"
	// maxHeader is NumPy's own limit, for files that are not trusted.
	maxHeader = 10_000
	// maxRank is NumPy's limit.
	maxRank = 64
)

var errNoMagic = fmt.Errorf("%w: no .npy", tensor.ErrMalformed)

// A header is the beginning of a .npy: what its array is, and how long the header itself is.
type header struct {
	element
	descr   string
	shape   []uint64
	fortran bool
	size    int64
}

// readHeader reads the header of a .npy of size bytes from its beginning. Errors are FormatErrors
// whose offset counts from there.
func readHeader(r io.Reader, size int64) (*header, error) {
	var fixed [12]byte
	if err := readFull(r, fixed[:6], 0, size, "magic"); err != nil {
		return nil, err
	}
	if string(fixed[:6]) != magic {
		return nil, fault(0, errNoMagic, "no .npy: it begins with %q", fixed[:6])
	}
	if err := readFull(r, fixed[6:8], 6, size, "version"); err != nil {
		return nil, err
	}
	major, minor := fixed[6], fixed[7]
	width := int64(4)
	switch {
	case minor != 0 || major < 1 || major > 3:
		return nil, fault(6, tensor.ErrUnsupported, "version %d.%d of the .npy format; known are 1.0, 2.0 and 3.0", major, minor)
	case major == 1:
		width = 2
	}
	if err := readFull(r, fixed[8:8+width], 8, size, "length of the array header"); err != nil {
		return nil, err
	}
	n := int64(0)
	for i := range width {
		n |= int64(fixed[8+i]) << (8 * i)
	}
	begin := 8 + width
	switch {
	case n > size-begin:
		return nil, fault(8, tensor.ErrTruncated, "truncated: array header of %d bytes, but only %d remain", n, size-begin)
	case n > maxHeader:
		return nil, fault(8, tensor.ErrUnsupported, "array header of %d bytes exceeds the limit of %d", n, maxHeader)
	}
	text := make([]byte, n)
	if err := readFull(r, text, begin, size, "array header"); err != nil {
		return nil, err
	}
	if major == 3 && !utf8.Valid(text) {
		return nil, fault(begin, tensor.ErrMalformed, "array header is not UTF-8")
	}
	h, err := parseHeader(string(text), major <= 2)
	if err != nil {
		return nil, wrap(begin, err)
	}
	h.size = begin + n
	return h, nil
}

// readFull reads len(p) bytes at off, of size in all.
func readFull(r io.Reader, p []byte, off, size int64, what string) error {
	if int64(len(p)) > size-off {
		return fault(off, tensor.ErrTruncated, "truncated: %s of %d bytes, but only %d remain", what, len(p), size-off)
	}
	n, err := io.ReadFull(r, p)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fault(off+int64(n), tensor.ErrTruncated, "truncated: %s of %d bytes ends after %d", what, len(p), n)
	case errors.As(err, new(flate.CorruptInputError)):
		return fault(off+int64(n), tensor.ErrMalformed, "%s: %v", what, err)
	case err != nil:
		return fault(off+int64(n), err, "%s: %v", what, err)
	}
	return nil
}

func fault(off int64, reason error, format string, a ...any) *tensor.FormatError {
	return &tensor.FormatError{Format: "npy", Off: off, Msg: fmt.Sprintf(format, a...), Err: reason}
}

// wrap makes a fault of err, whose reason is one of package tensor's or malformed.
func wrap(off int64, err error) *tensor.FormatError {
	for _, reason := range []error{tensor.ErrUnsupported, tensor.ErrTooLarge, tensor.ErrTruncated} {
		if errors.Is(err, reason) {
			return fault(off, reason, "%v", err)
		}
	}
	return fault(off, tensor.ErrMalformed, "array header: %v", err)
}

// parseHeader takes a header's text: a dictionary with exactly the keys descr, fortran_order, shape.
func parseHeader(text string, longs bool) (*header, error) {
	v, err := parseLiteral(text, longs)
	if err != nil {
		return nil, err
	}
	d, ok := v.(dict)
	if !ok {
		return nil, errors.New("no dictionary")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if _, ok := d[key]; !ok {
			return nil, fmt.Errorf("key %q is missing", key)
		}
	}
	if len(d) != 3 {
		return nil, fmt.Errorf("%d keys, not just descr, fortran_order and shape", len(d))
	}
	h := &header{}
	if h.fortran, ok = d["fortran_order"].(bool); !ok {
		return nil, errors.New("fortran_order is neither True nor False")
	}
	if h.shape, err = parseShape(d["shape"]); err != nil {
		return nil, err
	}
	h.descr, _ = d["descr"].(string)
	h.element, err = parseDescr(d["descr"])
	return h, err
}

func parseShape(v any) ([]uint64, error) {
	dims, ok := v.(tuple)
	if !ok {
		return nil, errors.New("shape is no tuple")
	}
	if len(dims) > maxRank {
		return nil, fmt.Errorf("shape has %d dimensions, NumPy's limit is %d", len(dims), maxRank)
	}
	shape := make([]uint64, len(dims))
	for i, dim := range dims {
		n, ok := dim.(*big.Int)
		switch {
		case !ok:
			return nil, fmt.Errorf("dimension %d of shape is no integer", i)
		case n.Sign() < 0:
			return nil, fmt.Errorf("dimension %d of shape is negative: %v", i, n)
		case !n.IsInt64():
			return nil, fmt.Errorf("dimension %d of shape exceeds the limit of %d", i, int64(math.MaxInt64))
		}
		shape[i] = n.Uint64()
	}
	return shape, nil
}

// info describes the array, but for its Extent; size bytes follow the header.
func (h *header) info(name string, size int64) (*tensor.Info, error) {
	t := &tensor.Info{Name: name, DType: h.dtype, Shape: h.shape}
	if h.bytes > 0 {
		t.Shape = append(t.Shape, h.bytes)
	}
	// NumPy multiplies the other dimensions of an array without elements too.
	others := slices.DeleteFunc(slices.Clone(t.Shape), func(n uint64) bool { return n == 0 })
	var err error
	if _, err = t.DType.Size(others, false); err == nil {
		t.Bytes, err = t.DType.Size(t.Shape, false)
	}
	if err != nil {
		return nil, wrap(h.size, fmt.Errorf("shape %v of %s: %w", t.Shape, t.DType, err))
	}
	if t.Bytes > size {
		return nil, fault(h.size, tensor.ErrTruncated, "truncated: shape %v of %s takes %d bytes, but only %d remain: there are %d bytes of the %d that the header describes, %d are missing",
			t.Shape, t.DType, t.Bytes, size, h.size+size, uint64(h.size)+uint64(t.Bytes), t.Bytes-size)
	}
	layout := tensor.Layout{Swap: h.swap}
	if h.fortran && t.Bytes > 0 {
		layout.Strides = h.columnMajor()
	}
	if layout.Swap || layout.Strides != nil {
		t.Layout = &layout
	}
	t.Extra = h.extra(t.Layout)
	return t, nil
}

// columnMajor gives the strides of an array in Fortran order, nil where row-major order is the same.
// A void's bytes stay together.
func (h *header) columnMajor() []int64 {
	strides := make([]int64, len(h.shape), len(h.shape)+1)
	stride, long := int64(max(h.bytes, 1)), 0
	for i, dim := range h.shape {
		strides[i] = stride
		stride *= int64(dim) // of an array that is in the file, so no overflow
		if dim != 1 {
			long++
		}
	}
	if long < 2 {
		return nil
	}
	if h.bytes > 0 {
		strides = append(strides, 1)
	}
	return strides
}

func (h *header) extra(l *tensor.Layout) tensor.Object {
	var extra tensor.Object
	if l != nil && l.Swap {
		extra = append(extra, tensor.KV{Key: "stored_byteorder", Value: "big"})
	}
	if l != nil && l.Strides != nil {
		extra = append(extra, tensor.KV{Key: "stored_order", Value: "F"})
	}
	if h.guess {
		extra = append(extra, tensor.KV{Key: "stored_descr", Value: h.descr})
	}
	return extra
}
