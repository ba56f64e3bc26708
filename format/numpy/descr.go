package numpy

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"weightfs/format/tensor"
)

// An element is what a descr says of the array's elements.
type element struct {
	dtype tensor.DType
	swap  bool   // big-endian
	bytes uint64 // of a void: each element is a row of so many U8; 0 for other types
	guess bool   // descr fits other types too
}

// kinds are the array-protocol strings without their byte order. `f1` is what np.save writes for
// ml_dtypes' float8_e5m2, and V2 for its bfloat16; V1 stands for all its other small types, so that
// its bytes are shown as such.
var kinds = map[string]tensor.DType{
	"b1": tensor.BOOL,
	"i1": tensor.I8, "i2": tensor.I16, "i4": tensor.I32, "i8": tensor.I64,
	"u1": tensor.U8, "u2": tensor.U16, "u4": tensor.U32, "u8": tensor.U64,
	"f1": tensor.F8_E5M2, "f2": tensor.F16, "f4": tensor.F32, "f8": tensor.F64,
	"c8": tensor.C64, "c16": tensor.C128,
	"V1": tensor.U8, "V2": tensor.BF16,
}

// letters are NumPy's one-character codes, with the sizes of 64-bit Linux.
var letters = map[string]string{
	"?": "b1", "b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4",
	"l": "i8", "L": "u8", "q": "i8", "Q": "u8", "p": "i8", "P": "u8", "n": "i8", "N": "u8",
	"e": "f2", "f": "f4", "d": "f8", "F": "c8", "D": "c16",
}

// names are what np.dtype knows by name, and ml_dtypes' types that safetensors has too.
var names = map[string]tensor.DType{
	"bool": tensor.BOOL, "bool_": tensor.BOOL,
	"int8": tensor.I8, "byte": tensor.I8, "uint8": tensor.U8, "ubyte": tensor.U8,
	"int16": tensor.I16, "short": tensor.I16, "uint16": tensor.U16, "ushort": tensor.U16,
	"int32": tensor.I32, "intc": tensor.I32, "uint32": tensor.U32, "uintc": tensor.U32,
	"int64": tensor.I64, "int": tensor.I64, "int_": tensor.I64, "long": tensor.I64, "longlong": tensor.I64, "intp": tensor.I64,
	"uint64": tensor.U64, "uint": tensor.U64, "ulong": tensor.U64, "ulonglong": tensor.U64, "uintp": tensor.U64,
	"float16": tensor.F16, "half": tensor.F16, "float32": tensor.F32, "single": tensor.F32,
	"float64": tensor.F64, "float": tensor.F64, "double": tensor.F64,
	"complex64": tensor.C64, "csingle": tensor.C64,
	"complex128": tensor.C128, "complex": tensor.C128, "cdouble": tensor.C128,
	"bfloat16": tensor.BF16, "float8_e5m2": tensor.F8_E5M2, "float8_e4m3fn": tensor.F8_E4M3,
	"float8_e4m3fnuz": tensor.F8_E4M3FNUZ, "float8_e5m2fnuz": tensor.F8_E5M2FNUZ, "float8_e8m0fnu": tensor.F8_E8M0,
}

// parseDescr finds the element that a descr stands for.
func parseDescr(descr any) (element, error) {
	s, ok := descr.(string)
	if !ok {
		return element{}, fmt.Errorf("%w: descr is a structured type", tensor.ErrUnsupported)
	}
	if d, ok := names[s]; ok {
		return element{dtype: d}, nil
	}
	kind, big := strings.TrimLeft(s, "<>|="), strings.HasPrefix(s, ">")
	if len(s)-len(kind) > 1 {
		return element{}, unknownDescr(s)
	}
	if code, ok := letters[kind]; ok {
		kind = code
	}
	kind, size := splitKind(kind)
	if d, ok := kinds[kind+strconv.Itoa(size)]; ok {
		void := kind == "V"
		return element{dtype: d, swap: big && d.Word() > 1 && !void, guess: void}, nil
	}
	switch {
	case kind == "V" && size > 0 && size <= math.MaxInt32:
		return element{dtype: tensor.U8, bytes: uint64(size), guess: true}, nil
	case kind == "O":
		return element{}, fmt.Errorf("%w: descr %q: objects are pickled, and are not read", tensor.ErrUnsupported, s)
	}
	return element{}, unknownDescr(s)
}

func unknownDescr(s string) error {
	return fmt.Errorf("%w: descr %q has no element type here", tensor.ErrUnsupported, s)
}

// splitKind parts `f4` into its letter and its size, which may have zeros in front.
func splitKind(s string) (kind string, size int) {
	if s == "" {
		return "", 0
	}
	size, err := strconv.Atoi(s[1:])
	if err != nil {
		return s[:1], 0
	}
	return s[:1], size
}
