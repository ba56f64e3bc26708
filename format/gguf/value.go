package gguf

import (
	"fmt"
	"math"
	"strconv"

	"weightfs/format/tensor"
)

// A valueType is a metadata type id of the file.
type valueType uint32

const (
	typeU8 valueType = iota
	typeI8
	typeU16
	typeI16
	typeU32
	typeI32
	typeF32
	typeBool
	typeString
	typeArray
	typeU64
	typeI64
	typeF64
	valueTypeEnd
)

// valueTypes has no size for strings and arrays.
var valueTypes = [valueTypeEnd]struct {
	name string
	size int64
}{
	typeU8: {"u8", 1}, typeI8: {"i8", 1}, typeU16: {"u16", 2}, typeI16: {"i16", 2},
	typeU32: {"u32", 4}, typeI32: {"i32", 4}, typeF32: {"f32", 4}, typeBool: {"bool", 1},
	typeString: {"string", 0}, typeArray: {"array", 0},
	typeU64: {"u64", 8}, typeI64: {"i64", 8}, typeF64: {"f64", 8},
}

func (t valueType) String() string {
	if t >= valueTypeEnd {
		return fmt.Sprintf("type %d", uint32(t))
	}
	return valueTypes[t].name
}

const (
	eagerElems  = 64       // of an array that is read at once
	eagerString = 64 << 10 // bytes
	maxDepth    = 64       // of arrays in arrays
	maxShown    = 32 << 20 // stored bytes of one value
)

func (d *decoder) valueType() valueType {
	off := d.Off()
	t := valueType(d.U32("value type"))
	if t >= valueTypeEnd {
		d.Fail(off, tensor.ErrMalformed, "value %v is not one of 0 to %d", t, valueTypeEnd-1)
		return 0
	}
	return t
}

// value reads a value. What is long, and arrays of arrays, are passed over and stay in the file.
func (d *decoder) value(t valueType) any {
	off := d.Off()
	switch t {
	case typeString:
		n := d.length("string length")
		if n <= eagerString {
			return d.Str(n, eagerString, "string")
		}
		d.Skip(n, "string")
	case typeArray:
		elem, n := d.arrayHead(0)
		if n <= eagerElems && elem != typeArray {
			return d.elements(elem, n)
		}
		d.skipElements(elem, n, 0)
	default:
		return d.scalar(t)
	}
	return &lazyValue{src: d.src, typ: t, off: off, size: d.Off() - off}
}

func (d *decoder) scalar(t valueType) any {
	switch t {
	case typeU8:
		return uint64(d.U8("u8"))
	case typeI8:
		return int64(int8(d.U8("i8")))
	case typeU16:
		return uint64(d.U16("u16"))
	case typeI16:
		return int64(int16(d.U16("i16")))
	case typeU32:
		return uint64(d.U32("u32"))
	case typeI32:
		return int64(int32(d.U32("i32")))
	case typeF32:
		return widen(d.F32("f32"))
	case typeBool:
		return d.U8("bool") != 0 // as ggml has it; other bytes than 0 and 1 occur
	case typeU64:
		return d.U64("u64")
	case typeI64:
		return int64(d.U64("i64"))
	default:
		return d.F64("f64")
	}
}

// widen gives the float64 that prints as the shortest decimal of f (1e-06, not 9.999999974752427e-07);
// as a float32 it is f again.
func widen(f float32) float64 {
	exact := float64(f)
	if exact == math.Trunc(exact) && math.Abs(exact) < 1<<24 || math.IsNaN(exact) || math.IsInf(exact, 0) {
		return exact
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(exact, 'g', -1, 32), 64)
	if err != nil {
		return exact
	}
	return short
}

// arrayHead reads an array's element type and count, which is then known to fit the file.
func (d *decoder) arrayHead(depth int) (elem valueType, n int) {
	off := d.Off()
	if depth >= maxDepth {
		d.Fail(off, tensor.ErrTooLarge, "arrays are nested deeper than %d", maxDepth)
		return 0, 0
	}
	elem = d.valueType()
	count := d.length("array length")
	each := valueTypes[elem].size
	switch elem {
	case typeString:
		each = d.lengthSize()
	case typeArray:
		each = 4 + d.lengthSize()
	}
	return elem, d.Count(count, each, "array elements")
}

func (d *decoder) elements(elem valueType, n int) []any {
	list := make([]any, 0, n)
	for len(list) < n && d.more() {
		list = append(list, d.value(elem))
	}
	return list
}

// skipElements passes over n elements without an allocation for any of them.
func (d *decoder) skipElements(elem valueType, n, depth int) {
	switch elem {
	case typeString:
		for i := 0; i < n && d.more(); i++ {
			d.Skip(d.length("string length"), "string")
		}
	case typeArray:
		for i := 0; i < n && d.more(); i++ {
			inner, m := d.arrayHead(depth + 1)
			d.skipElements(inner, m, depth+1)
		}
	default:
		d.Skip(uint64(n)*uint64(valueTypes[elem].size), "array")
	}
}

// A lazyValue is a string or an array that stays in its file, and is read again each time that it
// is rendered. It may be used from many goroutines.
type lazyValue struct {
	src  *source
	typ  valueType
	off  int64
	size int64
}

// AppendJSON implements tensor.Lazy. A value that can no longer be read is shown as the fault.
func (v *lazyValue) AppendJSON(dst []byte) []byte {
	if v.size > maxShown {
		return tensor.AppendString(dst, fmt.Sprintf("(%v of %d bytes at offset %d)", v.typ, v.size, v.off))
	}
	d := v.src.decoder(v.off)
	out := d.appendJSON(dst, v.typ, 0)
	if err := d.Err(); err != nil {
		return tensor.AppendString(dst, "("+err.Error()+")")
	}
	return out
}

func (d *decoder) appendJSON(dst []byte, t valueType, depth int) []byte {
	switch t {
	case typeString:
		return tensor.AppendString(dst, d.Str(d.length("string length"), maxShown, "string"))
	case typeArray:
		elem, n := d.arrayHead(depth)
		dst = append(dst, '[')
		for i := 0; i < n && d.more(); i++ {
			if i > 0 {
				dst = append(dst, ',', ' ')
			}
			dst = d.appendJSON(dst, elem, depth+1)
		}
		return append(dst, ']')
	}
	return tensor.AppendJSON(dst, d.scalar(t))
}
