package decode

import (
	"math"
	"testing"

	"weightfs/format/tensor"
)

// Packed types have golden vectors of their own, and what Floats decodes is only widened.
func TestValuesGolden(t *testing.T) {
	for d := tensor.DType(1); d.Valid(); d++ {
		if !Supported(d) && (!d.Packed() || d.Kind() == tensor.Block) || d == tensor.F32 {
			continue
		}
		src, want := golden(t, d)
		values := make([]float64, len(want)/4)
		Values(d, values, src)
		narrow := make([]float32, len(values))
		for i, v := range values {
			narrow[i] = float32(v)
			if w := le.Uint32(want[4*i:]); math.IsNaN(v) && isNaN(w) {
				narrow[i] = math.Float32frombits(w)
			}
		}
		diff(t, d, floatBytes(narrow), want)
	}
}

// An odd number of values of a packed type ends in part of a byte.
func TestValuesPartial(t *testing.T) {
	v := make([]float64, 3)
	Values(tensor.I4, v, []byte{0xf1, 0x08})
	if v[0] != 1 || v[1] != -1 || v[2] != -8 {
		t.Errorf("odd I4: %v", v)
	}
	Values(tensor.F6_E2M3, v[:1], []byte{0x1f})
	if v[0] != 7.5 {
		t.Errorf("one F6_E2M3: %v", v[0])
	}
}

func TestParts(t *testing.T) {
	for d, want := range map[tensor.DType]int{
		tensor.BOOL: 1, tensor.C32: 2, tensor.C128: 2, tensor.U2: 1, tensor.Q4_K: 1, tensor.Q8_1: 0, tensor.IQ2_KT: 0, 0: 0,
	} {
		if got := Parts(d); got != want {
			t.Errorf("%v has %d parts, want %d", d, got, want)
		}
	}
}

func TestAppendValue(t *testing.T) {
	q8 := append([]byte{0x00, 0x3c}, make([]byte, 32)...) // scale 1
	q8 = append(q8, q8...)
	q8[34+2+5] = 0xfd
	for _, c := range []struct {
		d    tensor.DType
		src  []byte
		i    int
		want string
	}{
		{tensor.BOOL, []byte{0, 2}, 0, "False"},
		{tensor.BOOL, []byte{0, 2}, 1, "True"},
		{tensor.U8, []byte{255}, 0, "255"},
		{tensor.I8, []byte{255}, 0, "-1"},
		{tensor.I16, []byte{0, 0x80}, 0, "-32768"},
		{tensor.U32, []byte{255, 255, 255, 255}, 0, "4294967295"},
		{tensor.U64, []byte{255, 255, 255, 255, 255, 255, 255, 255}, 0, "18446744073709551615"},
		{tensor.I64, []byte{1, 0, 0, 0, 0, 0, 0, 0x80}, 0, "-9223372036854775807"},
		{tensor.F32, []byte{0xcd, 0xcc, 0xcc, 0x3d}, 0, "0.1"},
		{tensor.F64, []byte{0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f}, 0, "0.1"},
		{tensor.F16, []byte{0, 0, 0, 0xfc}, 1, "-inf"},
		{tensor.F8_E4M3, []byte{0x7f}, 0, "nan"},
		{tensor.BF16, []byte{0, 0x80}, 0, "-0"},
		{tensor.F4, []byte{0x71, 0x9f}, 2, "-6"},
		{tensor.C64, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, 0, "1-2j"},
		{tensor.C32, []byte{0, 0x3c, 0, 0x7e}, 0, "1+nanj"},
		{tensor.Q8_0, q8, 37, "-3"},
	} {
		if got := string(AppendValue(nil, c.d, c.src, c.i)); got != c.want {
			t.Errorf("%v element %d: %s, want %s", c.d, c.i, got, c.want)
		}
	}
}
